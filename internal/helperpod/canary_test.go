package helperpod

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	uuidA = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
	uuidB = "GPU-bbbbbbbb-0000-0000-0000-000000000000"
	uuidC = "GPU-cccccccc-0000-0000-0000-000000000000"
)

func smi(uuids ...string) string {
	var b strings.Builder
	for _, u := range uuids {
		b.WriteString("GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + u + ")\n")
	}
	return b.String()
}

// canaryWorld has a node with two devices that the driver publishes, in a pool of
// two slices.
func canaryWorld(t *testing.T) *world {
	slice := func(name, device, uuid string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: "gpu.nvidia.com", NodeName: ptr.To(testNode),
				Pool: resourcev1.ResourcePool{Name: testNode, Generation: 3, ResourceSliceCount: 2},
				Devices: []resourcev1.Device{{Name: device, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"uuid": {StringValue: ptr.To(uuid)}, "type": {StringValue: ptr.To("gpu")},
				}}},
			},
		}
	}
	return newWorld(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: testNode}},
		slice("s-1", "gpu-0", uuidA), slice("s-2", "gpu-1", uuidB))
}

// claimFor is the claim that the scheduler makes for a canary of one container: its
// one extended resource is the second of the sorted requests cpu, nvidia.com/gpu,
// so cpu and memory shift it (here: cpu 0, memory 1, nvidia.com/gpu 2).
func claimFor(p *corev1.Pod, devices ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name + "-extended-resources-abcde",
			Annotations: map[string]string{"resource.kubernetes.io/extended-resource-claim": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: ptr.To(true),
			}},
		},
		Status: resourcev1.ResourceClaimStatus{
			Allocation:  &resourcev1.AllocationResult{},
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}},
		},
	}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "container-0-request-2", Driver: "gpu.nvidia.com", Pool: testNode, Device: d,
		})
	}
	return c
}

// allocate plays the scheduler: claim, mapping in the pod's status, binding.
func (w *world) allocate(p *corev1.Pod, c *resourcev1.ResourceClaim) {
	if _, err := w.client.ResourceV1().ResourceClaims(c.Namespace).Create(context.Background(), c, metav1.CreateOptions{}); err != nil {
		w.Error(err)
	}
	w.update(p, func(p *corev1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: c.Name,
			RequestMappings: []corev1.ContainerExtendedResourceRequest{{
				ContainerName: container, ResourceName: "nvidia.com/gpu", RequestName: "container-0-request-2",
			}},
		}
	})
	w.update(p, bind)
}

// release plays kube-controller-manager after the pod's end.
func (w *world) release(c *resourcev1.ResourceClaim) {
	claims := w.client.ResourceV1().ResourceClaims(c.Namespace)
	free := c.DeepCopy()
	free.Status = resourcev1.ResourceClaimStatus{}
	if _, err := claims.UpdateStatus(context.Background(), free, metav1.UpdateOptions{}); err != nil {
		w.Error(err)
	}
	if err := claims.Delete(context.Background(), c.Name, metav1.DeleteOptions{}); err != nil {
		w.Error(err)
	}
}

// served plays a node on which DRA serves the canary. The claim is gone before the
// pod's end is seen, as on a fast cluster.
func (w *world) served(claim func(*corev1.Pod) *resourcev1.ResourceClaim, code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := claim(p)
		w.allocate(p, c)
		w.update(p, begin)
		w.release(c)
		w.update(p, end(code))
	}
}

func canaryOptions(w *world, count int64) CanaryOptions {
	return CanaryOptions{Wait: w.wait(time.Minute), Resource: "nvidia.com/gpu", Count: count, Driver: "gpu.nvidia.com", Image: "cuda:13", Look: []string{"nvidia-smi", "-L"}}
}

func TestCanary(t *testing.T) {
	w := canaryWorld(t)
	w.log = smi(uuidB, uuidA)
	w.node = w.served(func(p *corev1.Pod) *resourcev1.ResourceClaim { return claimFor(p, "gpu-1", "gpu-0") }, 0)
	got, err := w.runner.Canary(t.Context(), testNode, canaryOptions(w, 2))
	if err != nil {
		t.Fatal(err)
	}
	want := []CanaryDevice{{"gpu.nvidia.com", testNode, "gpu-0", uuidA}, {"gpu.nvidia.com", testNode, "gpu-1", uuidB}}
	if !slices.Equal(got.Devices, want) {
		t.Errorf("devices = %v, want %v", got.Devices, want)
	}
	if got.Claim != "dramigrate-system/dramigrate-canary-gpu-7-4ffd5816b9-extended-resources-abcde" {
		t.Errorf("claim = %s", got.Claim)
	}
	w.wantRemoved("pod-1")
}

