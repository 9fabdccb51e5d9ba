//go:build !no_podresources_list

package nodeprobe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// at is not in UTC, which the report must be.
func at() time.Time {
	return time.Date(2026, 11, 3, 16, 5, 6, 0, time.FixedZone("CET", 3600))
}

func devices(resource string, ids ...string) *podresources.ContainerDevices {
	return &podresources.ContainerDevices{ResourceName: resource, DeviceIds: ids}
}

// On this node a pod holds a shared GPU by the plugin, and another pod holds two
// devices of a generated claim, which the kubelet lists for both of its containers
// and with CDI names that add up (see Holder and devicesByClaim).
func TestRunReportsWhoHoldsWhat(t *testing.T) {
	generated := &podresources.DynamicResource{
		ClaimNamespace: "train", ClaimName: "big-extended-resources-x7k2p",
		ClaimResources: []*podresources.ClaimResource{
			{
				DriverName: "gpu.nvidia.com", PoolName: "gpu-7", DeviceName: "gpu-3",
				CdiDevices: []*podresources.CDIDevice{{Name: "k8s.gpu.nvidia.com/claim=a"}},
			},
			{
				DriverName: "gpu.nvidia.com", PoolName: "gpu-7", DeviceName: "gpu-2",
				CdiDevices: []*podresources.CDIDevice{{Name: "k8s.gpu.nvidia.com/claim=a"}, {Name: "k8s.gpu.nvidia.com/claim=b"}},
			},
			{DriverName: "gpu.nvidia.com", PoolName: "gpu-7", DeviceName: "gpu-3"},
		},
	}
	k := &fakeKubelet{
		allocatable: func(context.Context) (*podresources.AllocatableResourcesResponse, error) {
			return &podresources.AllocatableResourcesResponse{Devices: []*podresources.ContainerDevices{
				devices("nvidia.com/gpu", "GPU-b::1"),
				devices("nvidia.com/gpu", "GPU-a"), // one entry a NUMA node
				devices("nvidia.com/gpu", "GPU-a"),
				devices("nvidia.com/gpu", "GPU-b::0"),
				devices("nvidia.com/mig-1g.10gb"),
			}}, nil
		},
		list: func(context.Context) (*podresources.ListPodResourcesResponse, error) {
			return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{
				{Namespace: "train", Name: "big", Containers: []*podresources.ContainerResources{
					{Name: "worker", DynamicResources: []*podresources.DynamicResource{generated}},
					{Name: "sidecar", DynamicResources: []*podresources.DynamicResource{generated}},
				}},
				{Namespace: "kube-system", Name: "proxy", Containers: []*podresources.ContainerResources{{Name: "proxy"}}},
				{Namespace: "infer", Name: "small", Containers: []*podresources.ContainerResources{
					{Name: "main", Devices: []*podresources.ContainerDevices{devices("nvidia.com/gpu", "GPU-b::1", "GPU-b::0")}},
				}},
			}}, nil
		},
	}
	socket := k.serve(t)
	var out bytes.Buffer
	exit, err := Run(t.Context(), Options{Node: "gpu-7", Socket: socket, Now: at}, &out)
	if exit != ExitOK || err != nil {
		t.Fatalf("Run = %d, %v; want 0, nil", exit, err)
	}
	want := `{"apiVersion":"dramigrate.dev/v1alpha1","kind":"NodeReport","node":"gpu-7",` +
		`"time":"2026-11-03T15:05:06Z","kubeletSocket":"` + socket + `",` +
		`"advertised":{"nvidia.com/gpu":["GPU-a","GPU-b"],"nvidia.com/mig-1g.10gb":[]},` +
		`"holders":[` +
		`{"pod":"infer/small","container":"main","resource":"nvidia.com/gpu","ids":["GPU-b"]},` +
		`{"pod":"train/big","container":"sidecar","claim":"train/big-extended-resources-x7k2p","devices":[` +
		`{"driver":"gpu.nvidia.com","pool":"gpu-7","name":"gpu-2"},{"driver":"gpu.nvidia.com","pool":"gpu-7","name":"gpu-3"}]},` +
		`{"pod":"train/big","container":"worker","claim":"train/big-extended-resources-x7k2p","devices":[` +
		`{"driver":"gpu.nvidia.com","pool":"gpu-7","name":"gpu-2"},{"driver":"gpu.nvidia.com","pool":"gpu-7","name":"gpu-3"}]}` +
		`],"listCalled":true}` + "\n"
	if got := out.String(); got != want {
		t.Errorf("report\n%s want\n%s", got, want)
	}
	if n := k.listCalls.Load(); n != 1 {
		t.Errorf("List was called %d times, want 1", n)
	}
}

// A node without plugin and pods answers with nothing. That is knowledge: empty,
// not null, and nothing unknown.
func TestRunOnAnEmptyNode(t *testing.T) {
	var out bytes.Buffer
	exit, err := Run(t.Context(), Options{Node: "gpu-7", Socket: (&fakeKubelet{}).serve(t), Now: at}, &out)
	if exit != ExitOK || err != nil {
		t.Fatalf("Run = %d, %v; want 0, nil", exit, err)
	}
	if want := `"advertised":{},"holders":[],"listCalled":true}`; !strings.HasSuffix(strings.TrimSpace(out.String()), want) {
		t.Errorf("report %s must end in %s", out.String(), want)
	}
}

