package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// TestWholeJob is the main job on kubelets as released: prepare, migrate one pool of
// two, verify, roll it back, unprepare. The workload's manifest is never touched and
// not one plugin pod of the other pool restarts.
func TestWholeJob(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Nodes: []cluster.NodeSpec{
		GPUNode("gpu-a-1", "gpu-a", 2), GPUNode("gpu-a-2", "gpu-a", 2), GPUNode("gpu-b-1", "gpu-b", 2),
	}})
	poolA := []string{"gpu-a-1", "gpu-a-2"}
	f.ok(f.Apply(f.ctx, manifests.Budget("default", "train", 3)))
	f.ok(f.RunWorkload(f.ctx, "train", "", 4))
	workload, err := f.Client().AppsV1().Deployments("default").Get(f.ctx, "train", metav1.GetOptions{})
	f.ok(err)
	before := map[string]nodeIs{}
	for _, n := range []string{"gpu-a-1", "gpu-a-2", "gpu-b-1"} {
		before[n] = f.look(n)
	}
	plugin := manifests.PluginStatic().DaemonSet
	pluginPods, err := f.DaemonPods(f.ctx, plugin.Namespace, plugin.Name)
	f.ok(err)
	pluginSpec := f.daemonSetSpec(plugin)

	// A plan needs no prepare to be shown; it says what is missing, and changes nothing.
	r := f.run(3, "plan", "gpu-a", "--helper-image", HelperImage)
	if !strings.Contains(r.Stdout, "DRM015") {
		t.Errorf("the plan does not say that prepare is missing (DRM015):\n%s", r.Stdout)
	}
	f.prepare()
	r = f.run(0, "plan", "gpu-a", "--helper-image", HelperImage)
	for _, want := range []string{"gpu-a-1", "gpu-a-2", "dramigrate-nvidia-gpu"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("the plan does not name %s:\n%s", want, r.Stdout)
		}
	}
	f.run(2, "plan", "gpu-a", "--helper-image", HelperImage, "--detailed-exitcode")

	f.run(0, apply("gpu-a")...)
	f.ok(f.WorkloadReady(f.ctx, "train", 4))
	f.onDRA("train", poolA...)
	pods, err := f.Workload(f.ctx, "default", "train")
	f.ok(err)
	for _, p := range pods {
		if p.Node == "gpu-b-1" && p.Claim != "" {
			t.Errorf("pod %s of pool gpu-b is served by claim %s, want the plugin", p.Pod, p.Claim)
		}
	}
	f.run(0, "verify", "gpu-a")
	f.run(0, "status")
	f.run(0, apply("gpu-a")...) // there is nothing left to do

	f.run(0, rollback("gpu-a")...)
	for _, n := range poolA {
		f.asBefore(n, before[n])
	}
	f.ok(f.WorkloadReady(f.ctx, "train", 4))
	f.run(0, "unprepare", "--yes")

	now, err := f.DaemonPods(f.ctx, plugin.Namespace, plugin.Name)
	f.ok(err)
	if now["gpu-b-1"] != pluginPods["gpu-b-1"] {
		t.Errorf("the plugin's pod on gpu-b-1 has UID %s, had %s: it was restarted", now["gpu-b-1"], pluginPods["gpu-b-1"])
	}
	if spec := f.daemonSetSpec(plugin); spec != pluginSpec {
		t.Errorf("the plugin's DaemonSet is\n%s\nwas\n%s", spec, pluginSpec)
	}
	f.nothingLeft()
	after, err := f.Client().AppsV1().Deployments("default").Get(f.ctx, "train", metav1.GetOptions{})
	f.ok(err)
	if after.Generation != workload.Generation || after.UID != workload.UID {
		t.Errorf("the workload has generation %d, had %d", after.Generation, workload.Generation)
	}
	f.asBefore("gpu-b-1", before["gpu-b-1"])
}

