//go:build linux && cgo && nvml

package nvml

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// library is the loaded library.
//
// It is opened twice: by go-nvml, and here before that, for the two things that
// go-nvml does not offer: the dynamic linker's words, and to ask for a symbol before
// it is called. A call to a function that the library lacks would end the process.
type library struct {
	nvml.Interface
	file *dl.DynamicLibrary

	mu    sync.Mutex
	known map[string]bool // functions
	xids  *xidEvents      // nil if none are watched
}

// load opens the library without calling it. The path is a file, or a bare name that
// the dynamic linker looks for.
//
// go-nvml leaves the library's functions unresolved until each is called: where the C
// compiler makes the linker resolve all at the start (-z now), the program has to be
// linked with -extldflags=-Wl,-z,lazy. What it has resolved stays so, for which reason
// a process can have one library.
func load(path string) (driver, error) {
	if strings.Contains(path, "/") {
		if err := readable(path); err != nil {
			return nil, err
		}
	}
	file := dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := file.Open(); err != nil {
		kind := KindLibraryUnusable
		// The linker has no codes. These are glibc's words for a file that is not there;
		// where a library lacks another one, they begin with the other's name.
		if strings.HasPrefix(err.Error(), path+": cannot open shared object file: No such file") {
			kind = KindLibraryNotFound
		}
		return nil, &Error{Kind: kind, Detail: err.Error()}
	}
	return &library{Interface: nvml.New(nvml.WithLibraryPath(path)), file: file, known: map[string]bool{}}, nil
}

// readable tells the reasons apart for which a file cannot be opened.
func readable(path string) error {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Kind: KindLibraryNotFound, Detail: err.Error()}
	case errors.Is(err, fs.ErrPermission):
		return &Error{Kind: KindNoPermission, Detail: err.Error()}
	case err != nil:
		return &Error{Kind: KindLibraryUnusable, Detail: err.Error()}
	}
	if err := f.Close(); err != nil {
		return &Error{Kind: KindLibraryUnusable, Detail: err.Error()}
	}
	return nil
}

// has says whether the library has one of the functions.
func (l *library) has(names ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		found, asked := l.known[name]
		if !asked {
			found = l.file.Lookup(name) == nil
			l.known[name] = found
		}
		if found {
			return true
		}
	}
	return false
}

// start does not fail where there is no GPU: none is an answer too.
func (l *library) start() Code {
	if l.has("nvmlInitWithFlags") {
		return Code(l.InitWithFlags(nvml.INIT_FLAG_NO_GPUS))
	}
	if l.has("nvmlInit_v2", "nvmlInit") {
		return Code(l.Init())
	}
	return codeFunctionNotFound
}

func (l *library) stop() Code {
	if !l.has("nvmlShutdown") {
		return codeFunctionNotFound
	}
	return Code(l.Shutdown())
}

func (l *library) driverVersion() (string, Code) {
	return call(l, l.SystemGetDriverVersion, "nvmlSystemGetDriverVersion")
}

func (l *library) nvmlVersion() (string, Code) {
	return call(l, l.SystemGetNVMLVersion, "nvmlSystemGetNVMLVersion")
}

func (l *library) cudaVersion() (int, Code) {
	if l.has("nvmlSystemGetCudaDriverVersion_v2") {
		return call(l, l.SystemGetCudaDriverVersion_v2)
	}
	return call(l, l.SystemGetCudaDriverVersion, "nvmlSystemGetCudaDriverVersion")
}

