package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// twoPools are one node of the pool that moves and one of another.
func twoPools() []cluster.NodeSpec {
	return []cluster.NodeSpec{GPUNode("gpu-a-1", "gpu-a", 1), GPUNode("gpu-b-1", "gpu-b", 1)}
}

// thereAndBack moves pool gpu-a to DRA and back, and wants the node to be as it was and
// the plugin of pool gpu-b never to have been touched.
func (f *fixture) thereAndBack(namespace, set string, onDRA map[string]string) {
	f.Helper()
	var before nodeIs
	f.ok(Eventually(f.ctx, patience, func() string { // an owner's change has restarted the plugin
		if before = f.look("gpu-a-1"); len(before.advertised) == 0 {
			return "node/gpu-a-1 advertises nothing"
		}
		return ""
	}))
	others, err := f.DaemonPodsOn(f.ctx, namespace, set, "gpu-b-1")
	f.ok(err)
	f.ok(f.RunWorkload(f.ctx, "train", "gpu-a", 1))
	f.run(0, apply("gpu-a")...)
	f.ok(f.WorkloadReady(f.ctx, "train", 1))
	f.onDRA("train", "gpu-a-1")
	f.labelled("gpu-a-1", onDRA)
	f.run(0, "verify", "gpu-a")
	f.run(0, rollback("gpu-a")...)
	f.asBefore("gpu-a-1", before)
	now, err := f.DaemonPodsOn(f.ctx, namespace, set, "gpu-b-1")
	f.ok(err)
	if !slices.Equal(now, others) {
		f.Errorf("the plugin of the other pool is %q, was %q", now, others)
	}
}

// TestGKE moves a pool whose plugin GKE's add-on manager keeps, by GKE's own label.
func TestGKE(t *testing.T) {
	t.Parallel()
	const accelerator, optOut = "cloud.google.com/gke-accelerator", "gke-no-default-nvidia-gpu-device-plugin"
	plugin := manifests.PluginStatic()
	if plugin.DaemonSet.Labels == nil {
		plugin.DaemonSet.Labels = map[string]string{}
	}
	plugin.DaemonSet.Labels["addonmanager.kubernetes.io/mode"] = "Reconcile"
	plugin.DaemonSet.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: accelerator, Operator: corev1.NodeSelectorOpExists},
				{Key: optOut, Operator: corev1.NodeSelectorOpDoesNotExist},
			},
		}}},
	}}
	nodes := twoPools()
	for i := range nodes {
		nodes[i].Labels[accelerator] = "nvidia-l4"
	}
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Plugin: plugin, Nodes: nodes})
	manager := &Owner{Manager: "kube-addon-manager"}
	f.ok(manager.Own(f.ctx, f.Client(), "kube-system", pluginSet))

	f.run(0, slices.Concat([]string{"prepare", "--yes", "--driver-manifests", f.DriverDir}, locked)...)
	f.thereAndBack("kube-system", pluginSet, map[string]string{optOut: "true", allocation: "dra"})
	f.run(0, "unprepare", "--yes")
	if n, err := manager.Reverts(); n > 0 || err != nil {
		t.Errorf("the add-on manager has put its DaemonSet back %d times (%v): it was edited", n, err)
	}
}

