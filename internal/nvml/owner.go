package nvml

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Owner is where a process belongs to, by its cgroup.
type Owner struct {
	Kind OwnerKind `json:"kind"`
	// PodUID is the pod's metadata.uid. A static pod has another one in the API: there
	// this one stands in the annotation kubernetes.io/config.mirror.
	PodUID string `json:"podUID,omitempty"`
	// ContainerID is without the runtime's scheme.
	ContainerID string `json:"containerID,omitempty"`
	// Detail says why the owner is unknown.
	Detail string `json:"detail,omitempty"`
}

// OwnerKind is the kind of an [Owner].
type OwnerKind string

// The kinds. OwnerContainer is a container of no pod; OwnerHost is in neither.
const (
	OwnerPod       OwnerKind = "pod"
	OwnerContainer OwnerKind = "container"
	OwnerHost      OwnerKind = "host"
	OwnerUnknown   OwnerKind = "unknown"
)

func unknownOwner(why string) Owner { return Owner{Kind: OwnerUnknown, Detail: why} }

// ownerLookup finds a process' command and owner.
type ownerLookup func(pid int) (command string, owner Owner)

// ownersIn looks in a procfs. Between the library's list and the look a process may end
// and its PID be given anew; PIDs are not reused before the kernel has gone through all
// of them, so that in practice one that ended is gone and thus unknown.
func ownersIn(proc string) ownerLookup {
	if proc == "" {
		return func(int) (string, Owner) {
			return "", unknownOwner("the host's process table is not visible here: that takes hostPID")
		}
	}
	return func(pid int) (string, Owner) {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		text, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if errors.Is(err, fs.ErrNotExist) {
			return "", unknownOwner("no such process: it has ended, or this is not the host's process table")
		}
		if err != nil {
			return "", unknownOwner(err.Error())
		}
		// The name is a help to people alone: without it the owner is as good.
		command, _ := os.ReadFile(filepath.Join(dir, "comm"))
		return string(bytes.TrimSpace(command)), ParseCgroup(string(text))
	}
}
