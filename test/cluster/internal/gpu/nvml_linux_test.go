//go:build linux && cgo && nvml

package gpu_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"github.com/dramigrate/dramigrate/internal/nvml"
	"github.com/dramigrate/dramigrate/internal/nvml/nvmltest"
	"github.com/dramigrate/dramigrate/test/cluster/internal/dradriver"
	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// The driver's library tells the same story about a simulated node as the DRA driver
// does: what joins the two, and what a person compares, is equal.
func TestNVMLAndDriverTellTheSame(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil && os.Getenv("CC") == "" && os.Getenv("CI") != "true" {
		t.Skip("the stand-in for the library needs a C compiler, cc or $CC")
	}
	set := gpu.NewSet("node-a", 8)
	// One of each other model. A process can load one library, so all are in one set.
	set.GPUs[6] = gpu.NewSetOf(gpu.A100(), "node-a", 8).GPUs[6]
	set.GPUs[7] = gpu.NewSetOf(gpu.L40S(), "node-a", 8).GPUs[7]
	cfg, err := set.NVML()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "nvml.conf")
	if err := cfg.Write(config); err != nil {
		t.Fatal(err)
	}
	t.Setenv(nvmltest.ConfigEnv, config)
	path, err := nvmltest.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lib, err := nvml.Open(t.Context(), nvml.Options{LibraryPath: path})
	if err != nil {
		t.Fatal(err)
	}
	host, err := lib.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := lib.Close(); err != nil {
		t.Error(err)
	}
	if err := host.Err(); err != nil {
		t.Error(err)
	}
	published, err := dradriver.Devices(set)
	if err != nil {
		t.Fatal(err)
	}
	if len(host.Devices) != len(published) {
		t.Fatalf("the library shows %d GPUs, the driver %d", len(host.Devices), len(published))
	}
	if host.DriverVersion != "580.95.05" || host.CUDAVersion != "13.0" || host.NVMLVersion != "13.580.95.05" {
		t.Errorf("driver %s, CUDA %s, library %s", host.DriverVersion, host.CUDAVersion, host.NVMLVersion)
	}
	for i, d := range host.Devices {
		p := published[i]
		memory := p.Capacity["memory"].Value
		for what, pair := range map[string][2]string{
			"UUID":         {d.UUID, *p.Attributes["uuid"].StringValue},
			"PCI address":  {d.PCIBusID, *p.Attributes[deviceattribute.StandardDeviceAttributePCIBusID].StringValue},
			"product":      {d.Product, *p.Attributes["productName"].StringValue},
			"architecture": {d.Architecture, *p.Attributes["architecture"].StringValue},
			"minor number": {fmt.Sprintf("gpu-%d", *d.Minor), p.Name},
			"memory":       {fmt.Sprint(*d.MemoryBytes), fmt.Sprint(memory.Value())},
		} {
			if pair[0] != pair[1] {
				t.Errorf("GPU %d: %s is %s by the library and %s by the driver", i, what, pair[0], pair[1])
			}
		}
	}
	if a, l := host.Devices[6], host.Devices[7]; a.MIGMode != nvml.MIGDisabled || l.MIGMode != nvml.MIGUnsupported {
		t.Errorf("MIG is %s on an A100 and %s on an L40S", a.MIGMode, l.MIGMode)
	}
}

func TestNVMLOfASetThatIsNoNodes(t *testing.T) {
	unordered := gpu.NewSet("node-a", 2)
	unordered.GPUs[0], unordered.GPUs[1] = unordered.GPUs[1], unordered.GPUs[0]
	foreign := gpu.NewSet("node-a", 1)
	foreign.GPUs[0].Architecture = "Nova"
	unversioned := gpu.NewSet("node-a", 1)
	unversioned.CUDADriverVersion = "newest"
	for name, set := range map[string]gpu.Set{"order": unordered, "architecture": foreign, "version": unversioned} {
		if _, err := set.NVML(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