// asked is the affinity that a plan of prepare asks the DaemonSet's owner for, taken out
// of the plan as a person would take it.
func (f *fixture) asked(values bool) *corev1.Affinity {
	f.Helper()
	r := f.Tool.Run(f.ctx, "prepare", "--dry-run=client", "-o", "json", "--driver-manifests", f.DriverDir)
	var plan struct {
		Shared []struct {
			ID      string
			Changes []struct{ Body string }
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &plan); err != nil {
		f.Fatalf("%v\n%s", err, r)
	}
	for _, s := range plan.Shared {
		if s.ID != "plugin-by-owner" {
			continue
		}
		var out struct {
			Affinity *corev1.Affinity
			Spec     appsv1.DaemonSetSpec
		}
		f.ok(yaml.Unmarshal([]byte(s.Changes[0].Body), &out))
		if values {
			return out.Affinity
		}
		return out.Spec.Template.Spec.Affinity
	}
	f.Fatalf("the plan asks no owner for anything:\n%s", r)
	return nil
}

// TestHelm moves a pool whose plugin is of a Helm release: by an edit in place, which
// an owner that looks takes back at once and Helm at its next upgrade, and by the values
// that prepare shows.
func TestHelm(t *testing.T) {
	t.Parallel()
	plugin := manifests.PluginChart(manifests.WithHelmOwner())
	namespace, set := plugin.DaemonSet.Namespace, plugin.DaemonSet.Name
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Plugin: plugin, Nodes: twoPools()})
	prepare := slices.Concat([]string{"prepare", "--yes", "--driver-manifests", f.DriverDir}, locked)

	r := f.run(3, prepare...)
	for _, want := range []string{"DRM003", "helm upgrade --reuse-values", "key: dramigrate.dev/allocation", "--edit-owned"} {
		if !strings.Contains(unwrapped(r.Stdout), want) {
			t.Errorf("prepare does not say %q:\n%s", want, r)
		}
	}
	release, err := f.Client().AppsV1().DaemonSets(namespace).Get(f.ctx, set, metav1.GetOptions{})
	f.ok(err)

	// Nobody looks until the next upgrade.
	f.run(0, slices.Concat(prepare, []string{"--edit-owned", "--plugin-rollout", "on-delete"})...)
	before := f.look("gpu-a-1")
	f.run(0, apply("gpu-a")...)
	f.run(0, "verify", "gpu-a")
	helm := &Owner{Manager: "helm"}
	f.ok(helm.Own(f.ctx, f.Client(), namespace, set))
	f.ok(helm.Want(f.ctx, func(want *appsv1.DaemonSetSpec) { want.Template = release.Spec.Template }))
	f.ok(Eventually(f.ctx, patience, func() string { return f.Allocatable(f.ctx, "gpu-a-1", 1) }))
	r = f.Tool.Run(f.ctx, "status", "gpu-a")
	for _, want := range []string{"nothing keeps the plugin off gpu-a-1", "Helm release"} {
		if !strings.Contains(unwrapped(r.Stdout), want) {
			t.Errorf("status does not say %q:\n%s", want, r)
		}
	}
	f.run(3, "verify", "gpu-a")

	// An owner that looks all the time.
	r = f.run(6, slices.Concat(prepare, []string{"--edit-owned", "--plugin-rollout", "rolling-update"})...)
	if !strings.Contains(unwrapped(r.Stderr), "taken the edit back") || !strings.Contains(r.Stderr, "helm") {
		t.Errorf("prepare does not say who took the edit back:\n%s", r)
	}

	// helm upgrade with the values that prepare shows.
	values := f.asked(true)
	f.ok(helm.Want(f.ctx, func(want *appsv1.DaemonSetSpec) { want.Template.Spec.Affinity = values }))
	// The plugin's pod that came back with the last revert may be on its way out still,
	// and even on its way in while the controller has not met the new template.
	f.ok(Eventually(f.ctx, patience, func() string {
		ds, err := f.Client().AppsV1().DaemonSets(namespace).Get(f.ctx, set, metav1.GetOptions{})
		f.ok(err)
		if ds.Status.ObservedGeneration < ds.Generation {
			return fmt.Sprintf("generation %d of the DaemonSet, and its controller has met %d", ds.Generation, ds.Status.ObservedGeneration)
		}
		if r := f.Tool.Run(f.ctx, "verify", "gpu-a"); r.Code != 0 {
			return r.String()
		}
		return ""
	}))
	f.run(0, slices.Concat(prepare, []string{"--wait-for-owner=2m"})...)
	f.run(0, "verify", "gpu-a")
	f.run(0, rollback("gpu-a")...)
	f.asBefore("gpu-a-1", before)
}

// TestGitOps moves a pool whose plugin Argo CD applies again and again: prepare shows
// the patch, a person puts it into the repository, and prepare goes on when it arrives.
func TestGitOps(t *testing.T) {
	t.Parallel()
	plugin := manifests.PluginStatic()
	plugin.DaemonSet.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "gpu-stack:apps/DaemonSet:kube-system/" + pluginSet}
	f := newFixture(t, BenchOptions{Kubelet: cluster.KubeletQuick, Plugin: plugin, Nodes: twoPools()})
	argo := &Owner{Manager: "argocd-controller"}
	f.ok(argo.Own(f.ctx, f.Client(), "kube-system", pluginSet))

	p, err := f.Tool.Start(f.ctx, slices.Concat([]string{"prepare", "--yes", "--driver-manifests", f.DriverDir, "--wait-for-owner"}, locked)...)
	f.ok(err)
	f.ok(Eventually(f.ctx, patience, func() string {
		select {
		case <-p.Done():
			f.Fatalf("prepare has ended before the change has arrived:\n%s", p.Wait())
		default:
		}
		if !strings.Contains(p.Stderr(), "the change has not arrived") {
			return "prepare does not wait yet:\n" + p.Stderr()
		}
		return ""
	}))
	patch := f.asked(false)
	f.ok(argo.Want(f.ctx, func(want *appsv1.DaemonSetSpec) { want.Template.Spec.Affinity = patch }))
	if r := p.Wait(); r.Code != 0 {
		t.Fatalf("prepare ends with %d, want 0\n%s", r.Code, r)
	}
	before, err := argo.Reverts()
	f.ok(err)
	f.thereAndBack("kube-system", pluginSet, map[string]string{allocation: "dra"})
	if n, err := argo.Reverts(); n != before || err != nil {
		t.Errorf("Argo CD has put the DaemonSet back %d times more (%v): it was edited", n-before, err)
	}
}
