package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// A server answers the kubelet on one socket.
type server struct {
	pluginapi.UnimplementedDevicePluginServer
	make      Make
	inventory *inventory
	grpc      *grpc.Server
	stopped   chan struct{}
	serving   sync.WaitGroup
}

// serve listens on socket, in place of what an earlier plugin left there.
func serve(socket string, m Make, inv *inventory) (*server, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	s := &server{make: m, inventory: inv, grpc: grpc.NewServer(), stopped: make(chan struct{})}
	pluginapi.RegisterDevicePluginServer(s.grpc, s)
	s.serving.Go(func() {
		// Serve returns an error only if the listener breaks under it; the
		// kubelet then sees the plugin as gone, like any other that died.
		_ = s.grpc.Serve(listener)
	})
	return s, nil
}

// stop ends the streams and removes the socket.
func (s *server) stop() {
	close(s.stopped)
	s.grpc.Stop()
	s.serving.Wait()
}

// register announces the socket to the kubelet that serves on its own.
func register(ctx context.Context, m Make, kubelet string) error {
	conn, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("dial %s: %w", kubelet, err)
	}
	defer conn.Close()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     m.Socket,
		ResourceName: m.Resource,
		Options:      &pluginapi.DevicePluginOptions{},
	})
	if err != nil {
		return fmt.Errorf("register %s with %s: %w", m.Resource, kubelet, err)
	}
	return nil
}

// GetDevicePluginOptions asks the kubelet for nothing beyond the plain protocol.
func (s *server) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

// ListAndWatch sends all devices, at once and whenever one's health changed.
func (s *server) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		devices, outdated := s.inventory.watch()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-outdated:
		case <-stream.Context().Done():
			return nil
		case <-s.stopped:
			return nil
		}
	}
}

// Allocate names the GPUs to the container as the vendor's plugin does, by its
// environment, and mounts their files, which stand for the device nodes.
func (s *server) Allocate(_ context.Context, req *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	resp := &pluginapi.AllocateResponse{}
	for _, container := range req.ContainerRequests {
		answer := &pluginapi.ContainerAllocateResponse{}
		if s.make.Variable != "" {
			answer.Envs = map[string]string{s.make.Variable: strings.Join(container.DevicesIds, ",")}
		}
		for _, id := range container.DevicesIds {
			g, known := s.inventory.find(id)
			if !known {
				return nil, status.Errorf(codes.InvalidArgument, "allocate %s: unknown device %s", s.make.Resource, id)
			}
			answer.Mounts = append(answer.Mounts, &pluginapi.Mount{
				ContainerPath: filepath.Join(gpu.VisibleDir, gpu.FileName(g.UUID)),
				HostPath:      filepath.Join(gpu.FilesDir, gpu.FileName(g.UUID)),
				ReadOnly:      true,
			})
		}
		resp.ContainerResponses = append(resp.ContainerResponses, answer)
	}
	return resp, nil
}
