package nodeprobe

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/nvml"
)

const (
	gpuA = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
	gpuB = "GPU-bbbbbbbb-0000-0000-0000-000000000000"
	migA = "MIG-aaaaaaaa-1111-0000-0000-000000000000"
	migB = "MIG-aaaaaaaa-2222-0000-0000-000000000000"
)

// hardware is a host of whole GPUs without processes.
func hardware(uuids ...string) *nvml.Host {
	h := &nvml.Host{Devices: []nvml.Device{}}
	for i, uuid := range uuids {
		h.Devices = append(h.Devices, nvml.Device{
			Index: i, UUID: uuid, PCIBusID: []string{"0000:1b:00.0", "0000:1c:00.0"}[i], MIGMode: nvml.MIGDisabled,
			MIG: []nvml.MIGDevice{}, Processes: []nvml.Process{},
		})
	}
	return h
}

// partitioned is a host of one GPU with partitions.
func partitioned(uuid string, partitions ...string) *nvml.Host {
	h := hardware(uuid)
	h.Devices[0].MIGMode = nvml.MIGEnabled
	for i, m := range partitions {
		h.Devices[0].MIG = append(h.Devices[0].MIG, nvml.MIGDevice{
			UUID: m, ParentUUID: uuid, Profile: "1g.10gb", GPUInstance: ptr.To(7 + i), ComputeInstance: ptr.To(0), Processes: []nvml.Process{},
		})
	}
	return h
}

// knows is a report in which all was read and nobody offers or holds anything.
func knows(h *nvml.Host) NodeReport {
	return NodeReport{
		Node: "n1", Advertised: map[string][]string{}, Holders: []Holder{}, ListCalled: true, Hardware: h,
		Files: &Files{
			DeviceManager: &DeviceManager{}, Claims: []ClaimRecord{}, DriverCheckpoints: []DriverCheckpoint{},
			PodFolders: []string{}, Sockets: &Sockets{}, CDI: []CDISpec{},
		},
	}
}

func attrs(kv ...string) map[resourcev1.QualifiedName]resourcev1.DeviceAttribute {
	out := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
	for i := 0; i < len(kv); i += 2 {
		out[resourcev1.QualifiedName(kv[i])] = resourcev1.DeviceAttribute{StringValue: &kv[i+1]}
	}
	return out
}

// publishes is the node's only slice of a driver.
func publishes(driver string, devices ...resourcev1.Device) []resourcev1.ResourceSlice {
	return []resourcev1.ResourceSlice{{Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: ptr.To("n1"), Pool: resourcev1.ResourcePool{Name: "n1", Generation: 1, ResourceSliceCount: 1}, Devices: devices,
	}}}
}

func device(name string, kv ...string) resourcev1.Device {
	return resourcev1.Device{Name: name, Attributes: attrs(kv...)}
}

func wholeGPU(name, uuid string) resourcev1.Device { return device(name, "type", "gpu", "uuid", uuid) }

// nobody is an API that has nothing of the node.
func nothing() *APIView {
	return &APIView{Slices: []resourcev1.ResourceSlice{}, Claims: []resourcev1.ResourceClaim{}, Pods: []corev1.Pod{}}
}

func claimOf(driver, name string) Holder {
	return Holder{Pod: "train/big", Container: "w", Claim: "train/c", Devices: []Device{{driver, "n1", name}}}
}

func legacy(ids ...string) Holder {
	return Holder{Pod: "infer/small", Container: "main", Resource: "nvidia.com/gpu", IDs: ids}
}

// wanted is what a test says of one device: by UUID, or by the DRA device's name where
// it has none.
type wanted struct {
	id         string
	advertised By
	held       By
	verdict    Verdict
	// reasons must each stand in one of the device's.
	reasons []string
}

