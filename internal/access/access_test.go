package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/access"
	"github.com/lancerest/lancerest/internal/lance"
)

// vendor makes keys that live as long as it is told, and counts them.
type vendor struct {
	life  time.Duration
	skew  time.Duration // by how much its clock is ahead of this machine's
	tells bool          // it says how long the keys live
	fails error
	gate  chan struct{} // nil, or closed to let answers go
	asked chan struct{} // nil, or sent to when somebody asks
	made  atomic.Int64
	busy  atomic.Int64
	most  atomic.Int64
}

func (v *vendor) Vend(ctx context.Context, dir lance.Location, _ access.Grant) (access.Keys, error) {
	n := v.made.Add(1)
	busy := v.busy.Add(1)
	defer v.busy.Add(-1)
	for most := v.most.Load(); busy > most && !v.most.CompareAndSwap(most, busy); most = v.most.Load() {
	}
	if v.asked != nil {
		v.asked <- struct{}{}
	}
	if v.gate != nil {
		select {
		case <-v.gate:
		case <-ctx.Done():
			return access.Keys{}, ctx.Err()
		}
	}
	if v.fails != nil {
		return access.Keys{}, v.fails
	}
	keys := access.Keys{
		Values:  map[string]string{"aws_secret_access_key": fmt.Sprintf("secret %d of %s", n, dir)},
		Expires: time.Now().Add(v.skew + v.life),
	}
	if v.tells {
		keys.Life = v.life
	}
	return keys, nil
}

func open(t *testing.T, o access.Options) *access.Access {
	t.Helper()
	a, err := access.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func vending(t *testing.T, v *vendor) *access.Access {
	t.Helper()
	return open(t, access.Options{Mode: access.Vend, Vendor: v, Settings: map[string]string{"aws_region": "here"}})
}

func dir(t *testing.T, name string) lance.Location {
	t.Helper()
	loc, err := lance.ParseLocation("s3://bucket/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// TestModes: what clients are given in each mode, when they want keys and when they do not.
func TestModes(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"aws_region": "here"}
	ends := time.UnixMilli(4102444800123)
	own := func(expires time.Time) func(context.Context) (access.Keys, error) {
		return func(context.Context) (access.Keys, error) {
			return access.Keys{Values: map[string]string{"aws_access_key_id": "mine"}, Expires: expires}, nil
		}
	}
	for _, c := range []struct {
		name          string
		opts          access.Options
		without, with map[string]string
		secret        bool
	}{
		{name: "none", opts: access.Options{Settings: settings}},
		{name: "client", opts: access.Options{Mode: access.Client, Settings: settings}, without: settings, with: settings},
		{
			name: "static, for ever", opts: access.Options{Mode: access.Static, Settings: settings, Own: own(time.Time{})}, without: settings,
			with: map[string]string{"aws_region": "here", "aws_access_key_id": "mine"}, secret: true,
		},
		{
			name: "static, for a time", opts: access.Options{Mode: access.Static, Settings: settings, Own: own(ends)}, without: settings,
			with: map[string]string{"aws_region": "here", "aws_access_key_id": "mine", "expires_at_millis": "4102444800123", "refresh_offset_millis": "150000"}, secret: true,
		},
	} {
		a := open(t, c.opts)
		if diff := cmp.Diff(c.without, a.WithoutKeys().Values); diff != "" {
			t.Errorf("%s: without keys (-want +got):\n%s", c.name, diff)
		}
		given, err := a.WithKeys(t.Context(), dir(t, "t"))
		if diff := cmp.Diff(c.with, given.Values); diff != "" || err != nil || given.Secret != c.secret {
			t.Errorf("%s: with keys, secret %t, %v (-want +got):\n%s", c.name, given.Secret, err, diff)
		}
	}
	short := open(t, access.Options{Mode: access.Static, Own: own(time.Now().Add(2 * time.Minute))})
	if _, err := short.WithKeys(t.Context(), dir(t, "t")); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("own keys that are about to end: %v, want ErrUnavailable", err)
	}
	var nothing *access.Access
	if given, err := nothing.WithKeys(t.Context(), dir(t, "t")); given.Values != nil || err != nil {
		t.Errorf("no access gives %d options, %v", len(given.Values), err)
	}
}

// TestVend: vended keys come with the provider's own expiry and a time to come again, as strings.
func TestVend(t *testing.T) {
	t.Parallel()
	v := &vendor{life: time.Hour, skew: 10 * time.Minute, tells: true}
	given, err := vending(t, v).WithKeys(t.Context(), dir(t, "t"))
	if err != nil || !given.Secret {
		t.Fatalf("secret %t, %v", given.Secret, err)
	}
	expires, err := strconv.ParseInt(given.Values["expires_at_millis"], 10, 64)
	if off := time.Until(time.UnixMilli(expires)) - 70*time.Minute; err != nil || off.Abs() > time.Minute {
		t.Errorf("expires_at_millis %q, which is %s off the provider's clock: %v", given.Values["expires_at_millis"], off, err)
	}
	if got := given.Values["refresh_offset_millis"]; got != "150000" {
		t.Errorf("refresh_offset_millis %q, want half of 5 minutes", got)
	}
}

// TestOneCall: any number of callers that want the same keys wait for one request, and others find the keys kept.
func TestOneCall(t *testing.T) {
	t.Parallel()
	v := &vendor{life: time.Hour, gate: make(chan struct{})}
	a := vending(t, v)
	const callers = 1000
	var wg sync.WaitGroup
	secrets := make([]string, callers)
	for i := range callers {
		wg.Go(func() {
			given, err := a.WithKeys(t.Context(), dir(t, "t"))
			if err != nil {
				t.Error(err)
			}
			secrets[i] = given.Values["aws_secret_access_key"]
		})
	}
	close(v.gate)
	wg.Wait()
	if n := v.made.Load(); n != 1 {
		t.Errorf("%d callers made %d requests, want 1", callers, n)
	}
	for _, s := range secrets {
		if s != secrets[0] {
			t.Fatalf("two callers were given different keys")
		}
	}
	if _, err := a.WithKeys(t.Context(), dir(t, "t2")); err != nil || v.made.Load() != 2 {
		t.Errorf("another directory: %d requests, %v; want 2", v.made.Load(), err)
	}
}

// TestGivenUp: a caller that gives up is let go, and the request for the others goes on.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	v := &vendor{life: time.Hour, gate: make(chan struct{}), asked: make(chan struct{})}
	a := vending(t, v)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := a.WithKeys(ctx, dir(t, "t"))
		first <- err
	}()
	<-v.asked
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who gave up is told %v, want context.Canceled", err)
	}
	close(v.gate)
	if _, err := a.WithKeys(t.Context(), dir(t, "t")); err != nil || v.made.Load() != 1 {
		t.Errorf("the next caller: %v after %d requests, want the keys of the first", err, v.made.Load())
	}
}

