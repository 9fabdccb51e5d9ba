package engine

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/dramigrate/dramigrate/internal/helperpod"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

// blindSpots is what the pods of a run could not be shown on its nodes, so that each node
// is tried and told of once.
type blindSpots struct {
	mu sync.Mutex
	at map[string][]helperpod.Look // by node
}

// look probes a node by what is known to work there.
func (b *blindSpots) look(node string, r helperpod.Reach, l lessening) (*nodeprobe.NodeReport, error) {
	b.mu.Lock()
	known := slices.Clone(b.at[node])
	b.mu.Unlock()
	for _, at := range known {
		r = r.Without(at)
	}
	report, missed, err := l.run(r)
	if !unstarted(err) { // less did help
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.at == nil {
			b.at = map[string][]helperpod.Look{}
		}
		b.at[node] = append(known, missed...)
	}
	return report, err
}

// lessening probes with a reach, and with less of it as long as the pod does not start: a
// runtime that cannot hand out the GPUs is no reason to stop, nor is a folder that the
// node does not have. Whatever else can be seen is.
type lessening struct {
	clock clock.PassiveClock
	limit time.Duration // of all tries
	probe func(helperpod.Reach, time.Duration) (*nodeprobe.NodeReport, error)
	less  func(at helperpod.Look, err error)
}

// run also says which looks it went without. Each try but the last possible one has half
// of the time that is left, so that a pod which hangs leaves time to look at less.
func (l lessening) run(r helperpod.Reach) (*nodeprobe.NodeReport, []helperpod.Look, error) {
	deadline := l.clock.Now().Add(l.limit)
	why := map[helperpod.Look]error{}
	var instead *helperpod.Reach // to try if dropping the records was a wrong guess
	full, limit := r, l.limit
	for {
		if r.GPUs || r.Checkpoints {
			limit /= 2
		}
		report, err := l.probe(r, limit)
		next, ok := r, false
		drop := func(at helperpod.Look) {
			if next.Has(at) {
				next, ok, why[at] = next.Without(at), true, err
			}
		}
		guessed := instead
		instead = nil
		switch helperpod.KindOf(err) {
		case helperpod.NotMounted:
			named := unmounted(err)
			for _, volume := range named {
				drop(helperpod.Needs(volume))
			}
			if slices.ContainsFunc(named, func(v string) bool { return helperpod.Needs(v) == "" }) {
				ok = false // no pod gets at the kubelet
			} else if guessed != nil && (ok || len(named) == 0) {
				next, ok, why[helperpod.LookGPUs] = *guessed, true, err
			} else if len(named) == 0 && r.Checkpoints {
				drop(helperpod.LookRecords)
				if r.GPUs && r.DriverRoot != "" {
					other := r.Without(helperpod.LookGPUs)
					instead = &other
				}
			} else if len(named) == 0 {
				drop(helperpod.LookGPUs)
			}
		case helperpod.NotStarted:
			if drop(helperpod.LookGPUs); !ok {
				drop(helperpod.LookRecords)
			}
		}
		if limit = deadline.Sub(l.clock.Now()); !ok || limit <= 0 {
			return report, l.tell(full, r, why), err
		}
		r = next
	}
}

// tell tells what was not looked at, and returns it.
func (l lessening) tell(full, r helperpod.Reach, why map[helperpod.Look]error) []helperpod.Look {
	var missed []helperpod.Look
	for _, at := range []helperpod.Look{helperpod.LookRecords, helperpod.LookClaims, helperpod.LookGPUs} {
		// The claims are a part of the records.
		if !full.Has(at) || r.Has(at) || at == helperpod.LookClaims && !r.Checkpoints {
			continue
		}
		missed = append(missed, at)
		l.less(at, why[at])
	}
	return missed
}

// unstarted says that a probe's pod did not come so far that a container ran.
func unstarted(err error) bool {
	kind := helperpod.KindOf(err)
	return kind == helperpod.NotMounted || kind == helperpod.NotStarted
}

// unmounted are the volumes that a pod is known to have waited for.
func unmounted(err error) []string {
	var e *helperpod.Error
	if errors.As(err, &e) {
		return e.Unmounted
	}
	return nil
}
