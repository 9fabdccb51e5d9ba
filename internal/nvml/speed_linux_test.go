//go:build linux && cgo && nvml

package nvml

import (
	"context"
	"testing"
	"time"

	"github.com/dramigrate/dramigrate/internal/nvml/nvmltest"
)

// bigNode has 8 GPUs with 7 partitions each and a process in each partition.
func bigNode() nvmltest.Config {
	cfg := server(8)
	for i := range cfg.GPUs {
		sliceUp(&cfg, i, 7)
		for slot := range 7 {
			cfg.GPUs[i].Processes = append(cfg.GPUs[i].Processes, nvmltest.Process{Type: "compute", PID: 100*i + slot + 1, MIG: &slot})
		}
	}
	return cfg
}

// The time is this package's own: the stand-in answers at once.
func TestLookIsFast(t *testing.T) {
	r := lookAt(t, bigNode())
	host := fullLook(t, r)
	for i, d := range host.Devices {
		if len(d.MIG) != 7 || len(d.MIG[6].Processes) != 1 || d.MIG[6].Processes[0].PID != 100*i+7 {
			t.Errorf("GPU %d: %+v; want 7 partitions with a process in each", i, d.MIG)
		}
	}
	if r.Took > 200*time.Millisecond {
		t.Errorf("load, look and close took %s, want less than 200ms", r.Took)
	}
}

// BenchmarkLook is the look at a node with 8 GPUs of 7 partitions each, and beside it
// the same calls to the library with nothing around them. A delay stands for the time
// that a real driver takes for each call.
func BenchmarkLook(b *testing.B) {
	lib := standin(b)
	for _, delay := range []int{0, 50} {
		name := map[int]string{0: "library-without-delay", 50: "library-with-50us-a-call"}[delay]
		cfg := bigNode()
		if delay > 0 {
			cfg.Faults = []nvmltest.Fault{{Call: "*", Micros: delay}}
		}
		b.Run(name, func(b *testing.B) {
			b.Setenv(nvmltest.ConfigEnv, writeConfig(b, cfg))
			l, err := Open(context.Background(), Options{LibraryPath: lib})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := l.Close(); err != nil {
					b.Error(err)
				}
			})
			b.Run("look", func(b *testing.B) {
				for b.Loop() {
					if host, err := l.Look(context.Background()); err != nil || host.Err() != nil {
						b.Fatal(err, host.Err())
					}
				}
			})
			b.Run("calls-alone", func(b *testing.B) {
				for b.Loop() {
					callAll(b, l.driver)
				}
			})
		})
	}
}

// callAll makes the calls of a look, one after the other.
func callAll(b *testing.B, d driver) {
	calls := 0
	check := func(code Code) {
		calls++
		if code != codeSuccess && code != codeNotSupported {
			b.Fatalf("call %d: code %d", calls, code)
		}
	}
	n, code := d.count()
	check(code)
	for i := range n {
		g, code := d.gpu(i)
		check(code)
		callGPU(g, check)
		most, code := g.maxMIG()
		check(code)
		for slot := range most {
			m, code := g.mig(slot)
			check(code)
			callPartition(m, check)
		}
	}
}

func callGPU(g gpu, check func(Code)) {
	_, code := g.uuid()
	check(code)
	_, code = g.pciBusID()
	check(code)
	_, code = g.minor()
	check(code)
	_, code = g.name()
	check(code)
	_, code = g.architecture()
	check(code)
	_, code = g.memory()
	check(code)
	_, code = g.migMode()
	check(code)
	for _, lifetime := range []bool{false, true} {
		_, code = g.eccUncorrected(lifetime)
		check(code)
	}
	_, code = g.remappedRows()
	check(code)
	_, code = g.recoveryAction()
	check(code)
	for _, kind := range []ProcessType{TypeCompute, TypeGraphics, TypeMPS} {
		_, code = g.processes(kind)
		check(code)
	}
}

func callPartition(m gpu, check func(Code)) {
	_, code := m.uuid()
	check(code)
	_, code = m.gpuInstance()
	check(code)
	_, code = m.computeInstance()
	check(code)
	_, code = m.memory()
	check(code)
	_, code = m.name()
	check(code)
}
