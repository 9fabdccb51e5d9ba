package cri

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// defaultPath is the PATH of containers whose image and pod set none, as in OCI images.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// simDir is the node's folder of simulated GPUs, and visibleDir the folder in which a container
// finds the GPUs that it was given, one file each: empty and private unless something is injected.
const (
	simDir     = "/run/nvidia-sim"
	visibleDir = simDir + "/visible"
)

// creatable are the trees in which a missing hostPath is created, as containerd does everywhere:
// those that are the node's own and not the machine's.
var creatable = [...]string{"/run/", "/var/run/", "/var/lib/", "/var/log/"}

// containerSpec turns the kubelet's config into an OCI runtime spec, the form that CDI edits and
// that the shim carries out. entrypoint is the image's command.
func containerSpec(cfg Config, sb *sandbox, c *runtimeapi.ContainerConfig, entrypoint string) (*specs.Spec, error) {
	security := c.GetLinux().GetSecurityContext()
	user, err := processUser(security)
	if err != nil {
		return nil, err
	}
	spec := &specs.Spec{
		Version:  specs.Version,
		Hostname: sb.config.GetHostname(),
		Root:     &specs.Root{Readonly: security.GetReadonlyRootfs()},
		Process: &specs.Process{
			Args:            append([]string{entrypoint}, c.GetArgs()...),
			Cwd:             c.GetWorkingDir(),
			User:            user,
			Terminal:        c.GetTty(),
			NoNewPrivileges: security.GetNoNewPrivs(),
		},
		Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.MountNamespace}, {Type: specs.UTSNamespace}}},
	}
	if dropsAll(security) {
		spec.Process.Capabilities = &specs.LinuxCapabilities{}
	}
	if len(c.GetCommand()) > 0 {
		spec.Process.Args = append(append([]string{}, c.GetCommand()...), c.GetArgs()...)
	}
	if spec.Process.Cwd == "" {
		spec.Process.Cwd = "/"
	}
	if spec.Hostname == "" {
		if spec.Hostname, err = os.Hostname(); err != nil {
			return nil, err
		}
	}
	switch mode := security.GetNamespaceOptions().GetPid(); mode {
	case runtimeapi.NamespaceMode_NODE:
	case runtimeapi.NamespaceMode_TARGET:
		return nil, fmt.Errorf("the pid namespace of another container cannot be joined")
	default:
		spec.Linux.Namespaces = append(spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.PIDNamespace})
	}
	spec.Process.Env = environment(cfg, spec.Hostname, c.GetEnvs())
	if spec.Mounts, err = specMounts(c.GetMounts()); err != nil {
		return nil, err
	}
	for _, d := range c.GetDevices() {
		dev, err := hostDevice(d)
		if err != nil {
			return nil, err
		}
		spec.Linux.Devices = append(spec.Linux.Devices, dev)
	}
	return spec, nil
}

// environment is the container's, in which the API server's own address takes the place of the
// service address.
func environment(cfg Config, hostname string, envs []*runtimeapi.KeyValue) []string {
	env := []string{"PATH=" + defaultPath, "HOSTNAME=" + hostname}
	set := func(key, value string) {
		for i, e := range env {
			if strings.HasPrefix(e, key+"=") {
				env[i] = key + "=" + value
				return
			}
		}
		env = append(env, key+"="+value)
	}
	for _, e := range envs {
		set(e.GetKey(), string(e.GetValue()))
	}
	if cfg.APIHost != "" {
		set("KUBERNETES_SERVICE_HOST", cfg.APIHost)
		set("KUBERNETES_SERVICE_PORT", strconv.Itoa(cfg.APIPort))
	}
	return env
}

// dropsAll says that a container is to have no capability. Without it, it has all.
func dropsAll(s *runtimeapi.LinuxContainerSecurityContext) bool {
	c := s.GetCapabilities()
	return !s.GetPrivileged() && len(c.GetAddCapabilities()) == 0 &&
		slices.ContainsFunc(c.GetDropCapabilities(), func(name string) bool { return strings.EqualFold(name, "ALL") })
}

