package gpuid_test

import (
	"testing"

	"github.com/dramigrate/dramigrate/internal/gpuid"
)

func TestPCI(t *testing.T) {
	tests := []struct{ in, want string }{
		{"00000000:1B:00.0", "0000:1b:00.0"}, // NVML
		{"0000:1b:00.0", "0000:1b:00.0"},     // ResourceSlice, sysfs
		{"0001:00:00.0", "0001:00:00.0"},     // virtual machines with a domain a GPU
		{"00010000:07:00.0", "10000:07:00.0"},
		{"10000:07:00.0", "10000:07:00.0"}, // sysfs, for domains beyond 16 bits
		{"0000:C3:1F.7\n", "0000:c3:1f.7"},
		{"1b:00.0", ""},
		{"0000:1b:00.8", ""},
		{"0000:1g:00.0", ""},
		{"GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec", ""},
		{"", ""},
	}
	for _, tt := range tests {
		got, ok := gpuid.PCI(tt.in)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("PCI(%q) = %q, %v; want %q", tt.in, got, ok, tt.want)
		}
	}
}

func TestDevice(t *testing.T) {
	for in, want := range map[string]string{
		"GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec":     "GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec",
		"GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec::3":  "GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec",
		"MIG-11111111-2558-51a1-8097-3d34cde0c8ec::11": "MIG-11111111-2558-51a1-8097-3d34cde0c8ec",
		// The plugin cuts at the first mark (k8s-device-plugin, AnnotatedID.Split).
		"MIG-GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec/7/0::0": "MIG-GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec/7/0",
	} {
		if got := gpuid.Device(in); got != want {
			t.Errorf("Device(%q) = %q, want %q", in, got, want)
		}
	}
}

// The node of the tests: a whole GPU, one with two partitions, and one whose UUID could
// not be read.
const (
	whole   = "GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec"
	sliced  = "GPU-0bfeb96d-8a9f-59d4-beff-12eb65372aea"
	slice0  = "MIG-00000000-8a9f-59d4-beff-12eb65372aea"
	slice1  = "MIG-11111111-8a9f-59d4-beff-12eb65372aea"
	other   = "GPU-5f727037-7cce-5fc4-b316-54a2755e08e7"
	foreign = "MIG-99999999-8a9f-59d4-beff-12eb65372aea"
)

func boards() []gpuid.Board {
	return []gpuid.Board{
		{UUID: whole, PCIBusID: "0000:1b:00.0"},
		{UUID: sliced, PCIBusID: "00000000:43:00.0", Partitions: []gpuid.Partition{
			{UUID: slice0, GPUInstance: 7, ComputeInstance: 0},
			{UUID: slice1, GPUInstance: 8, ComputeInstance: 0},
		}},
		{PCIBusID: "0000:52:00.0"},
	}
}

