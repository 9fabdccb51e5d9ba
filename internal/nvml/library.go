package nvml

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of [Options].
const (
	// DefaultTimeout bounds a call. The library answers most in microseconds, and some
	// by way of the GPU's own processor, which may take a second under load.
	DefaultTimeout = 10 * time.Second
	// DefaultStartTimeout bounds the library's start and the first call to a GPU. Where
	// no persistence daemon keeps the GPUs awake, that takes seconds for each of them.
	DefaultStartTimeout = time.Minute
)

// Options of [Open]. The zero value looks where the library usually is.
type Options struct {
	// LibraryPath is the library's file, or a bare name for the dynamic linker. Nothing
	// else is tried.
	LibraryPath string
	// Roots are folders of drivers to look in, instead of the dynamic linker's folders
	// and [DefaultRoots].
	Roots []string
	// Proc is the procfs of the host's process table, such as "/proc" in a pod with
	// hostPID. Empty if there is none to see: processes then have no known owner.
	Proc string
	// WatchXIDs has the library collect Xid errors from Open on, for [Health.XIDs].
	WatchXIDs bool
	// Timeout is for each call; DefaultTimeout if 0.
	Timeout time.Duration
	// StartTimeout is for the library's start and the first call to each GPU;
	// DefaultStartTimeout if 0.
	StartTimeout time.Duration
}

// Library is the loaded and started management library. It is safe for use by
// several goroutines. A process can have only one.
type Library struct {
	driver driver
	path   string
	o      Options
	// hung is set for good by a call that did not come back. It keeps its thread, and
	// may keep locks of the library.
	hung atomic.Bool

	mu   sync.Mutex
	xids map[int][]uint64 // since Open, of each GPU that is watched
}

// Open loads and starts the library. The error is an [*Error]; its kind says what the
// node, or the pod, lacks. The caller has to Close.
func Open(ctx context.Context, o Options) (*Library, error) { return open(ctx, o, load) }

func open(ctx context.Context, o Options, load func(string) (driver, error)) (*Library, error) {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = DefaultStartTimeout
	}
	lib := &Library{o: o}
	ask := lib.asker(ctx)
	at, ok := answer(ask, "library", "dlopen", o.StartTimeout, func() (found, Code) {
		return find(o, load), codeSuccess
	})
	if ok && at.err != nil {
		return nil, at.err
	}
	if ok {
		lib.driver, lib.path = at.driver, at.path
		_, ok = answer(ask, "library", "nvmlInit", o.StartTimeout, func() (struct{}, Code) {
			return struct{}{}, at.driver.start()
		})
	}
	if !ok {
		e := ask.errs[0]
		if lib.path != "" {
			e.Detail = strings.TrimPrefix(e.Detail+"; library "+lib.path, "; ")
		}
		return nil, &e
	}
	if o.WatchXIDs {
		lib.watchXIDs(ask)
	}
	return lib, nil
}

// Close ends the library. After a call that hung it only says so: to end the library
// could hang as well, and the process' end frees all.
func (l *Library) Close() error {
	if l.hung.Load() {
		return &Error{Kind: KindTimeout, Call: "nvmlShutdown", Detail: "not made, because an earlier call hangs"}
	}
	ask := l.asker(context.Background())
	if _, ok := answer(ask, "library", "nvmlShutdown", l.o.Timeout, func() (struct{}, Code) {
		return struct{}{}, l.driver.stop()
	}); !ok {
		return &ask.errs[0]
	}
	return nil
}

// Look asks the library for all that a [Host] holds, the GPUs at the same time. The
// error is an [*Error] and means that not even the GPUs could be counted; what else
// could not be read stands in the host, see [Host.Err].
//
// It returns when ctx ends, with what it has by then.
func (l *Library) Look(ctx context.Context) (Host, error) {
	h := Host{Library: l.path}
	ask := l.asker(ctx)
	count, ok := answer(ask, "devices", "nvmlDeviceGetCount", l.o.StartTimeout, l.driver.count)
	if !ok {
		h.Errors = ask.errs
		return h, &ask.errs[0]
	}
	h.DriverVersion, _ = answer(ask, "driverVersion", "nvmlSystemGetDriverVersion", l.o.Timeout, l.driver.driverVersion)
	h.NVMLVersion, _ = answer(ask, "nvmlVersion", "nvmlSystemGetNVMLVersion", l.o.Timeout, l.driver.nvmlVersion)
	if v, ok := answer(ask, "cudaVersion", "nvmlSystemGetCudaDriverVersion", l.o.Timeout, l.driver.cudaVersion); ok {
		h.CUDAVersion = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	xids := l.takeXIDs(ask)
	h.Errors = ask.errs

	owners := ownersIn(l.o.Proc)
	h.Devices = make([]Device, count)
	var all sync.WaitGroup
	for i := range h.Devices {
		all.Go(func() {
			h.Devices[i] = (&look{asker: l.asker(ctx), lib: l, owners: owners}).device(i)
			h.Devices[i].Health.XIDs = xids[i]
		})
	}
	all.Wait()
	return h, nil
}