// TestLeastLife: kept keys are handed out while they live for five minutes and not after, whatever the machine's clock says.
func TestLeastLife(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		life, skew time.Duration
		tells      bool
		made       int64
		fails      error
	}{
		{name: "long", life: time.Hour, made: 1},
		{name: "just not enough", life: 5*time.Minute - time.Second, fails: access.ErrRefused, made: 2},
		{name: "enough for once only", life: 5 * time.Minute, tells: true, made: 2},
		{name: "a clock behind the provider's", life: 4 * time.Minute, skew: time.Hour, tells: true, fails: access.ErrRefused, made: 2},
		{name: "a clock ahead of the provider's", life: time.Hour, skew: -50 * time.Minute, tells: true, made: 1},
		{name: "a clock so far ahead that they seem to have ended", life: time.Hour, skew: -2 * time.Hour, tells: true, made: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := &vendor{life: c.life, skew: c.skew, tells: c.tells}
			a := vending(t, v)
			for range 2 {
				if _, err := a.WithKeys(t.Context(), dir(t, "t")); !errors.Is(err, c.fails) {
					t.Errorf("%v, want %v", err, c.fails)
				}
			}
			if n := v.made.Load(); n != c.made {
				t.Errorf("two callers made %d requests, want %d", n, c.made)
			}
		})
	}
}

// TestFailure: failures are told as they are, are not kept, and an answer that does not come is an outage.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, want := range []error{access.ErrUnavailable, access.ErrRefused, access.ErrUnfit} {
		v := &vendor{fails: fmt.Errorf("%w: why", want)}
		a := vending(t, v)
		for range 2 {
			if _, err := a.WithKeys(t.Context(), dir(t, "t")); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		if n := v.made.Load(); n != 2 {
			t.Errorf("%d requests, want 2: a failure is not kept", n)
		}
	}
	v := &vendor{gate: make(chan struct{})}
	a := open(t, access.Options{Mode: access.Vend, Vendor: v, Timeout: time.Millisecond})
	if _, err := a.WithKeys(t.Context(), dir(t, "t")); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("a provider that does not answer: %v, want ErrUnavailable", err)
	}
}

// TestBounds: few requests at a time, and few keys kept.
func TestBounds(t *testing.T) {
	t.Parallel()
	v := &vendor{life: time.Hour}
	a := open(t, access.Options{Mode: access.Vend, Vendor: v, Parallel: 3, MaxKept: 10})
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if _, err := a.WithKeys(t.Context(), dir(t, strconv.Itoa(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most := v.most.Load(); most > 3 {
		t.Errorf("%d requests at a time, want 3 at most", most)
	}
	for i := range 100 {
		if _, err := a.WithKeys(t.Context(), dir(t, strconv.Itoa(i))); err != nil {
			t.Error(err)
		}
	}
	if n := v.made.Load(); n < 190 {
		t.Errorf("%d requests for 200 callers: more than 10 directories' keys are kept", n)
	}
}

// TestRefused: what makes no sense is refused at the start.
func TestRefused(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string]access.Options{
		"nobody makes keys":       {Mode: access.Vend},
		"there are no keys":       {Mode: access.Static},
		"must be above 0":         {MinLife: -1},
		"first must be the short": {MinLife: time.Minute, RefreshOffset: time.Minute},
	} {
		if _, err := access.New(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that says %q", err, want)
		}
	}
	if _, err := access.ParseMode("vended"); err == nil || !strings.Contains(err.Error(), "none, static, vend and client") {
		t.Errorf("%v, want an error that says which modes there are", err)
	}
}

// TestNotShown: keys and options that get into a log, a message or a document by mistake are not readable there.
func TestNotShown(t *testing.T) {
	t.Parallel()
	values := map[string]string{"aws_secret_access_key": "hush"}
	for _, v := range []any{access.Keys{Values: values}, &access.Keys{Values: values}, access.Given{Values: values}} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		text, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		shown := fmt.Sprintf("%v %+v %#v %s %q %d %x %s %s", v, v, v, v, v, v, v, log.Bytes(), text)
		if strings.Contains(shown, "hush") || strings.Contains(shown, fmt.Sprintf("%x", "hush")) {
			t.Errorf("%T is shown as %s", v, shown)
		}
	}
}
