package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dramigrate/dramigrate/test/cluster/cluster"
	"github.com/dramigrate/dramigrate/test/cluster/manifests"
)

// Where the pods of TestPending wait: on a node that is on DRA, and on one of the plugin.
const (
	waitsOnDRA    = "gpu-dra-1"
	waitsOnPlugin = "gpu-plugin-1"
)

// TestPending makes a pod of each kind that waits, and wants the tool to say why. The
// kubelets are as released: the driver's slices have to outlive it for a while.
func TestPending(t *testing.T) {
	t.Parallel()
	f := newFixture(t, BenchOptions{Nodes: []cluster.NodeSpec{
		GPUNode(waitsOnDRA, "gpu-dra", 2), GPUNode(waitsOnPlugin, "gpu-plugin", 1),
	}})
	f.prepare()
	f.patchNode(waitsOnDRA, `{"metadata":{"labels":{"dramigrate.dev/allocation":"dra"}}}`)
	f.ok(Eventually(f.ctx, patience, func() string {
		if why := f.Allocatable(f.ctx, waitsOnDRA, 0); why != "" {
			return why
		}
		return f.published(waitsOnDRA)
	}))

	f.waits("no-class", waitsOnDRA, nil)
	f.diagnosed("no-class", "no-class", 3, "no DeviceClass carries nvidia.com/gpu")
	f.deletePod("no-class")

	f.ok(f.Apply(f.ctx, classOf("mig", "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'")))
	f.waits("mismatch", waitsOnDRA, nil)
	f.diagnosed("mismatch", "class-selects-nothing", 3, `type is \"gpu\", the class wants \"mig\"`)
	f.deletePod("mismatch")
	f.ok(f.Client().ResourceV1().DeviceClasses().Delete(f.ctx, "mig", metav1.DeleteOptions{}))
	f.ok(f.Apply(f.ctx, manifests.DeviceClass()))

	began := time.Now()
	f.quota("team")
	f.waits("over-quota", waitsOnDRA, nil, "team")
	f.diagnosed("team/over-quota", "quota", 3, "resourcequota/team/no-claims")

	f.claimAndName()
	f.pluginFull()

	for _, name := range []string{"first", "second"} {
		f.makePod("default", name, waitsOnDRA, nil)
		f.ok(Eventually(f.ctx, patience, func() string { return f.is("default", name, isRunning) }))
		f.diagnosed(name, "none", 0, "it runs")
	}
	f.waits("third", waitsOnDRA, nil)
	f.diagnosed("third", "devices-taken", 3, "2 of the 2 of nvidia.com/gpu on node/"+waitsOnDRA, "held by pod/default/first")
	f.fromFiles("third")

	f.patchNode(waitsOnDRA, `{"spec":{"unschedulable":true}}`)
	f.waits("closed", waitsOnDRA, nil)
	f.diagnosed("closed", "nodes-closed", 3, "kubectl uncordon "+waitsOnDRA)
	f.patchNode(waitsOnDRA, `{"spec":{"unschedulable":false}}`)
	f.deletePod("closed")
	f.deletePod("third")
	f.deletePod("second")

	// What status says, as soon as the pod has waited for long enough.
	f.ok(Eventually(f.ctx, patience, func() string {
		if time.Since(began) < 31*time.Second {
			return "the pod has not waited for 30 s"
		}
		return ""
	}))
	// One node advertises its GPU twice, which is exit code 3.
	if r := f.run(3, "status"); !strings.Contains(r.Stdout, "QUOTA pod/team/over-quota") {
		t.Errorf("status does not say why team/over-quota waits:\n%s", r)
	}
	f.driverGone()
}

