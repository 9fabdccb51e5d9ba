//go:build linux && cgo && nvml && !no_podresources_list

package nodeprobe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dramigrate/dramigrate/internal/nvml"
	"github.com/dramigrate/dramigrate/internal/nvml/nvmltest"
)

// probeEnv has a child of a test probe a node: a process can load one library alone, and
// reads its environment as it was at the start.
const probeEnv = "NODEPROBE_TEST_NODE"

type probedNode struct {
	Socket, Root, Library string
}

// TestProbeChild is what the children do; it is no test of its own.
func TestProbeChild(t *testing.T) {
	text := os.Getenv(probeEnv)
	if text == "" {
		t.Skip("for the children of other tests")
	}
	var n probedNode
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Node: "n1", Parts: []Part{AskKubelet, AskNVML, AskCheckpoints, AskCDI}, Socket: n.Socket, KubeletRoot: n.Root,
		CDIDirs: []string{filepath.Join(n.Root, "cdi")}, NVML: nvml.Options{LibraryPath: n.Library}, API: nothing(),
	}
	o.API.Slices = publishes(nvidiaDriver, wholeGPU("gpu-0", gpuA))
	exit, err := Run(context.Background(), o, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	os.Exit(exit)
}

func standinGPUs(n int) nvmltest.Config {
	cfg := nvmltest.Config{DriverVersion: "580.95.05", NVMLVersion: "13.580.95.05", CUDAVersion: 13000}
	for i := range n {
		cfg.GPUs = append(cfg.GPUs, nvmltest.GPU{
			UUID: strings.Replace(gpuA, "GPU-aaaaaaaa", fmt.Sprintf("GPU-%saaaaaaa", string("abcdefgh"[i])), 1), Minor: i, PCIBusID: fmt.Sprintf("0000:%02x:00.0", 0x1b+i),
			Product: "NVIDIA H100 80GB HBM3", Architecture: nvmltest.ArchHopper, MemoryBytes: 81559 << 20, MIGMode: nvmltest.MIGDisabled, MIGPending: nvmltest.MIGDisabled,
		})
	}
	return cfg
}

// probe runs a child and returns its report and exit code.
func probe(t *testing.T, n probedNode, cfg nvmltest.Config) (NodeReport, int) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "gpus")
	if err := cfg.Write(config); err != nil {
		t.Fatal(err)
	}
	if n.Library == "" {
		var err error
		if n.Library, err = nvmltest.Build(dir); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestProbeChild$")
	child.Env = append(os.Environ(), probeEnv+"="+string(text), nvmltest.ConfigEnv+"="+config)
	out, err := child.Output()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	var r NodeReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r, child.ProcessState.ExitCode()
}

// twoHands is a kubelet on which a pod has a GPU by the plugin, which has gone, and
// another has it by a claim.
func twoHands() *fakeKubelet {
	pods := []*podresources.PodResources{
		{Namespace: "infer", Name: "small", Containers: []*podresources.ContainerResources{
			{Name: "main", Devices: []*podresources.ContainerDevices{devices("nvidia.com/gpu", gpuA)}},
		}},
		{Namespace: "train", Name: "big", Containers: []*podresources.ContainerResources{{Name: "w", DynamicResources: []*podresources.DynamicResource{{
			ClaimNamespace: "train", ClaimName: "c", ClaimResources: []*podresources.ClaimResource{{DriverName: nvidiaDriver, PoolName: "n1", DeviceName: "gpu-0"}},
		}}}}},
	}
	return &fakeKubelet{
		list: func(context.Context) (*podresources.ListPodResourcesResponse, error) {
			return &podresources.ListPodResourcesResponse{PodResources: pods}, nil
		},
		get: func(req *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
			for _, p := range pods {
				if p.Name == req.PodName && p.Namespace == req.PodNamespace {
					return &podresources.GetPodResourcesResponse{PodResources: p}, nil
				}
			}
			return nil, fmt.Errorf("pod %s in namespace %s not found", req.PodName, req.PodNamespace)
		},
	}
}

