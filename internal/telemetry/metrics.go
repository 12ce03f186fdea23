// Package telemetry counts what the server does, in the form that Prometheus reads, and sends traces of it where that is asked for.
//
// What does not live here: HTTP. Package httpapi serves what Registry gathers, and begins and ends the spans.
package telemetry

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Catalog is what the metrics ask of the catalog when they are read.
type Catalog interface {
	// Backlog counts transactions that are pending and jobs that are waiting, each up to a bound.
	Backlog(ctx context.Context) (pending, jobs int, err error)
}

// Count is a number that only grows, with its name and what it means.
type Count struct {
	Name, Help string
	Value      func() float64
}

// Gauge is a number that goes up and down, with its name and what it means.
type Gauge struct {
	Name, Help string
	Value      func() float64
}

// CountOf reads an atomic counter.
func CountOf(c *atomic.Int64) func() float64 { return func() float64 { return float64(c.Load()) } }

// Metrics is one server's metrics. Create it with New.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	jobs     *prometheus.HistogramVec
}

// backlogMax bounds the wait for the backlog when metrics are read.
const backlogMax = 2 * time.Second

// New returns metrics that read the given counters and the catalog's backlog.
func New(c Catalog, counts []Count) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "lancerest_request_duration_seconds",
			Help:    "Time from the first byte of a request's head to the last of its answer, by operation and error code (ok: none).",
			Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation", "code"}),
		jobs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "lancerest_job_duration_seconds",
			Help:    "Time that the last attempt at a job of the engine's took, by operation and status.",
			Buckets: []float64{.1, 1, 10, 60, 600, 3600, 21600},
		}, []string{"operation", "status"}),
	}
	m.registry.MustRegister(m.requests, m.jobs, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, count := range counts {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: count.Name, Help: count.Help}, count.Value))
	}
	m.registry.MustRegister(&backlog{catalog: c,
		pending: prometheus.NewDesc("lancerest_transactions_pending", "Transactions that are reserved and not resolved.", nil, nil),
		jobs:    prometheus.NewDesc("lancerest_jobs_waiting", "Jobs that follow commits and have not run: purges of dropped tables and the like.", nil, nil),
	})
	return m
}

// Registry gathers the metrics.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Watch adds a gauge. It panics if its name is taken.
func (m *Metrics) Watch(g Gauge) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: g.Name, Help: g.Help}, g.Value))
}

// Observe counts one operation with its error code, -1 for success, and how long it took.
func (m *Metrics) Observe(operation string, code int, took time.Duration) {
	label := "ok"
	if code >= 0 {
		label = strconv.Itoa(code)
	}
	m.requests.WithLabelValues(operation, label).Observe(took.Seconds())
}

// ObserveJob counts one job of the engine's that ended with a status, and how long its last attempt took.
func (m *Metrics) ObserveJob(operation, status string, took time.Duration) {
	m.jobs.WithLabelValues(operation, status).Observe(took.Seconds())
}

// backlog asks the catalog each time the metrics are read.
type backlog struct {
	catalog       Catalog
	pending, jobs *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (b *backlog) Describe(ch chan<- *prometheus.Desc) {
	ch <- b.pending
	ch <- b.jobs
}

// Collect implements prometheus.Collector. Where the state cannot be read the two values are left out, so that a gap shows it.
func (b *backlog) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), backlogMax)
	defer cancel()
	pending, jobs, err := b.catalog.Backlog(ctx)
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(b.pending, prometheus.GaugeValue, float64(pending))
	ch <- prometheus.MustNewConstMetric(b.jobs, prometheus.GaugeValue, float64(jobs))
}
