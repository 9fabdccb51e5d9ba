package cri

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("output:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestEnvironmentAndIdentity(t *testing.T) {
	n := newNode(t)
	config := n.config("pid", "hostname", "cwd", "ids", "env=COLOUR", "env=HOSTNAME",
		"env=KUBERNETES_SERVICE_HOST", "env=KUBERNETES_SERVICE_PORT", "cat=/etc/resolv.conf")
	config.WorkingDir = "/srv/app"
	config.Envs = []*runtimeapi.KeyValue{
		{Key: "COLOUR", Value: []byte("green")},
		{Key: "KUBERNETES_SERVICE_HOST", Value: []byte("10.96.0.1")},
		{Key: "KUBERNETES_SERVICE_PORT", Value: []byte("443")},
	}
	config.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
		RunAsUser: &runtimeapi.Int64Value{Value: 1234}, RunAsGroup: &runtimeapi.Int64Value{Value: 2345},
		SupplementalGroups: []int64{3456},
	}}
	expect(t, n.run(config),
		"pid 1", "hostname pod", "cwd /srv/app", "ids 1234 2345 [3456]", "COLOUR=green", "HOSTNAME=pod",
		"KUBERNETES_SERVICE_HOST=127.9.8.7", "KUBERNETES_SERVICE_PORT=6789",
		"/etc/resolv.conf: nameserver 192.0.2.53", "search svc.example", "")
}

// Root without capabilities is the owner of what is root's and has no right beyond that.
func TestAllCapabilitiesDropped(t *testing.T) {
	n := newNode(t)
	foreign := n.write("data/foreign", "not root's")
	if err := os.Chown(foreign, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		security *runtimeapi.LinuxContainerSecurityContext
		want     string
	}{
		{nil, "/data/foreign: not root's"},
		{&runtimeapi.LinuxContainerSecurityContext{Capabilities: &runtimeapi.Capability{DropCapabilities: []string{"ALL"}}}, "error: open /data/foreign: permission denied"},
		{&runtimeapi.LinuxContainerSecurityContext{Privileged: true, Capabilities: &runtimeapi.Capability{DropCapabilities: []string{"ALL"}}}, "/data/foreign: not root's"},
	} {
		config := n.config("ids", "cat=/data/foreign")
		config.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: filepath.Dir(foreign)}}
		config.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: tt.security}
		got := n.run(config)
		if len(got) != 2 && len(got) != 3 || got[0] != "ids 0 0 []" || !slices.Contains(got, tt.want) {
			t.Errorf("%v: output %q, want root's and %q", tt.security, got, tt.want)
		}
	}
}

func TestMounts(t *testing.T) {
	n := newNode(t)
	shared := filepath.Dir(n.write("shared/from-node", "hello"))
	token := n.write("token", "secret")
	termination := n.write("termination", "")
	config := n.config("cat=/deep/in/nowhere/from-node", "write=/deep/in/nowhere/sub/from-container",
		"write=/deep/in/nowhere/ro/x", "cat=/run/secrets/token", "write=/dev/termination-log")
	config.Mounts = []*runtimeapi.Mount{
		{ContainerPath: "/deep/in/nowhere/ro", HostPath: filepath.Dir(n.write("ro/file", "")), Readonly: true},
		{ContainerPath: "/deep/in/nowhere", HostPath: shared},
		{ContainerPath: "/var/run/secrets/token", HostPath: token, Readonly: true},
		{ContainerPath: "/dev/termination-log", HostPath: termination},
	}
	expect(t, n.run(config),
		"/deep/in/nowhere/from-node: hello",
		"error: open /deep/in/nowhere/ro/x: read-only file system",
		"/run/secrets/token: secret")
	for _, path := range []string{termination, filepath.Join(shared, "sub/from-container")} {
		if raw, err := os.ReadFile(path); err != nil || string(raw) != "written in the container" {
			t.Errorf("%s on the node: %q, %v; want what the container wrote", path, raw, err)
		}
	}
}