func (l *library) count() (int, Code) {
	return call(l, l.DeviceGetCount, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")
}

func (l *library) gpu(index int) (gpu, Code) {
	d, code := call(l, func() (nvml.Device, nvml.Return) { return l.DeviceGetHandleByIndex(index) },
		"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")
	return handle{l, d}, code
}

// call makes a call if the library has one of the symbols, or if none is named.
func call[T any](l *library, f func() (T, nvml.Return), symbols ...string) (T, Code) {
	if len(symbols) > 0 && !l.has(symbols...) {
		var none T
		return none, codeFunctionNotFound
	}
	value, code := f()
	return value, Code(code)
}

// handle is that of a GPU or a partition.
type handle struct {
	lib *library
	nvml.Device
}

func (h handle) uuid() (string, Code) { return call(h.lib, h.GetUUID, "nvmlDeviceGetUUID") }
func (h handle) name() (string, Code) { return call(h.lib, h.GetName, "nvmlDeviceGetName") }

func (h handle) memory() (uint64, Code) {
	m, code := call(h.lib, h.GetMemoryInfo, "nvmlDeviceGetMemoryInfo")
	return m.Total, code
}

func (h handle) processes(t ProcessType) ([]rawProcess, Code) {
	list, symbol := h.GetComputeRunningProcesses, "nvmlDeviceGetComputeRunningProcesses"
	switch t {
	case TypeGraphics:
		list, symbol = h.GetGraphicsRunningProcesses, "nvmlDeviceGetGraphicsRunningProcesses"
	case TypeMPS:
		list, symbol = h.GetMPSComputeRunningProcesses, "nvmlDeviceGetMPSComputeRunningProcesses"
	}
	infos, code := call(h.lib, list, symbol+"_v3", symbol+"_v2", symbol)
	out := make([]rawProcess, len(infos))
	for i, p := range infos {
		out[i] = rawProcess{pid: p.Pid, memory: p.UsedGpuMemory, gpuInstance: p.GpuInstanceId, computeInstance: p.ComputeInstanceId}
	}
	return out, code
}

func (h handle) minor() (int, Code) {
	return call(h.lib, h.GetMinorNumber, "nvmlDeviceGetMinorNumber")
}

func (h handle) pciBusID() (string, Code) {
	info, code := call(h.lib, h.GetPciInfo, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo")
	if id := text(info.BusId[:]); id != "" {
		return id, code
	}
	return text(info.BusIdLegacy[:]), code // of libraries before nvmlDeviceGetPciInfo_v3
}

// text reads a C string.
func text(chars []int8) string {
	var b strings.Builder
	for _, c := range chars {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

func (h handle) architecture() (uint32, Code) {
	a, code := call(h.lib, h.GetArchitecture, "nvmlDeviceGetArchitecture")
	return uint32(a), code
}

func (h handle) migMode() (migModes, Code) {
	return call(h.lib, func() (migModes, nvml.Return) {
		current, pending, ret := h.GetMigMode()
		return migModes{current, pending}, ret
	}, "nvmlDeviceGetMigMode")
}

func (h handle) maxMIG() (int, Code) {
	return call(h.lib, h.GetMaxMigDeviceCount, "nvmlDeviceGetMaxMigDeviceCount")
}

func (h handle) mig(index int) (gpu, Code) {
	d, code := call(h.lib, func() (nvml.Device, nvml.Return) { return h.GetMigDeviceHandleByIndex(index) },
		"nvmlDeviceGetMigDeviceHandleByIndex")
	return handle{h.lib, d}, code
}

func (h handle) eccUncorrected(lifetime bool) (uint64, Code) {
	counter := nvml.VOLATILE_ECC
	if lifetime {
		counter = nvml.AGGREGATE_ECC
	}
	return call(h.lib, func() (uint64, nvml.Return) {
		return h.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, counter)
	}, "nvmlDeviceGetTotalEccErrors")
}

func (h handle) remappedRows() (remappedRows, Code) {
	return call(h.lib, func() (remappedRows, nvml.Return) {
		_, uncorrectable, pending, failure, ret := h.GetRemappedRows()
		return remappedRows{uncorrectable, pending, failure}, ret
	}, "nvmlDeviceGetRemappedRows")
}

func (h handle) recoveryAction() (int, Code) {
	return call(h.lib, func() (int, nvml.Return) {
		field := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
		if ret := h.GetFieldValues(field); ret != nvml.SUCCESS {
			return 0, ret
		}
		return int(binary.NativeEndian.Uint32(field[0].Value[:])), nvml.Return(field[0].NvmlReturn)
	}, "nvmlDeviceGetFieldValues")
}

func (h handle) gpuInstance() (int, Code) {
	return call(h.lib, h.GetGpuInstanceId, "nvmlDeviceGetGpuInstanceId")
}

func (h handle) computeInstance() (int, Code) {
	return call(h.lib, h.GetComputeInstanceId, "nvmlDeviceGetComputeInstanceId")
}

func (h handle) size() (migSize, Code) {
	a, code := call(h.lib, h.GetAttributes, "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes")
	return migSize{gpu: int(a.GpuInstanceSliceCount), compute: int(a.ComputeInstanceSliceCount), memory: a.MemorySizeMB}, code
}