// processUser knows users by number, and root by name: images here have no other.
func processUser(s *runtimeapi.LinuxContainerSecurityContext) (specs.User, error) {
	if name := s.GetRunAsUsername(); name != "" && name != "root" {
		return specs.User{}, fmt.Errorf("unable to find user %s: no matching entries in passwd file", name)
	}
	user := specs.User{
		UID: uint32(s.GetRunAsUser().GetValue()),
		GID: uint32(s.GetRunAsGroup().GetValue()),
	}
	for _, g := range s.GetSupplementalGroups() {
		user.AdditionalGids = append(user.AdditionalGids, uint32(g))
	}
	return user, nil
}

func specMounts(mounts []*runtimeapi.Mount) ([]specs.Mount, error) {
	out := []specs.Mount{{Type: "tmpfs", Source: "tmpfs", Destination: visibleDir, Options: []string{"mode=0755"}}}
	for _, m := range mounts {
		if m.GetImage().GetImage() != "" {
			return nil, fmt.Errorf("mount %s: image volumes are not supported", m.GetContainerPath())
		}
		if err := ensureHostPath(m.GetHostPath()); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.GetContainerPath(), err)
		}
		options := []string{"rbind"}
		switch {
		case m.GetRecursiveReadOnly():
			options = append(options, "rro")
		case m.GetReadonly():
			options = append(options, "ro")
		}
		out = append(out, specs.Mount{
			Type: "bind", Source: m.GetHostPath(), Destination: filepath.Join("/", m.GetContainerPath()), Options: options,
		})
	}
	// A read-only mount of simDir leaves no way to make the mount point of visibleDir in it.
	if _, err := os.Stat(simDir); err == nil {
		if err := os.MkdirAll(visibleDir, 0o755); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func ensureHostPath(path string) error {
	_, err := os.Stat(path)
	if !os.IsNotExist(err) {
		return err
	}
	for _, tree := range creatable {
		if strings.HasPrefix(filepath.Clean(path), tree) {
			return os.MkdirAll(path, 0o755)
		}
	}
	return err
}

func hostDevice(d *runtimeapi.Device) (specs.LinuxDevice, error) {
	var st unix.Stat_t
	if err := unix.Stat(d.GetHostPath(), &st); err != nil {
		return specs.LinuxDevice{}, fmt.Errorf("device %s: %w", d.GetHostPath(), err)
	}
	mode := os.FileMode(st.Mode & 0o777)
	dev := specs.LinuxDevice{
		Path:     d.GetContainerPath(),
		Major:    int64(unix.Major(uint64(st.Rdev))),
		Minor:    int64(unix.Minor(uint64(st.Rdev))),
		FileMode: &mode,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		dev.Type = "c"
	case unix.S_IFBLK:
		dev.Type = "b"
	default:
		return dev, fmt.Errorf("device %s: not a device node", d.GetHostPath())
	}
	return dev, nil
}

// rootFiles are the small files that a runtime puts into every container, by path.
func rootFiles(sb *sandbox, hostname string) (map[string]string, error) {
	resolv, err := resolvConf(sb.config.GetDnsConfig())
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"/etc/group":         "root:x:0:\n",
		"/etc/hostname":      hostname + "\n",
		"/etc/hosts":         "127.0.0.1\tlocalhost\n",
		"/etc/nsswitch.conf": "hosts: files dns\n",
		"/etc/passwd":        "root:x:0:0:root:/root:/sbin/nologin\n",
		"/etc/resolv.conf":   resolv,
	}, nil
}

// resolvConf is the node's own for a pod that asks for no other.
func resolvConf(dns *runtimeapi.DNSConfig) (string, error) {
	if dns == nil {
		raw, err := os.ReadFile("/etc/resolv.conf")
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		return string(raw), nil
	}
	var b strings.Builder
	for _, server := range dns.GetServers() {
		fmt.Fprintf(&b, "nameserver %s\n", server)
	}
	if len(dns.GetSearches()) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(dns.GetSearches(), " "))
	}
	if len(dns.GetOptions()) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(dns.GetOptions(), " "))
	}
	return b.String(), nil
}
