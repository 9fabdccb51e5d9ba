//go:build !linux

package process

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func setAttributes(_ *syscall.SysProcAttr, _, isolated bool) error {
	if isolated {
		return errors.New("mount and pid namespaces need Linux")
	}
	return nil
}

// startTime is the process's start as ps prints it. It is an error if the
// process has ended, waited for or not.
func startTime(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("process %d: %w", pid, err)
	}
	state, started, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !ok || strings.HasPrefix(state, "Z") {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return strings.TrimSpace(started), nil
}
