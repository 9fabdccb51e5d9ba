package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const gpuDriver = "gpu.nvidia.com"

// slice builds a node's slice; a device is "name" or "name=uuid".
func slice(node, pool string, generation, count int64, devices ...string) resourcev1.ResourceSlice {
	s := resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: gpuDriver,
		Pool:   resourcev1.ResourcePool{Name: pool, Generation: generation, ResourceSliceCount: count},
	}}
	if node != "" {
		s.Spec.NodeName = ptr.To(node)
	}
	for _, d := range devices {
		name, uuid, _ := strings.Cut(d, "=")
		dev := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": {StringValue: ptr.To("gpu")},
		}}
		if uuid != "" {
			dev.Attributes["uuid"] = resourcev1.DeviceAttribute{StringValue: ptr.To(uuid)}
		}
		s.Spec.Devices = append(s.Spec.Devices, dev)
	}
	return s
}

func TestDevicesOf(t *testing.T) {
	t.Parallel()
	foreign := slice("n1", "n1", 9, 1, "channel-0")
	foreign.Spec.Driver = "compute-domain.nvidia.com"
	qualified := slice("n1", "n1", 1, 1, "gpu-0")
	qualified.Spec.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"gpu.nvidia.com/uuid": {StringValue: ptr.To("GPU-q")},
		"other.example/uuid":  {StringValue: ptr.To("GPU-other")},
		"gpu.nvidia.com/type": {StringValue: ptr.To("mig")},
	}
	tainted := slice("n1", "n1", 1, 1, "lost", "noted", "xid")
	for i, effect := range []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone, resourcev1.DeviceTaintEffectNoSchedule} {
		tainted.Spec.Devices[i].Taints = []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/health", Effect: effect}}
	}
	for _, tt := range []struct {
		name       string
		slices     []resourcev1.ResourceSlice
		want       Devices
		incomplete string
	}{
		{"none", nil, nil, "driver gpu.nvidia.com publishes no ResourceSlice"},
		{"another driver's", []resourcev1.ResourceSlice{foreign}, nil, "driver gpu.nvidia.com publishes no ResourceSlice"},
		{"one slice", []resourcev1.ResourceSlice{slice("n1", "n1", 1, 1, "gpu-1=GPU-b", "gpu-0=GPU-a"), foreign},
			Devices{{Pool: "n1", Name: "gpu-0", Key: "GPU-a", Kind: "gpu"}, {Pool: "n1", Name: "gpu-1", Key: "GPU-b", Kind: "gpu"}}, ""},
		{"qualified attributes", []resourcev1.ResourceSlice{qualified}, Devices{{Pool: "n1", Name: "gpu-0", Key: "GPU-q", Kind: "mig"}}, ""},
		{"older generation does not count", []resourcev1.ResourceSlice{slice("n1", "n1", 1, 1, "gpu-0=GPU-old"), slice("n1", "n1", 2, 1, "gpu-0=GPU-new")},
			Devices{{Pool: "n1", Name: "gpu-0", Key: "GPU-new", Kind: "gpu"}}, ""},
		{"newer generation incomplete", []resourcev1.ResourceSlice{slice("n1", "n1", 2, 2, "gpu-0"), slice("n1", "n1", 1, 2, "gpu-1"), slice("n1", "n1", 1, 2, "gpu-2")},
			Devices{{Pool: "n1", Name: "gpu-0", Kind: "gpu"}}, "pool n1 of driver gpu.nvidia.com has 1 of 2 slices of generation 2"},
		{"too many slices", []resourcev1.ResourceSlice{slice("n1", "n1", 1, 1, "gpu-0"), slice("n1", "n1", 1, 1, "gpu-1")},
			Devices{{Pool: "n1", Name: "gpu-0", Kind: "gpu"}, {Pool: "n1", Name: "gpu-1", Kind: "gpu"}}, "pool n1 of driver gpu.nvidia.com has 2 of 1 slices of generation 1"},
		{"one device twice", []resourcev1.ResourceSlice{slice("n1", "n1", 1, 2, "gpu-0"), slice("n1", "n1", 1, 2, "gpu-0")},
			Devices{{Pool: "n1", Name: "gpu-0", Kind: "gpu"}}, "pool n1 of driver gpu.nvidia.com publishes device gpu-0 twice"},
		{"the driver keeps devices back", []resourcev1.ResourceSlice{tainted}, Devices{
			{Pool: "n1", Name: "lost", Kind: "gpu", Tainted: true}, {Pool: "n1", Name: "noted", Kind: "gpu"}, {Pool: "n1", Name: "xid", Kind: "gpu", Tainted: true},
		}, ""},
		{"a pool without devices is complete", []resourcev1.ResourceSlice{slice("n1", "n1", 3, 1)}, nil, ""},
		{"two pools, one incomplete", []resourcev1.ResourceSlice{slice("n1", "b", 1, 3, "gpu-0"), slice("n1", "a", 1, 1, "gpu-0")},
			Devices{{Pool: "a", Name: "gpu-0", Kind: "gpu"}, {Pool: "b", Name: "gpu-0", Kind: "gpu"}}, "pool b of driver gpu.nvidia.com has 1 of 3 slices of generation 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, incomplete := DevicesOf(tt.slices, gpuDriver)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
			if incomplete != tt.incomplete {
				t.Errorf("incomplete = %q, want %q", incomplete, tt.incomplete)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	d := Devices{{Key: "GPU-b"}, {Key: ""}, {Key: "GPU-a"}}
	if diff := cmp.Diff([]string{"GPU-a", "GPU-b"}, d.Keys()); diff != "" {
		t.Error(diff)
	}
}

func TestClassFor(t *testing.T) {
	t.Parallel()
	class := func(name, resource string, second int64) resourcev1.DeviceClass {
		c := resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(second, 0)}}
		if resource != "" {
			c.Spec.ExtendedResourceName = ptr.To(resource)
		}
		return c
	}
	for _, tt := range []struct {
		name    string
		classes []resourcev1.DeviceClass
		want    []string // the winner first
	}{
		{"none carries it", []resourcev1.DeviceClass{class("a", "", 1), class("b", "amd.com/gpu", 1)}, nil},
		{"one", []resourcev1.DeviceClass{class("a", "", 2), class("b", gpuResource, 1)}, []string{"b"}},
		{"the newest wins", []resourcev1.DeviceClass{class("a", gpuResource, 1), class("b", gpuResource, 2)}, []string{"b", "a"}},
		{"in one second the lower name wins", []resourcev1.DeviceClass{class("b", gpuResource, 5), class("c", gpuResource, 5), class("a", gpuResource, 5)}, []string{"a", "b", "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			winner, others := (&Snapshot{Classes: tt.classes}).ClassFor(gpuResource)
			var got []string
			if winner != nil {
				got = append(got, winner.Name)
			}
			for i := range others {
				got = append(got, others[i].Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("classes, winner first (-want +got):\n%s", diff)
			}
		})
	}
}
