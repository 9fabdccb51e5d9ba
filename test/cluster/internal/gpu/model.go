package gpu

// A Model is what all GPUs of one product have in common.
//
// The values are those that a driver reports for the product: they are
// published as device attributes, so they must look like the real ones.
type Model struct {
	// ProductName as the management library reports it.
	ProductName string
	// Brand as the DRA driver publishes it.
	Brand string
	// Architecture is the marketing name of the chip's generation.
	Architecture string
	// CUDAComputeCapability is "major.minor".
	CUDAComputeCapability string
	// MemoryMiB is the whole of the framebuffer, in MiB.
	MemoryMiB int64
}

// H100 is the SXM5 board with 80 GB, the model of a set unless another is asked for.
func H100() Model {
	return Model{
		ProductName:           "NVIDIA H100 80GB HBM3",
		Brand:                 "Nvidia",
		Architecture:          "Hopper",
		CUDAComputeCapability: "9.0",
		MemoryMiB:             81559,
	}
}

// A100 is the SXM4 board with 80 GB.
func A100() Model {
	return Model{
		ProductName:           "NVIDIA A100-SXM4-80GB",
		Brand:                 "Nvidia",
		Architecture:          "Ampere",
		CUDAComputeCapability: "8.0",
		MemoryMiB:             81920,
	}
}

// L40S is a PCIe board with 48 GB.
func L40S() Model {
	return Model{
		ProductName:           "NVIDIA L40S",
		Brand:                 "Nvidia",
		Architecture:          "Ada Lovelace",
		CUDAComputeCapability: "8.9",
		MemoryMiB:             46068,
	}
}
