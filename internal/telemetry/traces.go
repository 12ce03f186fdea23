package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TraceOptions say where spans go. Endpoint is required. What else OpenTelemetry lets the environment say (headers, certificates,
// sampling, the service's name) is read from there by its library.
type TraceOptions struct {
	// Endpoint is the URL that OTLP requests are posted to, in full: http://127.0.0.1:4318/v1/traces.
	Endpoint string
	// Version of the binary.
	Version string
	// Report is told when spans can no longer be delivered, and with nil when they can again; nil drops it.
	Report func(error)
}

// Traces makes one span for each operation and sends it to a collector in the background. A nil *Traces makes none. Create it with
// NewTraces.
type Traces struct {
	provider   *sdktrace.TracerProvider
	tracer     trace.Tracer
	propagator propagation.TraceContext
}

// NewTraces returns traces that are sent as OTLP over HTTP. It fails if the endpoint is no URL; whether anybody answers there is seen
// only when spans are sent, so that a server never waits for its collector.
func NewTraces(ctx context.Context, o TraceOptions) (*Traces, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// Not repeated: it may hold a password.
		return nil, errors.New("the endpoint of traces is no URL: it must be one such as http://127.0.0.1:4318/v1/traces")
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", u.Redacted(), err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "lancerest"), attribute.String("service.version", o.Version)),
		resource.WithFromEnv()) // the last wins
	if err != nil {
		return nil, fmt.Errorf("read the resource of traces from the environment: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(&reporting{SpanExporter: exporter, report: o.Report}), sdktrace.WithResource(about))
	return &Traces{provider: provider, tracer: provider.Tracer("github.com/lancerest/lancerest")}, nil
}

// Close sends the spans that wait, as far as ctx allows. What cannot be delivered is dropped, and told to Report.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// Span is one operation under way. A nil *Span does nothing.
type Span struct{ span trace.Span }

// Start begins the span of an operation that arrived at a time. header reads the request's headers: a traceparent makes the span
// a part of the caller's trace, and decides whether it is recorded. The context carries the span.
func (t *Traces) Start(ctx context.Context, operation string, arrived time.Time, header func(string) string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	ctx = t.propagator.Extract(ctx, headers(header))
	ctx, span := t.tracer.Start(ctx, operation, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(arrived))
	return ctx, &Span{span: span}
}

// Outcome is what an operation came to. None of it may be a secret: spans leave the machine.
type Outcome struct {
	Request string   // the request's id, as in the log
	Target  []string // the id of the table or namespace, nil if there is none
	Status  int      // of HTTP
	Code    int      // of the error, -1 for success
}

// End ends the span. Failures of the server itself mark it as an error, those of the caller do not, as OpenTelemetry wants it of servers.
func (s *Span) End(o Outcome) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String("lancerest.request", o.Request), attribute.Int("http.response.status_code", o.Status))
	if o.Target != nil {
		s.span.SetAttributes(attribute.StringSlice("lancerest.id", o.Target))
	}
	if o.Code >= 0 {
		s.span.SetAttributes(attribute.Int("lancerest.code", o.Code))
	}
	if o.Status >= 500 {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// TraceID returns the id of the span's trace for the log, "" where there is no span.
func (s *Span) TraceID() string {
	if s == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// headers reads a request's headers for the propagator, which sets none.
type headers func(string) string

// Get implements propagation.TextMapCarrier.
func (h headers) Get(key string) string { return h(key) }

// Set implements propagation.TextMapCarrier. Nothing is sent on.
func (h headers) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (h headers) Keys() []string { return nil }

// reporting tells when an exporter begins to fail and when it works again, not each time, and hides failures from the library, which
// would print them past the log.
type reporting struct {
	sdktrace.SpanExporter
	report  func(error)
	failing atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	if failing := err != nil; r.failing.Swap(failing) != failing {
		r.report(err)
	}
	return nil
}
