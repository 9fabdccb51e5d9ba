package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/internal/faultproxy"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// bornOnDRA is a node of a pool that brings no plugin and has the driver from the start.
func bornOnDRA(name, pool string) cluster.NodeSpec {
	n := GPUNode(name, pool, 1)
	n.Labels["dramigrate.dev/allocation"] = "dra"
	return n
}

// TestIntoNewPool moves workloads off nodes whose plugin is part of them, into a pool
// that came with the driver: killed at its first eviction, gone on with, and taken
// back. No manifest of the workload changes, and the old nodes are as they were.
func TestIntoNewPool(t *testing.T) {
	t.Parallel()
	old, taking := []string{"old-1", "old-2"}, []string{"new-1", "new-2"}
	f := newFixture(t, BenchOptions{
		Kubelet: cluster.KubeletQuick, Plugin: manifests.PluginOfNodes(old...),
		Nodes: []cluster.NodeSpec{GPUNode("old-1", "old", 1), GPUNode("old-2", "old", 1), bornOnDRA("new-1", "new"), bornOnDRA("new-2", "new")},
	})
	before := map[string]nodeIs{}
	for _, n := range old {
		before[n] = f.look(n)
	}
	f.ok(f.Apply(f.ctx, manifests.Workload("default", "train", 2, map[string]string{"nvidia.com/gpu.present": "true"}), manifests.Budget("default", "train", 1)))
	f.ok(f.WorkloadReady(f.ctx, "train", 2))
	manifest := f.template("train")

	// In place it cannot be done, and it says what can.
	r := f.run(3, "plan", "old")
	if !strings.Contains(strings.Join(strings.Fields(r.Stdout), " "), "dramigrate plan old --into NEWPOOL") {
		t.Errorf("the plan in place does not name the way into a new pool:\n%s", r.Stdout)
	}
	r = f.run(3, "plan", "old", "--into", "new")
	if !strings.Contains(r.Stdout, "DRM050") {
		t.Errorf("without the driver the new pool is not ready:\n%s", r.Stdout)
	}
	f.run(64, "plan", "old", "--into", "old")
	f.run(64, "plan", "old", "--into", "nowhere")
	f.prepare()
	f.ok(Eventually(f.ctx, patience, func() string {
		if r := f.Tool.Run(f.ctx, "plan", "old", "--into", "new"); r.Code != 0 {
			return r.String()
		}
		return ""
	}))

	file := filepath.Join(t.TempDir(), "plan.yaml")
	f.run(0, "plan", "old", "--into", "new", "--out", file, "--soak", "0s", "--helper-image", HelperImage)
	f.samePlanOffline("old", "--into", "new", "--helper-image", HelperImage)
	saved := []string{"apply", file, "--yes", "--lock-ttl", "6s", "--lock-wait", "40s"}

	if r := f.killAtEviction(saved...); r.Signal != syscall.SIGKILL {
		t.Fatalf("want it killed at its first eviction:\n%s", r)
	}
	// The rest by users who have the least role alone.
	evict := authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "eviction"}
	r = f.grantee("apply").knowing(evict).run(0, saved...)
	if !strings.Contains(r.Stderr, "Goes on with run") {
		t.Errorf("the second run does not say that it goes on with the first:\n%s", r.Stderr)
	}
	f.ok(f.WorkloadReady(f.ctx, "train", 2))
	if n := f.onDRA("train", taking...); n != 2 {
		t.Fatalf("%d pods on the new nodes, want 2", n)
	}
	if now := f.template("train"); now != manifest {
		t.Errorf("the workload was\n%s\nand is\n%s", manifest, now)
	}
	for _, n := range old {
		f.closed(n)
		f.ok(f.Allocatable(f.ctx, n, 1)) // nothing on it was touched
	}
	f.run(0, "verify", "old")
	f.run(0, "verify", "new")
	r = f.run(0, "status")
	if !strings.Contains(r.Stdout, "Pool old: its workloads went into pool new; 2 nodes of 2 closed") {
		t.Errorf("status does not tell where the workloads went:\n%s", r.Stdout)
	}
	if strings.Contains(r.Stdout, "Not as the runs have left it") {
		t.Errorf("status finds strays after a move that went well:\n%s", r.Stdout)
	}
	if r = f.run(0, into("old", "new")...); !strings.Contains(r.Stderr, "Nothing to do.") {
		t.Errorf("a second apply finds something to do:\n%s", r)
	}
	f.run(3, apply("old")...)
	f.run(3, "unprepare", "--yes")

	f.grantee("rollback").knowing(evict).run(0, rollback("old")...)
	for _, n := range old {
		f.asBefore(n, before[n])
	}
	f.ok(f.WorkloadReady(f.ctx, "train", 2))
	pods, err := f.Workload(f.ctx, "default", "train")
	f.ok(err)
	for _, p := range pods {
		if !slices.Contains(old, p.Node) || p.Claim != "" {
			t.Errorf("pod %s is on %s with claim %q, want it on an old node by the plugin", p.Pod, p.Node, p.Claim)
		}
	}
	for _, n := range taking {
		f.closed(n)
	}
	if r = f.run(0, rollback("old")...); !strings.Contains(r.Stderr, "Nothing to do.") {
		t.Errorf("a second rollback finds something to do:\n%s", r)
	}
}

