package cri

import (
	"context"
	"log/slog"
	"net/url"
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
)

// server answers the runtime half of the CRI. Calls that it does not define answer Unimplemented;
// for GetContainerEvents and the Stream* calls the kubelet then falls back to the plain lists.
type server struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	cfg       Config
	log       *slog.Logger
	store     *store
	images    *imageService
	devices   *cdiInjector
	launcher  *launcher
	streaming streaming.Server

	// closing is held for reading while a container starts, so that close misses none.
	closing sync.RWMutex
	closed  bool
}

// newServer builds a server whose exec, attach and port-forward streams are reached at streamAddr.
func newServer(cfg Config, log *slog.Logger, streamAddr string) (*server, error) {
	devices, err := newCDIInjector(cfg.CDIDirs)
	if err != nil {
		return nil, err
	}
	launcher, err := newLauncher(cfg)
	if err != nil {
		return nil, err
	}
	s := &server{
		cfg:      cfg,
		log:      log,
		store:    newStore(),
		images:   newImageService(cfg),
		devices:  devices,
		launcher: launcher,
	}
	streams := streaming.DefaultConfig
	streams.BaseURL = &url.URL{Scheme: "http", Host: streamAddr, Path: "/"}
	s.streaming, err = streaming.NewServer(streams, streamRuntime{s})
	if err != nil {
		launcher.close()
		return nil, err
	}
	return s, nil
}

// close kills every container and waits for the kernel to take the processes down.
func (s *server) close() {
	s.closing.Lock()
	s.closed = true
	s.closing.Unlock()
	if err := killAll(s.store.listContainers()); err != nil {
		s.log.Error("stop", "error", err)
	}
	s.launcher.close()
}

func (s *server) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version:           "0.1.0", // of the kubelet's runtime API, fixed since Kubernetes 1.6
		RuntimeName:       "dramigrate-test",
		RuntimeVersion:    "0.1.0",
		RuntimeApiVersion: "v1",
	}, nil
}

func (s *server) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true},
			{Type: runtimeapi.NetworkReady, Status: true},
		}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{
			Name:     "",
			Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true},
		}},
		Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}, nil
}

// RuntimeConfig names the cgroup driver that the kubelet has to use. No container is put into a
// cgroup, so the driver that needs no systemd is the right one.
func (s *server) RuntimeConfig(context.Context, *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{
		Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS},
	}, nil
}

// UpdateRuntimeConfig takes the node's pod CIDR, which has no use where pods share the host's network.
func (s *server) UpdateRuntimeConfig(context.Context, *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}
