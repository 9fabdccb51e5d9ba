//go:build linux && cgo && nvml

package nvml

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dramigrate/dramigrate/internal/nvml/nvmltest"
)

// The library answers to its start with a code.
func TestStartFails(t *testing.T) {
	tests := []struct {
		name string
		code int
		want Kind
		says string
	}{
		{"version mismatch", 18, KindVersionMismatch, "reboot the node"},
		{"no permission", 4, KindNoPermission, "run privileged"},
		{"blocked by the device cgroup", 17, KindNoPermission, "(code 17)"},
		{"driver not loaded", 9, KindDriverNotLoaded, "lsmod"},
		{"GPU lost", 15, KindGPULost, "Xid 79"},
		{"unknown to everybody", 999, KindFailed, "(code 999)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := server(1)
			cfg.Faults = []nvmltest.Fault{{Call: "nvmlInit", Code: tt.code}}
			r := lookAt(t, cfg)
			if r.OpenKind != tt.want || !strings.Contains(r.OpenError, tt.says) {
				t.Errorf("Open failed with %q, %q; want %q and %q", r.OpenKind, r.OpenError, tt.want, tt.says)
			}
		})
	}
}

func TestOpenHangs(t *testing.T) {
	cfg := server(1)
	cfg.Faults = []nvmltest.Fault{{Call: "nvmlInit", Hang: true}}
	r := lookAt(t, cfg)
	if r.OpenKind != KindTimeout || !strings.Contains(r.OpenError, "no answer within 300ms") {
		t.Errorf("Open failed with %q, %q; want a timeout after 300ms", r.OpenKind, r.OpenError)
	}
}

func TestLibraryIsNotThere(t *testing.T) {
	empty := t.TempDir()
	for name, o := range map[string]Options{
		"file": {LibraryPath: filepath.Join(empty, soname)},
		"name": {LibraryPath: "libnvidia-ml-of-nobody.so.1"},
		"root": {Roots: []string{empty}},
	} {
		t.Run(name, func(t *testing.T) {
			r := lookIn(t, childTask{Options: o}, nil)
			if r.OpenKind != KindLibraryNotFound || !strings.Contains(r.OpenError, "RuntimeClass nvidia") {
				t.Errorf("Open failed with %q, %q; want library-not-found and what to do", r.OpenKind, r.OpenError)
			}
		})
	}
}

