package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lancerest/lancerest/internal/app"
)

// limits are the flags that bound what requests may use.
type limits struct {
	Body       byteSize      `help:"Largest JSON body, before and after decompression." default:"32MiB" env:"BODY"`
	Bodies     byteSize      `help:"Memory for all JSON bodies that are held at a time." default:"512MiB" env:"BODIES"`
	Header     byteSize      `help:"Largest head of a request: its URL and its headers." default:"64KiB" env:"HEADER"`
	Batch      int           `help:"Most entries in one batch." default:"10000" env:"BATCH"`
	Concurrent int           `help:"Operations at a time." default:"512" env:"CONCURRENT"`
	Queue      int           `help:"Operations that wait for their turn before others are refused with 503." default:"4096" env:"QUEUE"`
	QueueTime  time.Duration `help:"Time that an operation waits for its turn before it is refused with 503." default:"30s" env:"QUEUE_TIME"`
	BodyTime   time.Duration `help:"Time for a JSON body to arrive." default:"1m" env:"BODY_TIME"`
	ReadTime   time.Duration `help:"Time for an operation that changes nothing." default:"1m" env:"READ_TIME"`
	WriteTime  time.Duration `help:"Time for an operation that does, up to the point from which it cannot be undone." default:"2m" env:"WRITE_TIME"`
	IdleTime   time.Duration `help:"Time that a connection may rest between requests: at least 310s, because clients keep connections for up to 300 s." default:"620s" env:"IDLE_TIME"`
	DrainTime  time.Duration `help:"Time for requests under way to end once the server is asked to stop." default:"30s" env:"DRAIN_TIME"`
}

// check refuses what is not above zero: zero is a mistake here, and not the default.
func (l limits) check() error {
	for _, given := range []struct {
		flag  string
		value int64
	}{
		{"body", int64(l.Body)}, {"bodies", int64(l.Bodies)}, {"queue-time", int64(l.QueueTime)}, {"header", int64(l.Header)}, {"batch", int64(l.Batch)}, {"concurrent", int64(l.Concurrent)},
		{"queue", int64(l.Queue)}, {"body-time", int64(l.BodyTime)}, {"read-time", int64(l.ReadTime)},
		{"write-time", int64(l.WriteTime)}, {"idle-time", int64(l.IdleTime)}, {"drain-time", int64(l.DrainTime)},
	} {
		if given.value <= 0 {
			return fmt.Errorf("--limits-%s must be above 0", given.flag)
		}
	}
	if l.Header > math.MaxInt32 {
		return fmt.Errorf("--limits-header must be below 2GiB, not %s", l.Header)
	}
	return nil
}

// apply puts the limits into a server's configuration.
func (l limits) apply(c *app.Config) {
	c.Limits.Body, c.Limits.Bodies, c.Limits.BodyTime = int64(l.Body), int64(l.Bodies), l.BodyTime
	c.Limits.QueueTime = l.QueueTime
	c.Limits.ReadTime, c.Limits.WriteTime = l.ReadTime, l.WriteTime
	c.Limits.Concurrent, c.Limits.QueueLength = l.Concurrent, l.Queue
	c.HeaderMax, c.MaxBatch, c.IdleTime, c.Drain = int(l.Header), l.Batch, l.IdleTime, l.DrainTime
}

// byteSize is a number of bytes, written as 512, 64KiB, 32MiB or 1GiB.
type byteSize int64

// UnmarshalText reads a size. The error says how one is written.
func (b *byteSize) UnmarshalText(text []byte) error {
	number, shift := string(text), 0
	for _, unit := range sizeUnits() {
		if cut, ok := strings.CutSuffix(number, unit.name); ok {
			number, shift = cut, unit.shift
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("size %q: it must be a whole number of bytes, KiB, MiB or GiB, such as 32MiB", text)
	}
	*b = byteSize(n << shift)
	return nil
}

// String writes a size as it is read.
func (b byteSize) String() string {
	for _, unit := range sizeUnits() {
		if b != 0 && b&(1<<unit.shift-1) == 0 {
			return strconv.FormatInt(int64(b)>>unit.shift, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

type sizeUnit struct {
	name  string
	shift int
}

// sizeUnits returns the units, the largest first.
func sizeUnits() []sizeUnit { return []sizeUnit{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} }
