package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/e2e"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

const (
	late      = "late"
	latePods  = 4
	lateWatch = 30 * time.Second
)

// graceFigures are what became of pods that came to the moved pool after its kubelets
// had forgotten the plugin.
type graceFigures struct {
	// failure is how the move before it ended.
	failure error
	ready   int
	// reasons are why the others did not run, and where, by number.
	reasons map[string]int
	// afterRestart are ready pods after the kubelets were restarted, afterList after
	// somebody called List of the PodResources API on each node, and cured is how long
	// that took.
	afterRestart, afterList int
	cured                   time.Duration
}

// afterGrace waits until the pool's kubelets have forgotten the plugin and then starts
// pods on it. If they do not run it looks for what helps.
func (r *rig) afterGrace(ctx context.Context) (graceFigures, error) {
	f := graceFigures{}
	moved := r.moved()
	for _, node := range moved {
		if why := e2e.Eventually(ctx, forgetPatience, func() string { return r.forgotten(ctx, node) }); why != "" {
			return f, errors.New(why)
		}
	}
	pods := manifests.Workload("default", late, latePods, map[string]string{e2e.PoolLabel: poolName})
	if err := r.bench.Apply(ctx, pods); err != nil {
		return f, err
	}
	f.ready = r.readyWithin(ctx, lateWatch)
	f.reasons = map[string]int{}
	for _, life := range r.observer.lives(func(l *podLife) bool { return l.app == late && l.uuids == nil && l.gone.IsZero() }) {
		f.reasons[life.reason+" on "+life.node]++
	}
	if f.ready == latePods {
		return f, ctx.Err()
	}
	for _, node := range moved {
		if err := r.bench.RestartKubelet(ctx, node); err != nil {
			return f, err
		}
	}
	f.afterRestart = r.readyWithin(ctx, lateWatch)
	begin := time.Now()
	for _, node := range moved {
		if err := r.bench.ListPodResources(ctx, node); err != nil {
			return f, err
		}
	}
	f.afterList = r.readyWithin(ctx, 2*lateWatch)
	f.cured = time.Since(begin)
	return f, ctx.Err()
}

// moved are the nodes of the pool that have come to DRA.
func (r *rig) moved() []string {
	var out []string
	for _, n := range r.pool {
		if r.observer.line(r.observer.published, n).at(time.Now()) > 0 {
			out = append(out, n)
		}
	}
	return out
}

// forgetPatience bounds the wait for a kubelet's grace, 5 minutes as released.
const forgetPatience = 7 * time.Minute

// forgotten says that the node's capacity still tells of the plugin.
func (r *rig) forgotten(ctx context.Context, node string) string {
	n, err := r.bench.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if q := n.Status.Capacity[e2e.Resource]; !q.IsZero() {
		return fmt.Sprintf("node/%s: capacity %s is still %s", node, e2e.Resource, q.String())
	}
	return ""
}

// readyWithin waits until all late pods have a GPU, and returns how many have.
func (r *rig) readyWithin(ctx context.Context, limit time.Duration) int {
	n := 0
	_ = e2e.Eventually(ctx, limit, func() string {
		pods, err := r.bench.Workload(ctx, "default", late)
		if err != nil {
			return err.Error()
		}
		if n = len(pods); n < latePods {
			return fmt.Sprintf("%d of %d pods are ready", n, latePods)
		}
		return ""
	})
	return n
}
