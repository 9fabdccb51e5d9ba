// Package cri is the container runtime of a test node: a CRI server (runtime.v1) for a real kubelet
// that runs a fixed set of shipped commands as containers.
//
// A container is a real process with its own mount, pid and UTS namespaces and its own root
// filesystem: an empty tmpfs with the shipped commands, the host's shared libraries (read-only), a
// minimal /dev, and the mounts that the kubelet and CDI ask for. The host's filesystem is never
// written. Pods share the host's network; cgroups, seccomp and user namespaces are not applied, and
// of capabilities only that a container drops all of them, for what it starts with. Needs root and
// Linux 5.12 (mount_setattr).
package cri
