package process

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

func setAttributes(attr *syscall.SysProcAttr, tied, isolated bool) error {
	if tied {
		attr.Pdeathsig = syscall.SIGKILL
	}
	if isolated {
		attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	}
	return nil
}

// startTime is the process's start in clock ticks since boot (proc(5), stat,
// field 22). It is an error if the process has ended, waited for or not.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// Field 2 is the command in parentheses and may hold anything.
	_, rest, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat: unexpected form", pid)
	}
	if state := fields[0][0]; state == 'Z' || state == 'X' {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return string(fields[19]), nil
}
