package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/status"
	"github.com/dramigrate/dramigrate/internal/wholefile"
)

// follow verifies, and again whenever the cluster changes, until ctx or the time ends.
// Its outcome is the worst that was seen.
func (o *verifyOptions) follow(ctx context.Context) error {
	client, err := o.app.Client()
	if err != nil {
		return err
	}
	watcher, err := cluster.NewWatcher(client, cluster.LoadOptions{Claims: true})
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := watcher.Start(watching); err != nil {
		return nothingSeen(err)
	}
	var over <-chan time.Time
	if o.limit > 0 {
		t := o.app.Clock().NewTimer(o.limit)
		defer t.Stop()
		over = t.C()
	}
	worst := ExitOK
	var before *status.Verification
	for {
		changed := watcher.Changed()
		s := watcher.Snapshot()
		pool, err := o.pool.find(s)
		if err != nil {
			if before == nil {
				return err
			}
			pool = cluster.NodePool{Name: before.Pool} // its last node went; it may come back
		}
		v := o.app.verify(ctx, s, o.target(s, pool))
		if v.Findings, err = o.app.standing(s, pool, o.reach.skipped); err != nil {
			return err
		}
		worst = worse(worst, verified(v))
		if err := report.VerificationLines(o.app.Out, before, v, o.app.Clock().Now()); err != nil {
			return err
		}
		if err := o.writeText(v, nil); err != nil {
			return o.app.beside(err, exitWith(worst))
		}
		before = v
		if !o.pause(ctx, changed, over) {
			return exitWith(worst)
		}
	}
}

// pause waits for the next change, and then a little for those that come with it. It is
// false when the watch is over.
func (o *verifyOptions) pause(ctx context.Context, changed <-chan struct{}, over <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-over:
		return false
	case <-changed:
	}
	t := o.app.Clock().NewTimer(gatherFor)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-over:
		return false
	case <-t.C():
		return true
	}
}

// writeText replaces the file of --textfile.
func (o *verifyOptions) writeText(v *status.Verification, probed *poolprobe.Result) error {
	if o.textfile == "" {
		return nil
	}
	at := o.app.Clock().Now()
	err := wholefile.Write(o.textfile, func(w io.Writer) error { return report.Metrics(w, v, probed, at) })
	if err != nil {
		return fmt.Errorf("--textfile: %w; name a file in a folder that is there and can be written to", err)
	}
	return nil
}
