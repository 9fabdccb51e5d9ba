//go:build linux && cgo && nvml

package nvml

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dramigrate/dramigrate/internal/nvml/nvmltest"
)

func TestLookAtGPUs(t *testing.T) {
	cfg := server(2)
	cfg.GPUs[0].PCIBusID = "00010000:1b:00.0"
	cfg.GPUs[0].Processes = []nvmltest.Process{
		{Type: "mps", PID: 300, MemoryBytes: 3 << 30},
		{Type: "compute", PID: 200, MemoryBytes: 1 << 30},
		{Type: "compute", PID: 300, MemoryBytes: 3 << 30},
		{Type: "graphics", PID: 100},
	}
	cfg.GPUs[1].MIGMode = nvmltest.MIGUnsupported
	cfg.GPUs[1].Architecture, cfg.GPUs[1].Product, cfg.GPUs[1].MemoryBytes = nvmltest.ArchAda, "NVIDIA L40S", 46068<<20
	cfg.GPUs[1].ECCUncorrected, cfg.GPUs[1].ECCUncorrectedLifetime = 2, 40
	cfg.GPUs[1].RowsRemapped, cfg.GPUs[1].RemapPending, cfg.GPUs[1].RemapFailure = 3, true, true
	cfg.GPUs[1].RecoveryAction = 4
	noXid := []Unknown{{Part: "xid", Kind: KindNotSupported, Detail: "NVML does not tell of Xid errors of the past; the kernel's log does"}}
	noOwner := Owner{Kind: OwnerUnknown, Detail: "the host's process table is not visible here: that takes hostPID"}

	got := fullLook(t, lookAt(t, cfg))
	want := Host{
		Library:       got.Library,
		DriverVersion: "580.95.05",
		NVMLVersion:   "13.580.95.05",
		CUDAVersion:   "13.0",
		Devices: []Device{
			{
				Index: 0, UUID: gpuUUID(0), PCIBusID: "10000:1b:00.0", Minor: ptr(1),
				Product: "NVIDIA H100 80GB HBM3", Architecture: "Hopper", MemoryBytes: ptr(uint64(81559 << 20)),
				MIGMode: MIGDisabled, MIGPending: MIGDisabled, MIG: []MIGDevice{},
				Processes: []Process{
					{PID: 100, Types: []ProcessType{TypeGraphics}, Owner: noOwner},
					{PID: 200, Types: []ProcessType{TypeCompute}, MemoryBytes: ptr(uint64(1 << 30)), Owner: noOwner},
					{PID: 300, Types: []ProcessType{TypeCompute, TypeMPS}, MemoryBytes: ptr(uint64(3 << 30)), Owner: noOwner},
				},
				Health: Health{
					Lost: ptr(false), ResetRequired: ptr(false), RecoveryAction: "none",
					ECCUncorrected: ptr(uint64(0)), ECCUncorrectedLifetime: ptr(uint64(0)),
					RowsRemapped: ptr(0), RemapPending: ptr(false), RemapFailure: ptr(false),
					Unknown: noXid,
				},
			},
			{
				Index: 1, UUID: gpuUUID(1), PCIBusID: "0000:1c:00.0", Minor: ptr(0),
				Product: "NVIDIA L40S", Architecture: "Ada Lovelace", MemoryBytes: ptr(uint64(46068 << 20)),
				MIGMode: MIGUnsupported, MIGPending: MIGUnsupported, MIG: []MIGDevice{}, Processes: []Process{},
				Health: Health{
					Lost: ptr(false), ResetRequired: ptr(true), RecoveryAction: "drain-and-reset",
					ECCUncorrected: ptr(uint64(2)), ECCUncorrectedLifetime: ptr(uint64(40)),
					RowsRemapped: ptr(3), RemapPending: ptr(true), RemapFailure: ptr(true),
					Unknown: noXid,
				},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLookAtNoGPUs(t *testing.T) {
	got := fullLook(t, lookAt(t, server(0)))
	if got.Devices == nil || len(got.Devices) != 0 || got.DriverVersion != "580.95.05" {
		t.Errorf("%+v; want an empty list of GPUs, which says that there is none", got)
	}
}

// mixedMIG is a GPU in MIG mode with a gap between its partitions, with all the ways in
// which profiles are named, and processes in two of the partitions and in none.
func mixedMIG() nvmltest.Config {
	cfg := server(1)
	g := &cfg.GPUs[0]
	g.MIGMode, g.MIGPending = nvmltest.MIGEnabled, nvmltest.MIGDisabled
	g.MIG = []nvmltest.MIG{
		{UUID: migUUID(0, 0), Name: g.Product + " MIG 3g.40gb", GPUInstance: 2, GPUSlices: 3, ComputeSlices: 3, MemoryMiB: 40192},
		{},
		{UUID: migUUID(0, 2), Name: g.Product + " MIG 1g.10gb+me", GPUInstance: 9, GPUSlices: 1, ComputeSlices: 1, MemoryMiB: 9856},
		{UUID: migUUID(0, 3), Name: g.Product, GPUInstance: 5, ComputeInstance: 0, GPUSlices: 2, ComputeSlices: 1, MemoryMiB: 19968},
		{UUID: migUUID(0, 4), Name: g.Product, GPUInstance: 5, ComputeInstance: 1, GPUSlices: 2, ComputeSlices: 1, MemoryMiB: 19968},
	}
	g.Processes = []nvmltest.Process{
		{Type: "compute", PID: 10, MIG: ptr(0), MemoryBytes: 5},
		{Type: "compute", PID: 11, MIG: ptr(3)},
		{Type: "mps", PID: 12, MIG: ptr(4)},
		{Type: "compute", PID: 13},
	}
	return cfg
}

func pids(list []Process) []int {
	if list == nil {
		return nil
	}
	out := []int{}
	for _, p := range list {
		out = append(out, p.PID)
	}
	return out
}

func TestLookAtMIG(t *testing.T) {
	d := fullLook(t, lookAt(t, mixedMIG())).Devices[0]
	if d.MIGMode != MIGEnabled || d.MIGPending != MIGDisabled {
		t.Errorf("MIG is %s, and %s after a reset; want enabled, then disabled", d.MIGMode, d.MIGPending)
	}
	want := []struct {
		uuid, profile string
		gi, ci        int
		memoryMiB     uint64
		pids          []int
	}{
		{migUUID(0, 0), "3g.40gb", 2, 0, 40192, []int{10}},
		{migUUID(0, 2), "1g.10gb+me", 9, 0, 9856, []int{}},
		// Two compute instances in one GPU instance, named by their slices.
		{migUUID(0, 3), "1c.2g.20gb", 5, 0, 19968, []int{11}},
		{migUUID(0, 4), "1c.2g.20gb", 5, 1, 19968, []int{12}},
	}
	if len(d.MIG) != len(want) {
		t.Fatalf("%d partitions, want %d: %+v", len(d.MIG), len(want), d.MIG)
	}
	for i, w := range want {
		m := d.MIG[i]
		if m.UUID != w.uuid || m.ParentUUID != gpuUUID(0) || m.Profile != w.profile || *m.GPUInstance != w.gi || *m.ComputeInstance != w.ci || *m.MemoryBytes != w.memoryMiB<<20 {
			t.Errorf("partition %d is %s of %s, %s, instances %d and %d, %d bytes; want %+v",
				i, m.UUID, m.ParentUUID, m.Profile, *m.GPUInstance, *m.ComputeInstance, *m.MemoryBytes, w)
		}
		if diff := cmp.Diff(w.pids, pids(m.Processes)); diff != "" {
			t.Errorf("processes in partition %d (-want +got)\n%s", i, diff)
		}
	}
	if diff := cmp.Diff([]int{13}, pids(d.Processes)); diff != "" {
		t.Errorf("processes in no partition (-want +got)\n%s", diff)
	}
	// nvmlDeviceGetRemappedRows is not supported in MIG mode (nvml.h), which is no gap.
	if d.Health.RemapPending != nil || d.Health.Unknown[0] != (Unknown{Part: "rowRemap", Kind: KindNotSupported}) {
		t.Errorf("row remap is %v, unknown are %+v; want it unknown", d.Health.RemapPending, d.Health.Unknown)
	}
}

// Without the right to see all partitions, each tells of its own; what is in none stays
// unknown.
func TestLookAtMIGWithoutPermission(t *testing.T) {
	cfg := mixedMIG()
	cfg.GPUs[0].NoAggregate = true
	r := lookAt(t, cfg)
	d := r.Host.Devices[0]
	if r.PartKind != KindPartial || d.Processes != nil {
		t.Errorf("the look is %q with processes %v in no partition; want partial, and these unknown", r.PartKind, d.Processes)
	}
	for i, want := range [][]int{{10}, {}, {11}, {12}} {
		if diff := cmp.Diff(want, pids(d.MIG[i].Processes)); diff != "" || len(d.MIG[i].Errors) > 0 {
			t.Errorf("processes in partition %d, errors %v (-want +got)\n%s", i, d.MIG[i].Errors, diff)
		}
	}
	for _, e := range d.Errors {
		if e.Part != "processes" || e.Kind != KindNoPermission || e.Code != 4 {
			t.Errorf("error %+v, want no permission for the processes alone", e)
		}
	}
	if len(d.Errors) != 3 {
		t.Errorf("%d errors, want one for each of the three lists: %+v", len(d.Errors), d.Errors)
	}
}

func TestProcessOfAPod(t *testing.T) {
	proc := t.TempDir()
	for pid, cgroup := range map[int]string{
		10: "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uidSlice + ".slice/cri-containerd-" + ctr + ".scope\n",
		11: "0::/system.slice/nvidia-dcgm.service\n",
	} {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte(cgroup), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg := server(1)
	cfg.GPUs[0].Processes = []nvmltest.Process{{Type: "compute", PID: 10}, {Type: "compute", PID: 11}, {Type: "compute", PID: 12}}
	got := fullLook(t, lookIn(t, childTask{Options: Options{LibraryPath: standin(t), Proc: proc}}, nil,
		nvmltest.ConfigEnv+"="+writeConfig(t, cfg))).Devices[0].Processes
	want := []Owner{
		{Kind: OwnerPod, PodUID: uid, ContainerID: ctr},
		{Kind: OwnerHost},
		{Kind: OwnerUnknown, Detail: "no such process: it has ended, or this is not the host's process table"},
	}
	for i := range want {
		if got[i].Owner != want[i] {
			t.Errorf("process %d is of %+v, want %+v", got[i].PID, got[i].Owner, want[i])
		}
	}
}

// The library tells of an Xid only to who watches, and of one GPU even where another
// cannot be watched.
func TestXIDs(t *testing.T) {
	cfg := server(3)
	cfg.GPUs[0].XIDs = []int{31, 79}
	cfg.GPUs[2].XIDs = []int{48}
	cfg.Faults = []nvmltest.Fault{{Call: "nvmlDeviceRegisterEvents", GPU: ptr(2), Code: 3}}
	env := nvmltest.ConfigEnv + "=" + writeConfig(t, cfg)
	for _, watch := range []bool{true, false} {
		host := fullLook(t, lookIn(t, childTask{Options: Options{LibraryPath: standin(t), WatchXIDs: watch}}, nil, env))
		want := [][]uint64{nil, nil, nil}
		if watch {
			want = [][]uint64{{31, 79}, {}, nil}
		}
		for i, d := range host.Devices {
			if diff := cmp.Diff(want[i], d.Health.XIDs); diff != "" {
				t.Errorf("watched: %v, GPU %d (-want +got)\n%s", watch, i, diff)
			}
			if !unknown(d.Health, "xid") {
				t.Errorf("watched: %v, GPU %d: the Xids of the past are not named as unknown", watch, i)
			}
		}
	}
}