// TestPendingOfDevices makes pods wait for what is published, on a node of which the slices
// are written by hand.
func TestPendingOfDevices(t *testing.T) {
	t.Parallel()
	const node = "bare-1"
	f := newFixture(t, BenchOptions{Nodes: []cluster.NodeSpec{GPUNode(node, "bare", 0)}})
	why := func(cause string, texts ...string) {
		t.Helper()
		f.waits(cause, node, nil)
		f.diagnosed(cause, cause, 3, texts...)
		f.deletePod(cause)
	}
	whole := resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
	f.ok(f.Apply(f.ctx, manifests.DeviceClass()))
	why("slices-missing", "no device for deviceclass/gpu.nvidia.com is published on the nodes that it may go to")

	half := whole
	half.ResourceSliceCount = 2
	slice := f.sliceOn(node, Driver, half)
	why("slices-incomplete", "the slices of node/"+node+" are not all there")
	f.unpublish(slice)

	slice = f.sliceOn(node, Driver, whole, resourceapi.DeviceTaint{Key: "example.com/ill", Effect: resourceapi.DeviceTaintEffectNoSchedule})
	why("devices-tainted", "example.com/ill")
	f.unpublish(slice)

	f.ok(f.Client().ResourceV1().DeviceClasses().Delete(f.ctx, manifests.DeviceClass().Name, metav1.DeleteOptions{}))
	f.ok(f.Apply(f.ctx, classOf("fails", "device.attributes['gpu.nvidia.com'].absent == 'x'")))
	f.sliceOn(node, Driver, whole)
	why("class-fails", "kubectl edit deviceclass fails")
	f.ok(f.Client().ResourceV1().DeviceClasses().Delete(f.ctx, "fails", metav1.DeleteOptions{}))

	// The scheduler drops the name when the older of two classes goes.
	const selects = "device.driver == 'gpu.nvidia.com'"
	f.ok(f.Apply(f.ctx, classOf("older", selects)))
	older, err := f.Client().ResourceV1().DeviceClasses().Get(f.ctx, "older", metav1.GetOptions{})
	f.ok(err)
	f.ok(Eventually(f.ctx, patience, func() string {
		if !time.Now().After(older.CreationTimestamp.Add(time.Second)) {
			return "the next class would be as old"
		}
		return ""
	}))
	f.ok(f.Apply(f.ctx, classOf("newer", selects)))
	f.ok(f.Client().ResourceV1().DeviceClasses().Delete(f.ctx, "older", metav1.DeleteOptions{}))
	why("mapping-lost", "deviceclass/newer carries nvidia.com/gpu, and the scheduler does not use it")
}

// sliceOn publishes one device of a pool on a node.
func (f *fixture) sliceOn(node, driver string, pool resourceapi.ResourcePool, taints ...resourceapi.DeviceTaint) string {
	f.Helper()
	kind := "gpu"
	s, err := f.Client().ResourceV1().ResourceSlices().Create(f.ctx, &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "by-hand-"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: pool,
			Devices: []resourceapi.Device{{
				Name: "device-0", Taints: taints,
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"type": {StringValue: &kind}},
			}},
		},
	}, metav1.CreateOptions{})
	f.ok(err)
	return s.Name
}

func (f *fixture) unpublish(slice string) {
	f.Helper()
	f.ok(f.Client().ResourceV1().ResourceSlices().Delete(f.ctx, slice, metav1.DeleteOptions{}))
}

// classOf is a DeviceClass that carries the bench's resource.
func classOf(name, expression string) *resourceapi.DeviceClass {
	carries := Resource
	return &resourceapi.DeviceClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceClassSpec{
			ExtendedResourceName: &carries,
			Selectors:            []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}},
		},
	}
}

// quota makes a namespace whose quota takes no claim.
func (f *fixture) quota(namespace string) {
	f.Helper()
	const counted = "count/resourceclaims.resource.k8s.io"
	f.ok(f.Apply(f.ctx, &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ResourceQuota{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "no-claims"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: resource.MustParse("0")}},
		}))
	f.ok(Eventually(f.ctx, patience, func() string {
		// Without its account no pod can be made in a namespace.
		if _, err := f.Client().CoreV1().ServiceAccounts(namespace).Get(f.ctx, "default", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		q, err := f.Client().CoreV1().ResourceQuotas(namespace).Get(f.ctx, "no-claims", metav1.GetOptions{})
		f.ok(err)
		if _, known := q.Status.Used[counted]; !known {
			return "the quota's use is not known yet"
		}
		return ""
	}))
}