// The defaults are one device and nvidia-smi.
func TestCanaryDefaults(t *testing.T) {
	w := canaryWorld(t)
	w.log = smi(uuidA)
	var spec corev1.PodSpec
	play := w.served(func(p *corev1.Pod) *resourcev1.ResourceClaim { return claimFor(p, "gpu-0") }, 0)
	w.node = func(p *corev1.Pod) { spec = p.Spec; play(p) }
	if _, err := w.runner.Canary(t.Context(), testNode, canaryOptions(w, 0)); err != nil {
		t.Fatal(err)
	}
	c := spec.Containers[0]
	gpus := c.Resources.Limits["nvidia.com/gpu"]
	if !slices.Equal(c.Command, []string{"nvidia-smi", "-L"}) || gpus.Value() != 1 {
		t.Errorf("command %v, %d GPUs; want nvidia-smi -L and 1", c.Command, gpus.Value())
	}
}

func TestCanarySeesOtherDevices(t *testing.T) {
	tests := []struct {
		name string
		log  string
		exit int32
		got  []string
	}{
		{"another", smi(uuidB), 0, []string{uuidB}},
		{"more", smi(uuidA, uuidC), 0, []string{uuidA, uuidC}},
		{"the same twice", smi(uuidA, uuidA), 0, []string{uuidA, uuidA}},
		{"none", "No devices were found\n", 6, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := canaryWorld(t)
			w.log = tt.log
			w.node = w.served(func(p *corev1.Pod) *resourcev1.ResourceClaim { return claimFor(p, "gpu-0") }, tt.exit)
			_, err := w.runner.Canary(t.Context(), testNode, canaryOptions(w, 1))
			e := wantError(t, err, DevicesDiffer, uuidA, list(tt.got), "kubectl get pods")
			if !slices.Equal(e.Want, []string{uuidA}) || !slices.Equal(e.Got, tt.got) {
				t.Errorf("want %v, got %v in the error; want %v, %v", e.Want, e.Got, []string{uuidA}, tt.got)
			}
			w.wantRemoved("pod-1")
		})
	}
}

func TestCanaryWithTheWrongClaim(t *testing.T) {
	tests := []struct {
		name   string
		change func(*resourcev1.ResourceClaim)
		kind   Kind
		says   string
	}{
		{"not reserved", func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor[0].UID = "another" }, NotAllocated, "not reserved for the pod"},
		{"another driver", func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Driver = "gpu.example" }, NotAllocated, "of driver gpu.example, not of gpu.nvidia.com"},
		{"too few", func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results = nil }, NotAllocated, "holds 0 devices, not 1"},
		{"another request", func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation.Devices.Results[0].Request = "container-0-request-0"
		}, NotAllocated, "request container-0-request-0"},
		{"unpublished", func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Device = "gpu-9" }, Unverifiable, "gpu-9 of pool gpu-7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := canaryWorld(t)
			w.log = smi(uuidA)
			w.node = w.served(func(p *corev1.Pod) *resourcev1.ResourceClaim {
				c := claimFor(p, "gpu-0")
				tt.change(c)
				return c
			}, 0)
			_, err := w.runner.Canary(t.Context(), testNode, canaryOptions(w, 1))
			wantError(t, err, tt.kind, tt.says)
			w.wantRemoved("pod-1")
		})
	}
}