func TestHostIsNotTouched(t *testing.T) {
	n := newNode(t)
	before := mounts(t)
	paths := []string{
		"/etc/dramigrate-cri-test", "/opt/dramigrate-cri-test", "/var/lib/dramigrate-cri-test",
		"/dev/dramigrate-cri-test", "/tmp/dramigrate-cri-test", "/dramigrate-cri-test",
	}
	var steps []string
	for _, p := range paths {
		steps = append(steps, "write="+p+"/f")
	}
	// The container sees neither the host's files nor its programs, and cannot change its libraries.
	steps = append(steps, "ls=/home", "ls=/usr/bin/", "cat="+filepath.Join(n.dir, "secret"), "write=/usr/lib/dramigrate-cri-test")
	n.write("secret", "of the host")
	expect(t, n.run(n.config(steps...)),
		"/home: []", "/usr/bin/: [tester]",
		filepath.Join(n.dir, "secret")+": ",
		"error: open "+filepath.Join(n.dir, "secret")+": no such file or directory",
		"error: open /usr/lib/dramigrate-cri-test: read-only file system")
	for _, p := range append(paths, "/usr/lib/dramigrate-cri-test") {
		if _, err := os.Lstat(p); !os.IsNotExist(err) {
			t.Errorf("%s is on the host (%v)", p, err)
		}
	}
	if after := mounts(t); after != before {
		t.Errorf("mounts of the host changed from\n%s\nto\n%s", before, after)
	}
}

func mounts(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestReadOnlyRoot(t *testing.T) {
	n := newNode(t)
	config := n.config("write=/etc/x", "write=/data/x")
	config.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: filepath.Dir(n.write("data/y", ""))}}
	config.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{ReadonlyRootfs: true}}
	expect(t, n.run(config), "error: open /etc/x: read-only file system")
}

func TestMissingHostPath(t *testing.T) {
	n := newNode(t)
	config := n.config()
	missing := filepath.Join(n.dir, "not-there")
	config.Mounts = []*runtimeapi.Mount{{ContainerPath: "/x", HostPath: missing}}
	if _, err := n.create(n.sandbox("pod"), config); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("CreateContainer: %v; want an error that names %s", err, missing)
	}
}

func TestExitCode(t *testing.T) {
	n := newNode(t)
	s := n.ended(n.start(n.sandbox("pod"), n.config("exit=3")))
	if s.ExitCode != 3 || s.Reason != "Error" {
		t.Errorf("exit code %d, reason %q; want 3, Error", s.ExitCode, s.Reason)
	}
	if s.CreatedAt == 0 || s.StartedAt < s.CreatedAt || s.FinishedAt < s.StartedAt {
		t.Errorf("times created %d, started %d, finished %d; want them in this order", s.CreatedAt, s.StartedAt, s.FinishedAt)
	}
}

func TestUnknownCommand(t *testing.T) {
	n := newNode(t)
	for command, want := range map[string]string{
		"bash":       `exec: "bash": executable file not found in $PATH`,
		"/bin/bash":  `exec: "/bin/bash": stat /bin/bash: no such file or directory`,
		"/etc/hosts": `exec: "/etc/hosts": permission denied`,
	} {
		config := n.config()
		config.Command = []string{command, "-c", "true"}
		id, err := n.create(n.sandbox("pod"), config)
		if err != nil {
			t.Fatalf("CreateContainer: %v", err)
		}
		_, err = n.runtime.StartContainer(n.ctx(), &runtimeapi.StartContainerRequest{ContainerId: id})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("StartContainer of %s: %v; want %s", command, err, want)
		}
		// The values that containerd reports for a container that could not be started.
		s := n.status(id)
		if s.State != runtimeapi.ContainerState_CONTAINER_EXITED || s.ExitCode != 128 || s.Reason != "StartError" || !strings.Contains(s.Message, want) {
			t.Errorf("%s: state %s, code %d, reason %q, message %q; want exited, 128, StartError and the error", command, s.State, s.ExitCode, s.Reason, s.Message)
		}
	}
}

func TestCommandByPath(t *testing.T) {
	n := newNode(t)
	config := n.config("echo=replaced by command and args")
	config.Command = []string{"/usr/bin/" + testerCommand, "echo=one"}
	config.Args = []string{"echo=two"}
	expect(t, n.run(config), "one", "two")
}
