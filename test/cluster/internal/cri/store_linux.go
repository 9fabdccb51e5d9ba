package cri

import (
	"crypto/rand"
	"encoding/hex"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// store is the server's memory of sandboxes and containers. It does not outlive the server, as no
// container does.
type store struct {
	mu         sync.RWMutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
}

func newStore() *store {
	return &store{sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
}

// newID returns 64 hexadecimal digits, the form of container IDs everywhere.
func newID() string {
	var b [32]byte
	rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}

func (s *store) addSandbox(sb *sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sandboxes[sb.id] = sb
}

func (s *store) removeSandbox(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sandboxes, id)
}

// sandbox answers NotFound for an unknown id, by which the kubelet knows that it is gone.
func (s *store) sandbox(id string) (*sandbox, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sb, ok := s.sandboxes[id]; ok {
		return sb, nil
	}
	return nil, status.Errorf(codes.NotFound, "sandbox %q: not found", id)
}

func (s *store) listSandboxes() []*sandbox {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*sandbox, 0, len(s.sandboxes))
	for _, sb := range s.sandboxes {
		out = append(out, sb)
	}
	return out
}

func (s *store) addContainer(c *container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers[c.id] = c
}

func (s *store) removeContainer(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.containers, id)
}

// container answers NotFound for an unknown id, by which the kubelet knows that it is gone.
func (s *store) container(id string) (*container, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c, ok := s.containers[id]; ok {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "container %q: not found", id)
}

func (s *store) listContainers() []*container {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*container, 0, len(s.containers))
	for _, c := range s.containers {
		out = append(out, c)
	}
	return out
}

func (s *store) containersOf(sandboxID string) []*container {
	var out []*container
	for _, c := range s.listContainers() {
		if c.sandbox.id == sandboxID {
			out = append(out, c)
		}
	}
	return out
}

// matches says whether labels carry every pair of the selector.
func matches(selector, labels map[string]string) bool {
	for k, v := range selector {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}
