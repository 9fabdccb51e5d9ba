package dradriver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// deadline bounds what a test waits for; nothing in it is slow.
const deadline = 20 * time.Second

// UUIDs of node-a by index, see the test of package gpu. With three GPUs the
// devices are gpu-1, gpu-0 and gpu-2 in that order.
var uuids = []string{
	"GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec",
	"GPU-0bfeb96d-8a9f-59d4-beff-12eb65372aea",
	"GPU-5f727037-7cce-5fc4-b316-54a2755e08e7",
}

// A bench is a node with a driver on it, without a kubelet.
type bench struct {
	config
	done chan error
	stop context.CancelFunc
}

// newBench has the GPUs of node-a and the claims in the API.
func newBench(t *testing.T, claims ...*resourceapi.ResourceClaim) *bench {
	t.Helper()
	// Not t.TempDir(): a socket's path has at most 107 characters.
	dir, err := os.MkdirTemp("", "dra-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", UID: "node-uid"}})
	for _, c := range claims {
		if err := client.Tracker().Add(c); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{config: config{
		make:        NVIDIA(),
		node:        "node-a",
		setFile:     filepath.Join(dir, "gpus.json"),
		faultFile:   filepath.Join(dir, "driver-fault"),
		pluginsDir:  filepath.Join(dir, "plugins"),
		registryDir: filepath.Join(dir, "registry"),
		cdiDir:      filepath.Join(dir, "cdi"),
		client:      client,
	}}
	if err := os.Mkdir(b.registryDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := gpu.NewSet("node-a", 3).Save(b.setFile); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) fault(t *testing.T, f Fault) {
	t.Helper()
	if err := WriteFault(b.faultFile, f); err != nil {
		t.Fatal(err)
	}
}

// start runs the driver until the test ends or b.stop.
func (b *bench) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.stop, b.done = cancel, make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		b.done <- run(ctx, b.config)
	}()
	t.Cleanup(func() { cancel(); <-finished })
}

// kubelet connects to the driver's socket once it is there.
func (b *bench) kubelet(t *testing.T) drapb.DRAPluginClient {
	t.Helper()
	conn := dial(t, filepath.Join(b.pluginsDir, "gpu.nvidia.com", "dra.sock"))
	return drapb.NewDRAPluginClient(conn)
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// claim has the devices allocated on node-a.
func claim(name string, devices ...string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + "-uid")},
		Status:     resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}},
	}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "req-" + d, Driver: "gpu.nvidia.com", Pool: "node-a", Device: d})
	}
	return c
}

func prepare(t *testing.T, client drapb.DRAPluginClient, name string) *drapb.NodePrepareResourceResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	resp, err := client.NodePrepareResources(ctx, &drapb.NodePrepareResourcesRequest{
		Claims: []*drapb.Claim{{Namespace: "default", Name: name, Uid: name + "-uid"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Claims[name+"-uid"]
}

func unprepare(t *testing.T, client drapb.DRAPluginClient, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	resp, err := client.NodeUnprepareResources(ctx, &drapb.NodeUnprepareResourcesRequest{
		Claims: []*drapb.Claim{{Namespace: "default", Name: name, Uid: name + "-uid"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Claims[name+"-uid"].Error
}

// injected is what a runtime would mount for the CDI devices: host path, by
// path in the container.
func (b *bench) injected(t *testing.T, resp *drapb.NodePrepareResourceResponse) map[string]string {
	t.Helper()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(b.cdiDir), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	mounts := map[string]string{}
	for _, d := range resp.Devices {
		for _, id := range d.CdiDeviceIds {
			found := cache.GetDevice(id)
			if found == nil {
				t.Fatalf("CDI device %s is in no spec", id)
			}
			for _, m := range found.ContainerEdits.Mounts {
				mounts[m.ContainerPath] = m.HostPath
			}
			if env := found.GetSpec().ContainerEdits.Env; !slices.Contains(env, "NVIDIA_VISIBLE_DEVICES=void") {
				t.Errorf("environment %v does not turn the legacy hook off", env)
			}
		}
	}
	return mounts
}

func assertInjected(t *testing.T, mounts map[string]string, want ...string) {
	t.Helper()
	if len(mounts) != len(want) {
		t.Errorf("%d mounts, want %d: %v", len(mounts), len(want), mounts)
	}
	for _, id := range want {
		host := mounts["/run/nvidia-sim/visible/"+id+".json"]
		if host != "/run/nvidia-sim/gpus/"+id+".json" {
			t.Errorf("%s is not mounted: %v", id, mounts)
		}
	}
}

// published waits for the node's slice.
func (b *bench) published(t *testing.T) resourceapi.ResourceSlice {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	api := b.client.ResourceV1().ResourceSlices()
	for {
		list, err := api.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) > 0 {
			return list.Items[0]
		}
		select {
		case <-ctx.Done():
			t.Fatal("no slice was published")
		case <-time.After(20 * time.Millisecond):
		}
	}
}
