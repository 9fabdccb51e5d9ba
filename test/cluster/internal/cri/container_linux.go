package cri

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Reasons and the exit code of a container that could not be started are containerd's, so that the
// kubelet reports what it reports in production.
const (
	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonStartError = "StartError"
	startErrorCode   = 128
)

// container is one container's record and, while it runs, its process.
type container struct {
	id         string
	sandbox    *sandbox
	config     *runtimeapi.ContainerConfig
	image      *runtimeapi.Image
	spec       *specs.Spec
	files      map[string]string
	stopSignal syscall.Signal
	createdAt  time.Time
	streams    *containerStreams
	exited     chan struct{} // closed when the container has ended

	mu         sync.Mutex
	state      runtimeapi.ContainerState
	starting   bool
	process    *process
	startedAt  time.Time
	finishedAt time.Time
	exitCode   int
	reason     string
	message    string
	resources  *runtimeapi.LinuxContainerResources
}

// name is namespace/pod/container, for error messages.
func (c *container) name() string {
	return c.sandbox.name() + "/" + c.config.GetMetadata().GetName()
}

// logPath is empty for a container without a log.
func (c *container) logPath() string {
	if c.config.GetLogPath() == "" || c.sandbox.config.GetLogDirectory() == "" {
		return ""
	}
	return filepath.Join(c.sandbox.config.GetLogDirectory(), c.config.GetLogPath())
}

// start runs the container's process and returns once its command has replaced the shim.
// An error leaves the container ended with the reason StartError.
func (c *container) start(l *launcher) error {
	c.mu.Lock()
	if c.state != runtimeapi.ContainerState_CONTAINER_CREATED || c.starting {
		defer c.mu.Unlock()
		return fmt.Errorf("container %s: cannot start in state %s", c.name(), c.state)
	}
	c.starting = true
	c.mu.Unlock()

	p, err := l.start(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting = false
	if err != nil {
		err = fmt.Errorf("container %s: unable to start container process: %w", c.name(), err)
		c.endLocked(startErrorCode, reasonStartError, err.Error())
		return err
	}
	c.process = p
	c.state = runtimeapi.ContainerState_CONTAINER_RUNNING
	c.startedAt = time.Now()
	go func() {
		code := p.wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		reason := reasonError
		if code == 0 {
			reason = reasonCompleted
		}
		c.endLocked(code, reason, "")
	}()
	return nil
}

func (c *container) endLocked(code int, reason, message string) {
	c.state = runtimeapi.ContainerState_CONTAINER_EXITED
	c.finishedAt = time.Now()
	c.exitCode, c.reason, c.message = code, reason, message
	c.streams.close()
	close(c.exited)
}

// running returns the process, or nil if the container does not run.
func (c *container) running() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	return c.process
}

func (c *container) currentState() runtimeapi.ContainerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *container) kill() {
	if p := c.running(); p != nil {
		p.signal(syscall.SIGKILL)
	}
}

// killTimeout is how long a killed process may take to be gone: the kernel needs milliseconds, unless
// the process hangs in a device or a network file system.
const killTimeout = 30 * time.Second

// awaitExit waits for the end of a container that was killed. One that never ran does not hold it up.
func (c *container) awaitExit() error {
	if c.running() == nil {
		return nil
	}
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	select {
	case <-c.exited:
		return nil
	case <-timer.C:
		return fmt.Errorf("container %s: still not gone %s after SIGKILL", c.name(), killTimeout)
	}
}

// stop sends the stop signal, waits for grace, then kills and waits for the end.
func (c *container) stop(done <-chan struct{}, grace time.Duration) error {
	p := c.running()
	if p == nil {
		return nil
	}
	if grace > 0 {
		p.signal(c.stopSignal)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.exited:
			return nil
		case <-timer.C:
		case <-done:
			return fmt.Errorf("container %s: stop: the caller gave up during the grace period", c.name())
		}
	}
	p.signal(syscall.SIGKILL)
	return c.awaitExit()
}

// killAll kills containers at once and waits for all of them.
func killAll(containers []*container) error {
	for _, c := range containers {
		c.kill()
	}
	var errs []error
	for _, c := range containers {
		errs = append(errs, c.awaitExit())
	}
	return errors.Join(errs...)
}

func (c *container) summary() *runtimeapi.Container {
	return &runtimeapi.Container{
		Id:           c.id,
		PodSandboxId: c.sandbox.id,
		Metadata:     c.config.GetMetadata(),
		Image:        c.config.GetImage(),
		ImageRef:     c.image.GetId(),
		ImageId:      c.image.GetId(),
		State:        c.currentState(),
		CreatedAt:    c.createdAt.UnixNano(),
		Labels:       c.config.GetLabels(),
		Annotations:  c.config.GetAnnotations(),
	}
}

func (c *container) status() *runtimeapi.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	user := c.spec.Process.User
	groups := make([]int64, 0, len(user.AdditionalGids))
	for _, g := range user.AdditionalGids {
		groups = append(groups, int64(g))
	}
	image := &runtimeapi.ImageSpec{
		Image:              c.config.GetImage().GetImage(),
		UserSpecifiedImage: c.config.GetImage().GetUserSpecifiedImage(),
	}
	if tags := c.image.GetRepoTags(); len(tags) > 0 {
		image.Image = tags[0]
	}
	ref := c.image.GetId()
	if digests := c.image.GetRepoDigests(); len(digests) > 0 {
		ref = digests[0]
	}
	return &runtimeapi.ContainerStatus{
		Id:          c.id,
		Metadata:    c.config.GetMetadata(),
		State:       c.state,
		CreatedAt:   c.createdAt.UnixNano(),
		StartedAt:   unixNano(c.startedAt),
		FinishedAt:  unixNano(c.finishedAt),
		ExitCode:    int32(c.exitCode),
		Image:       image,
		ImageRef:    ref,
		ImageId:     c.image.GetId(),
		Reason:      c.reason,
		Message:     c.message,
		Labels:      c.config.GetLabels(),
		Annotations: c.config.GetAnnotations(),
		Mounts:      c.config.GetMounts(),
		LogPath:     c.logPath(),
		Resources:   &runtimeapi.ContainerResources{Linux: c.resources},
		User: &runtimeapi.ContainerUser{Linux: &runtimeapi.LinuxContainerUser{
			Uid: int64(user.UID), Gid: int64(user.GID), SupplementalGroups: groups,
		}},
		StopSignal: criSignal(c.stopSignal),
	}
}

// unixNano is 0 for a time that has not come, as the CRI wants it.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
