package cri

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer resolves all that the container needs (image, command, CDI devices) without
// starting anything, so that what is wrong shows as CreateContainerError, as with containerd.
func (s *server) CreateContainer(_ context.Context, r *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	sb, err := s.store.sandbox(r.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	config := r.GetConfig()
	c := &container{
		id:        newID(),
		sandbox:   sb,
		config:    config,
		createdAt: time.Now(),
		exited:    make(chan struct{}),
		state:     runtimeapi.ContainerState_CONTAINER_CREATED,
		resources: config.GetLinux().GetResources(),
	}
	if config.GetMetadata() == nil {
		return nil, status.Errorf(codes.InvalidArgument, "pod %s: container config without metadata", sb.name())
	}
	if sb.state() != runtimeapi.PodSandboxState_SANDBOX_READY {
		return nil, fmt.Errorf("container %s: sandbox %s is not running", c.name(), sb.id)
	}
	var entrypoint string
	if c.image, entrypoint = s.images.find(config.GetImage().GetImage()); c.image == nil {
		return nil, status.Errorf(codes.NotFound, "container %s: image %q: not found", c.name(), config.GetImage().GetImage())
	}
	if c.stopSignal, err = unixSignal(config.GetStopSignal()); err != nil {
		return nil, fmt.Errorf("container %s: %w", c.name(), err)
	}
	if c.spec, err = containerSpec(s.cfg, sb, config, entrypoint); err != nil {
		return nil, fmt.Errorf("container %s: failed to generate container spec: %w", c.name(), err)
	}
	if err = s.devices.inject(c.spec, config.GetCDIDevices()); err != nil {
		return nil, fmt.Errorf("container %s: failed to generate container spec: %w", c.name(), err)
	}
	if c.files, err = rootFiles(sb, c.spec.Hostname); err != nil {
		return nil, fmt.Errorf("container %s: %w", c.name(), err)
	}
	if c.streams, err = newContainerStreams(c.logPath()); err != nil {
		return nil, fmt.Errorf("container %s: log: %w", c.name(), err)
	}
	s.store.addContainer(c)
	return &runtimeapi.CreateContainerResponse{ContainerId: c.id}, nil
}

func (s *server) StartContainer(_ context.Context, r *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	c, err := s.store.container(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return nil, status.Error(codes.Unavailable, "the CRI server is stopping")
	}
	c.sandbox.mu.RLock()
	defer c.sandbox.mu.RUnlock()
	if c.sandbox.stopped {
		return nil, fmt.Errorf("container %s: sandbox %s is not running", c.name(), c.sandbox.id)
	}
	if err := c.start(s.launcher); err != nil {
		return nil, err
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

// StopContainer does nothing for a container that is unknown or has ended, as the CRI demands.
func (s *server) StopContainer(ctx context.Context, r *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	if c, err := s.store.container(r.GetContainerId()); err == nil {
		if err := c.stop(ctx.Done(), time.Duration(r.GetTimeout())*time.Second); err != nil {
			return nil, err
		}
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

func (s *server) RemoveContainer(_ context.Context, r *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	if c, err := s.store.container(r.GetContainerId()); err == nil {
		if err := killAll([]*container{c}); err != nil {
			return nil, err
		}
		s.forget(c)
	}
	return &runtimeapi.RemoveContainerResponse{}, nil
}

// forget drops the record of a container that does not run.
func (s *server) forget(c *container) {
	c.streams.close()
	s.store.removeContainer(c.id)
}

func (s *server) ListContainers(_ context.Context, r *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	f := r.GetFilter()
	out := &runtimeapi.ListContainersResponse{}
	for _, c := range s.store.listContainers() {
		item := c.summary()
		if f.GetId() != "" && f.GetId() != item.Id ||
			f.GetPodSandboxId() != "" && f.GetPodSandboxId() != item.PodSandboxId ||
			f.GetState() != nil && f.GetState().GetState() != item.State ||
			!matches(f.GetLabelSelector(), item.Labels) {
			continue
		}
		out.Containers = append(out.Containers, item)
	}
	return out, nil
}

func (s *server) ContainerStatus(_ context.Context, r *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := s.store.container(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatusResponse{Status: c.status()}, nil
}

// UpdateContainerResources remembers the limits, which the kubelet reads back. None is enforced.
func (s *server) UpdateContainerResources(_ context.Context, r *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	c, err := s.store.container(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resources = r.GetLinux()
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// ReopenContainerLog is called after the kubelet has moved the log file away.
func (s *server) ReopenContainerLog(_ context.Context, r *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	c, err := s.store.container(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	if c.running() == nil {
		return nil, fmt.Errorf("container %s is not running", c.name())
	}
	if err := c.streams.reopen(); err != nil {
		return nil, fmt.Errorf("container %s: log: %w", c.name(), err)
	}
	return &runtimeapi.ReopenContainerLogResponse{}, nil
}