// claimAndName makes a pod with a claim of a device that is no GPU, on the plugin's node.
func (f *fixture) claimAndName() {
	f.Helper()
	f.slice("net.example.com")
	class := classOf("net.example.com", "device.driver == 'net.example.com'")
	class.Spec.ExtendedResourceName = nil
	f.ok(f.Apply(f.ctx, class))
	_, err := f.Client().ResourceV1().ResourceClaims("default").Create(f.ctx, &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "channel"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "channel", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class.Name}}}}},
	}, metav1.CreateOptions{})
	f.ok(err)
	f.waits("both", waitsOnPlugin, func(s *corev1.PodSpec) {
		name := "channel"
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: name, ResourceClaimName: &name}}
		s.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: name}}
	})
	f.diagnosed("both", "claim-and-name", 3, "DRM006")
	f.deletePod("both")
}

// pluginFull has a node of the plugin publish a device as well, takes what the plugin
// offers, and asks for one more.
func (f *fixture) pluginFull() {
	f.Helper()
	f.slice(Driver)
	f.makePod("default", "only", waitsOnPlugin, nil)
	f.ok(Eventually(f.ctx, patience, func() string { return f.is("default", "only", isRunning) }))
	f.waits("passed-over", waitsOnPlugin, nil)
	f.diagnosed("passed-over", "plugin-full", 3, "allocatable nvidia.com/gpu is 1, pods ask for 1; 1 of 1 devices")
	f.deletePod("passed-over")
	f.deletePod("only")
}