func check(t *testing.T, r NodeReport, verdict Verdict, want []wanted) {
	t.Helper()
	if r.Verdict != verdict {
		t.Errorf("node: %s, want %s", r.Verdict, verdict)
	}
	if len(r.Devices) != len(want) {
		t.Errorf("%d devices, want %d: %+v", len(r.Devices), len(want), r.Devices)
	}
	for _, w := range want {
		i := slices.IndexFunc(r.Devices, func(d DeviceState) bool {
			return d.UUID == w.id || d.PCIBusID == w.id && d.UUID == "" || d.UUID == "" && len(d.DRADevices) > 0 && d.DRADevices[0].Name == w.id
		})
		if i < 0 {
			t.Errorf("no device %s in %+v", w.id, r.Devices)
			continue
		}
		d := r.Devices[i]
		if d.AdvertisedBy != w.advertised || d.HeldBy != w.held || d.Verdict != w.verdict {
			t.Errorf("%s: offered by %s, held by %s, %s (%v); want %s, %s, %s", w.id, d.AdvertisedBy, d.HeldBy, d.Verdict, d.Reasons, w.advertised, w.held, w.verdict)
		}
		for _, reason := range w.reasons {
			if !slices.ContainsFunc(d.Reasons, func(have string) bool { return strings.Contains(have, reason) }) {
				t.Errorf("%s: reasons %q lack %q", w.id, d.Reasons, reason)
			}
		}
		if d.Verdict == Clean && len(d.Reasons) > 0 {
			t.Errorf("%s: clean, with reasons %q", w.id, d.Reasons)
		}
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		report  func() (NodeReport, *APIView)
		verdict Verdict
		want    []wanted
	}{{
		name: "a plugin's node",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA, gpuB))
			r.Advertised["nvidia.com/gpu"] = []string{gpuA, gpuB}
			r.Holders = []Holder{legacy(gpuA)}
			return r, nothing()
		},
		verdict: Clean,
		want:    []wanted{{gpuA, ByPlugin, ByPlugin, Clean, nil}, {gpuB, ByPlugin, ByNone, Clean, nil}},
	}, {
		name: "a DRA node",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA, gpuB))
			r.Holders = []Holder{claimOf(nvidiaDriver, "gpu-1")}
			api := nothing()
			// The names are by minor number, here against the hardware's order.
			api.Slices = publishes(nvidiaDriver, wholeGPU("gpu-1", gpuA), wholeGPU("gpu-0", gpuB))
			return r, api
		},
		verdict: Clean,
		want:    []wanted{{gpuA, ByDRA, ByDRA, Clean, nil}, {gpuB, ByDRA, ByNone, Clean, nil}},
	}, {
		name: "both offer one GPU",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA, gpuB))
			r.Advertised["nvidia.com/gpu"] = []string{gpuA}
			api := nothing()
			api.Slices = publishes(nvidiaDriver, wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB))
			return r, api
		},
		verdict: DoubleAdvertised,
		want: []wanted{
			{gpuA, ByBoth, ByNone, DoubleAdvertised, []string{"the plugin offers " + gpuA + " as nvidia.com/gpu, and DRA offers gpu.nvidia.com/n1/gpu-0"}},
			{gpuB, ByDRA, ByNone, Clean, nil},
		},
	}, {
		name: "a pod by each mechanism on one GPU, after the plugin has gone",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Holders = []Holder{legacy(gpuA), claimOf(nvidiaDriver, "gpu-0")}
			api := nothing()
			api.Slices = publishes(nvidiaDriver, wholeGPU("gpu-0", gpuA))
			return r, api
		},
		verdict: DoubleHeld,
		want:    []wanted{{gpuA, ByDRA, ByBoth, DoubleHeld, []string{"pod infer/small", "pod train/big by claim train/c"}}},
	}, {
		name: "a plugin's pod on a GPU that DRA offers",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Holders = []Holder{legacy(gpuA)}
			api := nothing()
			api.Slices = publishes(nvidiaDriver, wholeGPU("gpu-0", gpuA))
			return r, api
		},
		verdict: DoubleAdvertised,
		want:    []wanted{{gpuA, ByDRA, ByPlugin, DoubleAdvertised, []string{"pod infer/small"}}},
	}, {
		name: "the node alone cannot tell what DRA offers",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Advertised["nvidia.com/gpu"] = []string{gpuA}
			r.Files.Sockets = &Sockets{Registrations: []string{"gpu.nvidia.com-reg.sock"}, Drivers: []string{nvidiaDriver}}
			return r, nil
		},
		verdict: Undecided,
		want:    []wanted{{gpuA, ByPlugin, ByNone, Undecided, []string{"it takes the API's ResourceSlices"}}},
	}, {
		name: "the node alone, without a DRA driver; storage has one",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Advertised["nvidia.com/gpu"] = []string{gpuA}
			r.Files.Sockets = &Sockets{Registrations: []string{"csi.example.com-reg.sock"}, Others: []string{"csi.example.com"}}
			return r, nil
		},
		verdict: Clean,
		want:    []wanted{{gpuA, ByPlugin, ByNone, Clean, nil}},
	}, {
		name: "the node alone, without a plugin: DRA may offer what it likes",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Files.Sockets = &Sockets{Registrations: []string{"gpu.nvidia.com-reg.sock"}, Drivers: []string{nvidiaDriver}}
			return r, nil
		},
		verdict: Clean,
		want:    []wanted{{gpuA, ByUnknown, ByNone, Clean, nil}},
	}, {
		name: "a double hold by the node's own records alone",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Holders = []Holder{legacy(gpuA), claimOf(nvidiaDriver, "gpu-0")}
			r.Files.Claims = []ClaimRecord{{Claim: "train/c", UID: "c1", PodUIDs: []string{"u2"}, Devices: []Device{{nvidiaDriver, "n1", "gpu-0"}}}}
			r.Files.DriverCheckpoints = []DriverCheckpoint{{Driver: nvidiaDriver, Claims: []PreparedClaim{
				{UID: "c1", Claim: "train/c", State: "PrepareCompleted", Devices: []PreparedDevice{{Pool: "n1", Name: "gpu-0", UUID: gpuA, Type: "gpu"}}},
			}}}
			r.Files.PodFolders = []string{"u2"}
			r.Files.Sockets = &Sockets{Registrations: []string{"gpu.nvidia.com-reg.sock"}, Drivers: []string{nvidiaDriver}}
			return r, nil
		},
		verdict: DoubleHeld,
		want:    []wanted{{gpuA, ByDRA, ByBoth, DoubleHeld, []string{"pod infer/small", "pod train/big by claim train/c"}}},
	}, {
		name: "a claim whose device nobody can place, beside a plugin",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Advertised["nvidia.com/gpu"] = []string{gpuA}
			r.Holders = []Holder{claimOf(nvidiaDriver, "gpu-0")}
			return r, nil
		},
		verdict: Undecided,
		want:    []wanted{{gpuA, ByPlugin, ByUnknown, Undecided, []string{"claim train/c holds gpu.nvidia.com/n1/gpu-0: its UUID is known neither"}}},
	}, {
		name: "a claim with admin access only looks",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Holders = []Holder{legacy(gpuA), claimOf(nvidiaDriver, "gpu-0")}
			api := nothing()
			api.Slices = nil
			r.Files.Sockets = &Sockets{}
			api.Claims = []resourcev1.ResourceClaim{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "train", Name: "c", UID: "c1"},
				Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
					Results: []resourcev1.DeviceRequestAllocationResult{{Driver: nvidiaDriver, Pool: "n1", Device: "gpu-0", AdminAccess: ptr.To(true)}},
				}}},
			}}
			return r, api
		},
		verdict: Clean,
		want:    []wanted{{gpuA, ByNone, ByPlugin, Clean, nil}},
	}, {
		name: "List did not answer",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Holders, r.Unknown = nil, []Unknown{{PartHolders, "List: hangs"}}
			api := nothing()
			api.Slices = publishes(nvidiaDriver, wholeGPU("gpu-0", gpuA))
			return r, api
		},
		verdict: Undecided,
		want:    []wanted{{gpuA, ByDRA, ByUnknown, Undecided, []string{"which pods hold devices of plugins is unknown"}}},
	}, {
		name: "no library: what the two offer is joined all the same, and is not clean",
		report: func() (NodeReport, *APIView) {
			r := knows(nil)
			r.Unknown = []Unknown{{PartHardware, "NVML: library-not-found"}}
			r.Advertised["nvidia.com/gpu"] = []string{gpuA}
			return r, nothing()
		},
		verdict: Undecided,
		want:    []wanted{{gpuA, ByPlugin, ByNone, Clean, nil}},
	}, {
		name: "an incomplete pool",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Advertised["nvidia.com/gpu"] = []string{gpuA}
			api := nothing()
			api.Slices = publishes(nvidiaDriver, wholeGPU("gpu-1", gpuB))
			api.Slices[0].Spec.Pool.ResourceSliceCount = 2
			r.Hardware = hardware(gpuA, gpuB)
			return r, api
		},
		verdict: Undecided,
		want: []wanted{
			{gpuA, ByPlugin, ByNone, Undecided, []string{"pool n1 of driver gpu.nvidia.com has 1 of 2 ResourceSlices of generation 1"}},
			// The gap is DRA's, and the plugin is known not to offer this one.
			{gpuB, ByDRA, ByNone, Clean, nil},
		},
	}, {
		name: "the plugin offers what the hardware does not show",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Advertised["nvidia.com/gpu"] = []string{gpuA, gpuB}
			return r, nothing()
		},
		verdict: Undecided,
		want:    []wanted{{gpuA, ByPlugin, ByNone, Clean, nil}, {gpuB, ByPlugin, ByUnknown, Undecided, []string{"the hardware does not show " + gpuB}}},
	}, {
		name: "a lost GPU does not hide the other",
		report: func() (NodeReport, *APIView) {
			r := knows(hardware(gpuA))
			r.Hardware.Devices = append(r.Hardware.Devices, nvml.Device{Index: 1, Errors: []nvml.Error{{Kind: nvml.KindGPULost, Part: "device"}}})
			r.Advertised["nvidia.com/gpu"] = []string{gpuA}
			return r, nothing()
		},
		verdict: Undecided,
		want:    []wanted{{gpuA, ByPlugin, ByNone, Clean, nil}, {"", ByNone, ByNone, Undecided, []string{"gpu-lost"}}},
	}, {
		name: "devices of another vendor by address, and one that has none beside",
		report: func() (NodeReport, *APIView) {
			r := knows(nil)
			r.Advertised["amd.com/gpu"] = []string{"0000:83:00.0"}
			r.Advertised["rdma/hca"] = []string{"mlx5_0"}
			api := nothing()
			api.Slices = append(publishes("gpu.amd.com", device("gpu-8", "pciAddr", "0000:83:00.0")),
				publishes("dra.networking", device("eth0"))...)
			return r, api
		},
		verdict: DoubleAdvertised,
		want:    []wanted{{"0000:83:00.0", ByBoth, ByNone, DoubleAdvertised, []string{"amd.com/gpu"}}},
	}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, api := tt.report()
			check(t, Join(r, api), tt.verdict, tt.want)
		})
	}
}

