package cli

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/status"
)

// gatherFor is how long changes are gathered before the next look: one step of a run is
// a handful of them.
const gatherFor = 500 * time.Millisecond

// follow shows the status, and again when it has changed, until the context ends.
func (o *statusOptions) follow(ctx context.Context) error {
	client, err := o.app.Client()
	if err != nil {
		return err
	}
	watcher, err := cluster.NewWatcher(client, cluster.LoadOptions{Namespace: o.app.namespace})
	if err != nil {
		return err
	}
	if err := watcher.Start(ctx); err != nil {
		return nothingSeen(err)
	}
	show := o.shower()
	for first := true; ; first = false {
		changed := watcher.Changed()
		s := watcher.Snapshot()
		out, err := o.gather(s)
		if err != nil {
			if first {
				return err
			}
			// The pool's last node went. It may come back.
			options := o.app.statusOptions(s)
			options.Pool = &cluster.NodePool{Name: o.poolName(), Selector: o.pool.selector}
			out = status.New(s, options)
		}
		if err := show(out); err != nil {
			return err
		}
		if !o.pause(ctx, changed, out) {
			return nil
		}
	}
}

func (o *statusOptions) poolName() string {
	if o.pool.arg != "" {
		return o.pool.arg
	}
	return o.pool.name
}

// pause waits for the next change, or for a lock to expire, which nothing tells. It is
// false if the context has ended.
func (o *statusOptions) pause(ctx context.Context, changed <-chan struct{}, out *status.Status) bool {
	clock := o.app.Clock()
	var expiry <-chan time.Time
	if next, ok := nextExpiry(out); ok {
		t := clock.NewTimer(max(0, next.Sub(clock.Now())))
		defer t.Stop()
		expiry = t.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-expiry:
		return true
	case <-changed:
	}
	t := clock.NewTimer(gatherFor)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return true
	}
}

func nextExpiry(s *status.Status) (time.Time, bool) {
	var next time.Time
	for _, p := range s.Pools {
		if p.Lock != nil && !p.Lock.Expired && (next.IsZero() || p.Lock.Expires.Before(next)) {
			next = p.Lock.Expires
		}
	}
	return next, !next.IsZero()
}

// shower is how a status is shown that may be the same as the last.
func (o *statusOptions) shower() func(*status.Status) error {
	a := o.app
	switch o.format.value {
	case "json", "yaml":
		return o.documents()
	}
	wide := o.format.value == "wide"
	if a.OutTTY && a.lively() {
		screen := report.NewScreen(a.styled(a.Out), a.region)
		return func(s *status.Status) error {
			var text bytes.Buffer
			// The last column stays free: a terminal may wrap after it.
			if err := report.Status(report.Sheet{Writer: &text, Columns: a.region() - 1}, s, wide); err != nil {
				return err
			}
			return screen.Show(text.String())
		}
	}
	var before *status.Status
	return func(s *status.Status) error {
		err := report.StatusLines(a.Out, before, s, a.Clock().Now())
		before = s
		return err
	}
}

// documents writes each status that differs from the last as a document of its own.
// That a lock was renewed is no difference.
func (o *statusOptions) documents() func(*status.Status) error {
	write := func(w io.Writer, s *status.Status) error { return report.JSON(w, s) }
	separator := ""
	if o.format.value == "yaml" {
		write = func(w io.Writer, s *status.Status) error { return report.YAML(w, s) }
		separator = "---\n"
	}
	var last []byte
	return func(s *status.Status) error {
		steady := *s
		steady.Pools = nil
		for _, p := range s.Pools {
			if p.Lock != nil {
				lock := *p.Lock
				lock.Expires = time.Time{}
				p.Lock = &lock
			}
			steady.Pools = append(steady.Pools, p)
		}
		var now bytes.Buffer
		if err := write(&now, &steady); err != nil {
			return err
		}
		if bytes.Equal(now.Bytes(), last) {
			return nil
		}
		var b bytes.Buffer
		if last != nil {
			b.WriteString(separator)
		}
		last = now.Bytes()
		if err := write(&b, s); err != nil {
			return err
		}
		_, err := o.app.Out.Write(b.Bytes())
		return err
	}
}