// driverGone takes the driver from a node under a pod that runs. For the 30 s for which
// its slices are left another pod is bound there; the first cannot end.
func (f *fixture) driverGone() {
	f.Helper()
	f.patchNode(waitsOnDRA, `{"metadata":{"labels":{"dramigrate.dev/allocation":"switching"}}}`)
	driver := manifests.DriverDaemonSet()
	f.ok(Eventually(f.ctx, patience, func() string {
		pods, err := f.DaemonPods(f.ctx, driver.Namespace, driver.Name)
		f.ok(err)
		if pods[waitsOnDRA] != "" {
			return "the driver is still on node/" + waitsOnDRA
		}
		return ""
	}))
	f.makePod("default", "late", waitsOnDRA, nil)
	f.ok(Eventually(f.ctx, patience, func() string {
		return f.is("default", "late", func(p *corev1.Pod) string {
			if p.Spec.NodeName == "" {
				return "it is not bound"
			}
			events, err := f.Client().CoreV1().Events("default").List(f.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=late,reason=FailedPrepareDynamicResources"})
			f.ok(err)
			if len(events.Items) == 0 {
				return "no event FailedPrepareDynamicResources yet"
			}
			return ""
		})
	}))
	f.diagnosed("late", "driver-not-registered", 3, "no driver's pod runs there")
	f.ok(f.Client().CoreV1().Pods("default").Delete(f.ctx, "first", metav1.DeleteOptions{}))
	f.diagnosed("first", "driver-gone-terminating", 3, "do not delete the pod by force")
	f.patchNode(waitsOnDRA, `{"metadata":{"labels":{"dramigrate.dev/allocation":"dra"}}}`)
	f.deletePod("first")
	f.ok(Eventually(f.ctx, patience, func() string { return f.is("default", "late", isRunning) }))
	f.diagnosed("late", "none", 0, "it runs")
}

// fromFiles asks about a pod in a snapshot.
func (f *fixture) fromFiles(name string) {
	f.Helper()
	file := filepath.Join(f.TempDir(), "cluster.yaml")
	f.run(0, "snapshot", "--out", file)
	r := f.run(3, "check", "pod/"+name, "--from", file, "-o", "json")
	for _, want := range []string{`"cause": "devices-taken"`, `"part": "events"`} {
		if !strings.Contains(r.Stdout, want) {
			f.Errorf("%s is not in\n%s", want, r)
		}
	}
}

// slice publishes one device on the plugin's node, as a driver would that nothing stands
// for.
func (f *fixture) slice(driver string) {
	f.Helper()
	f.sliceOn(waitsOnPlugin, driver, resourceapi.ResourcePool{Name: waitsOnPlugin, Generation: 1, ResourceSliceCount: 1})
}

func (f *fixture) patchNode(node, patch string) {
	f.Helper()
	_, err := f.Client().CoreV1().Nodes().Patch(f.ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody-else"})
	f.ok(err)
}

// published says what a node's driver does not publish yet.
func (f *fixture) published(node string) string {
	f.Helper()
	list, err := f.Client().ResourceV1().ResourceSlices().List(f.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	f.ok(err)
	for _, s := range list.Items {
		if len(s.Spec.Devices) > 0 {
			return ""
		}
	}
	return "node/" + node + ": nothing is published"
}

// makePod makes a pod that asks for a GPU on a node.
func (f *fixture) makePod(namespace, name, node string, change func(*corev1.PodSpec)) {
	f.Helper()
	p := manifests.WorkloadPod(namespace, name, map[string]string{corev1.LabelHostname: node})
	if change != nil {
		change(&p.Spec)
	}
	_, err := f.Client().CoreV1().Pods(namespace).Create(f.ctx, p, metav1.CreateOptions{})
	f.ok(err)
}

// waits makes a pod and returns when the scheduler has said why it does not bind it.
func (f *fixture) waits(name, node string, change func(*corev1.PodSpec), namespace ...string) {
	f.Helper()
	in := append(namespace, "default")[0]
	f.makePod(in, name, node, change)
	f.ok(Eventually(f.ctx, patience, func() string {
		return f.is(in, name, func(p *corev1.Pod) string {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
					return ""
				}
			}
			return "the scheduler has said nothing"
		})
	}))
}

// is looks at a pod.
func (f *fixture) is(namespace, name string, why func(*corev1.Pod) string) string {
	f.Helper()
	p, err := f.Client().CoreV1().Pods(namespace).Get(f.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if text := why(p); text != "" {
		return fmt.Sprintf("pod %s/%s: %s; phase %s, conditions %v", namespace, name, text, p.Status.Phase, p.Status.Conditions)
	}
	return ""
}

func isRunning(p *corev1.Pod) string {
	if !ready(p) {
		return "it is not ready"
	}
	return ""
}

func (f *fixture) deletePod(name string) {
	f.Helper()
	pods := f.Client().CoreV1().Pods("default")
	_ = pods.Delete(f.ctx, name, metav1.DeleteOptions{}) // it may be on its way already
	f.ok(Eventually(f.ctx, patience, func() string {
		if _, err := pods.Get(f.ctx, name, metav1.GetOptions{}); err == nil {
			return "pod " + name + " is still there"
		}
		return ""
	}))
}

// diagnosed runs the tool on a pod and wants a cause, an exit code and texts of it.
func (f *fixture) diagnosed(pod, cause string, code int, texts ...string) {
	f.Helper()
	r := f.run(code, "check", "pod/"+pod, "-o", "json")
	var d struct {
		Cause   string `json:"cause"`
		Certain bool   `json:"certain"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil {
		f.Fatalf("%v in\n%s", err, r)
	}
	f.Log(f.run(code, "check", "pod/"+pod).Stdout)
	if d.Cause != cause {
		f.Errorf("pod %s: cause %s, want %s\n%s", pod, d.Cause, cause, r)
	}
	for _, want := range texts {
		if !strings.Contains(r.Stdout, want) {
			f.Errorf("pod %s: %q is not in\n%s", pod, want, r)
		}
	}
}