// killAtEviction runs the tool and kills it when the server has answered its first
// eviction.
func (f *fixture) killAtEviction(args ...string) Result {
	f.Helper()
	var p *Process
	var once sync.Once
	started := make(chan struct{})
	tool, proxy := f.proxied(func(m faultproxy.Mutation) error {
		if m.Moment != faultproxy.After || !strings.HasSuffix(m.Path, "/eviction") || m.Status >= 300 {
			return nil
		}
		err := errKilled
		once.Do(func() {
			<-started
			if e := p.Signal(syscall.SIGKILL); e != nil {
				err = e
			}
		})
		return err
	})
	defer func() { _ = proxy.Close() }()
	var err error
	p, err = tool.Start(f.ctx, args...)
	f.ok(err)
	close(started)
	return p.Wait()
}

// template is a Deployment's pod template.
func (f *fixture) template(name string) string {
	f.Helper()
	d, err := f.Client().AppsV1().Deployments("default").Get(f.ctx, name, metav1.GetOptions{})
	f.ok(err)
	return fmt.Sprint(d.Generation, d.Spec.Template.String())
}

// TestIntoKilledAtEachRequest kills the move into a new pool, and its way back, at each of
// their mutating requests, before the server sees it and after it has answered in turns:
// the same command goes on, or the way back does, and leaves nothing behind.
func TestIntoKilledAtEachRequest(t *testing.T) {
	t.Parallel()
	pairs := []string{"a", "b"}
	var nodes []cluster.NodeSpec
	for _, p := range pairs {
		nodes = append(nodes, GPUNode("old-"+p, "old-"+p, 1), bornOnDRA("new-"+p, "new-"+p))
	}
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Plugin: manifests.PluginOfNodes("old-a", "old-b"), Nodes: nodes})
	before := map[string]nodeIs{}
	for _, p := range pairs {
		before[p] = f.look("old-" + p)
		w := manifests.Workload("default", "train-"+p, 1, nil)
		w.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: PoolLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"old-" + p, "new-" + p}}},
			}}},
		}}
		f.ok(f.Apply(f.ctx, w))
		f.ok(f.WorkloadReady(f.ctx, "train-"+p, 1))
	}
	f.prepare()
	for _, p := range pairs {
		f.ok(Eventually(f.ctx, patience, func() string {
			if r := f.Tool.Run(f.ctx, "plan", "old-"+p, "--into", "new-"+p); r.Code != 0 {
				return r.String()
			}
			return ""
		}))
	}

	steps, r := f.kill(-1, faultproxy.Before, into("old-"+pairs[0], "new-"+pairs[0])...)
	if r.Code != 0 {
		t.Fatal(r)
	}
	back, r := f.kill(-1, faultproxy.Before, rollback("old-"+pairs[0])...)
	if r.Code != 0 {
		t.Fatal(r)
	}
	t.Logf("apply sends %d mutating requests, rollback %d", steps, back)
	if steps < 8 || back < 8 {
		t.Fatal("fewer than their steps need; does the proxy see them?")
	}
	work := make(chan int, max(steps, back))
	for n := range max(steps, back) {
		work <- n + 1
	}
	close(work)
	for _, p := range pairs {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t, Bench: f.Bench, ctx: f.ctx}
			if p != pairs[0] { // which has been there and back: its new node is closed from then on
				f.run(0, into("old-"+p, "new-"+p)...)
				f.run(0, rollback("old-"+p)...)
			}
			for n := range work {
				f.killedInto(p, n, n <= steps && n%3 == 0, before[p])
			}
		})
	}
}

// killedInto kills the move of one pair of pools at its n-th request, and its way back
// likewise; turn says to turn back once before.
func (f *fixture) killedInto(pair string, n int, turn bool, before nodeIs) {
	f.Helper()
	old, fresh, train := "old-"+pair, "new-"+pair, "train-"+pair
	move := into(old, fresh)
	moment := []faultproxy.Moment{faultproxy.Before, faultproxy.After}[n%2]
	what := fmt.Sprintf("killed %s request %d", moment, n)
	restored := func(what string) {
		f.Helper()
		f.asBefore(old, before)
		f.closed(fresh)
		if why := f.WorkloadReady(f.ctx, train, 1); why != "" {
			f.Fatalf("%s: %s", what, why)
		}
	}
	if turn {
		f.kill(n, moment, move...)
		f.run(0, rollback(old)...)
		restored(what + ", then rollback")
	}
	f.kill(n, moment, move...) // beyond the last request it just runs
	f.run(0, move...)
	f.ok(f.WorkloadReady(f.ctx, train, 1))
	if on := f.onDRA(train, fresh); on != 1 {
		f.Fatalf("%s and resumed: %d pods on the new node, want 1", what, on)
	}
	f.closed(old)
	f.kill(n, moment, rollback(old)...)
	f.run(0, rollback(old)...)
	restored(what)
}
