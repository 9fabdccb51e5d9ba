//go:build linux && cgo && nvml

package nvml

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dramigrate/dramigrate/internal/nvml/nvmltest"
)

// The tests look through the real path: a library built by a C compiler, found and
// loaded by the dynamic linker, called by go-nvml. A process can have one library, so
// each look is made by a child of the test.

// childEnv holds the options of a look; a test binary that finds it makes the look,
// prints what came of it and ends.
const childEnv = "NVML_TEST_LOOK"

type childTask struct {
	Options Options
	// LookTimeout ends the look's context; 0 is never.
	LookTimeout time.Duration
}

// childResult is what came of a look.
type childResult struct {
	Host                         Host
	OpenKind, LookKind, PartKind Kind
	CloseKind                    Kind
	OpenError, LookError         string
	PartError                    string
	Took                         time.Duration
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := lookAndPrint(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "nvml-standin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	standinDir = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func lookAndPrint(text string) error {
	var task childTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return err
	}
	ctx := context.Background()
	if task.LookTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, task.LookTimeout, errors.New("the test's time is up"))
		defer cancel()
	}
	var r childResult
	start := time.Now()
	lib, err := Open(context.Background(), task.Options)
	if err != nil {
		r.OpenKind, r.OpenError = KindOf(err), err.Error()
	} else {
		r.Host, err = lib.Look(ctx)
		if err != nil {
			r.LookKind, r.LookError = KindOf(err), err.Error()
		}
		if err := r.Host.Err(); err != nil {
			r.PartKind, r.PartError = KindOf(err), err.Error()
		}
		r.CloseKind = KindOf(lib.Close())
	}
	r.Took = time.Since(start)
	return json.NewEncoder(os.Stdout).Encode(r)
}

var standinDir string

var compiler = sync.OnceValues(nvmltest.NewCompiler)

// builtOnce is the library with all of its functions, for all tests.
var builtOnce = sync.OnceValues(func() (string, error) {
	c, err := compiler()
	if err != nil {
		return "", err
	}
	return c.Build(standinDir)
})

func standin(t testing.TB, without ...string) string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil && os.Getenv("CC") == "" && os.Getenv("CI") != "true" {
		t.Skip("the stand-in for the library needs a C compiler, cc or $CC")
	}
	lib, err := builtOnce()
	if err == nil && len(without) > 0 {
		var c nvmltest.Compiler
		if c, err = compiler(); err == nil {
			lib, err = c.Build(t.TempDir(), without...)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func writeConfig(t testing.TB, cfg nvmltest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvml.conf")
	if err := cfg.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// lookIn runs a look in a child with the environment.
func lookIn(t *testing.T, task childTask, cred *syscall.Credential, env ...string) childResult {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	// By this name because nobody may not enter the folder of a test binary.
	child := exec.CommandContext(t.Context(), "/proc/self/exe")
	// The race detector has a process wait for a second at its end.
	child.Env = append(append(os.Environ(), childEnv+"="+string(text), "GORACE=atexit_sleep_ms=0"), env...)
	child.Dir = "/"
	if cred != nil {
		child.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	}
	var stderr strings.Builder
	child.Stderr = &stderr
	out, err := child.Output()
	if err != nil {
		t.Fatalf("the look ended with %v: %s", err, stderr.String())
	}
	var r childResult
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// lookAt looks at what the config shows, with short deadlines.
func lookAt(t *testing.T, cfg nvmltest.Config, without ...string) childResult {
	t.Helper()
	task := childTask{Options: Options{LibraryPath: standin(t, without...), Timeout: 300 * time.Millisecond, StartTimeout: 300 * time.Millisecond}}
	if !hangs(cfg) {
		task.Options.Timeout, task.Options.StartTimeout = time.Minute, time.Minute
	}
	return lookIn(t, task, nil, nvmltest.ConfigEnv+"="+writeConfig(t, cfg))
}

func hangs(cfg nvmltest.Config) bool {
	for _, f := range cfg.Faults {
		if f.Hang {
			return true
		}
	}
	return false
}

// fullLook fails the test unless everything was read.
func fullLook(t *testing.T, r childResult) Host {
	t.Helper()
	if r.OpenError != "" || r.LookError != "" || r.PartError != "" || r.CloseKind != "" {
		t.Fatalf("open: %s, look: %s, parts: %s, close: %s; want all read", r.OpenError, r.LookError, r.PartError, r.CloseKind)
	}
	return r.Host
}

// server is a node with n H100s, whose values follow from the index.
func server(n int) nvmltest.Config {
	cfg := nvmltest.Config{DriverVersion: "580.95.05", NVMLVersion: "13.580.95.05", CUDAVersion: 13000}
	for i := range n {
		cfg.GPUs = append(cfg.GPUs, nvmltest.GPU{
			UUID:         gpuUUID(i),
			Minor:        i ^ 1,
			PCIBusID:     fmt.Sprintf("0000:%02x:00.0", 0x1b+i),
			Product:      "NVIDIA H100 80GB HBM3",
			Architecture: nvmltest.ArchHopper,
			MemoryBytes:  81559 << 20,
			MIGMode:      nvmltest.MIGDisabled,
			MIGPending:   nvmltest.MIGDisabled,
		})
	}
	return cfg
}

func gpuUUID(i int) string { return fmt.Sprintf("GPU-0000000%d-2558-51a1-8097-3d34cde0c8ec", i) }

func migUUID(gpu, slot int) string {
	return fmt.Sprintf("MIG-000000%d%d-2558-51a1-8097-3d34cde0c8ec", gpu, slot)
}

// sliceUp puts a GPU of the server into MIG mode with partitions of 1g.10gb.
func sliceUp(cfg *nvmltest.Config, gpu, partitions int) {
	g := &cfg.GPUs[gpu]
	g.MIGMode, g.MIGPending = nvmltest.MIGEnabled, nvmltest.MIGEnabled
	for slot := range partitions {
		g.MIG = append(g.MIG, nvmltest.MIG{
			UUID: migUUID(gpu, slot), Name: g.Product + " MIG 1g.10gb",
			GPUInstance: 7 + slot, GPUSlices: 1, ComputeSlices: 1, MemoryMiB: 9856,
		})
	}
}

func ptr[T any](v T) *T { return &v }
