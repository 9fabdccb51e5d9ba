package dradriver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func TestPrepareAndUnprepare(t *testing.T) {
	b := newBench(t, claim("one", "gpu-2"), claim("two", "gpu-0", "gpu-1"))
	b.start(t)
	k := b.kubelet(t)

	one := prepare(t, k, "one")
	if one.Error != "" || len(one.Devices) != 1 {
		t.Fatalf("claim one: %v", one)
	}
	d := one.Devices[0]
	if d.PoolName != "node-a" || d.DeviceName != "gpu-2" || !slices.Equal(d.RequestNames, []string{"req-gpu-2"}) ||
		!slices.Equal(d.CdiDeviceIds, []string{"k8s.gpu.nvidia.com/claim=one-uid-gpu-2"}) {
		t.Errorf("claim one was answered with %v", d)
	}
	assertInjected(t, b.injected(t, one), uuids[2])
	assertInjected(t, b.injected(t, prepare(t, k, "two")), uuids[0], uuids[1])

	if msg := unprepare(t, k, "one"); msg != "" {
		t.Errorf("unprepare: %s", msg)
	}
	specs, err := os.ReadDir(b.cdiDir)
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) != 1 || !strings.Contains(specs[0].Name(), "two-uid") {
		t.Errorf("CDI specs %v, want that of claim two alone", specs)
	}
	if msg := unprepare(t, k, "one"); msg != "" {
		t.Errorf("unprepare for the second time: %s", msg)
	}
}

func TestDeviceOfTwoClaims(t *testing.T) {
	b := newBench(t, claim("one", "gpu-2"), claim("two", "gpu-2"))
	b.start(t)
	k := b.kubelet(t)
	if resp := prepare(t, k, "one"); resp.Error != "" {
		t.Fatal(resp.Error)
	}
	resp := prepare(t, k, "two")
	if !strings.Contains(resp.Error, "node-a/gpu-2 is already prepared for claim default/one") {
		t.Errorf("second claim of the device: %q", resp.Error)
	}
	unprepare(t, k, "one")
	if resp := prepare(t, k, "two"); resp.Error != "" {
		t.Errorf("the device is free again: %s", resp.Error)
	}
}

func TestUnknownDevices(t *testing.T) {
	foreign := claim("foreign", "gpu-0")
	foreign.Status.Allocation.Devices.Results[0].Pool = "node-b"
	b := newBench(t, claim("absent", "gpu-3"), foreign)
	b.start(t)
	k := b.kubelet(t)
	for name, want := range map[string]string{
		"absent":  "device node-a/gpu-3 is unknown",
		"foreign": "device node-b/gpu-0 is not of this node",
	} {
		if resp := prepare(t, k, name); !strings.Contains(resp.Error, want) {
			t.Errorf("claim %s: %q, want %q", name, resp.Error, want)
		}
	}
}

func TestOtherDriversResultsAreIgnored(t *testing.T) {
	mixed := claim("mixed", "gpu-0", "channel-0")
	mixed.Status.Allocation.Devices.Results[1].Driver = "compute-domain.nvidia.com"
	b := newBench(t, mixed)
	b.start(t)
	assertInjected(t, b.injected(t, prepare(t, b.kubelet(t), "mixed")), uuids[1])
}

func TestClaimsOutliveTheDriver(t *testing.T) {
	b := newBench(t, claim("one", "gpu-2"), claim("two", "gpu-2"))
	b.start(t)
	before := prepare(t, b.kubelet(t), "one")
	b.published(t) // the driver is up
	b.stop()
	if err := <-b.done; !errors.Is(err, context.Canceled) {
		t.Fatalf("ended with %v, want that it was stopped", err)
	}
	for _, socket := range []string{
		filepath.Join(b.pluginsDir, "gpu.nvidia.com", "dra.sock"),
		filepath.Join(b.registryDir, "gpu.nvidia.com-reg.sock"),
	} {
		if _, err := os.Stat(socket); !os.IsNotExist(err) {
			t.Errorf("%s was left behind: %v", socket, err)
		}
	}

	// What was prepared stays as it was, even if the next process is faulty.
	b.fault(t, FaultWrongDevice)
	b.start(t)
	k := b.kubelet(t)
	after := prepare(t, k, "one")
	if after.Error != "" || !slices.Equal(after.Devices[0].CdiDeviceIds, before.Devices[0].CdiDeviceIds) {
		t.Errorf("prepared again: %v, before: %v", after, before)
	}
	assertInjected(t, b.injected(t, after), uuids[2])
	if resp := prepare(t, k, "two"); resp.Error == "" {
		t.Error("a device in use was given to another claim after a restart")
	}
}

