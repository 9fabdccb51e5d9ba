// A stand-in for the NVIDIA driver's management library, for tests on machines without
// a GPU. It has the functions that dramigrate calls, with the ABI of nvml.h, and answers
// with what is written in a file (see config.go beside its folder), which it reads at
// each start of the library. It keeps to the header's words on what a function does.
#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_GPUS = 16, MAX_MIG = 8, MAX_PROCESSES = 64, MAX_FAULTS = 64, MAX_XIDS = 16, ANY = -1, NONE = -2, LINE = 1024 };

struct nvmlDevice_st {
    int gpu, mig; // mig is NONE for a whole GPU
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE], name[NVML_DEVICE_NAME_V2_BUFFER_SIZE], pci[32];
    unsigned minor, arch, gi, ci, gpuSlices, computeSlices;
    unsigned long long memory, memoryMiB;
    unsigned migSupported, migCurrent, migPending, maxMig;
    unsigned long long ecc, eccLifetime;
    unsigned rows, rowsPending, rowsFailure, recovery, aggregate;
};

struct process {
    int gpu;
    char type[16];
    nvmlProcessInfo_t info;
};

// A fault of one function, or of "*", on one GPU, or on ANY. It returns the code, waits,
// or hangs.
struct fault {
    char call[80];
    int gpu, code, hang, micros;
};

static struct {
    int started;
    char driver[80], nvml[80];
    int cuda;
    int gpus, processes, faults, xids, xidsTaken;
    struct { int gpu; unsigned number; } xid[MAX_XIDS];
    int watched[MAX_GPUS];
    struct nvmlDevice_st gpu[MAX_GPUS], mig[MAX_GPUS][MAX_MIG];
    int migThere[MAX_GPUS][MAX_MIG];
    struct process process[MAX_PROCESSES];
    struct fault fault[MAX_FAULTS];
} sim;

// value finds key=value among the tab-separated fields of a line.
static const char *value(const char *line, const char *key, char *out, size_t size) {
    size_t n = strlen(key);
    for (const char *at = strchr(line, '\t'); at != NULL; at = strchr(at + 1, '\t')) {
        if (strncmp(at + 1, key, n) == 0 && at[1 + n] == '=') {
            const char *from = at + 2 + n;
            size_t length = strcspn(from, "\t\n");
            if (length >= size) length = size - 1;
            memcpy(out, from, length);
            out[length] = 0;
            return out;
        }
    }
    out[0] = 0;
    return out;
}

static unsigned long long number(const char *line, const char *key, unsigned long long otherwise) {
    char text[32];
    return *value(line, key, text, sizeof text) ? strtoull(text, NULL, 10) : otherwise;
}

static void readGPU(const char *line) {
    if (sim.gpus == MAX_GPUS) return;
    struct nvmlDevice_st *d = &sim.gpu[sim.gpus];
    d->gpu = sim.gpus++;
    d->mig = NONE;
    value(line, "uuid", d->uuid, sizeof d->uuid);
    value(line, "name", d->name, sizeof d->name);
    value(line, "pci", d->pci, sizeof d->pci);
    d->minor = number(line, "minor", 0);
    d->arch = number(line, "arch", NVML_DEVICE_ARCH_UNKNOWN);
    d->memory = number(line, "memory", 0);
    d->migSupported = number(line, "migSupported", 0);
    d->migCurrent = number(line, "mig", 0);
    d->migPending = number(line, "migPending", 0);
    d->maxMig = number(line, "maxMig", 7);
    d->aggregate = number(line, "aggregate", 1);
    d->ecc = number(line, "ecc", 0);
    d->eccLifetime = number(line, "eccLifetime", 0);
    d->rows = number(line, "rows", 0);
    d->rowsPending = number(line, "rowsPending", 0);
    d->rowsFailure = number(line, "rowsFailure", 0);
    d->recovery = number(line, "recovery", 0);
}

