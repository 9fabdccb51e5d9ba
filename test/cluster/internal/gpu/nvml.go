package gpu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dramigrate/dramigrate/internal/nvml/nvmltest"
)

// NVML is the set as the stand-in for the driver's management library shows it: the
// same GPUs that the plugin advertises, the driver publishes and a workload lists.
func (s Set) NVML() (nvmltest.Config, error) {
	cuda, err := cudaNumber(s.CUDADriverVersion)
	if err != nil {
		return nvmltest.Config{}, fmt.Errorf("GPU set of node %s: %w", s.Node, err)
	}
	cfg := nvmltest.Config{
		DriverVersion: s.DriverVersion,
		// The library's version is CUDA's major version and the driver's.
		NVMLVersion: fmt.Sprintf("%d.%s", cuda/1000, s.DriverVersion),
		CUDAVersion: cuda,
	}
	for i, g := range s.GPUs {
		if g.Index != i {
			return nvmltest.Config{}, fmt.Errorf("GPU set of node %s: the GPU with index %d is at position %d", s.Node, g.Index, i)
		}
		architecture, err := architectureNumber(g.Architecture)
		if err != nil {
			return nvmltest.Config{}, fmt.Errorf("GPU set of node %s: GPU %d: %w", s.Node, i, err)
		}
		board := nvmltest.GPU{
			UUID:         g.UUID,
			Minor:        g.Minor,
			PCIBusID:     g.PCIBusID,
			Product:      g.ProductName,
			Architecture: architecture,
			MemoryBytes:  uint64(g.MemoryMiB) << 20,
		}
		// Of these models, the data centre's since Ampere can be partitioned; the L40S
		// of the Ada generation cannot.
		if architecture != nvmltest.ArchAda {
			board.MIGMode, board.MIGPending = nvmltest.MIGDisabled, nvmltest.MIGDisabled
		}
		cfg.GPUs = append(cfg.GPUs, board)
	}
	return cfg, nil
}

// cudaNumber is a version as the library counts it: 13.0 is 13000.
func cudaNumber(version string) (int, error) {
	major, minor, _ := strings.Cut(version, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil {
		return 0, fmt.Errorf("CUDA version %q is not major.minor", version)
	}
	return a*1000 + b*10, nil
}

func architectureNumber(name string) (int, error) {
	switch name {
	case "Ampere":
		return nvmltest.ArchAmpere, nil
	case "Ada Lovelace":
		return nvmltest.ArchAda, nil
	case "Hopper":
		return nvmltest.ArchHopper, nil
	}
	return 0, fmt.Errorf("no number for the architecture %q is known", name)
}