func (f *fixture) daemonSetSpec(ds *appsv1.DaemonSet) string {
	f.Helper()
	now, err := f.Client().AppsV1().DaemonSets(ds.Namespace).Get(f.ctx, ds.Name, metav1.GetOptions{})
	f.ok(err)
	out, err := json.MarshalIndent(now.Spec, "", "  ")
	f.ok(err)
	return string(out)
}

// nothingLeft wants the cluster to hold nothing of prepare but the tool's namespace
// and the journals in it.
func (f *fixture) nothingLeft() {
	f.Helper()
	classes, err := f.Client().ResourceV1().DeviceClasses().List(f.ctx, metav1.ListOptions{})
	f.ok(err)
	for _, c := range classes.Items {
		f.Errorf("DeviceClass %s is left", c.Name)
	}
	driver := manifests.DriverDaemonSet()
	if _, err := f.Client().AppsV1().DaemonSets(driver.Namespace).Get(f.ctx, driver.Name, metav1.GetOptions{}); err == nil {
		f.Errorf("the driver's DaemonSet %s/%s is left", driver.Namespace, driver.Name)
	}
	f.ok(Eventually(f.ctx, patience, func() string {
		if _, err := f.Client().CoreV1().Namespaces().Get(f.ctx, driver.Namespace, metav1.GetOptions{}); err == nil {
			return "the driver's namespace " + driver.Namespace + " is left"
		}
		return ""
	}))
	journals, err := f.Client().CoreV1().ConfigMaps(ToolNamespace).List(f.ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=dramigrate"})
	f.ok(err)
	names := map[string]bool{}
	for _, m := range journals.Items {
		names[m.Name] = true
	}
	if want := []string{"pool-gpu-a", "shared"}; !slices.Equal(slices.Sorted(maps.Keys(names)), want) {
		f.Errorf("journals %q, want %q", slices.Sorted(maps.Keys(names)), want)
	}
	pods, err := f.Client().CoreV1().Pods(ToolNamespace).List(f.ctx, metav1.ListOptions{})
	f.ok(err)
	for _, p := range pods.Items {
		f.Errorf("helper pod %s is left", p.Name)
	}
}

// TestPrepareExcludesByEveryTerm prepares plugin DaemonSets of each shape of affinity
// and moves one of two pools: the plugin must leave that pool, and stay on the other.
func TestPrepareExcludesByEveryTerm(t *testing.T) {
	for name, plugin := range map[string]manifests.Plugin{
		"no affinity":       manifests.PluginStatic(),
		"three OR-ed terms": manifests.PluginChart(),
		"an empty term":     manifests.PluginEmptyTerm(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Plugin: plugin, Nodes: []cluster.NodeSpec{
				GPUNode("gpu-a-1", "gpu-a", 1), GPUNode("gpu-b-1", "gpu-b", 1),
			}})
			before := f.look("gpu-a-1")
			spec := f.daemonSetSpec(plugin.DaemonSet)
			pods, err := f.DaemonPods(f.ctx, plugin.DaemonSet.Namespace, plugin.DaemonSet.Name)
			f.ok(err)
			f.prepare()
			f.run(0, apply("gpu-a")...)
			moved, err := f.DaemonPods(f.ctx, plugin.DaemonSet.Namespace, plugin.DaemonSet.Name)
			f.ok(err)
			if uid, there := moved["gpu-a-1"]; there {
				t.Errorf("the plugin still has pod %s on gpu-a-1", uid)
			}
			if moved["gpu-b-1"] != pods["gpu-b-1"] {
				t.Errorf("the plugin's pod on gpu-b-1 has UID %q, had %q", moved["gpu-b-1"], pods["gpu-b-1"])
			}
			f.run(0, rollback("gpu-a")...)
			f.asBefore("gpu-a-1", before)
			f.run(0, "unprepare", "--yes")
			if now := f.daemonSetSpec(plugin.DaemonSet); now != spec {
				t.Errorf("the plugin's DaemonSet is\n%s\nwas\n%s", now, spec)
			}
		})
	}
}
