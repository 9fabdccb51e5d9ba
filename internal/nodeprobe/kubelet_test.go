package nodeprobe

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// fakeKubelet serves the real PodResources API with answers of the test's. A nil
// function is an empty answer.
type fakeKubelet struct {
	podresources.UnimplementedPodResourcesListerServer

	list        func(context.Context) (*podresources.ListPodResourcesResponse, error)
	allocatable func(context.Context) (*podresources.AllocatableResourcesResponse, error)

	get func(*podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error)

	listCalls atomic.Int32
}

func (k *fakeKubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.listCalls.Add(1)
	if k.list == nil {
		return &podresources.ListPodResourcesResponse{}, nil
	}
	return k.list(ctx)
}

func (k *fakeKubelet) GetAllocatableResources(ctx context.Context, _ *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	if k.allocatable == nil {
		return &podresources.AllocatableResourcesResponse{}, nil
	}
	return k.allocatable(ctx)
}

func (k *fakeKubelet) Get(_ context.Context, req *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
	if k.get == nil {
		return &podresources.GetPodResourcesResponse{}, nil
	}
	return k.get(req)
}

// serve starts the kubelet and returns its socket.
func (k *fakeKubelet) serve(t testing.TB) string {
	t.Helper()
	socket := filepath.Join(socketDir(t), "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, k)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return socket
}

// socketDir is a folder with a short path: a socket's may have 108 bytes on Linux
// (unix(7)), which t.TempDir exceeds for a test with a long name.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "np")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
