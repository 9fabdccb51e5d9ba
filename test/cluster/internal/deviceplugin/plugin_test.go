package deviceplugin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// deadline bounds what a test waits for; nothing in it is slow.
const deadline = 20 * time.Second

// UUIDs of node-a, see the test of package gpu.
const (
	first  = "GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec"
	second = "GPU-0bfeb96d-8a9f-59d4-beff-12eb65372aea"
)

// A kubelet is the registration side of a kubelet's device manager.
type kubelet struct {
	pluginapi.UnimplementedRegistrationServer
	requests chan *pluginapi.RegisterRequest
	grpc     *grpc.Server
}

func (k *kubelet) Register(_ context.Context, req *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	k.requests <- req
	return &pluginapi.Empty{}, nil
}

func startKubelet(t *testing.T, dir string) *kubelet {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(dir, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{requests: make(chan *pluginapi.RegisterRequest, 10), grpc: grpc.NewServer()}
	pluginapi.RegisterRegistrationServer(k.grpc, k)
	go func() { _ = k.grpc.Serve(listener) }()
	t.Cleanup(k.grpc.Stop)
	return k
}

// registered waits for a registration and connects back, as the kubelet does.
func (k *kubelet) registered(t *testing.T, dir string) pluginapi.DevicePluginClient {
	t.Helper()
	var req *pluginapi.RegisterRequest
	select {
	case req = <-k.requests:
	case <-time.After(deadline):
		t.Fatal("the plugin did not register")
	}
	if req.Version != "v1beta1" || req.ResourceName != "nvidia.com/gpu" || req.Endpoint != "nvidia-gpu.sock" {
		t.Errorf("registered %v, want v1beta1 nvidia.com/gpu nvidia-gpu.sock", req)
	}
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, req.Endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return pluginapi.NewDevicePluginClient(conn)
}

// A node is the surroundings of a plugin with the GPUs of node-a.
type node struct {
	config
	set  gpu.Set
	done chan error
	stop context.CancelFunc
}

func newNode(t *testing.T, gpus int) *node {
	t.Helper()
	// Not t.TempDir(): a socket's path has at most 107 characters.
	dir, err := os.MkdirTemp("", "plugin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &node{
		config: config{
			make:      NVIDIA(),
			pluginDir: filepath.Join(dir, "device-plugins"),
			setFile:   filepath.Join(dir, "gpus.json"),
			log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
		},
		set:  gpu.NewSet("node-a", gpus),
		done: make(chan error, 1),
	}
	if err := os.Mkdir(n.pluginDir, 0o755); err != nil {
		t.Fatal(err)
	}
	n.save(t)
	return n
}

func (n *node) save(t *testing.T) {
	t.Helper()
	if err := n.set.Save(n.setFile); err != nil {
		t.Fatal(err)
	}
}

func (n *node) start(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		n.done <- run(ctx, n.config)
	}()
	t.Cleanup(func() { cancel(); <-finished })
}

func receive(t *testing.T, stream grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse]) map[string]string {
	t.Helper()
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	health := map[string]string{}
	for _, d := range resp.Devices {
		health[d.ID] = d.Health
	}
	return health
}

func assertHealth(t *testing.T, got map[string]string, one, two string) {
	t.Helper()
	if len(got) != 2 || got[first] != one || got[second] != two {
		t.Errorf("devices %v, want %s %s and %s %s", got, first, one, second, two)
	}
}

