package node

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// Missing says what this machine and user lack to run real kubelets, one
// sentence an item; nothing if all is there.
func Missing() []string {
	var out []string
	if uid := os.Geteuid(); uid != 0 {
		out = append(out, fmt.Sprintf("not root (uid %d): a node needs mount and pid namespaces of its own", uid))
	} else if !hasCapability(unix.CAP_SYS_ADMIN) {
		out = append(out, "no CAP_SYS_ADMIN: a node needs mount and pid namespaces of its own (in a container: run it privileged)")
	}
	for _, name := range []string{"mount", "umount"} {
		if _, err := exec.LookPath(name); err != nil {
			out = append(out, fmt.Sprintf("the command %s is not in PATH: the kubelet mounts token and config volumes with it", name))
		}
	}
	for path, why := range map[string]string{
		"/dev/kmsg":      "the kubelet watches it for processes killed for lack of memory",
		"/sys/fs/cgroup": "the kubelet reads the machine's capacity from control groups",
	} {
		if _, err := os.Stat(path); err != nil {
			out = append(out, fmt.Sprintf("%s: %v: %s", path, err, why))
		}
	}
	return out
}

// hasCapability reads the effective set (proc(5), status, CapEff).
func hasCapability(bit int) bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(status, []byte("CapEff:"))
	if !ok {
		return false
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return false
	}
	set, err := strconv.ParseUint(string(fields[0]), 16, 64)
	return err == nil && set&(1<<bit) != 0
}
