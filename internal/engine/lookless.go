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
	limit time.Duration
	probe func(helperpod.Reach, time.Duration) (*nodeprobe.NodeReport, error)
	less  func(at helperpod.Look, err error)
}

// run also says which looks it went without. The first try has the whole limit, for most
// nodes need no other, and all that follow have it once more: a folder that is not there
// ends a try at once, and only a pod that hangs takes the time of another.
func (l lessening) run(r helperpod.Reach) (*nodeprobe.NodeReport, []helperpod.Look, error) {
	report, err := l.probe(r, l.limit)
	deadline := l.clock.Now().Add(l.limit)
	var missed []helperpod.Look
	for {
		drop := droppable(r, err)
		left := deadline.Sub(l.clock.Now())
		if len(drop) == 0 || left <= 0 {
			return report, missed, err
		}
		for _, at := range drop {
			l.less(at, err)
			r = r.Without(at)
		}
		missed = append(missed, drop...)
		report, err = l.probe(r, left)
	}
}

// droppable are the looks for want of which a pod did not start; none if it did, or if
// nothing that can be left out is to blame. Where the kubelet does not say which it is, one
// is taken after the other.
func droppable(r helperpod.Reach, err error) []helperpod.Look {
	var out []helperpod.Look
	order := []helperpod.Look{helperpod.LookGPUs, helperpod.LookRecords}
	switch helperpod.KindOf(err) {
	case helperpod.NotMounted:
		volumes := unmounted(err)
		for _, volume := range volumes {
			switch at := helperpod.Needs(volume); {
			case at == "":
				return nil // no pod gets at the kubelet
			case r.Has(at) && !slices.Contains(out, at):
				out = append(out, at)
			}
		}
		if len(volumes) > 0 {
			return out
		}
		slices.Reverse(order)
	case helperpod.NotStarted:
	default:
		return nil
	}
	for _, at := range order {
		if r.Has(at) {
			return []helperpod.Look{at}
		}
	}
	return nil
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
