package e2e

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// TestFoundStates migrates a pool that others had a hand in: a node is cordoned by
// somebody else, and a DeviceClass carries the name already. Both are theirs and
// stay as they are.
func TestFoundStates(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{
		GPUNode("gpu-a-1", "gpu-a", 1), GPUNode("gpu-a-2", "gpu-a", 1),
	}})
	f.ok(f.Apply(f.ctx, manifests.DeviceClass()))
	class, err := f.Client().ResourceV1().DeviceClasses().Get(f.ctx, manifests.DeviceClass().Name, metav1.GetOptions{})
	f.ok(err)
	_, err = f.Client().CoreV1().Nodes().Patch(f.ctx, "gpu-a-1", types.MergePatchType,
		[]byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{FieldManager: "somebody-else"})
	f.ok(err)
	f.ok(Eventually(f.ctx, patience, func() string {
		if print, _ := f.Fingerprint(f.ctx, "gpu-a-1"); !strings.Contains(print, "node.kubernetes.io/unschedulable") {
			return "the cordon's taint is not there yet"
		}
		return ""
	}))
	before := map[string]nodeIs{"gpu-a-1": f.look("gpu-a-1"), "gpu-a-2": f.look("gpu-a-2")}
	f.prepare()
	watch := f.watch("gpu-a", "gpu-a-1", "gpu-a-2")
	f.run(0, apply("gpu-a")...)
	f.watched(watch, "gpu-a", "gpu-a-1", "gpu-a-2")

	for node, cordoned := range map[string]bool{"gpu-a-1": true, "gpu-a-2": false} {
		n, err := f.Client().CoreV1().Nodes().Get(f.ctx, node, metav1.GetOptions{})
		f.ok(err)
		if n.Spec.Unschedulable != cordoned {
			t.Errorf("node/%s: unschedulable is %v after apply, was %v before", node, n.Spec.Unschedulable, cordoned)
		}
	}
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 1))
	f.onDRA("train", "gpu-a-1", "gpu-a-2")
	f.run(0, rollback("gpu-a")...)
	for node, was := range before {
		f.asBefore(node, was)
	}
	f.run(0, "unprepare", "--yes")
	now, err := f.Client().ResourceV1().DeviceClasses().Get(f.ctx, class.Name, metav1.GetOptions{})
	f.ok(err)
	if now.UID != class.UID || now.ResourceVersion != class.ResourceVersion {
		t.Errorf("DeviceClass %s has UID %s, version %s; was %s, %s: it is not the tool's to touch",
			class.Name, now.UID, now.ResourceVersion, class.UID, class.ResourceVersion)
	}
}

// TestMiswiredDriver migrates to drivers that do not do what they publish. The node
// must stay closed, and the plugin must come back.
func TestMiswiredDriver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 2)}})
	before := f.look("gpu-a-1")
	f.prepare()

	t.Run("hands out another device", func(t *testing.T) {
		f := &fixture{T: t, Bench: f.Bench, ctx: f.ctx}
		f.ok(f.SetDriverFault("gpu-a-1", cluster.FaultWrongDevice))
		r := f.run(6, apply("gpu-a")...)
		if !strings.Contains(r.Stderr, "canary") || strings.Count(r.Stderr, "GPU-") < 2 {
			t.Errorf("the error does not name the canary and both devices:\n%s", r.Stderr)
		}
		f.closed("gpu-a-1")
		f.ok(f.SetDriverFault("gpu-a-1", cluster.FaultNone))
		f.run(0, apply("gpu-a")...)
		f.run(0, rollback("gpu-a")...)
		f.asBefore("gpu-a-1", before)
	})
	t.Run("publishes one device too few", func(t *testing.T) {
		f := &fixture{T: t, Bench: f.Bench, ctx: f.ctx}
		f.ok(f.SetDriverFault("gpu-a-1", cluster.FaultMissingDevice))
		p, err := f.Tool.Start(f.ctx, apply("gpu-a")...)
		f.ok(err)
		missing := before.advertised[len(before.advertised)-1]
		f.ok(Eventually(f.ctx, patience, func() string {
			if !strings.Contains(p.Stderr(), "published devices are not the node's GPUs") {
				return "the missing device " + missing + " is not named:\n" + p.Stderr()
			}
			return ""
		}))
		f.ok(p.Signal(os.Interrupt))
		if r := p.Wait(); r.Code != 6 {
			t.Errorf("exit code %d, want 6\n%s", r.Code, r)
		}
		f.closed("gpu-a-1")
		f.ok(f.SetDriverFault("gpu-a-1", cluster.FaultNone))
		f.run(0, rollback("gpu-a")...)
		f.asBefore("gpu-a-1", before)
	})
}

// closed wants a node to be shut to pods and to say why.
func (f *fixture) closed(node string) {
	f.Helper()
	print, err := f.Fingerprint(f.ctx, node)
	f.ok(err)
	for _, want := range []string{`"unschedulable": true`, "dramigrate.dev/switching", "dramigrate.dev/state"} {
		if !strings.Contains(print, want) {
			f.Errorf("node/%s is not closed, %s is missing:\n%s", node, want, print)
		}
	}
}

// TestNamespaceGone rolls a pool back after somebody has deleted the tool's namespace
// with the journal and the locks in it: the nodes tell what they were like, and which
// epoch they are of.
func TestNamespaceGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Nodes: []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1)}})
	before := f.look("gpu-a-1")
	f.prepare()
	f.run(0, apply("gpu-a")...)
	f.ok(f.Client().CoreV1().Namespaces().Delete(f.ctx, ToolNamespace, metav1.DeleteOptions{}))
	f.ok(Eventually(f.ctx, patience, func() string {
		if _, err := f.Client().CoreV1().Namespaces().Get(f.ctx, ToolNamespace, metav1.GetOptions{}); err == nil {
			return "namespace " + ToolNamespace + " is still there"
		}
		return ""
	}))
	f.run(0, rollback("gpu-a")...)
	f.asBefore("gpu-a-1", before)
}
