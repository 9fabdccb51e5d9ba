package e2e

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/internal/faultproxy"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// TestHeldByABudget stops apply in the drain by a budget that allows no eviction, and
// tries what can happen to a run that is held there.
func TestHeldByABudget(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1)}})
	f.prepare()
	before := f.look("gpu-a-1")
	for _, c := range []struct {
		name string
		run  func(*fixture)
	}{
		{"named, stopped, nothing lost, goes on", budgetIsNamed},
		{"a second apply is locked out", secondIsLockedOut},
		{"a foreign uncordon is answered", foreignUncordon},
		{"a paused process writes nothing after a takeover", zombieWritesNothing},
	} {
		ok := t.Run(c.name, func(t *testing.T) {
			f := &fixture{T: t, Bench: f.Bench, ctx: f.ctx}
			f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 1))
			f.ok(f.Apply(f.ctx, manifests.Budget("default", "train", 1)))
			c.run(f)
			f.onDRA("train", "gpu-a-1")
			f.run(0, rollback("gpu-a")...)
			f.asBefore("gpu-a-1", before)
		})
		if !ok {
			return // the next case needs the node as it was
		}
	}
}

// relaxed says that somebody relaxes the budget while the run waits: one that can never
// allow an eviction stops a plan otherwise.
var relaxed = []string{"--skip", "DRM018", "--skip-reason", "the budget goes while the run waits"}

// free lets the workload be evicted.
func (f *fixture) free() {
	f.Helper()
	f.ok(f.Client().PolicyV1().PodDisruptionBudgets("default").Delete(f.ctx, "train", metav1.DeleteOptions{}))
}

// held starts apply and returns when the budget holds it.
func (f *fixture) held(tool Tool, more ...string) *Process {
	f.Helper()
	p, err := tool.Start(f.ctx, slices.Concat(apply("gpu-a", more...), relaxed)...)
	f.ok(err)
	f.ok(Eventually(f.ctx, patience, func() string {
		select {
		case <-p.Done():
			f.Fatalf("apply ended; the budget should have held it:\n%s", p.Wait())
		default:
		}
		if !strings.Contains(p.Stderr(), "default/train") {
			return "the budget default/train is not named yet:\n" + p.Stderr()
		}
		return ""
	}))
	return p
}

func (f *fixture) pod() Served {
	f.Helper()
	pods, err := f.Workload(f.ctx, "default", "train")
	f.ok(err)
	if len(pods) != 1 {
		f.Fatalf("the workload has pods %v, want one", pods)
	}
	return pods[0]
}

func budgetIsNamed(f *fixture) {
	pod := f.pod()
	r := f.run(6, slices.Concat(apply("gpu-a", "--drain-timeout", "8s"), relaxed)...)
	for _, want := range []string{pod.Pod, "default/train", "dramigrate apply gpu-a"} {
		if !strings.Contains(r.Stderr, want) {
			f.Errorf("the error does not name %s:\n%s", want, r.Stderr)
		}
	}
	if now := f.pod(); now.UID != pod.UID {
		f.Errorf("the pod is %s, was %s: it was evicted against the budget", now.UID, pod.UID)
	}
	f.free()
	f.run(0, apply("gpu-a")...)
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
}

func secondIsLockedOut(f *fixture) {
	first := f.held(f.Tool)
	second := slices.Concat(apply("gpu-a"), []string{"--lock-wait", "0s"}, relaxed)
	r := f.run(5, second...)
	if !strings.Contains(r.Stderr, "locked by") {
		f.Errorf("the error does not say who holds the lock:\n%s", r.Stderr)
	}
	f.ok(first.Signal(os.Interrupt))
	if r := first.Wait(); r.Code != 6 {
		f.Fatalf("an interrupted apply ends with exit code %d, want 6\n%s", r.Code, r)
	}
	f.free()
	f.run(0, apply("gpu-a")...)
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
}

func foreignUncordon(f *fixture) {
	p := f.held(f.Tool)
	_, err := f.Client().CoreV1().Nodes().Patch(f.ctx, "gpu-a-1", types.MergePatchType,
		[]byte(`{"spec":{"unschedulable":false}}`), metav1.PatchOptions{FieldManager: "somebody-else"})
	f.ok(err)
	f.ok(Eventually(f.ctx, patience, func() string {
		n, err := f.Client().CoreV1().Nodes().Get(f.ctx, "gpu-a-1", metav1.GetOptions{})
		f.ok(err)
		if !n.Spec.Unschedulable {
			return "the node is still uncordoned"
		}
		return ""
	}))
	f.free()
	r := p.Wait()
	if r.Code != 0 {
		f.Fatal(r)
	}
	if !strings.Contains(r.Stderr, "somebody else") && !strings.Contains(r.Stderr, "not cordoned") {
		f.Errorf("the foreign uncordon is not reported:\n%s", r.Stderr)
	}
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
}

func zombieWritesNothing(f *fixture) {
	tool, proxy := f.proxied(func(faultproxy.Mutation) error { return nil })
	zombie := f.held(tool, mortal...)
	f.ok(zombie.Signal(syscall.SIGSTOP))
	// What it had sent when it was stopped may still be on its way.
	seen := len(proxy.Seen())
	f.ok(Eventually(f.ctx, patience, func() string {
		if now := len(proxy.Seen()); now != seen {
			seen = now
			return "requests are still coming in"
		}
		return ""
	}))
	f.free()
	f.run(0, apply("gpu-a")...) // waits for the lock to expire and takes it over
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
	before := f.look("gpu-a-1")

	f.ok(zombie.Signal(syscall.SIGCONT))
	r := zombie.Wait()
	if r.Code != 6 {
		f.Errorf("the process whose lock was taken over ends with exit code %d, want 6\n%s", r.Code, r)
	}
	if !strings.Contains(r.Stderr, "lock lost") {
		f.Errorf("it does not say that it lost the lock:\n%s", r.Stderr)
	}
	for _, m := range proxy.Seen()[seen:] {
		f.Errorf("it still sent %s %s", m.Method, m.Path)
	}
	if now := f.look("gpu-a-1"); now.print != before.print {
		f.Errorf("node/gpu-a-1 is\n%s\nwas\n%s", now.print, before.print)
	}
}
