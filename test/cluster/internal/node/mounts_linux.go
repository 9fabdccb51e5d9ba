package node

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// hidden are folders of the host that a kubelet writes to. In the node they are
// empty and vanish with it.
var hidden = []string{"/run", "/var/lib", "/var/log"}

// sysctls are the kernel settings that every kubelet changes (v1.37.2,
// pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables). They belong to the
// whole machine, so in a node they are plain files which take the change.
var sysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom",
	"kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// mountNode turns this process's mount namespace into the node's.
func mountNode(cfg initConfig) error {
	// First of all: whatever is mounted from here on must not reach the host.
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE); err != nil {
		return err
	}
	// The cluster's folder may be below one that is about to be hidden.
	clusterDir, err := unix.Open(cfg.ClusterDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", cfg.ClusterDir, err)
	}
	defer func() { _ = unix.Close(clusterDir) }()

	if err := mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return err
	}
	for _, key := range sysctls {
		if err := shadowSysctl(cfg.Dir, key); err != nil {
			return err
		}
	}
	for _, dir := range hidden {
		if err := mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
			return err
		}
	}
	if err := sameRun(); err != nil {
		return err
	}
	if _, err := os.Stat(cfg.ClusterDir); err != nil {
		if err := bind(fmt.Sprintf("/proc/self/fd/%d", clusterDir), cfg.ClusterDir); err != nil {
			return err
		}
	}
	for source, target := range map[string]string{
		cfg.Dir.Kubelet():  "/var/lib/kubelet",
		cfg.Dir.CDI():      "/run/cdi",
		cfg.Dir.Hardware(): gpu.NodeDir,
	} {
		if err := bind(source, target); err != nil {
			return err
		}
	}
	return nil
}

// sameRun makes /var/run the same as /run where it is not a symbolic link.
func sameRun() error {
	info, err := os.Lstat("/var/run")
	if err != nil {
		return fmt.Errorf("/var/run: %w", err)
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return nil
	}
	return bind("/run", "/var/run")
}

func shadowSysctl(dir Dir, key string) error {
	path := filepath.Join("/proc/sys", key)
	value, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil // the kubelet will say what it misses
	}
	if err != nil {
		return fmt.Errorf("kernel setting %s: %w", key, err)
	}
	shadow := dir.sysctl(filepath.Base(key))
	if err := os.WriteFile(shadow, value, 0o644); err != nil {
		return fmt.Errorf("kernel setting %s: %w", key, err)
	}
	return mount(shadow, path, "", unix.MS_BIND)
}

func bind(source, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return mount(source, target, "", unix.MS_BIND|unix.MS_REC)
}

func mount(source, target, fstype string, flags uintptr) error {
	if err := unix.Mount(source, target, fstype, flags, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}
