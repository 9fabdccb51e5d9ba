// Package nvmltest is for tests that look at GPUs where there are none: it builds a
// stand-in for libnvidia-ml.so.1 and writes the file that says what the stand-in shows.
package nvmltest

import (
	"fmt"
	"os"
	"strings"
)

// ConfigEnv is the environment variable that tells the stand-in its file. Without it
// the stand-in answers as on a node without a driver.
const ConfigEnv = "DRAMIGRATE_NVML_STANDIN"

// Bounds of the stand-in; see its source.
const (
	maxGPUs, maxMIG = 16, 8
	maxProcesses    = 64
	maxFaults       = 64
	maxXIDs         = 16
	maxLine         = 1000 // bytes
)

// Config is what the stand-in shows.
type Config struct {
	DriverVersion string
	NVMLVersion   string
	// CUDAVersion is 1000 times the major version and 10 times the minor one.
	CUDAVersion int
	GPUs        []GPU
	Faults      []Fault
}

// GPU is one board, at the index of its position.
type GPU struct {
	UUID  string
	Minor int
	// PCIBusID is domain:bus:device.function with function 0; the stand-in shows it in
	// NVML's form.
	PCIBusID string
	Product  string
	// Architecture is NVML's number, such as ArchHopper.
	Architecture int
	MemoryBytes  uint64
	// MIGMode and MIGPending; the zero value is a board without the mode.
	MIGMode, MIGPending MIGMode
	// MIG are the partitions by their position. One with an empty UUID is a gap.
	MIG []MIG
	// NoAggregate refuses the list of a whole GPU's processes in MIG mode.
	NoAggregate bool
	Processes   []Process
	// Health.
	ECCUncorrected, ECCUncorrectedLifetime uint64
	RowsRemapped                           int
	RemapPending, RemapFailure             bool
	// RecoveryAction is NVML's number; 0 is none.
	RecoveryAction int
	// XIDs are the Xid errors that come while events are watched.
	XIDs []int
}

// MIGMode of a board.
type MIGMode int

// The modes.
const (
	MIGUnsupported MIGMode = iota
	MIGDisabled
	MIGEnabled
)

// NVML's numbers of architectures (nvml.h).
const (
	ArchTuring    = 6
	ArchAmpere    = 7
	ArchAda       = 8
	ArchHopper    = 9
	ArchBlackwell = 10
)

// MIG is one partition.
type MIG struct {
	UUID string
	// Name is such as "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
	Name                         string
	GPUInstance, ComputeInstance int
	GPUSlices, ComputeSlices     int
	MemoryMiB                    uint64
}

// Process is one context on a GPU, or in a partition of it.
type Process struct {
	// Type is "compute", "graphics" or "mps".
	Type        string
	PID         int
	MemoryBytes uint64 // 0 if not accounted for
	// MIG is the position of the partition; nil if it is in none.
	MIG *int
}

// Fault is what a function of the library does instead of its work.
type Fault struct {
	// Call is the function's name without its version, such as "nvmlInit", or "*" for
	// all that are called on a GPU's handle or a partition's.
	Call string
	// GPU is the index; nil for any.
	GPU *int
	// Code is what it returns.
	Code int
	// Hang makes it never return.
	Hang bool
	// Micros is how much longer it takes, in microseconds.
	Micros int
}

// Write writes the file for the stand-in.
func (c Config) Write(path string) error {
	text, err := c.text()
	if err != nil {
		return fmt.Errorf("stand-in for NVML: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("stand-in for NVML: %w", err)
	}
	return nil
}

// text is one line for each object: its kind, and tab-separated key=value.
func (c Config) text() (string, error) {
	w := &writer{}
	w.line("system", "driver", c.DriverVersion, "nvml", c.NVMLVersion, "cuda", c.CUDAVersion)
	processes, xids := 0, 0
	for i, g := range c.GPUs {
		w.line("gpu",
			"uuid", g.UUID, "minor", g.Minor, "pci", g.PCIBusID, "name", g.Product, "arch", g.Architecture, "memory", g.MemoryBytes,
			"migSupported", flag(g.MIGMode != MIGUnsupported), "mig", flag(g.MIGMode == MIGEnabled), "migPending", flag(g.MIGPending == MIGEnabled),
			"aggregate", flag(!g.NoAggregate),
			"ecc", g.ECCUncorrected, "eccLifetime", g.ECCUncorrectedLifetime,
			"rows", g.RowsRemapped, "rowsPending", flag(g.RemapPending), "rowsFailure", flag(g.RemapFailure), "recovery", g.RecoveryAction)
		for slot, m := range g.MIG {
			if m.UUID == "" {
				continue
			}
			w.line("mig", "gpu", i, "slot", slot, "uuid", m.UUID, "name", m.Name, "gi", m.GPUInstance, "ci", m.ComputeInstance,
				"gpuSlices", m.GPUSlices, "computeSlices", m.ComputeSlices, "memoryMiB", m.MemoryMiB)
		}
		for _, p := range g.Processes {
			processes++
			fields := []any{"gpu", i, "type", p.Type, "pid", p.PID}
			if p.MemoryBytes > 0 {
				fields = append(fields, "memory", p.MemoryBytes)
			}
			if p.MIG != nil {
				in := g.MIG[*p.MIG]
				fields = append(fields, "gi", in.GPUInstance, "ci", in.ComputeInstance)
			}
			w.line("process", fields...)
		}
		for _, number := range g.XIDs {
			xids++
			w.line("xid", "gpu", i, "number", number)
		}
		if len(g.MIG) > maxMIG {
			return "", fmt.Errorf("GPU %d has %d partitions, more than %d", i, len(g.MIG), maxMIG)
		}
	}
	for _, f := range c.Faults {
		fields := []any{"call", f.Call, "code", f.Code, "hang", flag(f.Hang), "micros", f.Micros}
		if f.GPU != nil {
			fields = append(fields, "gpu", *f.GPU)
		}
		w.line("fault", fields...)
	}
	if len(c.GPUs) > maxGPUs || processes > maxProcesses || len(c.Faults) > maxFaults || xids > maxXIDs {
		return "", fmt.Errorf("%d GPUs, %d processes, %d faults and %d Xids are more than it has room for (%d, %d, %d, %d)",
			len(c.GPUs), processes, len(c.Faults), xids, maxGPUs, maxProcesses, maxFaults, maxXIDs)
	}
	return w.String(), w.err
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

type writer struct {
	strings.Builder
	err error
}

func (w *writer) line(kind string, fields ...any) {
	start := w.Len()
	w.WriteString(kind)
	for i := 0; i < len(fields); i += 2 {
		text := fmt.Sprint(fields[i+1])
		if strings.ContainsAny(text, "\t\n") {
			w.err = fmt.Errorf("%s of a %s holds a tab or a line's end: %q", fields[i], kind, text)
		}
		fmt.Fprintf(w, "\t%s=%s", fields[i], text)
	}
	w.WriteString("\n")
	if w.Len()-start > maxLine {
		w.err = fmt.Errorf("a %s takes more than %d bytes", kind, maxLine)
	}
}