static void readMIG(const char *line) {
    unsigned gpu = number(line, "gpu", MAX_GPUS), slot = number(line, "slot", MAX_MIG);
    if (gpu >= MAX_GPUS || slot >= MAX_MIG) return;
    struct nvmlDevice_st *d = &sim.mig[gpu][slot];
    sim.migThere[gpu][slot] = 1;
    d->gpu = gpu;
    d->mig = slot;
    value(line, "uuid", d->uuid, sizeof d->uuid);
    value(line, "name", d->name, sizeof d->name);
    d->gi = number(line, "gi", 0);
    d->ci = number(line, "ci", 0);
    d->gpuSlices = number(line, "gpuSlices", 0);
    d->computeSlices = number(line, "computeSlices", 0);
    d->memoryMiB = number(line, "memoryMiB", 0);
    d->memory = d->memoryMiB << 20;
}

static void readProcess(const char *line) {
    if (sim.processes == MAX_PROCESSES) return;
    struct process *p = &sim.process[sim.processes++];
    p->gpu = number(line, "gpu", 0);
    value(line, "type", p->type, sizeof p->type);
    p->info.pid = number(line, "pid", 0);
    p->info.usedGpuMemory = number(line, "memory", (unsigned long long)NVML_VALUE_NOT_AVAILABLE);
    p->info.gpuInstanceId = number(line, "gi", 0xFFFFFFFF);
    p->info.computeInstanceId = number(line, "ci", 0xFFFFFFFF);
}

static void readFault(const char *line) {
    if (sim.faults == MAX_FAULTS) return;
    struct fault *f = &sim.fault[sim.faults++];
    value(line, "call", f->call, sizeof f->call);
    f->gpu = (int)number(line, "gpu", (unsigned long long)ANY);
    f->code = number(line, "code", 0);
    f->hang = number(line, "hang", 0);
    f->micros = number(line, "micros", 0);
}

static void readXID(const char *line) {
    if (sim.xids == MAX_XIDS) return;
    sim.xid[sim.xids].gpu = (int)number(line, "gpu", 0);
    sim.xid[sim.xids++].number = number(line, "number", 0);
}

static int readConfig(void) {
    const char *path = getenv("DRAMIGRATE_NVML_STANDIN");
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    if (file == NULL) return 0;
    memset(&sim, 0, sizeof sim);
    char line[LINE];
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "system\t", 7) == 0) {
            value(line, "driver", sim.driver, sizeof sim.driver);
            value(line, "nvml", sim.nvml, sizeof sim.nvml);
            sim.cuda = number(line, "cuda", 0);
        } else if (strncmp(line, "gpu\t", 4) == 0) {
            readGPU(line);
        } else if (strncmp(line, "mig\t", 4) == 0) {
            readMIG(line);
        } else if (strncmp(line, "process\t", 8) == 0) {
            readProcess(line);
        } else if (strncmp(line, "fault\t", 6) == 0) {
            readFault(line);
        } else if (strncmp(line, "xid\t", 4) == 0) {
            readXID(line);
        }
    }
    fclose(file);
    return 1;
}

// fault acts out what is configured for a function. "*" means all functions on a device
// but the one that hands out its handle, which has to be named.
static nvmlReturn_t fault(const char *call, int gpu) {
    for (int i = 0; i < sim.faults; i++) {
        struct fault *f = &sim.fault[i];
        int named = strcmp(f->call, call) == 0;
        int all = strcmp(f->call, "*") == 0 && gpu != NONE && strcmp(call, "nvmlDeviceGetHandleByIndex") != 0;
        if (!(named || all) || !(f->gpu == ANY || f->gpu == gpu)) continue;
        while (f->hang) pause();
        if (f->micros > 0) usleep(f->micros);
        if (f->code != NVML_SUCCESS) return f->code;
    }
    return NVML_SUCCESS;
}

#define ENTER(call, gpu)                                               \
    do {                                                               \
        if (!sim.started) return NVML_ERROR_UNINITIALIZED;             \
        nvmlReturn_t failed = fault(call, gpu);                        \
        if (failed != NVML_SUCCESS) return failed;                     \
    } while (0)

#define ENTER_DEVICE(call)                                             \
    do {                                                               \
        if (device.handle == NULL) return NVML_ERROR_INVALID_ARGUMENT; \
        ENTER(call, device.handle->gpu);                               \
    } while (0)