// The cases of partitions and of shared GPUs.
func TestJoinPartitionsAndShares(t *testing.T) {
	t.Parallel()
	mig := func(name, uuid string) resourcev1.Device {
		return device(name, "type", "mig", "uuid", uuid, "parentUUID", gpuA, "profile", "1g.10gb")
	}
	abstract := device("gpu-0-mig-1g10gb-19-0", "type", "mig", "parentUUID", gpuA, "resource.kubernetes.io/pciBusID", "0000:1b:00.0")
	for _, tt := range []struct {
		name       string
		host       *nvml.Host
		advertised map[string][]string
		holders    []Holder
		slices     []resourcev1.Device
		verdict    Verdict
		want       []wanted
	}{{
		name: "mixed strategy: two partitions, one by each", host: partitioned(gpuA, migA, migB),
		advertised: map[string][]string{"nvidia.com/mig-1g.10gb": {migA}}, slices: []resourcev1.Device{mig("gpu-0-mig-1g10gb-19-1", migB)},
		// The GPU itself shares silicon with both, and they share none with each other.
		verdict: Clean,
		want:    []wanted{{gpuA, ByNone, ByNone, Clean, nil}, {migA, ByPlugin, ByNone, Clean, nil}, {migB, ByDRA, ByNone, Clean, nil}},
	}, {
		name: "single strategy: the resource of whole GPUs is a partition", host: partitioned(gpuA, migA),
		advertised: map[string][]string{"nvidia.com/gpu": {migA}}, slices: []resourcev1.Device{mig("gpu-0-mig-1g10gb-19-0", migA)},
		verdict: DoubleAdvertised,
		want:    []wanted{{gpuA, ByNone, ByNone, DoubleAdvertised, nil}, {migA, ByBoth, ByNone, DoubleAdvertised, []string{migA + " as nvidia.com/gpu"}}},
	}, {
		name: "strategy none: the whole GPU beside its partition", host: partitioned(gpuA, migA),
		advertised: map[string][]string{"nvidia.com/gpu": {gpuA}}, slices: []resourcev1.Device{mig("gpu-0-mig-1g10gb-19-0", migA)},
		verdict: DoubleAdvertised,
		want:    []wanted{{gpuA, ByPlugin, ByNone, DoubleAdvertised, nil}, {migA, ByDRA, ByNone, DoubleAdvertised, nil}},
	}, {
		name: "the partition and its GPU in two hands", host: partitioned(gpuA, migA),
		holders: []Holder{legacy(gpuA), claimOf(nvidiaDriver, "m")}, slices: []resourcev1.Device{mig("m", migA)},
		verdict: DoubleHeld,
		want:    []wanted{{gpuA, ByNone, ByPlugin, DoubleHeld, nil}, {migA, ByDRA, ByDRA, DoubleHeld, []string{"pod infer/small", "pod train/big"}}},
	}, {
		name: "an id of old drivers is that of the partition by its instances", host: partitioned(gpuA, migA),
		advertised: map[string][]string{"nvidia.com/mig-1g.10gb": {"MIG-" + gpuA + "/7/0"}}, slices: []resourcev1.Device{mig("m", migA)},
		verdict: DoubleAdvertised,
		want:    []wanted{{gpuA, ByNone, ByNone, DoubleAdvertised, nil}, {migA, ByBoth, ByNone, DoubleAdvertised, nil}},
	}, {
		name: "time-slicing: many pods on one GPU by the plugin alone", host: hardware(gpuA),
		advertised: map[string][]string{"nvidia.com/gpu.shared": {gpuA + "::0", gpuA + "::1"}},
		holders: []Holder{
			{Pod: "a/one", Container: "m", Resource: "nvidia.com/gpu.shared", IDs: []string{gpuA + "::0"}},
			{Pod: "a/two", Container: "m", Resource: "nvidia.com/gpu.shared", IDs: []string{gpuA + "::1"}},
		},
		verdict: Clean, want: []wanted{{gpuA, ByPlugin, ByPlugin, Clean, nil}},
	}, {
		name: "time-slicing: a replica and a claim", host: hardware(gpuA),
		holders: []Holder{legacy(gpuA + "::3"), claimOf(nvidiaDriver, "gpu-0")}, slices: []resourcev1.Device{wholeGPU("gpu-0", gpuA)},
		verdict: DoubleHeld, want: []wanted{{gpuA, ByDRA, ByBoth, DoubleHeld, []string{"pod infer/small", "pod train/big"}}},
	}, {
		name: "DynamicMIG: a partition to be made, of the GPU that the plugin offers", host: hardware(gpuA),
		advertised: map[string][]string{"nvidia.com/gpu": {gpuA}}, slices: []resourcev1.Device{abstract},
		verdict: DoubleAdvertised,
		want:    []wanted{{gpuA, ByPlugin, ByNone, DoubleAdvertised, nil}, {abstract.Name, ByDRA, ByNone, DoubleAdvertised, nil}},
	}, {
		name: "DynamicMIG: a partition to be made, beside one of the plugin's", host: partitioned(gpuA, migA),
		advertised: map[string][]string{"nvidia.com/mig-1g.10gb": {migA}}, slices: []resourcev1.Device{abstract},
		verdict: Undecided,
		want: []wanted{
			{gpuA, ByNone, ByNone, Undecided, nil}, {migA, ByPlugin, ByNone, Undecided, []string{"whether they are the same silicon is unknown"}},
			{abstract.Name, ByDRA, ByNone, Undecided, nil},
		},
	}, {
		name: "DynamicMIG: on another GPU than the plugin's", host: hardware(gpuA, gpuB),
		advertised: map[string][]string{"nvidia.com/gpu": {gpuB}}, slices: []resourcev1.Device{abstract},
		verdict: Clean,
		want:    []wanted{{gpuA, ByNone, ByNone, Clean, nil}, {gpuB, ByPlugin, ByNone, Clean, nil}, {abstract.Name, ByDRA, ByNone, Clean, nil}},
	}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := knows(tt.host)
			for resource, ids := range tt.advertised {
				r.Advertised[resource] = devicesOf(ids)
			}
			r.Holders = append(r.Holders, tt.holders...)
			api := nothing()
			api.Slices = publishes(nvidiaDriver, tt.slices...)
			check(t, Join(r, api), tt.verdict, tt.want)
		})
	}
}

