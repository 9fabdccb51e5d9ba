package cri

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	testImage = "registry.example/tools/tester"
	// patience is how long a test waits for what must happen; nothing takes a tenth of it.
	patience = 30 * time.Second
)

// node is a CRI server under test, reached like a kubelet reaches it.
type node struct {
	t       *testing.T
	dir     string
	runtime runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	stop    func() // stops the server and waits for it
}

// newNode serves on a temporary socket until the test ends.
func newNode(t *testing.T) *node {
	t.Helper()
	cfg := newConfig(t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, cfg, slog.New(slog.NewTextHandler(io.Discard, nil))) }()
	n := connect(t, cfg)
	n.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("the server does not stop")
		}
	})
	t.Cleanup(n.stop)
	return n
}

// newConfig has a folder of its own, which must be removable in the end: nothing may be left mounted.
// It needs what real containers need: root on Linux.
func newConfig(t *testing.T) Config {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("running containers needs root")
		}
		t.Skip("running containers needs root")
	}
	// t.TempDir's names are too long for a unix socket.
	dir, err := os.MkdirTemp("", "cri")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("left over: %v", err)
		}
	})
	commands := filepath.Join(dir, "commands")
	if err := os.Mkdir(commands, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(commands, testerCommand)); err != nil {
		t.Fatal(err)
	}
	return Config{
		Socket:     filepath.Join(dir, "cri.sock"),
		StateDir:   filepath.Join(dir, "state"),
		CommandDir: commands,
		Images:     map[string]string{testImage: testerCommand},
		APIHost:    "127.9.8.7",
		APIPort:    6789,
		PodIP:      "127.0.0.1",
		CDIDirs:    []string{filepath.Join(dir, "cdi")},
	}
}

// connect is a client of the server at the config's socket, which may not be there yet.
func connect(t *testing.T, cfg Config) *node {
	t.Helper()
	n := &node{t: t, dir: filepath.Dir(cfg.Socket)}
	conn, err := grpc.NewClient("passthrough:cri", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", cfg.Socket)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	n.runtime = runtimeapi.NewRuntimeServiceClient(conn)
	n.images = runtimeapi.NewImageServiceClient(conn)
	return n
}

func (n *node) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	n.t.Cleanup(cancel)
	return ctx
}

func (n *node) sandboxConfig(name string) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Uid: "uid-" + name, Namespace: "default"},
		Hostname:     name,
		LogDirectory: filepath.Join(n.dir, "logs", newID()),
		DnsConfig:    &runtimeapi.DNSConfig{Servers: []string{"192.0.2.53"}, Searches: []string{"svc.example"}},
	}
}

func (n *node) sandbox(name string) string {
	n.t.Helper()
	r, err := n.runtime.RunPodSandbox(n.ctx(), &runtimeapi.RunPodSandboxRequest{Config: n.sandboxConfig(name)})
	if err != nil {
		n.t.Fatalf("RunPodSandbox: %v", err)
	}
	return r.PodSandboxId
}

// config is a container of the test image whose process does the steps.
func (n *node) config(steps ...string) *runtimeapi.ContainerConfig {
	n.t.Helper()
	if _, err := n.images.PullImage(n.ctx(), &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: testImage + ":v1"}}); err != nil {
		n.t.Fatalf("PullImage: %v", err)
	}
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
		Image:    &runtimeapi.ImageSpec{Image: testImage + ":v1"},
		Args:     steps,
		LogPath:  "main/0.log",
	}
}

func (n *node) create(sandboxID string, config *runtimeapi.ContainerConfig) (string, error) {
	r, err := n.runtime.CreateContainer(n.ctx(), &runtimeapi.CreateContainerRequest{PodSandboxId: sandboxID, Config: config})
	return r.GetContainerId(), err
}

// start creates and starts the container.
func (n *node) start(sandboxID string, config *runtimeapi.ContainerConfig) string {
	n.t.Helper()
	id, err := n.create(sandboxID, config)
	if err != nil {
		n.t.Fatalf("CreateContainer: %v", err)
	}
	if _, err := n.runtime.StartContainer(n.ctx(), &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		n.t.Fatalf("StartContainer: %v", err)
	}
	return id
}

func (n *node) status(id string) *runtimeapi.ContainerStatus {
	n.t.Helper()
	r, err := n.runtime.ContainerStatus(n.ctx(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		n.t.Fatalf("ContainerStatus: %v", err)
	}
	return r.Status
}

// ended waits for the container's end.
func (n *node) ended(id string) *runtimeapi.ContainerStatus {
	n.t.Helper()
	var s *runtimeapi.ContainerStatus
	n.until("the container has ended", func() bool {
		s = n.status(id)
		return s.State == runtimeapi.ContainerState_CONTAINER_EXITED
	})
	return s
}

// until waits for a condition that must come true.
func (n *node) until(what string, ok func() bool) {
	n.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			n.t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// logLines are the lines of the container's log file as the kubelet reads it.
func (n *node) logLines(id string) []string {
	n.t.Helper()
	raw, err := os.ReadFile(n.status(id).LogPath)
	if err != nil {
		n.t.Fatalf("log: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

// output is what the container printed, without the log's own columns.
func (n *node) output(id string) []string {
	n.t.Helper()
	var out []string
	for _, line := range n.logLines(id) {
		if columns := strings.SplitN(line, " ", 4); len(columns) == 4 {
			out = append(out, columns[3])
		}
	}
	return out
}

// run runs the container to its end and returns its output.
func (n *node) run(config *runtimeapi.ContainerConfig) []string {
	n.t.Helper()
	id := n.start(n.sandbox("pod"), config)
	if s := n.ended(id); s.ExitCode != 0 || s.Reason != "Completed" {
		n.t.Errorf("ended with code %d, reason %s; want 0, Completed; output %q", s.ExitCode, s.Reason, n.output(id))
	}
	return n.output(id)
}

func (n *node) write(path, text string) string {
	n.t.Helper()
	path = filepath.Join(n.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
	return path
}
