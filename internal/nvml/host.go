// Package nvml looks at the GPUs of a node through the NVIDIA driver's management
// library, so that what the API says about a node can be held against its hardware.
//
// It loads libnvidia-ml.so.1 at run time (go-nvml), which takes cgo on Linux and the
// build tag nvml. Built otherwise, as the command line for workstations is, the package is the same but for
// [Open], which answers with an [Error] of [KindNotBuiltIn].
//
// What could not be read is never filled in: the field is empty or null and the reason
// stands in the Errors beside it. A GPU that fails does not hide the others, and a call
// that hangs does not hang the caller.
package nvml

import (
	"fmt"
	"strings"

	"github.com/dramigrate/dramigrate/internal/gpuid"
)

// Host is what the management library told about one node at one moment.
type Host struct {
	// Library is the file that was loaded, or its bare name if the dynamic linker
	// found it.
	Library string `json:"library"`
	// DriverVersion is that of the kernel's driver, such as "580.95.05".
	DriverVersion string `json:"driverVersion,omitempty"`
	// NVMLVersion is that of the library, such as "13.580.95.05".
	NVMLVersion string `json:"nvmlVersion,omitempty"`
	// CUDAVersion is the newest that the driver serves, such as "13.0".
	CUDAVersion string `json:"cudaVersion,omitempty"`
	// Devices are the GPUs, in the library's order. Null if they could not be
	// counted; empty if there is none.
	Devices []Device `json:"devices"`
	// Errors are those that concern no single GPU.
	Errors []Error `json:"errors,omitempty"`
}

// Device is one GPU.
type Device struct {
	// Index is the library's position, which may change with a reboot: for people to
	// read and never to join by.
	Index int `json:"index"`
	// UUID has the form GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
	UUID string `json:"uuid,omitempty"`
	// PCIBusID has the form of a ResourceSlice's attribute, such as "0000:1b:00.0".
	PCIBusID string `json:"pciBusID,omitempty"`
	// Minor is the number in the name of the device node, /dev/nvidia<minor>.
	Minor *int `json:"minor,omitempty"`
	// Product is the board's name, such as "NVIDIA H100 80GB HBM3".
	Product string `json:"product,omitempty"`
	// Architecture is the name of the chip's generation, as the DRA driver publishes it.
	Architecture string `json:"architecture,omitempty"`
	// MemoryBytes is the whole of the framebuffer.
	MemoryBytes *uint64 `json:"memoryBytes,omitempty"`
	// MIGMode is the mode in force, MIGPending the one after the next reset. Empty if
	// it could not be read.
	MIGMode    MIGMode `json:"migMode,omitempty"`
	MIGPending MIGMode `json:"migPending,omitempty"`
	// MIG are the partitions of a GPU in MIG mode. Null if they are unknown; empty if
	// there is none.
	MIG []MIGDevice `json:"mig"`
	// Processes use the GPU and none of the partitions in MIG, or one that is not
	// known. Null if they could not be read.
	Processes []Process `json:"processes"`
	Health    Health    `json:"health"`
	Errors    []Error   `json:"errors,omitempty"`
}

// MIGMode says whether a GPU is partitioned.
type MIGMode string

// The modes. MIGUnsupported is a board that has no such mode.
const (
	MIGEnabled     MIGMode = "enabled"
	MIGDisabled    MIGMode = "disabled"
	MIGUnsupported MIGMode = "unsupported"
)

// MIGDevice is one partition of a GPU: a compute instance in a GPU instance.
type MIGDevice struct {
	// UUID has the form MIG-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
	UUID string `json:"uuid,omitempty"`
	// ParentUUID is the GPU's; empty if that is unknown.
	ParentUUID string `json:"parentUUID,omitempty"`
	// Profile is such as "1g.10gb", "1c.3g.40gb" or "1g.10gb+me".
	Profile string `json:"profile,omitempty"`
	// GPUInstance and ComputeInstance are unique within the GPU and within the GPU
	// instance, as long as the instances last.
	GPUInstance     *int    `json:"gpuInstance,omitempty"`
	ComputeInstance *int    `json:"computeInstance,omitempty"`
	MemoryBytes     *uint64 `json:"memoryBytes,omitempty"`
	// Processes use the partition. Null if they could not be read.
	Processes []Process `json:"processes"`
	Errors    []Error   `json:"errors,omitempty"`
}

// Process is a process with a context on a GPU or a partition.
type Process struct {
	// PID is in the host's process table.
	PID int `json:"pid"`
	// Types are the kinds of its contexts.
	Types []ProcessType `json:"types"`
	// MemoryBytes is what the process uses of the framebuffer; null if the driver does
	// not keep account.
	MemoryBytes *uint64 `json:"memoryBytes,omitempty"`
	// Command is the name of the program; empty if unknown.
	Command string `json:"command,omitempty"`
	// Owner is where the process belongs to.
	Owner Owner `json:"owner"`
}

// ProcessType is the kind of a process' context.
type ProcessType string

// The types. A client of the Multi-Process Service is TypeMPS.
const (
	TypeCompute  ProcessType = "compute"
	TypeGraphics ProcessType = "graphics"
	TypeMPS      ProcessType = "mps"
)

// Err is nil if everything was read, else an [Error] of [KindPartial] that names what
// was not. Such a host proves what it shows and nothing about the rest.
//
// A GPU without a capability, such as ECC, is not a gap here; its Health says unknown.
func (h Host) Err() error {
	var gaps []string
	for _, e := range h.Errors {
		if e.Kind != KindNotSupported {
			gaps = append(gaps, e.Error())
		}
	}
	for _, d := range h.Devices {
		parts := gapsOf(d.Errors)
		for _, m := range d.MIG {
			if of := gapsOf(m.Errors); len(of) > 0 {
				parts = append(parts, fmt.Sprintf("MIG %s: %s", orUnknown(m.UUID), strings.Join(of, ", ")))
			}
		}
		if len(parts) > 0 {
			gaps = append(gaps, fmt.Sprintf("GPU %d (%s): %s", d.Index, orUnknown(d.UUID), strings.Join(parts, ", ")))
		}
	}
	if len(gaps) == 0 {
		return nil
	}
	return &Error{Kind: KindPartial, Detail: strings.Join(gaps, "; ")}
}

// Inventory is the hardware to place the ids of plugin and driver in. It is as
// complete as the host is.
func (h Host) Inventory() *gpuid.Inventory {
	boards := make([]gpuid.Board, len(h.Devices))
	for i, d := range h.Devices {
		boards[i] = gpuid.Board{UUID: d.UUID, PCIBusID: d.PCIBusID}
		for _, m := range d.MIG {
			boards[i].Partitions = append(boards[i].Partitions, gpuid.Partition{
				UUID: m.UUID, GPUInstance: orMinus(m.GPUInstance), ComputeInstance: orMinus(m.ComputeInstance),
			})
		}
	}
	return gpuid.NewInventory(boards)
}

func orMinus(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}

// gapsOf names what is missing, each part once, in the order of reading.
func gapsOf(errs []Error) []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range errs {
		if e.Kind == KindNotSupported || seen[e.Part] {
			continue
		}
		seen[e.Part] = true
		out = append(out, fmt.Sprintf("%s: %s", e.Part, e.Kind))
	}
	return out
}

func orUnknown(id string) string {
	if id == "" {
		return "UUID unknown"
	}
	return id
}