func TestRunSaysWhatIsUnknown(t *testing.T) {
	hang := func(ctx context.Context) (*podresources.AllocatableResourcesResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	deadSocket := filepath.Join(socketDir(t), "kubelet.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: deadSocket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	// The file of a kubelet that was killed stays.
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		socket  func(testing.TB) string
		timeout time.Duration
		unknown []Unknown // reasons: a part of the text
		listed  bool
	}{{
		name:    "one call hangs",
		timeout: 100 * time.Millisecond,
		socket:  (&fakeKubelet{allocatable: hang}).serve,
		unknown: []Unknown{{PartAdvertised, "GetAllocatableResources: the kubelet did not answer within 100ms"}},
		listed:  true,
	}, {
		name: "the kubelet answers with an error",
		socket: (&fakeKubelet{list: func(context.Context) (*podresources.ListPodResourcesResponse, error) {
			return nil, status.Error(codes.Internal, "checkpoint is corrupt")
		}}).serve,
		unknown: []Unknown{{PartHolders, "List: the kubelet answered Internal: checkpoint is corrupt"}},
	}, {
		name: "an API without the call",
		socket: (&fakeKubelet{allocatable: func(context.Context) (*podresources.AllocatableResourcesResponse, error) {
			return nil, status.Error(codes.Unimplemented, "method not implemented")
		}}).serve,
		unknown: []Unknown{{PartAdvertised, "does not serve this call of the PodResources API v1"}},
		listed:  true,
	}, {
		name:   "no socket",
		socket: func(t testing.TB) string { return filepath.Join(socketDir(t), "kubelet.sock") },
		unknown: []Unknown{
			{PartAdvertised, "no such file or directory: the kubelet is not running, or its folder is not mounted here"},
			{PartHolders, "no such file or directory: the kubelet is not running, or its folder is not mounted here"},
		},
	}, {
		name:    "a dead kubelet's socket",
		socket:  func(testing.TB) string { return deadSocket },
		unknown: []Unknown{{PartAdvertised, "connection refused"}, {PartHolders, "connection refused"}},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			o := Options{Node: "gpu-7", Socket: tt.socket(t), Timeout: tt.timeout, Now: at}
			exit, err := Run(t.Context(), o, &out)
			if exit != ExitUnknown || err != nil {
				t.Errorf("Run = %d, %v; want 7, nil", exit, err)
			}
			var got NodeReport
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%q: %v", out.String(), err)
			}
			if len(got.Unknown) != len(tt.unknown) {
				t.Fatalf("unknown = %v, want %v", got.Unknown, tt.unknown)
			}
			for i, want := range tt.unknown {
				if got.Unknown[i].Part != want.Part || !strings.Contains(got.Unknown[i].Reason, want.Reason) {
					t.Errorf("unknown %d = %v, want %v", i, got.Unknown[i], want)
				}
				// A part that is unknown must not look empty.
				if want.Part == PartAdvertised && got.Advertised != nil || want.Part == PartHolders && got.Holders != nil {
					t.Errorf("%s is unknown, but given: %v, %v", want.Part, got.Advertised, got.Holders)
				}
			}
			if got.ListCalled != tt.listed {
				t.Errorf("listCalled = %v, want %v", got.ListCalled, tt.listed)
			}
		})
	}
}

// The kubelet turns calls away while all clients together are over its limit. The
// call is repeated: it is what clears the kubelet's memory.
func TestRunRepeatsACallOverTheRateLimit(t *testing.T) {
	turnedAway := false
	k := &fakeKubelet{list: func(context.Context) (*podresources.ListPodResourcesResponse, error) {
		if !turnedAway {
			turnedAway = true
			return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
		}
		return &podresources.ListPodResourcesResponse{}, nil
	}}
	var out bytes.Buffer
	exit, err := Run(t.Context(), Options{Node: "gpu-7", Socket: k.serve(t)}, &out)
	if exit != ExitOK || err != nil {
		t.Errorf("Run = %d, %v; want 0, nil: %s", exit, err, out.String())
	}
	if n := k.listCalls.Load(); n != 2 {
		t.Errorf("List was called %d times, want 2", n)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestRunFailsWithoutReport(t *testing.T) {
	if exit, err := Run(t.Context(), Options{}, &bytes.Buffer{}); exit != ExitError || err == nil {
		t.Errorf("Run without a node = %d, %v; want 1 and an error", exit, err)
	}
	o := Options{Node: "gpu-7", Socket: (&fakeKubelet{}).serve(t)}
	if exit, err := Run(t.Context(), o, brokenPipe{}); exit != ExitError || err == nil || !strings.Contains(err.Error(), "node/gpu-7") {
		t.Errorf("Run into a broken pipe = %d, %v; want 1 and an error that names the node", exit, err)
	}
}
