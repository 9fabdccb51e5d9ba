package nvml

import (
	"fmt"
	"regexp"
	"strings"
)

// ParseCgroup finds a process' owner in the text of its /proc/PID/cgroup, of either
// version, written by the kubelet with the systemd or the cgroupfs driver
// (pkg/kubelet/cm/cgroup_manager_linux.go and pod_container_manager_linux.go, v1.37.2).
//
// Seen from a cgroup namespace that is not the host's, paths begin with "/..", without
// the parents that both have in common, and the namespace's own cgroup is "/". The
// latter says nothing about the owner.
func ParseCgroup(text string) Owner {
	var found Owner
	named := false
	for line := range strings.Lines(text) {
		// hierarchy-ID:controllers:path, where the path may hold colons (cgroups(7)).
		fields := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(fields) != 3 {
			return unknownOwner(fmt.Sprintf("not a line of a cgroup file: %q", line))
		}
		o, says := ownerOfPath(fields[2])
		named = named || says
		switch {
		case o.PodUID != "" && found.PodUID != "" && o.PodUID != found.PodUID:
			return unknownOwner(fmt.Sprintf("its cgroups are of two pods, %s and %s", found.PodUID, o.PodUID))
		case found.PodUID == "" && (o.PodUID != "" || found.ContainerID == ""):
			found = o
		case o.PodUID == found.PodUID && found.ContainerID == "":
			found.ContainerID = o.ContainerID
		}
	}
	switch {
	case found.PodUID != "":
		found.Kind = OwnerPod
	case found.ContainerID != "":
		found.Kind = OwnerContainer
	case named:
		found.Kind = OwnerHost
	default:
		return unknownOwner("its cgroup is the root of this cgroup namespace, which is the host's or a container's")
	}
	return found
}

var (
	// systemd's name of a slice holds those of its parents, and "_" for the UID's "-".
	podSlice = regexp.MustCompile(`^(?:[a-z]+-)*kubepods(?:-burstable|-besteffort)?-pod([0-9A-Za-z_.]+)\.slice$`)
	// The cgroupfs driver names the folder by the UID alone: a UUID, or the digest of a
	// static pod's manifest.
	podFolder = regexp.MustCompile(`^pod([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})$`)
	// A container is a scope of systemd's (cri-containerd-ID.scope, crio-ID.scope,
	// docker-ID.scope) or a folder.
	container = regexp.MustCompile(`^(?:[a-z-]+-)?([0-9a-f]{64})(?:\.scope)?$`)
)

// ownerOfPath takes the outermost pod, which is the one that this host's kubelet knows,
// and the outermost container in it. Without a pod it takes the outermost container. The
// second result is false for a path that says nothing.
func ownerOfPath(path string) (o Owner, says bool) {
	for element := range strings.SplitSeq(path, "/") {
		if element == "" || element == ".." {
			continue
		}
		says = true
		// Where containerd and the kubelet disagree about the driver, one element is
		// slice:prefix:container.
		parts := strings.Split(element, ":")
		if o.PodUID == "" {
			if uid := podUID(parts[0]); uid != "" {
				o = Owner{PodUID: uid}
			}
		}
		if m := container.FindStringSubmatch(parts[len(parts)-1]); m != nil && o.ContainerID == "" {
			o.ContainerID = m[1]
		}
	}
	return o, says
}

func podUID(element string) string {
	if m := podSlice.FindStringSubmatch(element); m != nil {
		return strings.ReplaceAll(m[1], "_", "-")
	}
	if m := podFolder.FindStringSubmatch(element); m != nil {
		return m[1]
	}
	return ""
}