// Records on disk outlive their pods. Whether one still counts is told by the pod's
// folder, which the kubelet removes last, and never by the API's silence: a pod that was
// deleted by force is gone from there at once.
func TestJoinRecords(t *testing.T) {
	t.Parallel()
	record := DeviceEntry{PodUID: "u1", Container: "main", Resource: "nvidia.com/gpu", IDs: []string{gpuA}}
	pod := func(phase corev1.PodPhase) []corev1.Pod {
		return []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "infer", Name: "small", UID: types.UID("u1")}, Status: corev1.PodStatus{Phase: phase}}}
	}
	claim := ClaimRecord{Claim: "train/c", UID: "c1", PodUIDs: []string{"u2"}, Devices: []Device{{nvidiaDriver, "n1", "gpu-0"}}}
	for _, tt := range []struct {
		name      string
		change    func(*NodeReport, *APIView)
		held      By
		verdict   Verdict
		reason    string
		leftovers int
	}{{
		name:      "the folder is gone",
		change:    func(r *NodeReport, _ *APIView) { r.Files.DeviceManager.Entries = []DeviceEntry{record} },
		held:      ByNone,
		verdict:   Clean,
		leftovers: 1,
	}, {
		name: "the folder is there, and neither List nor the API has the pod",
		change: func(r *NodeReport, _ *APIView) {
			r.Files.DeviceManager.Entries, r.Files.PodFolders = []DeviceEntry{record}, []string{"u1"}
		},
		held: ByUnknown, verdict: Undecided, reason: "pod UID u1 was given it as nvidia.com/gpu",
	}, {
		name: "whether the folder is there is unknown",
		change: func(r *NodeReport, _ *APIView) {
			r.Files.DeviceManager.Entries, r.Files.PodFolders = []DeviceEntry{record}, nil
		},
		held: ByUnknown, verdict: Undecided, reason: "pod UID u1",
	}, {
		name: "the pod has ended, and waits to be deleted",
		change: func(r *NodeReport, api *APIView) {
			r.Files.DeviceManager.Entries, r.Files.PodFolders, api.Pods = []DeviceEntry{record}, []string{"u1"}, pod(corev1.PodSucceeded)
		},
		held: ByNone, verdict: Clean, leftovers: 1,
	}, {
		name: "the API has the pod as running, and List leaves it out",
		change: func(r *NodeReport, api *APIView) {
			r.Files.DeviceManager.Entries, r.Files.PodFolders, api.Pods = []DeviceEntry{record}, []string{"u1"}, pod(corev1.PodRunning)
		},
		held: ByPlugin, verdict: DoubleAdvertised, reason: "pod infer/small",
	}, {
		name: "List names the pod that has the record",
		change: func(r *NodeReport, _ *APIView) {
			r.Files.DeviceManager.Entries, r.Files.PodFolders, r.Holders = []DeviceEntry{record}, []string{"u1"}, []Holder{legacy(gpuA)}
		},
		held: ByPlugin, verdict: DoubleAdvertised, reason: "pod infer/small",
	}, {
		name: "a claim's pod was deleted by force",
		change: func(r *NodeReport, _ *APIView) {
			r.Files.Claims = []ClaimRecord{claim}
		},
		held: ByUnknown, verdict: Undecided, reason: "claim train/c as prepared for pod UID u2, whose folder is gone", leftovers: 1,
	}, {
		name: "a claim's pod is still there",
		change: func(r *NodeReport, _ *APIView) {
			r.Files.Claims, r.Files.PodFolders = []ClaimRecord{claim}, []string{"u2"}
		},
		held: ByDRA, verdict: Clean,
	}, {
		name: "a claim that the driver alone remembers",
		change: func(r *NodeReport, _ *APIView) {
			r.Files.DriverCheckpoints = []DriverCheckpoint{{Driver: nvidiaDriver, Claims: []PreparedClaim{
				{UID: "c9", State: "PrepareCompleted", Devices: []PreparedDevice{{Name: "gpu-0", UUID: gpuA, Type: "gpu"}}},
			}}}
		},
		held: ByUnknown, verdict: Undecided, reason: "claim UID c9 as prepared (PrepareCompleted)", leftovers: 1,
	}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, api := knows(hardware(gpuA)), nothing()
			api.Slices = publishes(nvidiaDriver, wholeGPU("gpu-0", gpuA))
			tt.change(&r, api)
			got := Join(r, api)
			var reasons []string
			if tt.reason != "" {
				reasons = []string{tt.reason}
			}
			check(t, got, tt.verdict, []wanted{{gpuA, ByDRA, tt.held, tt.verdict, reasons}})
			if len(got.Leftovers) != tt.leftovers {
				t.Errorf("leftovers %+v, want %d", got.Leftovers, tt.leftovers)
			}
		})
	}
}

