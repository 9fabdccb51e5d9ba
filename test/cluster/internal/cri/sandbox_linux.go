package cri

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandbox is a pod's frame: a record only, because the pod shares the host's network and its
// containers share no namespace with one another.
type sandbox struct {
	id        string
	config    *runtimeapi.PodSandboxConfig
	createdAt time.Time

	// mu is held for reading while a container of the sandbox starts, so that a stop, which writes,
	// finds every process.
	mu      sync.RWMutex
	stopped bool
}

func (sb *sandbox) namespaces() *runtimeapi.NamespaceOption {
	return sb.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

func (sb *sandbox) state() runtimeapi.PodSandboxState {
	sb.mu.RLock()
	defer sb.mu.RUnlock()
	if sb.stopped {
		return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return runtimeapi.PodSandboxState_SANDBOX_READY
}

// name is namespace/name, for error messages.
func (sb *sandbox) name() string {
	return sb.config.GetMetadata().GetNamespace() + "/" + sb.config.GetMetadata().GetName()
}

func (s *server) RunPodSandbox(_ context.Context, r *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	sb := &sandbox{id: newID(), config: r.GetConfig(), createdAt: time.Now()}
	if sb.config.GetMetadata() == nil {
		return nil, status.Error(codes.InvalidArgument, "sandbox config without metadata")
	}
	if h := r.GetRuntimeHandler(); h != "" {
		return nil, status.Errorf(codes.InvalidArgument, "pod %s: no runtime for %q is configured", sb.name(), h)
	}
	if u := sb.namespaces().GetUsernsOptions(); u != nil && u.GetMode() != runtimeapi.NamespaceMode_NODE {
		return nil, status.Errorf(codes.Unimplemented, "pod %s: user namespaces are not supported", sb.name())
	}
	if dir := sb.config.GetLogDirectory(); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("pod %s: log directory: %w", sb.name(), err)
		}
	}
	s.store.addSandbox(sb)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: sb.id}, nil
}

// StopPodSandbox kills what still runs; the kubelet has given containers their grace by then.
func (s *server) StopPodSandbox(_ context.Context, r *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	if sb, err := s.store.sandbox(r.GetPodSandboxId()); err == nil {
		if err := s.stopSandbox(sb); err != nil {
			return nil, err
		}
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (s *server) stopSandbox(sb *sandbox) error {
	sb.mu.Lock()
	sb.stopped = true
	sb.mu.Unlock()
	return killAll(s.store.containersOf(sb.id))
}

func (s *server) RemovePodSandbox(_ context.Context, r *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	if sb, err := s.store.sandbox(r.GetPodSandboxId()); err == nil {
		if err := s.stopSandbox(sb); err != nil {
			return nil, err
		}
		for _, c := range s.store.containersOf(sb.id) {
			s.forget(c)
		}
		s.store.removeSandbox(sb.id)
	}
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

func (s *server) PodSandboxStatus(_ context.Context, r *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	sb, err := s.store.sandbox(r.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	network := &runtimeapi.PodSandboxNetworkStatus{}
	if sb.namespaces().GetNetwork() != runtimeapi.NamespaceMode_NODE {
		network.Ip = s.cfg.PodIP
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
		Id:          sb.id,
		Metadata:    sb.config.GetMetadata(),
		State:       sb.state(),
		CreatedAt:   sb.createdAt.UnixNano(),
		Network:     network,
		Linux:       &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: sb.namespaces()}},
		Labels:      sb.config.GetLabels(),
		Annotations: sb.config.GetAnnotations(),
	}}, nil
}

func (s *server) ListPodSandbox(_ context.Context, r *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	f := r.GetFilter()
	out := &runtimeapi.ListPodSandboxResponse{}
	for _, sb := range s.store.listSandboxes() {
		state := sb.state()
		if f.GetId() != "" && f.GetId() != sb.id ||
			f.GetState() != nil && f.GetState().GetState() != state ||
			!matches(f.GetLabelSelector(), sb.config.GetLabels()) {
			continue
		}
		out.Items = append(out.Items, &runtimeapi.PodSandbox{
			Id:          sb.id,
			Metadata:    sb.config.GetMetadata(),
			State:       state,
			CreatedAt:   sb.createdAt.UnixNano(),
			Labels:      sb.config.GetLabels(),
			Annotations: sb.config.GetAnnotations(),
		})
	}
	return out, nil
}

// UpdatePodSandboxResources is part of an in-place resize; nothing is limited here.
func (s *server) UpdatePodSandboxResources(_ context.Context, r *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	if _, err := s.store.sandbox(r.GetPodSandboxId()); err != nil {
		return nil, err
	}
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}
