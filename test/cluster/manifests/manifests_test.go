package manifests

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
)

func terms(t *testing.T, ds *appsv1.DaemonSet) []corev1.NodeSelectorTerm {
	t.Helper()
	affinity := ds.Spec.Template.Spec.Affinity
	if affinity == nil {
		return nil
	}
	return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// keys of the terms, each of which has to be a single "In" of the given value.
func assertTerms(t *testing.T, ds *appsv1.DaemonSet, want [][2]string) {
	t.Helper()
	got := terms(t, ds)
	if len(got) != len(want) {
		t.Fatalf("%s: %d terms, want %d", ds.Name, len(got), len(want))
	}
	for i, term := range got {
		if want[i] == [2]string{} {
			if len(term.MatchExpressions)+len(term.MatchFields) != 0 {
				t.Errorf("%s: term %d is %v, want an empty one", ds.Name, i, term)
			}
			continue
		}
		if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 0 {
			t.Errorf("%s: term %d is %v, want one expression", ds.Name, i, term)
			continue
		}
		e := term.MatchExpressions[0]
		if e.Key != want[i][0] || e.Operator != corev1.NodeSelectorOpIn || !slices.Equal(e.Values, []string{want[i][1]}) {
			t.Errorf("%s: term %d is %v, want %s In [%s]", ds.Name, i, e, want[i][0], want[i][1])
		}
	}
}

// The default affinity of both of the vendor's charts (values.yaml of
// k8s-device-plugin v0.20.0 and of dra-driver-nvidia-gpu v0.4.1).
var chartTerms = [][2]string{
	{"feature.node.kubernetes.io/pci-10de.present", "true"},
	{"feature.node.kubernetes.io/cpu-model.vendor_id", "NVIDIA"},
	{"nvidia.com/gpu.present", "true"},
}

// assertGPUDaemonSet checks what all of them share.
func assertGPUDaemonSet(t *testing.T, ds *appsv1.DaemonSet, image, container string) {
	t.Helper()
	spec := ds.Spec.Template.Spec
	if spec.PriorityClassName != "system-node-critical" {
		t.Errorf("%s: priority class %q", ds.Name, spec.PriorityClassName)
	}
	gpuTaint := corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	if !slices.Contains(spec.Tolerations, gpuTaint) {
		t.Errorf("%s: tolerations %v", ds.Name, spec.Tolerations)
	}
	if len(spec.Containers) != 1 || spec.Containers[0].Image != image || spec.Containers[0].Name != container {
		t.Errorf("%s: containers %v", ds.Name, spec.Containers)
	}
	for key, value := range ds.Spec.Selector.MatchLabels {
		if ds.Spec.Template.Labels[key] != value {
			t.Errorf("%s: selector %s=%s does not match its pods", ds.Name, key, value)
		}
	}
	mounted := map[string]string{}
	for _, m := range spec.Containers[0].VolumeMounts {
		mounted[m.Name] = m.MountPath
	}
	for _, v := range spec.Volumes {
		if v.HostPath == nil || mounted[v.Name] != v.HostPath.Path {
			t.Errorf("%s: volume %s is not mounted at its own path: %v", ds.Name, v.Name, mounted)
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(mounted)), "/run/nvidia-sim") {
		t.Errorf("%s does not see the node's GPUs: %v", ds.Name, mounted)
	}
}

const pluginImage = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"

func TestPluginStatic(t *testing.T) {
	p := PluginStatic()
	ds := p.DaemonSet
	if len(p.Objects()) != 1 || ds.Namespace != "kube-system" || ds.Name != "nvidia-device-plugin-daemonset" {
		t.Errorf("%s/%s and %d objects", ds.Namespace, ds.Name, len(p.Objects()))
	}
	if !maps.Equal(ds.Spec.Selector.MatchLabels, map[string]string{"name": "nvidia-device-plugin-ds"}) {
		t.Errorf("selector %v", ds.Spec.Selector.MatchLabels)
	}
	if ds.Spec.Template.Spec.Affinity != nil || len(ds.Spec.Template.Spec.NodeSelector) > 0 {
		t.Error("the static manifest restricts its nodes")
	}
	assertGPUDaemonSet(t, ds, pluginImage, "nvidia-device-plugin-ctr")
	env := ds.Spec.Template.Spec.Containers[0].Env
	if !slices.Contains(env, corev1.EnvVar{Name: "FAIL_ON_INIT_ERROR", Value: "false"}) {
		t.Errorf("environment %v: the plugin would crash on nodes without GPUs", env)
	}
}

func TestPluginChart(t *testing.T) {
	p := PluginChart()
	ds := p.DaemonSet
	if p.Namespace.Name != ds.Namespace {
		t.Errorf("namespace %s for a DaemonSet in %s", p.Namespace.Name, ds.Namespace)
	}
	want := map[string]string{"app.kubernetes.io/name": "nvidia-device-plugin", "app.kubernetes.io/instance": "nvidia-device-plugin"}
	if !maps.Equal(ds.Spec.Selector.MatchLabels, want) {
		t.Errorf("selector %v", ds.Spec.Selector.MatchLabels)
	}
	assertTerms(t, ds, chartTerms)
	assertGPUDaemonSet(t, ds, pluginImage, "nvidia-device-plugin-ctr")
	if len(ds.Annotations) > 0 || ds.Labels["app.kubernetes.io/managed-by"] != "" {
		t.Error("the chart's DaemonSet has an owner that was not asked for")
	}

	owned := PluginChart(WithHelmOwner()).DaemonSet
	if owned.Labels["app.kubernetes.io/managed-by"] != "Helm" ||
		owned.Annotations["meta.helm.sh/release-name"] != "nvidia-device-plugin" ||
		owned.Annotations["meta.helm.sh/release-namespace"] != "nvidia-device-plugin" {
		t.Errorf("labels %v, annotations %v: not Helm's", owned.Labels, owned.Annotations)
	}
	if len(PluginChart().DaemonSet.Annotations) > 0 {
		t.Error("an option has changed what later calls return")
	}
}

func TestPluginEmptyTerm(t *testing.T) {
	assertTerms(t, PluginEmptyTerm().DaemonSet, [][2]string{chartTerms[0], {}, chartTerms[2]})
}

func TestDriver(t *testing.T) {
	ds := DriverDaemonSet()
	if ds.Name != "dra-driver-nvidia-gpu-kubelet-plugin" {
		t.Errorf("name %s", ds.Name)
	}
	if !maps.Equal(ds.Spec.Selector.MatchLabels, map[string]string{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}) {
		t.Errorf("selector %v", ds.Spec.Selector.MatchLabels)
	}
	assertTerms(t, ds, chartTerms)
	assertGPUDaemonSet(t, ds, "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1", "gpus")
	rolling := ds.Spec.UpdateStrategy.RollingUpdate
	if ds.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType || rolling.MaxUnavailable.String() != "100%" {
		t.Errorf("update strategy %v", ds.Spec.UpdateStrategy)
	}

	objects := Driver()
	if _, first := objects[0].(*corev1.Namespace); !first {
		t.Errorf("first object is %T, want the namespace that the others need", objects[0])
	}
	account := only[*corev1.ServiceAccount](objects)
	binding := only[*rbacv1.ClusterRoleBinding](objects)
	role := only[*rbacv1.ClusterRole](objects)
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}
	if ds.Spec.Template.Spec.ServiceAccountName != account.Name || ds.Namespace != account.Namespace ||
		!slices.Equal(binding.Subjects, []rbacv1.Subject{subject}) || binding.RoleRef.Name != role.Name {
		t.Error("the DaemonSet's pods do not get the role")
	}
	for _, o := range objects {
		if class, ok := o.(*resourceapi.DeviceClass); ok {
			t.Errorf("DeviceClass %s among the driver's objects", class.Name)
		}
	}
	if n := len(DriverWithClass()); n != len(objects)+1 {
		t.Errorf("%d objects with the class, want one more than %d", n, len(objects))
	}
}

