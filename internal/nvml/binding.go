package nvml

// driver is the management library, once it is loaded: what this package needs of it
// and nothing else, in plain types, so that only one file knows the binding. A function
// that the loaded library lacks answers with codeFunctionNotFound.
type driver interface {
	// start initialises the library, stop ends it.
	start() Code
	stop() Code

	driverVersion() (string, Code)
	nvmlVersion() (string, Code)
	// cudaVersion is 1000 times the major version and 10 times the minor one.
	cudaVersion() (int, Code)
	count() (int, Code)
	gpu(index int) (gpu, Code)
	// watchXIDs has the library queue the GPU's Xid errors from now on; nextXID takes
	// one, or answers with codeTimeout if there is none.
	watchXIDs(index int) Code
	nextXID() (xid, Code)
}

// gpu is the handle of a GPU or of a partition.
type gpu interface {
	uuid() (string, Code)
	name() (string, Code)
	// memory is the total in bytes.
	memory() (uint64, Code)
	processes(ProcessType) ([]rawProcess, Code)

	// Of a GPU alone.
	minor() (int, Code)
	pciBusID() (string, Code)
	architecture() (uint32, Code)
	migMode() (migModes, Code)
	maxMIG() (int, Code)
	mig(index int) (gpu, Code)
	// eccUncorrected is the total since the driver was loaded, or over the board's life.
	eccUncorrected(lifetime bool) (uint64, Code)
	remappedRows() (remappedRows, Code)
	recoveryAction() (int, Code)

	// Of a partition alone.
	gpuInstance() (int, Code)
	computeInstance() (int, Code)
	size() (migSize, Code)
}

// rawProcess is a process as the library knows it. gpuInstance and computeInstance are
// noInstance where the process is in no partition or the library does not say.
type rawProcess struct {
	pid, gpuInstance, computeInstance uint32
	memory                            uint64
}

// Values of the library for "none" (nvml.h: the comments of nvmlProcessInfo_t, and
// NVML_VALUE_NOT_AVAILABLE as an unsigned number).
const (
	noInstance   uint32 = 0xFFFFFFFF
	notAvailable uint64 = 0xFFFFFFFFFFFFFFFF
)

// migModes are 0 for disabled and 1 for enabled.
type migModes struct{ current, pending int }

// remappedRows is the state of the memory's row remapper.
type remappedRows struct {
	uncorrectable    int
	pending, failure bool
}

// migSize is that of a partition: its slices, and its memory in MiB.
type migSize struct {
	gpu, compute int
	memory       uint64
}
