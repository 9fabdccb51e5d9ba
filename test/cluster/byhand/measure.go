package main

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// figures are what a phase did to the cluster.
type figures struct {
	// failure is how the move ended if it did not succeed.
	failure error
	took    time.Duration
	// mutations are the requests that changed something, or tried to.
	mutations int
	// restartedElsewhere are the plugin pods that were replaced on nodes outside the
	// pool, restartedOpen those on nodes of the pool that were open to pods.
	restartedElsewhere, restartedOpen []string
	nodes                             []nodeFigures
	workload                          size
	// leastAvailable are the fewest available pods of the workload; belowBudget is
	// for how long there were fewer than its budget asks for.
	leastAvailable int
	belowBudget    time.Duration
	jobs           jobFigures
	// twice are GPUs that two containers were given at the same time.
	twice []string
}

// nodeFigures are durations of one node.
type nodeFigures struct {
	node string
	// noGPUs: open to pods and no GPU on offer, neither by the kubelet nor in slices.
	noGPUs time.Duration
	// stale: open to pods, and the API server says that the plugin has GPUs when the
	// kubelet has none.
	stale time.Duration
	// both: the same GPUs are allocatable by the plugin and in the driver's slices, as
	// the scheduler sees it; bothOpen: while open to pods.
	both, bothOpen time.Duration
}

// jobFigures are the short jobs by their outcome.
type jobFigures struct {
	submitted, byPlugin, byClaim int
	// failed and waiting count by "reason on node".
	failed, waiting map[string]int
}

func (j jobFigures) hanging() int {
	n := 0
	for _, count := range j.waiting {
		n += count
	}
	return n
}

// measure evaluates what was seen within a span of time.
func (o *observer) measure(s span, pool []string, w size) figures {
	f := figures{workload: w, leastAvailable: w.replicas, jobs: o.jobs(s), twice: o.twice(s)}
	for _, node := range o.nodes {
		var (
			allocatable = o.line(o.allocatable, node)
			offered     = o.line(o.offered, node)
			published   = o.line(o.published, node)
			open        = o.line(o.schedulable, node)
		)
		f.nodes = append(f.nodes, nodeFigures{
			node: node,
			noGPUs: s.lasting(func(v []int) bool { return v[0] == 0 && v[1] == 0 && v[2] == 1 },
				offered, published, open),
			stale: s.lasting(func(v []int) bool { return v[0] > 0 && v[1] == 0 && v[2] == 1 },
				allocatable, offered, open),
			both: s.lasting(func(v []int) bool { return v[0] > 0 && v[1] > 0 },
				allocatable, published),
			bothOpen: s.lasting(func(v []int) bool { return v[0] > 0 && v[1] > 0 && v[2] == 1 },
				allocatable, published, open),
		})
		for _, name := range o.replacedOpen(s, node, open) {
			if slices.Contains(pool, node) {
				f.restartedOpen = append(f.restartedOpen, name)
			} else {
				f.restartedElsewhere = append(f.restartedElsewhere, name)
			}
		}
	}
	o.mu.Lock()
	available := slices.Clone(o.available)
	o.mu.Unlock()
	for _, p := range available {
		if p.since.After(s.from) && p.since.Before(s.to) {
			f.leastAvailable = min(f.leastAvailable, p.value)
		}
	}
	f.belowBudget = s.lasting(func(v []int) bool { return v[0] < w.minAvailable }, available)
	return f
}

// replacedOpen names the plugin's pods that left a node while it was open to pods.
func (o *observer) replacedOpen(s span, node string, open timeline) []string {
	var out []string
	for _, life := range o.lives(func(l *podLife) bool { return l.isPlugin && l.node == node }) {
		if within(life.leaving, s) && open.at(life.leaving) == 1 {
			out = append(out, life.name+" on "+node)
		}
	}
	return out
}

func within(t time.Time, s span) bool { return !t.Before(s.from) && !t.After(s.to) }

// jobs counts the jobs that were submitted within s by what became of them.
func (o *observer) jobs(s span) jobFigures {
	f := jobFigures{failed: map[string]int{}, waiting: map[string]int{}}
	for _, life := range o.lives(func(l *podLife) bool { return l.app == batch && within(l.created, s) }) {
		f.submitted++
		where := fmt.Sprintf("%s on %s", life.reason, life.node)
		if life.node == "" {
			where = life.reason
		}
		switch life.phase {
		case corev1.PodSucceeded:
			if life.claim != "" {
				f.byClaim++
			} else {
				f.byPlugin++
			}
		case corev1.PodFailed:
			f.failed[where]++
		default:
			f.waiting[where]++
		}
	}
	return f
}

// twice finds the GPUs that a pod of the workload held while another pod was given
// them as well. A container is taken to hold its GPU from when it runs until its
// pod's deletion is asked for, which is less than it really does.
func (o *observer) twice(s span) []string {
	var out []string
	holders := o.lives(func(l *podLife) bool { return l.app == workload && !l.running.IsZero() })
	for _, other := range o.lives(func(l *podLife) bool { return len(l.uuids) > 0 && within(l.running, s) }) {
		for _, h := range holders {
			held := h.running.Before(other.running) && (h.leaving.IsZero() || h.leaving.After(other.running))
			if h.name == other.name || !held {
				continue
			}
			for _, uuid := range other.uuids {
				if slices.Contains(h.uuids, uuid) {
					out = append(out, fmt.Sprintf("%s on %s: %s (%s) and %s (%s)", uuid, other.node, h.name, served(h), other.name, served(other)))
				}
			}
		}
	}
	return out
}

func served(l podLife) string {
	if l.claim != "" {
		return "claim"
	}
	return "plugin"
}