// A claim that is allocated counts before any node has prepared it.
func TestJoinClaimThatIsNotPreparedYet(t *testing.T) {
	t.Parallel()
	r, api := knows(hardware(gpuA)), nothing()
	r.Holders = []Holder{legacy(gpuA)}
	api.Slices = publishes(nvidiaDriver, wholeGPU("gpu-0", gpuA))
	api.Claims = []resourcev1.ResourceClaim{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "train", Name: "c", UID: "c1"},
		Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "big", UID: "u2"}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Driver: nvidiaDriver, Pool: "n1", Device: "gpu-0"}},
			}},
		},
	}}
	check(t, Join(r, api), DoubleHeld, []wanted{{gpuA, ByDRA, ByBoth, DoubleHeld, []string{"pod infer/small", "pod train/big by claim train/c"}}})
}

func TestJoinProcesses(t *testing.T) {
	t.Parallel()
	of := func(uid string) nvml.Owner { return nvml.Owner{Kind: nvml.OwnerPod, PodUID: uid} }
	process := func(command string, owner nvml.Owner, types ...nvml.ProcessType) nvml.Process {
		return nvml.Process{PID: 42, Command: command, Owner: owner, Types: types}
	}
	for _, tt := range []struct {
		name    string
		process nvml.Process
		record  bool // the holder's UID is on record
		held    By
		verdict Verdict
		reason  string
	}{
		{"the holder's", process("python", of("u1"), nvml.TypeCompute), true, ByPlugin, Clean, ""},
		{"another pod's", process("python", of("u9"), nvml.TypeCompute), true, ByPlugin, Undecided, "process 42 (python) of pod UID u9 uses it without an allocation"},
		{"a pod's, and the holder's UID is not known", process("python", of("u1"), nvml.TypeCompute), false, ByPlugin, Undecided, "whether process 42"},
		{"of no pod", process("train", nvml.Owner{Kind: nvml.OwnerHost}, nvml.TypeCompute), true, ByPlugin, Undecided, "process 42 (train) uses it without an allocation"},
		{"a display's", process("Xorg", nvml.Owner{Kind: nvml.OwnerHost}, nvml.TypeGraphics), true, ByPlugin, Clean, ""},
		{"the server of MPS", process("nvidia-cuda-mps", of("u7"), nvml.TypeCompute), true, ByPlugin, Clean, ""},
		{"nobody knows whose", process("", nvml.Owner{Kind: nvml.OwnerUnknown, Detail: "no such process"}, nvml.TypeCompute), true, ByPlugin, Undecided, "no such process"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := knows(hardware(gpuA))
			r.Processes = true
			r.Advertised["nvidia.com/gpu"] = []string{gpuA}
			r.Holders = []Holder{legacy(gpuA)}
			if tt.record {
				r.Files.DeviceManager.Entries = []DeviceEntry{{PodUID: "u1", Container: "main", Resource: "nvidia.com/gpu", IDs: []string{gpuA}}}
				r.Files.PodFolders = []string{"u1"}
			}
			r.Hardware.Devices[0].Processes = []nvml.Process{tt.process}
			var reasons []string
			if tt.reason != "" {
				reasons = []string{tt.reason}
			}
			check(t, Join(r, nothing()), tt.verdict, []wanted{{gpuA, ByPlugin, tt.held, tt.verdict, reasons}})
		})
	}

	// On a GPU that was given to nobody, a process is who has it.
	r := knows(hardware(gpuA))
	r.Processes = true
	r.Hardware.Devices[0].Processes = []nvml.Process{process("python", of("u9"), nvml.TypeCompute)}
	check(t, Join(r, nothing()), Undecided, []wanted{{gpuA, ByNone, ByProcess, Undecided, []string{"pod UID u9"}}})
}

// A client joins again what a node has joined, with the API at hand, and forgets what
// the node could not know.
func TestJoinAgain(t *testing.T) {
	t.Parallel()
	r := knows(hardware(gpuA))
	r.Advertised["nvidia.com/gpu"] = []string{gpuA}
	r.Files.Sockets = &Sockets{Registrations: []string{"x-reg.sock"}, Drivers: []string{"x"}}
	alone := Join(r, nil)
	if alone.Verdict != Undecided {
		t.Errorf("alone: %s, want unknown", alone.Verdict)
	}
	again := Join(alone, nothing())
	check(t, again, Clean, []wanted{{gpuA, ByPlugin, ByNone, Clean, nil}})
	if again.Exit() != ExitOK || alone.Exit() != ExitUnknown {
		t.Errorf("exit codes %d and %d, want 7 and 0", alone.Exit(), again.Exit())
	}
}