func TestCheckpointThatCannotBeRead(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(b.pluginsDir, "gpu.nvidia.com")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "checkpoint.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start(t)
	if err := <-b.done; err == nil || !strings.Contains(err.Error(), "checkpoint") {
		t.Errorf("ended with %v, want a refusal", err)
	}
}

func TestRegistration(t *testing.T) {
	b := newBench(t)
	b.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	conn := dial(t, filepath.Join(b.registryDir, "gpu.nvidia.com-reg.sock"))
	info, err := registerapi.NewRegistrationClient(conn).GetInfo(ctx, &registerapi.InfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.Type != "DRAPlugin" || info.Name != "gpu.nvidia.com" ||
		info.Endpoint != filepath.Join(b.pluginsDir, "gpu.nvidia.com", "dra.sock") ||
		!slices.Equal(info.SupportedVersions, []string{"v1.DRAPlugin", "v1beta1.DRAPlugin"}) {
		t.Errorf("registered as %v", info)
	}
}

func TestPublishedDevices(t *testing.T) {
	b := newBench(t)
	b.start(t)
	slice := b.published(t)
	if slice.Spec.Driver != "gpu.nvidia.com" || slice.Spec.Pool.Name != "node-a" || slice.Spec.Pool.ResourceSliceCount != 1 ||
		slice.Spec.NodeName == nil || *slice.Spec.NodeName != "node-a" {
		t.Errorf("slice %+v", slice.Spec)
	}
	if len(slice.Spec.Devices) != 3 {
		t.Fatalf("%d devices, want 3", len(slice.Spec.Devices))
	}
	d := slice.Spec.Devices[0]
	if d.Name != "gpu-1" {
		t.Errorf("first device is %s, want the one with minor 1", d.Name)
	}
	for name, want := range map[resourceapi.QualifiedName]string{
		"type":                            "gpu",
		"uuid":                            uuids[0],
		"productName":                     "NVIDIA H100 80GB HBM3",
		"brand":                           "Nvidia",
		"architecture":                    "Hopper",
		"resource.kubernetes.io/pciBusID": "0000:1b:00.0",
		"resource.kubernetes.io/pcieRoot": "pci0000:15",
	} {
		if a := d.Attributes[name]; a.StringValue == nil || *a.StringValue != want {
			t.Errorf("attribute %s = %v, want the string %q", name, a, want)
		}
	}
	for name, want := range map[resourceapi.QualifiedName]string{
		"cudaComputeCapability": "9.0.0",
		"driverVersion":         "580.95.5",
		"cudaDriverVersion":     "13.0.0",
	} {
		if a := d.Attributes[name]; a.VersionValue == nil || *a.VersionValue != want {
			t.Errorf("attribute %s = %v, want the version %q", name, a, want)
		}
	}
	memory := d.Capacity["memory"].Value
	if memory.String() != "81559Mi" {
		t.Errorf("memory %s, want 81559Mi", memory.String())
	}
}

func TestFaults(t *testing.T) {
	t.Run("wrong-device", func(t *testing.T) {
		// gpu-2 is the GPU with the last index; its neighbour is the first.
		b := newBench(t, claim("one", "gpu-2"))
		b.fault(t, FaultWrongDevice)
		b.start(t)
		resp := prepare(t, b.kubelet(t), "one")
		if resp.Error != "" || resp.Devices[0].DeviceName != "gpu-2" {
			t.Errorf("answered with %v, want the allocated device's name", resp)
		}
		assertInjected(t, b.injected(t, resp), uuids[0])
	})
	t.Run("missing-device", func(t *testing.T) {
		b := newBench(t)
		b.fault(t, FaultMissingDevice)
		b.start(t)
		var names []string
		for _, d := range b.published(t).Spec.Devices {
			names = append(names, d.Name)
		}
		if !slices.Equal(names, []string{"gpu-1", "gpu-0"}) {
			t.Errorf("published %v, want all but gpu-2", names)
		}
	})
	t.Run("crash-loop", func(t *testing.T) {
		b := newBench(t)
		b.fault(t, FaultCrashLoop)
		b.start(t)
		if err := <-b.done; err == nil {
			t.Error("ended with success")
		}
	})
	t.Run("prepare-error", func(t *testing.T) {
		b := newBench(t, claim("one", "gpu-2"))
		b.fault(t, FaultPrepareError)
		b.start(t)
		k := b.kubelet(t)
		if resp := prepare(t, k, "one"); !strings.Contains(resp.Error, "on purpose") {
			t.Errorf("answered with %v", resp)
		}
		b.fault(t, FaultNone)
		if resp := prepare(t, k, "one"); resp.Error != "" {
			t.Errorf("the fault is gone: %s", resp.Error)
		}
	})
}