func TestProbeNode(t *testing.T) {
	one := standinGPUs(1)
	one.GPUs[0].UUID = gpuA
	root := nodeFolder(t)

	t.Run("double hold", func(t *testing.T) {
		r, exit := probe(t, probedNode{Socket: twoHands().serve(t), Root: root}, one)
		if exit != ExitDouble || r.Hardware == nil || r.Hardware.DriverVersion != "580.95.05" {
			t.Errorf("exit %d, want 3: %+v", exit, r)
		}
		check(t, r, DoubleHeld, []wanted{{gpuA, ByDRA, ByBoth, DoubleHeld, []string{"pod infer/small", "pod train/big by claim train/c"}}})
	})
	t.Run("a pod that ended between the calls", func(t *testing.T) {
		k := twoHands()
		get := k.get
		k.get = func(req *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
			if req.PodName == "small" {
				return nil, fmt.Errorf("pod %s in namespace %s not found", req.PodName, req.PodNamespace)
			}
			return get(req)
		}
		r, exit := probe(t, probedNode{Socket: k.serve(t), Root: root}, one)
		if exit != ExitOK {
			t.Errorf("exit %d, want 0: %+v", exit, r.Unknown)
		}
		check(t, r, Clean, []wanted{{gpuA, ByDRA, ByDRA, Clean, nil}})
	})
	t.Run("a pod that cannot be asked for again", func(t *testing.T) {
		k := twoHands()
		k.get = func(*podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
			return nil, errors.New("broken")
		}
		if r, exit := probe(t, probedNode{Socket: k.serve(t), Root: root}, one); exit != ExitDouble {
			t.Errorf("exit %d, want 3: what List said stands: %+v", exit, r)
		}
	})
	t.Run("clean", func(t *testing.T) {
		r, exit := probe(t, probedNode{Socket: (&fakeKubelet{}).serve(t), Root: root}, one)
		if exit != ExitOK || !r.ListCalled {
			t.Errorf("exit %d, want 0: %+v", exit, r.Unknown)
		}
		check(t, r, Clean, []wanted{{gpuA, ByDRA, ByNone, Clean, nil}})
	})
	t.Run("no socket", func(t *testing.T) {
		r, exit := probe(t, probedNode{Socket: filepath.Join(root, "none.sock"), Root: root}, one)
		if exit != ExitUnknown {
			t.Errorf("exit %d, want 7", exit)
		}
		check(t, r, Undecided, []wanted{{gpuA, ByDRA, ByUnknown, Undecided, []string{"which pods hold devices of plugins is unknown"}}})
	})
	t.Run("no library", func(t *testing.T) {
		r, exit := probe(t, probedNode{Socket: (&fakeKubelet{}).serve(t), Root: root, Library: filepath.Join(root, "none.so")}, one)
		if exit != ExitUnknown || r.Verdict != Undecided || len(r.Unknown) != 1 || r.Unknown[0].Part != PartHardware {
			t.Errorf("exit %d, %s, unknown %v; want 7 for the hardware alone", exit, r.Verdict, r.Unknown)
		}
	})
	t.Run("versions that do not fit", func(t *testing.T) {
		cfg := one
		cfg.Faults = []nvmltest.Fault{{Call: "nvmlInit", Code: 18}}
		r, exit := probe(t, probedNode{Socket: (&fakeKubelet{}).serve(t), Root: root}, cfg)
		if exit != ExitUnknown || len(r.Unknown) != 1 || !strings.Contains(r.Unknown[0].Reason, string(nvml.KindVersionMismatch)) {
			t.Errorf("exit %d, unknown %v; want 7 and version-mismatch", exit, r.Unknown)
		}
	})
	t.Run("plugins at work, and no checkpoint of them", func(t *testing.T) {
		k := &fakeKubelet{allocatable: func(context.Context) (*podresources.AllocatableResourcesResponse, error) {
			return &podresources.AllocatableResourcesResponse{Devices: []*podresources.ContainerDevices{devices("nvidia.com/gpu", gpuB)}}, nil
		}}
		r, exit := probe(t, probedNode{Socket: k.serve(t), Root: root}, one)
		if exit != ExitUnknown || len(r.Unknown) == 0 || r.Unknown[0].Part != PartDeviceManager {
			t.Errorf("exit %d, unknown %v; want 7 for the device manager", exit, r.Unknown)
		}
	})
}

// BenchmarkCollect is the report of a node with 8 GPUs, each with a pod by the plugin:
// all of it, and beside it the hardware alone.
func BenchmarkCollect(b *testing.B) {
	dir := b.TempDir()
	cfg := standinGPUs(8)
	config := filepath.Join(dir, "gpus")
	if err := cfg.Write(config); err != nil {
		b.Fatal(err)
	}
	library, err := nvmltest.Build(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv(nvmltest.ConfigEnv, config)
	var pods []*podresources.PodResources
	var all []*podresources.ContainerDevices
	for i, g := range cfg.GPUs {
		d := devices("nvidia.com/gpu", g.UUID)
		all = append(all, d)
		pods = append(pods, &podresources.PodResources{Namespace: "a", Name: fmt.Sprint("p", i), Containers: []*podresources.ContainerResources{
			{Name: "main", Devices: []*podresources.ContainerDevices{d}},
		}})
	}
	k := &fakeKubelet{
		list: func(context.Context) (*podresources.ListPodResourcesResponse, error) {
			return &podresources.ListPodResourcesResponse{PodResources: pods}, nil
		},
		allocatable: func(context.Context) (*podresources.AllocatableResourcesResponse, error) {
			return &podresources.AllocatableResourcesResponse{Devices: all}, nil
		},
	}
	o := Options{
		Node: "n1", Parts: []Part{AskKubelet, AskNVML, AskCheckpoints, AskCDI}, Socket: k.serve(b), KubeletRoot: nodeFolder(b),
		CDIDirs: []string{dir}, NVML: nvml.Options{LibraryPath: library}, API: nothing(),
	}
	b.Run("report", func(b *testing.B) {
		for b.Loop() {
			started := time.Now()
			r, err := Collect(context.Background(), o)
			if err != nil || r.Hardware == nil || len(r.Devices) != 8 {
				b.Fatal(err, r)
			}
			if took := time.Since(started); took > 2*time.Second {
				b.Fatalf("a report took %s", took)
			}
		}
	})
	b.Run("nvml-alone", func(b *testing.B) {
		for b.Loop() {
			if _, gaps := lookAtHardware(context.Background(), o); len(gaps) > 0 {
				b.Fatal(gaps)
			}
		}
	})
}