func TestOverlapOfPluginAndDriver(t *testing.T) {
	mig := func(uuid, parent string) gpuid.Attributes {
		return gpuid.Attributes{Type: "mig", UUID: uuid, ParentUUID: parent}
	}
	tests := []struct {
		name   string
		plugin string
		dra    gpuid.Attributes
		want   gpuid.Overlap
		// blind is the answer if the node's hardware could not be looked at.
		blind gpuid.Overlap
	}{
		{"whole GPU", whole, gpuid.Attributes{Type: "gpu", UUID: whole}, gpuid.Shared, gpuid.Shared},
		{"two GPUs", whole, gpuid.Attributes{Type: "gpu", UUID: other}, gpuid.Disjoint, gpuid.Disjoint},
		{"replica of time-slicing or MPS", whole + "::3", gpuid.Attributes{Type: "gpu", UUID: whole}, gpuid.Shared, gpuid.Shared},
		// migStrategy none: the plugin offers the GPU and does not see its partitions.
		{"none: partition of a GPU that the plugin offers whole", sliced, mig(slice0, sliced), gpuid.Shared, gpuid.Shared},
		{"none: partition of another GPU", whole, mig(slice0, sliced), gpuid.Disjoint, gpuid.Disjoint},
		// migStrategy single and mixed: the plugin's ids are the partitions'.
		{"single, mixed: one partition", slice0, mig(slice0, sliced), gpuid.Shared, gpuid.Shared},
		{"single, mixed: two partitions of one GPU", slice0, mig(slice1, sliced), gpuid.Disjoint, gpuid.Disjoint},
		{"single, mixed: replica of a partition", slice1 + "::0", mig(slice1, sliced), gpuid.Shared, gpuid.Shared},
		// The plugin's id does not name the GPU; only the hardware tells.
		{"mixed: partition of a GPU that the driver offers whole", slice0, gpuid.Attributes{Type: "gpu", UUID: sliced}, gpuid.Shared, gpuid.Unknown},
		{"mixed: partition beside a whole GPU", slice0, gpuid.Attributes{Type: "gpu", UUID: whole}, gpuid.Disjoint, gpuid.Unknown},
		{"mixed: partition that the hardware does not show", foreign, gpuid.Attributes{Type: "gpu", UUID: whole}, gpuid.Unknown, gpuid.Unknown},
		// Ids of drivers before R470.
		{"legacy id, one partition", "MIG-" + sliced + "/7/0", mig(slice0, sliced), gpuid.Shared, gpuid.Unknown},
		{"legacy id, another partition", "MIG-" + sliced + "/7/0", mig(slice1, sliced), gpuid.Disjoint, gpuid.Unknown},
		{"legacy id, whole GPU", "MIG-" + sliced + "/7/0", gpuid.Attributes{Type: "gpu", UUID: sliced}, gpuid.Shared, gpuid.Shared},
		{"legacy id that the hardware does not show", "MIG-" + sliced + "/9/0", mig(slice0, sliced), gpuid.Unknown, gpuid.Unknown},
		{"legacy id, another GPU", "MIG-" + sliced + "/7/0", gpuid.Attributes{Type: "gpu", UUID: whole}, gpuid.Disjoint, gpuid.Disjoint},
		// DynamicMIG: no UUID before a claim is prepared.
		{"dynamic: the plugin offers the GPU", whole, mig("", whole), gpuid.Shared, gpuid.Shared},
		{"dynamic: the plugin offers another GPU", other, mig("", whole), gpuid.Disjoint, gpuid.Disjoint},
		{"dynamic: the plugin offers a partition of the GPU", slice0, mig("", sliced), gpuid.Unknown, gpuid.Unknown},
		{"dynamic: the plugin offers a partition of another GPU", slice0, mig("", whole), gpuid.Disjoint, gpuid.Unknown},
		{"dynamic: by PCI address", whole, gpuid.Attributes{Type: "mig", PCIBusID: "0000:1b:00.0"}, gpuid.Shared, gpuid.Unknown},
		{"dynamic: by PCI address of another GPU", whole, gpuid.Attributes{Type: "mig", PCIBusID: "0000:43:00.0"}, gpuid.Disjoint, gpuid.Unknown},
		// Where a UUID could not be read, addresses are compared, if both are known.
		{"UUID unread, another GPU by its address", whole, gpuid.Attributes{Type: "gpu", PCIBusID: "0000:52:00.0"}, gpuid.Disjoint, gpuid.Unknown},
		{"UUID unread, a GPU of which no address is known", other, gpuid.Attributes{Type: "gpu", PCIBusID: "0000:52:00.0"}, gpuid.Unknown, gpuid.Unknown},
		// Vendors without UUIDs.
		{"PCI address on both sides", "0000:c1:00.0", gpuid.Attributes{Type: "amdgpu", PCIBusID: "0000:c1:00.0"}, gpuid.Shared, gpuid.Shared},
		{"two PCI addresses", "0000:c1:00.0", gpuid.Attributes{Type: "amdgpu", PCIBusID: "0000:c2:00.0"}, gpuid.Disjoint, gpuid.Disjoint},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, view := range []struct {
				name string
				inv  *gpuid.Inventory
				want gpuid.Overlap
			}{
				{"seen", gpuid.NewInventory(boards()), tt.want},
				{"blind", gpuid.NewInventory(nil), tt.blind},
			} {
				p, err := view.inv.OfPlugin(tt.plugin)
				if err != nil {
					t.Fatal(err)
				}
				d, err := view.inv.OfDRA(tt.dra)
				if err != nil {
					t.Fatal(err)
				}
				if got := p.Overlap(d); got != view.want {
					t.Errorf("%s: %+v and %+v are %s, want %s", view.name, p, d, got, view.want)
				}
				if got := d.Overlap(p); got != view.want {
					t.Errorf("%s, the other way round: %s, want %s", view.name, got, view.want)
				}
			}
		})
	}
}

func TestWhatCannotBePlaced(t *testing.T) {
	inv := gpuid.NewInventory(boards())
	// An index, a minor number and a CDI name are no places.
	for _, id := range []string{"0", "nvidia0", "gpu-1", "nvidia.com/gpu=0", ""} {
		if p, err := inv.OfPlugin(id); err == nil {
			t.Errorf("OfPlugin(%q) = %+v, want an error", id, p)
		}
	}
	if d, err := inv.OfDRA(gpuid.Attributes{Type: "mig"}); err == nil {
		t.Errorf("a device without any attribute is at %+v, want an error", d)
	}
}
