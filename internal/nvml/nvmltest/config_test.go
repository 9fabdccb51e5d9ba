package nvmltest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigText(t *testing.T) {
	slot := 0
	cfg := Config{
		DriverVersion: "580.95.05", NVMLVersion: "13.580.95.05", CUDAVersion: 13000,
		GPUs: []GPU{{
			UUID: "GPU-1", Minor: 3, PCIBusID: "0000:1b:00.0", Product: "NVIDIA H100 80GB HBM3", Architecture: ArchHopper, MemoryBytes: 85, MIGMode: MIGEnabled,
			MIG:       []MIG{{UUID: "MIG-1", Name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb", GPUInstance: 7, ComputeInstance: 1, GPUSlices: 1, ComputeSlices: 1, MemoryMiB: 9856}, {}},
			Processes: []Process{{Type: "compute", PID: 42, MIG: &slot}, {Type: "mps", PID: 43, MemoryBytes: 9}},
		}},
		Faults: []Fault{{Call: "nvmlInit", Code: 18}, {Call: "*", GPU: &slot, Hang: true}},
	}
	path := filepath.Join(t.TempDir(), "nvml.conf")
	if err := cfg.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `system	driver=580.95.05	nvml=13.580.95.05	cuda=13000
gpu	uuid=GPU-1	minor=3	pci=0000:1b:00.0	name=NVIDIA H100 80GB HBM3	arch=9	memory=85	migSupported=1	mig=1	migPending=0	aggregate=1	ecc=0	eccLifetime=0	rows=0	rowsPending=0	rowsFailure=0	recovery=0
mig	gpu=0	slot=0	uuid=MIG-1	name=NVIDIA H100 80GB HBM3 MIG 1g.10gb	gi=7	ci=1	gpuSlices=1	computeSlices=1	memoryMiB=9856
process	gpu=0	type=compute	pid=42	gi=7	ci=1
process	gpu=0	type=mps	pid=43	memory=9
fault	call=nvmlInit	code=18	hang=0	micros=0
fault	call=*	code=0	hang=1	micros=0	gpu=0
`
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// What the stand-in would cut off, or read as something else, is refused.
func TestConfigRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"GPUs":       {GPUs: make([]GPU, 17)},
		"partitions": {GPUs: []GPU{{MIG: make([]MIG, 9)}}},
		"processes":  {GPUs: []GPU{{Processes: make([]Process, 65)}}},
		"faults":     {Faults: make([]Fault, 65)},
		"Xids":       {GPUs: []GPU{{XIDs: make([]int, 17)}}},
		"a tab":      {GPUs: []GPU{{Product: "H100\tuuid=GPU-2"}}},
		"a line":     {DriverVersion: "580\ngpu"},
		"length":     {GPUs: []GPU{{Product: strings.Repeat("H", 1000)}}},
	} {
		path := filepath.Join(t.TempDir(), "nvml.conf")
		if err := cfg.Write(path); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a file was written all the same", name)
		}
	}
}
