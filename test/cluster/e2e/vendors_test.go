package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// TestAMD moves a pool of AMD's GPUs there and back. They have no UUID: plugin and driver
// both name them by their PCI address, and that is what is compared. Nobody knows what
// lists them in a container, and the tool says that it has not looked.
func TestAMD(t *testing.T) {
	t.Parallel()
	amd := manifests.AMD()
	f := newFixture(t, BenchOptions{
		Kubelet: cluster.KubeletQuick, Make: amd, Plugin: amd.Plugin(),
		Nodes: []cluster.NodeSpec{NodeOf(amd, "gpu-a-1", "gpu-a", 2), NodeOf(amd, "gpu-b-1", "gpu-b", 1)},
	})
	of := []string{"--resource", string(amd.Resource), "--driver", amd.Driver}
	plugin := amd.Plugin().DaemonSet
	before := f.look("gpu-a-1")
	if want := addresses(f.GPUs("gpu-a-1")); !slices.Equal(before.advertised, want) {
		t.Fatalf("the kubelet advertises %q, want the PCI addresses %q", before.advertised, want)
	}
	others, err := f.DaemonPodsOn(f.ctx, plugin.Namespace, plugin.Name, "gpu-b-1")
	f.ok(err)

	f.run(0, slices.Concat([]string{"prepare", "--yes", "--plugin-rollout", "on-delete", "--driver-manifests", f.DriverDir, "--lock-ttl", "6s", "--lock-wait", "40s"}, of)...)
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 2))
	r := f.run(0, apply("gpu-a", of...)...)
	for _, want := range []string{"which devices the container sees was not looked at", "driver gpu.amd.com"} {
		if !strings.Contains(unwrapped(r.Stderr), want) {
			t.Errorf("apply does not say %q:\n%s", want, r)
		}
	}
	f.ok(f.WorkloadReady(f.ctx, "train", 2))
	if n := f.onDRA("train", "gpu-a-1"); n != 2 {
		t.Errorf("%d pods are on DRA, want 2", n)
	}
	f.publishes("gpu-a-1", before.advertised)

	r = f.run(0, slices.Concat([]string{"verify", "gpu-a", "-o", "json"}, of)...)
	if want := "the published devices are those that the node had before, by PCI address"; !slices.Contains(looks(t, r, "ok"), want) {
		t.Errorf("verify does not find %q:\n%s", want, r)
	}
	// One pod gives its device to the canary.
	scale := []byte(`{"spec":{"replicas":1}}`)
	_, err = f.Client().AppsV1().Deployments("default").Patch(f.ctx, "train", "application/merge-patch+json", scale, metav1.PatchOptions{})
	f.ok(err)
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
	r = f.run(7, slices.Concat([]string{"verify", "gpu-a", "-o", "json", "--canary", "--helper-image", HelperImage}, of)...)
	if want := "a canary sees exactly the devices of its claim"; !slices.Contains(looks(t, r, "unknown"), want) {
		t.Errorf("verify --canary does not leave %q unknown:\n%s", want, r)
	}

	f.run(0, rollback("gpu-a", of...)...)
	f.asBefore("gpu-a-1", before)
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
	now, err := f.DaemonPodsOn(f.ctx, plugin.Namespace, plugin.Name, "gpu-b-1")
	f.ok(err)
	if !slices.Equal(now, others) {
		t.Errorf("the plugin of the other pool is %q, was %q", now, others)
	}
	f.run(0, slices.Concat([]string{"unprepare", "--yes"}, of)...)
}

// addresses are the PCI addresses of a node's GPUs, sorted.
func addresses(set cluster.GPUSet) []string {
	var out []string
	for _, g := range set.GPUs {
		out = append(out, g.PCIBusID)
	}
	slices.Sort(out)
	return out
}

// publishes wants the slices of a node to hold these devices by the make's key.
func (f *fixture) publishes(node string, want []string) {
	f.Helper()
	list, err := f.Client().ResourceV1().ResourceSlices().List(f.ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	f.ok(err)
	var got []string
	for _, s := range list.Items {
		for _, d := range s.Spec.Devices {
			if a := d.Attributes[f.Make.Key]; a.StringValue != nil {
				got = append(got, *a.StringValue)
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		f.Errorf("node/%s: the driver publishes %q, want %q", node, got, want)
	}
}

// looks are what a verification has found to be so.
func looks(t *testing.T, r Result, result string) []string {
	t.Helper()
	var v struct {
		Nodes []struct {
			Looks []struct{ What, Result string }
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &v); err != nil {
		t.Fatalf("%v\n%s", err, r)
	}
	var out []string
	for _, n := range v.Nodes {
		for _, l := range n.Looks {
			if l.Result == result {
				out = append(out, l.What)
			}
		}
	}
	return out
}

// TestDeployLabel moves a pool whose plugin nobody but a node label switches: no operator
// owns the DaemonSet, and nothing else selects nodes by the label.
func TestDeployLabel(t *testing.T) {
	t.Parallel()
	plugin := manifests.PluginStatic()
	plugin.DaemonSet.Spec.Template.Spec.NodeSelector = map[string]string{deployPlugin: "true"}
	nodes := twoPools()
	for i := range nodes {
		nodes[i].Labels[deployPlugin] = "true"
	}
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Plugin: plugin, Nodes: nodes})
	r := f.Tool.Run(f.ctx, "plan", "gpu-a")
	if want := "deploy-label"; !strings.Contains(r.Stdout, want) {
		t.Errorf("the plan does not name gate %s:\n%s", want, r)
	}
	f.run(0, "prepare", "--yes", "--driver-manifests", f.DriverDir, "--lock-ttl", "6s", "--lock-wait", "40s")
	f.thereAndBack("kube-system", pluginSet, map[string]string{deployPlugin: "false", allocation: "dra"})
	f.run(0, "unprepare", "--yes")
	ds, err := f.Client().AppsV1().DaemonSets("kube-system").Get(f.ctx, pluginSet, metav1.GetOptions{})
	f.ok(err)
	if ds.Generation != 1 {
		t.Errorf("the plugin's DaemonSet is of generation %d: it was edited", ds.Generation)
	}
}