func watch(t *testing.T, client pluginapi.DevicePluginClient) grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse] {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	stream, err := client.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestAdvertisesAndFollowsHealth(t *testing.T) {
	n := newNode(t, 2)
	k := startKubelet(t, n.pluginDir)
	n.start(t)
	stream := watch(t, k.registered(t, n.pluginDir))
	assertHealth(t, receive(t, stream), "Healthy", "Healthy")

	n.set.GPUs[1].Unhealthy = true
	n.save(t)
	assertHealth(t, receive(t, stream), "Healthy", "Unhealthy")

	// The first GPU falls off the bus, the second recovers, and a third that
	// appears is not seen before the plugin starts again.
	n.set.GPUs = []gpu.GPU{gpu.NewSet("node-a", 3).GPUs[1], gpu.NewSet("node-a", 3).GPUs[2]}
	n.save(t)
	assertHealth(t, receive(t, stream), "Unhealthy", "Healthy")
}

func TestAllocate(t *testing.T) {
	n := newNode(t, 2)
	k := startKubelet(t, n.pluginDir)
	n.start(t)
	client := k.registered(t, n.pluginDir)
	resp, err := client.Allocate(t.Context(), &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{
		{DevicesIds: []string{second}},
		{DevicesIds: []string{first, second}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.ContainerResponses) != 2 {
		t.Fatalf("%d answers, want one a container", len(resp.ContainerResponses))
	}
	one, two := resp.ContainerResponses[0], resp.ContainerResponses[1]
	if got := one.Envs["NVIDIA_VISIBLE_DEVICES"]; got != second {
		t.Errorf("first container's environment names %q, want %q", got, second)
	}
	if got, want := two.Envs["NVIDIA_VISIBLE_DEVICES"], first+","+second; got != want {
		t.Errorf("second container's environment names %q, want %q", got, want)
	}
	if len(one.Mounts) != 1 || len(two.Mounts) != 2 {
		t.Fatalf("%d and %d mounts, want 1 and 2", len(one.Mounts), len(two.Mounts))
	}
	m := one.Mounts[0]
	if m.HostPath != "/run/nvidia-sim/gpus/"+second+".json" || m.ContainerPath != "/run/nvidia-sim/visible/"+second+".json" || !m.ReadOnly {
		t.Errorf("mount %v", m)
	}

	_, err = client.Allocate(t.Context(), &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{
		{DevicesIds: []string{"GPU-of-another-node"}},
	}})
	if err == nil {
		t.Error("a device that the node does not have was allocated")
	}
}

func TestRegistersWithEveryNewKubelet(t *testing.T) {
	n := newNode(t, 2)
	n.start(t) // before any kubelet
	k := startKubelet(t, n.pluginDir)
	stream := watch(t, k.registered(t, n.pluginDir))
	receive(t, stream)

	// A kubelet that starts removes all sockets of the folder.
	k.grpc.Stop()
	if err := os.Remove(filepath.Join(n.pluginDir, socketName)); err != nil {
		t.Fatal(err)
	}
	again := startKubelet(t, n.pluginDir)
	assertHealth(t, receive(t, watch(t, again.registered(t, n.pluginDir))), "Healthy", "Healthy")
}

// The word that a kubelet has started may come late, when the plugin has registered with
// it already.
func TestRegistersOnceWithOneKubelet(t *testing.T) {
	n := newNode(t, 2)
	k := startKubelet(t, n.pluginDir)
	p := &plugin{config: n.config, inventory: newInventory(n.set, n.make.ID)}
	// Without a buffer, so that a word which is sent is a word which is heard.
	words := &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.loop(ctx, words) }()
	stream := watch(t, k.registered(t, n.pluginDir))
	receive(t, stream)

	// Many, because a retry that is due and a word that waits are taken in any order.
	for i := 0; i < 30 && len(k.requests) == 0; i++ {
		words.Events <- fsnotify.Event{Name: p.kubeletSocket(), Op: fsnotify.Create}
	}
	if got := len(k.requests); got != 0 {
		t.Errorf("registered %d more times with the same kubelet", got)
	}

	k.grpc.Stop()
	again := startKubelet(t, n.pluginDir)
	words.Events <- fsnotify.Event{Name: p.kubeletSocket(), Op: fsnotify.Create}
	again.registered(t, n.pluginDir)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestStopRemovesTheSocket(t *testing.T) {
	n := newNode(t, 2)
	k := startKubelet(t, n.pluginDir)
	n.start(t)
	stream := watch(t, k.registered(t, n.pluginDir))
	receive(t, stream)
	n.stop()
	if err := <-n.done; err != nil {
		t.Errorf("ended with %v, want success", err)
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream outlived the plugin")
	}
	entries, err := os.ReadDir(n.pluginDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"kubelet.sock"}) {
		t.Errorf("left in the folder: %v, want the kubelet's socket alone", names)
	}
}

func TestNodeWithoutGPUs(t *testing.T) {
	n := newNode(t, 0)
	n.failOnInitError = true
	n.start(t)
	if err := <-n.done; err == nil {
		t.Error("succeeded, want the error that was asked for")
	}

	idle := newNode(t, 0)
	k := startKubelet(t, idle.pluginDir)
	idle.start(t)
	idle.stop()
	if err := <-idle.done; err != nil {
		t.Errorf("idle plugin ended with %v", err)
	}
	if len(k.requests) > 0 {
		t.Error("a plugin without GPUs has registered")
	}
}

func TestAbsentSetIsANodeWithoutGPUs(t *testing.T) {
	n := newNode(t, 1)
	if err := os.Remove(n.setFile); err != nil {
		t.Fatal(err)
	}
	n.failOnInitError = true
	n.start(t)
	if err := <-n.done; err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("ended with %v, want that there are no GPUs", err)
	}
}