#define ENTER_GPU(call)                                                \
    do {                                                               \
        ENTER_DEVICE(call);                                            \
        if (device.handle->mig != NONE) return NVML_ERROR_INVALID_ARGUMENT; \
    } while (0)

#define ENTER_MIG(call)                                                \
    do {                                                               \
        ENTER_DEVICE(call);                                            \
        if (device.handle->mig == NONE) return NVML_ERROR_INVALID_ARGUMENT; \
    } while (0)

static nvmlReturn_t copy(char *to, unsigned length, const char *from) {
    if (strlen(from) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, from);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    if (!readConfig()) return NVML_ERROR_DRIVER_NOT_LOADED;
    nvmlReturn_t failed = fault("nvmlInit", NONE);
    if (failed != NVML_SUCCESS) return failed;
    if (sim.gpus == 0 && !(flags & NVML_INIT_FLAG_NO_GPUS)) return NVML_ERROR_NOT_FOUND;
    sim.started = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void) {
    ENTER("nvmlShutdown", NONE);
    sim.started = 0;
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result) {
    static __thread char text[32];
    snprintf(text, sizeof text, "stand-in error %d", result);
    return text;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    ENTER("nvmlSystemGetDriverVersion", NONE);
    return copy(version, length, sim.driver);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    ENTER("nvmlSystemGetNVMLVersion", NONE);
    return copy(version, length, sim.nvml);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    ENTER("nvmlSystemGetCudaDriverVersion", NONE);
    *version = sim.cuda;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    ENTER("nvmlDeviceGetCount", NONE);
    *count = sim.gpus;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    ENTER("nvmlDeviceGetHandleByIndex", (int)index);
    if (index >= (unsigned)sim.gpus) return NVML_ERROR_INVALID_ARGUMENT;
    device->handle = &sim.gpu[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    ENTER_DEVICE("nvmlDeviceGetUUID");
    return copy(uuid, length, device.handle->uuid);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    ENTER_DEVICE("nvmlDeviceGetName");
    return copy(name, length, device.handle->name);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor) {
    ENTER_GPU("nvmlDeviceGetMinorNumber");
    *minor = device.handle->minor;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    ENTER_GPU("nvmlDeviceGetPciInfo");
    memset(pci, 0, sizeof *pci);
    sscanf(device.handle->pci, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xFFFF, pci->bus & 0xFF, pci->device & 0x1F);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *arch) {
    ENTER_GPU("nvmlDeviceGetArchitecture");
    *arch = device.handle->arch;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    ENTER_DEVICE("nvmlDeviceGetMemoryInfo");
    *memory = (nvmlMemory_t){.total = device.handle->memory, .free = device.handle->memory};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    ENTER_GPU("nvmlDeviceGetMigMode");
    if (!device.handle->migSupported) return NVML_ERROR_NOT_SUPPORTED;
    *current = device.handle->migCurrent;
    *pending = device.handle->migPending;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
    ENTER_GPU("nvmlDeviceGetMaxMigDeviceCount");
    *count = device.handle->migCurrent ? device.handle->maxMig : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *migDevice) {
    ENTER_GPU("nvmlDeviceGetMigDeviceHandleByIndex");
    if (index >= MAX_MIG || !sim.migThere[device.handle->gpu][index]) return NVML_ERROR_NOT_FOUND;
    migDevice->handle = &sim.mig[device.handle->gpu][index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id) {
    ENTER_MIG("nvmlDeviceGetGpuInstanceId");
    *id = device.handle->gi;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id) {
    ENTER_MIG("nvmlDeviceGetComputeInstanceId");
    *id = device.handle->ci;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes) {
    ENTER_MIG("nvmlDeviceGetAttributes");
    *attributes = (nvmlDeviceAttributes_t){
        .gpuInstanceSliceCount = device.handle->gpuSlices,
        .computeInstanceSliceCount = device.handle->computeSlices,
        .memorySizeMB = device.handle->memoryMiB,
    };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *count) {
    ENTER_GPU("nvmlDeviceGetTotalEccErrors");
    if (type != NVML_MEMORY_ERROR_TYPE_UNCORRECTED) return NVML_ERROR_INVALID_ARGUMENT;
    *count = counter == NVML_AGGREGATE_ECC ? device.handle->eccLifetime : device.handle->ecc;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending, unsigned *failure) {
    ENTER_GPU("nvmlDeviceGetRemappedRows");
    if (device.handle->migCurrent) return NVML_ERROR_NOT_SUPPORTED;
    *correctable = 0;
    *uncorrectable = device.handle->rows;
    *pending = device.handle->rowsPending;
    *failure = device.handle->rowsFailure;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    ENTER_GPU("nvmlDeviceGetFieldValues");
    for (int i = 0; i < count; i++) {
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        if (values[i].fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION) {
            values[i].nvmlReturn = NVML_SUCCESS;
            values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
            values[i].value.uiVal = device.handle->recovery;
        }
    }
    return NVML_SUCCESS;
}

// The events are one set: those of the file, as if they came right after registering.
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    ENTER("nvmlEventSetCreate", NONE);
    set->handle = (void *)&sim;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    ENTER_GPU("nvmlDeviceRegisterEvents");
    if (types != nvmlEventTypeXidCriticalError || set.handle != (void *)&sim) return NVML_ERROR_INVALID_ARGUMENT;
    sim.watched[device.handle->gpu] = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds) {
    ENTER("nvmlEventSetWait", NONE);
    for (; sim.xidsTaken < sim.xids; sim.xidsTaken++) {
        int gpu = sim.xid[sim.xidsTaken].gpu;
        if (gpu < 0 || gpu >= sim.gpus || !sim.watched[gpu]) continue;
        *data = (nvmlEventData_t){
            .device = {&sim.gpu[gpu]}, .eventType = nvmlEventTypeXidCriticalError, .eventData = sim.xid[sim.xidsTaken].number,
            .gpuInstanceId = 0xFFFFFFFF, .computeInstanceId = 0xFFFFFFFF,
        };
        sim.xidsTaken++;
        return NVML_SUCCESS;
    }
    usleep(milliseconds * 1000);
    return NVML_ERROR_TIMEOUT;
}

// listed finds the next process of the type on the device, from a position on.
static int listed(nvmlDevice_t device, const char *type, int from) {
    for (int i = from; i < sim.processes; i++) {
        struct process *p = &sim.process[i];
        int here = p->gpu == device.handle->gpu && strcmp(p->type, type) == 0;
        int inside = device.handle->mig == NONE ||
            (p->info.gpuInstanceId == device.handle->gi && p->info.computeInstanceId == device.handle->ci);
        if (here && inside) return i;
    }
    return sim.processes;
}

// The three versions of each list differ in the structure alone: the first has no instances.
#define LIST(function, suffix, type, info_t, copyInfo)                                       \
    nvmlReturn_t function##suffix(nvmlDevice_t device, unsigned *count, info_t *infos) {      \
        ENTER_DEVICE(#function);                                                              \
        if (device.handle->mig == NONE && device.handle->migCurrent && !device.handle->aggregate) \
            return NVML_ERROR_NO_PERMISSION;                                                  \
        unsigned room = *count, n = 0;                                                        \
        for (int i = listed(device, type, 0); i < sim.processes; i = listed(device, type, i + 1)) { \
            if (n < room) copyInfo(infos[n], sim.process[i].info);                            \
            n++;                                                                              \
        }                                                                                     \
        *count = n;                                                                           \
        return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;                        \
    }
#define WHOLE(to, from) (to) = (from)
#define SHORT(to, from) ((to).pid = (from).pid, (to).usedGpuMemory = (from).usedGpuMemory)
#define LISTS(function, type)                                                                 \
    LIST(function, _v3, type, nvmlProcessInfo_t, WHOLE)                                       \
    LIST(function, _v2, type, nvmlProcessInfo_v2_t, WHOLE)                                    \
    LIST(function, , type, nvmlProcessInfo_v1_t, SHORT)

LISTS(nvmlDeviceGetComputeRunningProcesses, "compute")
LISTS(nvmlDeviceGetGraphicsRunningProcesses, "graphics")
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, "mps")