func TestDeviceClass(t *testing.T) {
	c := DeviceClass()
	if c.Name != "gpu.nvidia.com" || c.Spec.ExtendedResourceName == nil || *c.Spec.ExtendedResourceName != "nvidia.com/gpu" {
		t.Errorf("class %s with extended resource name %v", c.Name, c.Spec.ExtendedResourceName)
	}
	want := "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
	if len(c.Spec.Selectors) != 1 || c.Spec.Selectors[0].CEL.Expression != want {
		t.Errorf("selectors %v", c.Spec.Selectors)
	}
}

func TestWriteDriverFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "driver")
	if err := WriteDriverFiles(dir); err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, path := range glob(t, os.DirFS(dir)) {
		data, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := Parse(data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		got += len(objects)
	}
	if got != len(Driver()) {
		t.Errorf("%d objects in the folder, want %d", got, len(Driver()))
	}
	if err := WriteDriverFiles(dir); err == nil {
		t.Error("files of the user were overwritten")
	}
}

func glob(t *testing.T, dir fs.FS) []string {
	t.Helper()
	paths, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestParseIsStrict(t *testing.T) {
	for name, doc := range map[string]string{
		"unknown field": "apiVersion: v1\nkind: Namespace\nmetadata:\n  nam: x\n",
		"doubled field": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n  name: y\n",
		"unknown kind":  "apiVersion: v1\nkind: Nonsense\n",
	} {
		if _, err := Parse([]byte(doc)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestWorkload(t *testing.T) {
	pool := map[string]string{"pool": "a"}
	d := Workload("apps", "train", 3, pool)
	spec := d.Spec.Template.Spec
	if *d.Spec.Replicas != 3 || spec.NodeSelector["pool"] != "a" {
		t.Errorf("replicas %d, node selector %v", *d.Spec.Replicas, spec.NodeSelector)
	}
	limit := spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
	if limit.String() != "1" || len(spec.ResourceClaims) > 0 || spec.Containers[0].Image != "nvcr.io/nvidia/cuda:13.0.1-base" {
		t.Errorf("container %v: not a pod that knows device plugins alone", spec.Containers[0])
	}
	budget := Budget("apps", "train", 2)
	if budget.Spec.MinAvailable.IntValue() != 2 || !maps.Equal(budget.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
		t.Errorf("budget %v for pods %v", budget.Spec, d.Spec.Template.Labels)
	}
	pod := WorkloadPod("apps", "one", pool)
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || pod.Spec.NodeSelector["pool"] != "a" {
		t.Errorf("pod %v", pod.Spec)
	}

	data, err := YAML(d, budget, pod)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Parse(data)
	if err != nil || len(objects) != 3 {
		t.Errorf("written and read again: %d objects, %v", len(objects), err)
	}
}