func TestLibraryIsUnusable(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "usr/lib64")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, soname)
	if err := os.WriteFile(path, []byte("not a library\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A later root with a good one must not be taken: the first one's driver is meant.
	later := rootWith(t, "lib64")
	r := lookIn(t, childTask{Options: Options{Roots: []string{root, later}}}, nil)
	if r.OpenKind != KindLibraryUnusable || !strings.Contains(r.OpenError, path) {
		t.Errorf("Open failed with %q, %q; want library-unusable with the file's name", r.OpenKind, r.OpenError)
	}
}

func TestLibraryMayNotBeRead(t *testing.T) {
	root := rootWith(t, "usr/lib64")
	if err := os.Chmod(filepath.Join(root, "usr/lib64"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // so that the folder can be removed
		if err := os.Chmod(filepath.Join(root, "usr/lib64"), 0o700); err != nil {
			t.Error(err)
		}
	})
	// Root itself is never refused, so under root the child asks as nobody.
	var nobody *syscall.Credential
	if os.Geteuid() == 0 {
		nobody = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for name, o := range map[string]Options{
		"root": {Roots: []string{root}},
		"file": {LibraryPath: filepath.Join(root, "usr/lib64", soname)},
	} {
		t.Run(name, func(t *testing.T) {
			r := lookIn(t, childTask{Options: o}, nobody)
			if r.OpenKind != KindNoPermission || !strings.Contains(r.OpenError, "permission denied") {
				t.Errorf("Open failed with %q, %q; want no-permission", r.OpenKind, r.OpenError)
			}
		})
	}
}

// rootWith is a driver's root with the stand-in in one of its folders, world-readable up
// to the root.
func rootWith(t *testing.T, dir string) string {
	t.Helper()
	root, err := os.MkdirTemp("", "driver-root")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
		t.Fatal(err)
	}
	lib, err := os.ReadFile(standin(t))
	if err != nil {
		t.Fatal(err)
	}
	// As a driver installs it: the file by its version, and a link of the common name.
	versioned := "libnvidia-ml.so.580.95.05"
	if err := os.WriteFile(filepath.Join(root, dir, versioned), lib, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("/", dir, versioned), filepath.Join(root, dir, soname)); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestLibraryInARoot(t *testing.T) {
	root := rootWith(t, "usr/lib/x86_64-linux-gnu")
	r := lookIn(t, childTask{Options: Options{Roots: []string{t.TempDir(), root}}}, nil,
		nvmltest.ConfigEnv+"="+writeConfig(t, server(1)))
	got := fullLook(t, r)
	want := filepath.Join(root, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.95.05")
	if got.Library != want || len(got.Devices) != 1 {
		t.Errorf("loaded %s with %d GPUs; want %s with 1", got.Library, len(got.Devices), want)
	}
}

func TestLibraryOfTheDynamicLinker(t *testing.T) {
	r := lookIn(t, childTask{}, nil,
		nvmltest.ConfigEnv+"="+writeConfig(t, server(1)), "LD_LIBRARY_PATH="+filepath.Dir(standin(t)))
	if got := fullLook(t, r); got.Library != soname || len(got.Devices) != 1 {
		t.Errorf("loaded %s with %d GPUs; want %s with 1", got.Library, len(got.Devices), soname)
	}
}

// A library with other functions than this program was made for must not end it, as a
// call to a function that is not there would.
func TestFunctionsMissing(t *testing.T) {
	t.Run("start", func(t *testing.T) {
		r := lookAt(t, server(1), "nvmlInitWithFlags", "nvmlInit_v2")
		if r.OpenKind != KindFunctionMissing {
			t.Errorf("Open failed with %q, %q; want function-missing", r.OpenKind, r.OpenError)
		}
	})
	t.Run("start with flags", func(t *testing.T) {
		if got := fullLook(t, lookAt(t, server(2), "nvmlInitWithFlags")); len(got.Devices) != 2 {
			t.Errorf("%d GPUs, want 2", len(got.Devices))
		}
	})
	t.Run("count", func(t *testing.T) {
		r := lookAt(t, server(1), "nvmlDeviceGetCount_v2")
		if r.LookKind != KindFunctionMissing || r.Host.Devices != nil {
			t.Errorf("Look failed with %q and GPUs %v; want function-missing, and the GPUs unknown", r.LookKind, r.Host.Devices)
		}
	})
	// A driver from before MIG, row remapping and recovery actions: not a gap in what
	// it can know, and the hints are unknown.
	t.Run("old driver", func(t *testing.T) {
		cfg := server(1)
		cfg.GPUs[0].Processes = []nvmltest.Process{{Type: "compute", PID: 7, MemoryBytes: 9}}
		host := fullLook(t, lookAt(t, cfg, "nvmlDeviceGetMigMode", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetFieldValues",
			"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"))
		d := host.Devices[0]
		if d.MIGMode != MIGUnsupported || len(d.Processes) != 1 || d.Processes[0].PID != 7 || *d.Processes[0].MemoryBytes != 9 {
			t.Errorf("MIG %s, processes %+v; want unsupported and process 7", d.MIGMode, d.Processes)
		}
		for _, part := range []string{"rowRemap", "recoveryAction", "resetRequired", "xid"} {
			if !unknown(d.Health, part) {
				t.Errorf("%s is not named as unknown: %+v", part, d.Health.Unknown)
			}
		}
		if d.Health.RemapPending != nil || d.Health.ResetRequired != nil || d.Health.RecoveryAction != "" {
			t.Errorf("%+v has values for what the driver does not tell", d.Health)
		}
	})
	t.Run("minor number", func(t *testing.T) {
		r := lookAt(t, server(1), "nvmlDeviceGetMinorNumber")
		d := r.Host.Devices[0]
		if r.PartKind != KindPartial || d.Minor != nil || d.UUID != gpuUUID(0) || d.Errors[0].Part != "minor" || d.Errors[0].Kind != KindFunctionMissing {
			t.Errorf("%q: %+v; want all but the minor number", r.PartError, d)
		}
	})
}

func unknown(h Health, part string) bool {
	for _, u := range h.Unknown {
		if u.Part == part {
			return true
		}
	}
	return false
}

// othersComplete: whatever is wrong with one GPU of the eight, seven are read in full.
func othersComplete(t *testing.T, r childResult, but int) Device {
	t.Helper()
	if r.OpenError != "" || r.LookError != "" || len(r.Host.Devices) != 8 {
		t.Fatalf("open: %s, look: %s, %d GPUs; want 8", r.OpenError, r.LookError, len(r.Host.Devices))
	}
	if r.PartKind != KindPartial {
		t.Errorf("the host is %q, want partial", r.PartKind)
	}
	for i, d := range r.Host.Devices {
		if d.Index != i {
			t.Errorf("GPU %d is at %d", d.Index, i)
		}
		if i != but && (d.UUID != gpuUUID(i) || len(d.Errors) > 0 || *d.Health.Lost || d.Processes == nil) {
			t.Errorf("GPU %d suffers with GPU %d: %+v", i, but, d)
		}
	}
	return r.Host.Devices[but]
}

func TestOneGPUFails(t *testing.T) {
	tests := []struct {
		name   string
		fault  nvmltest.Fault
		kind   Kind
		uuid   string
		lost   *bool
		reset  *bool
		device bool // not even the handle is to be had
	}{
		{"lost", nvmltest.Fault{Call: "nvmlDeviceGetHandleByIndex", Code: 15}, KindGPULost, "", ptr(true), nil, true},
		{"lost after its handle was given", nvmltest.Fault{Call: "*", Code: 15}, KindGPULost, "", ptr(true), nil, false},
		{"reset required", nvmltest.Fault{Call: "*", Code: 16}, KindResetRequired, "", ptr(false), ptr(true), false},
		{"no permission", nvmltest.Fault{Call: "nvmlDeviceGetHandleByIndex", Code: 4}, KindNoPermission, "", nil, nil, true},
		{"blocked by the device cgroup", nvmltest.Fault{Call: "nvmlDeviceGetHandleByIndex", Code: 17}, KindNoPermission, "", nil, nil, true},
		{"hang at its handle", nvmltest.Fault{Call: "nvmlDeviceGetHandleByIndex", Hang: true}, KindTimeout, "", nil, nil, true},
		{"hang after its UUID", nvmltest.Fault{Call: "nvmlDeviceGetPciInfo", Hang: true}, KindTimeout, gpuUUID(3), nil, nil, false},
		{"the library's own timeout", nvmltest.Fault{Call: "*", Code: 10}, KindTimeout, "", nil, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := server(8)
			tt.fault.GPU = ptr(3)
			cfg.Faults = []nvmltest.Fault{tt.fault}
			r := lookAt(t, cfg)
			d := othersComplete(t, r, 3)
			if d.UUID != tt.uuid || d.Processes != nil || d.PCIBusID != "" {
				t.Errorf("UUID %q, address %q, processes %v; want %q and the others unknown", d.UUID, d.PCIBusID, d.Processes, tt.uuid)
			}
			if len(d.Errors) == 0 || (d.Errors[0].Part == "device") != tt.device {
				t.Fatalf("errors %+v; the handle is to be had: %v", d.Errors, !tt.device)
			}
			for _, e := range d.Errors {
				if e.Kind != tt.kind {
					t.Errorf("%s: %s, want %s", e.Part, e.Kind, tt.kind)
				}
			}
			if !same(d.Health.Lost, tt.lost) || unknown(d.Health, "lost") != (tt.lost == nil) {
				t.Errorf("lost is %v, unknown are %+v; want %v", d.Health.Lost, d.Health.Unknown, tt.lost)
			}
			if !same(d.Health.ResetRequired, tt.reset) || unknown(d.Health, "resetRequired") != (tt.reset == nil) {
				t.Errorf("reset required is %v, unknown are %+v; want %v", d.Health.ResetRequired, d.Health.Unknown, tt.reset)
			}
			for _, part := range []string{"eccUncorrected", "eccUncorrectedLifetime", "rowRemap", "recoveryAction", "xid"} {
				if !unknown(d.Health, part) {
					t.Errorf("%s is not named as unknown: %+v", part, d.Health.Unknown)
				}
			}
			if wantClose := map[bool]Kind{true: KindTimeout}[tt.fault.Hang]; r.CloseKind != wantClose {
				t.Errorf("Close says %q, want %q", r.CloseKind, wantClose)
			}
			if !strings.Contains(r.PartError, "GPU 3 (") || strings.Contains(r.PartError, "GPU 4") {
				t.Errorf("%q must name GPU 3 alone", r.PartError)
			}
		})
	}
}

func same(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }

// After a call that hung, none is made on the same GPU, and each part says so.
func TestNoCallAfterOneThatHangs(t *testing.T) {
	cfg := server(8)
	cfg.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetMemoryInfo", GPU: ptr(5), Hang: true}}
	r := lookAt(t, cfg)
	d := othersComplete(t, r, 5)
	if d.UUID != gpuUUID(5) || d.PCIBusID != "0000:20:00.0" || d.Architecture != "Hopper" || d.MemoryBytes != nil || d.MIG != nil {
		t.Errorf("%+v; want what was read before the call that hangs", d)
	}
	if e := d.Errors[0]; e.Part != "memoryBytes" || e.Detail != "no answer within 300ms" {
		t.Errorf("first error is %+v, want that the memory's call gave no answer", e)
	}
	for _, e := range d.Errors[1:] {
		if e.Detail != "not asked, because nvmlDeviceGetMemoryInfo hangs" {
			t.Errorf("%+v; want that it was not asked", e)
		}
	}
	// One deadline, not one for each call: there are ten more. The bound is generous,
	// for machines under load.
	if r.Took > 10*300*time.Millisecond {
		t.Errorf("took %s with deadlines of 300ms", r.Took)
	}
}

func TestLookEndsWithItsContext(t *testing.T) {
	cfg := server(8)
	cfg.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetUUID", GPU: ptr(0), Hang: true}}
	r := lookIn(t, childTask{Options: Options{LibraryPath: standin(t)}, LookTimeout: 2 * time.Second}, nil,
		nvmltest.ConfigEnv+"="+writeConfig(t, cfg))
	d := othersComplete(t, r, 0)
	if e := d.Errors[0]; e.Part != "uuid" || e.Kind != KindTimeout || !strings.Contains(e.Detail, "the test's time is up") {
		t.Errorf("%+v; want a timeout for the context's reason", e)
	}
}

// A GPU without a UUID is listed all the same.
func TestUUIDCannotBeRead(t *testing.T) {
	cfg := server(8)
	cfg.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetUUID", GPU: ptr(2), Code: 999}}
	r := lookAt(t, cfg)
	d := othersComplete(t, r, 2)
	if d.UUID != "" || d.PCIBusID != "0000:1d:00.0" || *d.Minor != 3 || len(d.Errors) != 1 {
		t.Errorf("%+v; want all but the UUID", d)
	}
	if e := d.Errors[0]; e != (Error{Kind: KindFailed, Part: "uuid", Call: "nvmlDeviceGetUUID", Code: 999}) {
		t.Errorf("error %+v", e)
	}
	if want := "GPU 2 (UUID unknown): uuid: failed"; !strings.Contains(r.PartError, want) {
		t.Errorf("%q must say %q", r.PartError, want)
	}
}

// One partition that fails does not hide its siblings, nor do they stand for all.
func TestPartitionFails(t *testing.T) {
	cfg := server(1)
	sliceUp(&cfg, 0, 7)
	cfg.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetGpuInstanceId", Code: 999}}
	r := lookAt(t, cfg)
	d := r.Host.Devices[0]
	if r.PartKind != KindPartial || len(d.MIG) != 7 || d.MIG[6].UUID != migUUID(0, 6) || d.MIG[6].GPUInstance != nil || d.MIG[6].Processes != nil {
		t.Errorf("%q: %+v; want 7 partitions without instance, and their processes unknown", r.PartError, d.MIG)
	}
	cfg.Faults = []nvmltest.Fault{{Call: "nvmlDeviceGetMigDeviceHandleByIndex", Code: 4}}
	r = lookAt(t, cfg)
	if d = r.Host.Devices[0]; r.PartKind != KindPartial || d.MIG != nil || d.Errors[0].Part != "mig" || d.Errors[0].Kind != KindNoPermission {
		t.Errorf("%q: partitions %v, errors %+v; want them unknown for want of permission", r.PartError, d.MIG, d.Errors)
	}
}