// A device without the attribute cannot be compared, which is not the same as equal.
func TestCanaryWithoutUUID(t *testing.T) {
	w := canaryWorld(t)
	w.log = smi(uuidA)
	w.node = w.served(func(p *corev1.Pod) *resourcev1.ResourceClaim { return claimFor(p, "gpu-0") }, 0)
	s, err := w.client.ResourceV1().ResourceSlices().Get(t.Context(), "s-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	delete(s.Spec.Devices[0].Attributes, "uuid")
	if _, err := w.client.ResourceV1().ResourceSlices().Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = w.runner.Canary(t.Context(), testNode, canaryOptions(w, 1))
	wantError(t, err, Unverifiable, "without a uuid")
}

// Without a program that lists devices the claim is proven and nobody says that the
// container was looked into.
func TestCanaryWithoutLook(t *testing.T) {
	w := canaryWorld(t)
	w.log = "dramigrate v0.1.0\n"
	w.node = w.served(func(p *corev1.Pod) *resourcev1.ResourceClaim { return claimFor(p, "gpu-0") }, 0)
	o := canaryOptions(w, 1)
	o.Look = nil
	got, err := w.runner.Canary(t.Context(), testNode, o)
	if err != nil {
		t.Fatal(err)
	}
	want := []CanaryDevice{{Driver: "gpu.nvidia.com", Pool: testNode, Name: "gpu-0", Key: uuidA}}
	if got.Looked || !slices.Equal(got.Devices, want) {
		t.Errorf("looked %v, devices %v, want %v and no look", got.Looked, got.Devices, want)
	}
	if !strings.Contains(got.Unseen(), "gpu-0 "+uuidA) || !strings.Contains(got.Unseen(), "was not looked at") {
		t.Errorf("Unseen() = %q", got.Unseen())
	}
}

// Bound without a mapping, also if one for another container is there: the plugin
// served it. The clock stands still: this is seen at once.
func TestCanaryServedByPlugin(t *testing.T) {
	w := canaryWorld(t)
	w.node = func(p *corev1.Pod) {
		w.update(p, func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
				ResourceClaimName: "x",
				RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: container, ResourceName: "nvidia.com/mig-1g.5gb", RequestName: "r"}},
			}
		})
		w.update(p, bind)
	}
	_, err := w.runner.Canary(t.Context(), testNode, canaryOptions(w, 1))
	e := wantError(t, err, ServedByPlugin, "the device plugin served it")
	if want := "kubectl get node gpu-7 -o jsonpath='{.status.allocatable}'"; e.Next != want {
		t.Errorf("next is %q, want %q", e.Next, want)
	}
	w.wantRemoved("pod-1")
}

func TestCanaryThatDoesNotStart(t *testing.T) {
	const forgotten = "endpoint not found in cache for a registered resource: nvidia.com/gpu"
	tests := []struct {
		name string
		node func(*world, *corev1.Pod)
		at   string // the reason at which time runs out; empty if it need not
		kind Kind
		says string
	}{{
		name: "no device is free",
		node: func(w *world, p *corev1.Pod) {
			w.update(p, func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available: 1 cannot allocate all claims",
				}}
			})
		},
		at: "cannot allocate all claims", kind: NotScheduled, says: "kubectl get resourceslices --field-selector spec.driver=gpu.nvidia.com,spec.nodeName=gpu-7",
	}, {
		name: "the driver cannot prepare",
		node: func(w *world, p *corev1.Pod) {
			c := claimFor(p, "gpu-0")
			w.allocate(p, c)
			w.warn(p, "FailedPrepareDynamicResources", "DRA driver gpu.nvidia.com is not registered")
			w.release(c) // so that removing the pod finds nothing more to wait for
		},
		at: "FailedPrepareDynamicResources", kind: NotPrepared, says: "DRA driver gpu.nvidia.com is not registered",
	}, {
		name: "the kubelet remembers the plugin",
		node: func(w *world, p *corev1.Pod) {
			c := claimFor(p, "gpu-0")
			w.allocate(p, c)
			w.release(c)
			w.update(p, waiting("CreateContainerConfigError", forgotten))
		},
		kind: RemnantOfPlugin, says: "PodResources List",
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := canaryWorld(t)
			w.node = func(p *corev1.Pod) { tt.node(w, p) }
			if tt.at != "" {
				w.deadlineAt(tt.at, time.Minute)
			}
			_, err := w.runner.Canary(t.Context(), testNode, canaryOptions(w, 1))
			wantError(t, err, tt.kind, tt.says)
			w.wantRemoved("pod-1")
		})
	}
}

// The pod went and its claim did not: the device stays allocated.
func TestCanaryLeavesAClaim(t *testing.T) {
	w := canaryWorld(t)
	w.log = smi(uuidA)
	w.node = func(p *corev1.Pod) {
		w.allocate(p, claimFor(p, "gpu-0"))
		w.update(p, begin)
		w.update(p, end(0))
	}
	w.deadlineAt("to be deallocated", removal)
	result, err := w.runner.Canary(t.Context(), testNode, canaryOptions(w, 1))
	wantError(t, err, Leftover, "claim dramigrate-system/dramigrate-canary-gpu-7-4ffd5816b9-extended-resources-abcde to be deallocated")
	if result == nil {
		t.Error("the result is lost")
	}
}

func TestCanaryThatFailsAfterItsList(t *testing.T) {
	w := canaryWorld(t)
	w.log = smi(uuidA)
	w.node = w.served(func(p *corev1.Pod) *resourcev1.ResourceClaim { return claimFor(p, "gpu-0") }, 139)
	_, err := w.runner.Canary(t.Context(), testNode, canaryOptions(w, 1))
	wantError(t, err, Failed, "exit code 139")
}
