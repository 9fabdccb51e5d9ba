package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// The shim is this program again, started by the launcher in new namespaces. It gets shimInput as
// JSON on one descriptor and answers on another: shimReady right before the command takes its place,
// then, if that fails, or before it, if something else does, what went wrong.
const (
	shimCommand  = "cri-shim"
	shimSpecFD   = 3
	shimStatusFD = 4
	shimReady    = "ready\n"
)

type shimInput struct {
	RootDir    string            `json:"rootDir"`
	CommandDir string            `json:"commandDir"`
	Files      map[string]string `json:"files"`
	Spec       *specs.Spec       `json:"spec"`
}

// cutReady returns the shim's error, if it reported one.
func cutReady(answer string) (msg string, failed bool) {
	msg = strings.TrimPrefix(answer, shimReady)
	return msg, msg != ""
}

// Shim is the hidden command of a container's first process. On success it does not return: the
// container's command has taken its place.
func Shim(context.Context, []string, io.Writer, io.Writer) error {
	// The parent-death signal and no-new-privileges belong to a thread, and must be those of the
	// thread that becomes the command.
	runtime.LockOSThread()
	// The command must not inherit them; the closed status descriptor tells the launcher that it runs.
	syscall.CloseOnExec(shimSpecFD)
	syscall.CloseOnExec(shimStatusFD)
	answer := os.NewFile(shimStatusFD, "status")
	in := os.NewFile(shimSpecFD, "spec")
	if answer == nil || in == nil {
		return fmt.Errorf("%s is started by the CRI server only", shimCommand)
	}
	var input shimInput
	if err := json.NewDecoder(in).Decode(&input); err != nil {
		return fmt.Errorf("%s: %w", shimCommand, err)
	}
	err := enter(input, answer)
	fmt.Fprint(answer, err)
	return err
}

// enter turns this process into the container.
func enter(input shimInput, answer io.Writer) error {
	p := input.Spec.Process
	if err := buildRoot(input); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(input.Spec.Hostname)); err != nil {
		return fmt.Errorf("set hostname: %w", err)
	}
	if err := os.MkdirAll(p.Cwd, 0o755); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if input.Spec.Root.Readonly {
		if err := unix.MountSetattr(-1, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("read-only root: %w", err)
		}
	}
	if err := become(p); err != nil {
		return err
	}
	if err := os.Chdir(p.Cwd); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	path, err := lookPath(p.Args[0], p.Env)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(answer, shimReady); err != nil {
		return err
	}
	return fmt.Errorf("exec: %q: %w", p.Args[0], syscall.Exec(path, p.Args, p.Env))
}

// become takes the identity of the container's user.
func become(p *specs.Process) error {
	// The command of a user who is root has by its exec what the bounding set leaves, and that of
	// another user has none (capabilities(7), "Transformation of capabilities during execve").
	if p.Capabilities != nil {
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			// A kernel that is older than this list does not know the last of it.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("drop capability %d: %w", c, err)
			}
		}
	}
	groups := make([]int, 0, len(p.User.AdditionalGids))
	for _, g := range p.User.AdditionalGids {
		groups = append(groups, int(g))
	}
	if err := syscall.Setgroups(groups); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setgid(int(p.User.GID)); err != nil {
		return fmt.Errorf("set gid: %w", err)
	}
	if err := syscall.Setuid(int(p.User.UID)); err != nil {
		return fmt.Errorf("set uid: %w", err)
	}
	// A change of identity clears the parent-death signal, without which the container would
	// outlive a killed server.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("parent-death signal: %w", err)
	}
	if p.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no new privileges: %w", err)
		}
	}
	return nil
}

// lookPath finds a command by the container's own PATH. The errors are runc's.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if err := executable(name); err != nil {
			return "", fmt.Errorf("exec: %q: %w", name, err)
		}
		return name, nil
	}
	for _, e := range env {
		dirs, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			path := filepath.Join(dir, name)
			if filepath.IsAbs(path) && executable(path) == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("exec: %q: executable file not found in $PATH", name)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("stat %s: %w", path, err.(*os.PathError).Err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return os.ErrPermission
	}
	return nil
}
