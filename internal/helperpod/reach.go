package helperpod

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

// Reach is what a probe looks at besides the kubelet's socket, and how it gets there.
// The zero value asks the kubelet alone.
type Reach struct {
	// GPUs looks at the hardware by the driver's library. Without DriverRoot that takes
	// the NVIDIA container runtime, which hands all GPUs to a container that names them
	// in its environment; no device is asked for, so none is allocated.
	GPUs bool
	// RuntimeClass is the class of that runtime; empty where it is the default.
	RuntimeClass string
	// DriverRoot is the node's folder with the driver's libraries, for nodes without
	// the runtime. The pod is privileged then: the device nodes are kept from any other
	// container that was given no device.
	DriverRoot string
	// Checkpoints reads what the kubelet and the driver have written down, sees which
	// sockets are there and, by the names of their folders, which pods: a record outlives
	// its pod. ClaimState is the kubelet's record of claims, which is there from
	// Kubernetes 1.34 on; to mount it where it is not would hold the pod up.
	Checkpoints, ClaimState bool
	// CDI reads the device specifications that drivers write; their folder must be there.
	CDI bool
	// Processes names the pods behind the processes on the GPUs. It takes the host's
	// process table (hostPID).
	Processes bool
	// KubeletRoot is the kubelet's --root-dir; DefaultKubeletRoot if empty.
	KubeletRoot string
}

// DefaultKubeletRoot is the kubelet's own default.
const DefaultKubeletRoot = "/var/lib/kubelet"

// Folders that do not follow the kubelet's root: the device manager's is a constant
// (k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1, DevicePluginPath), CDI's is in the
// specification of CDI.
const (
	devicePlugins = "/var/lib/kubelet/device-plugins"
	cdiSpecs      = "/var/run/cdi"
)

// claimState is the file of the kubelet's claims (pkg/kubelet/cm/dra/manager.go,
// v1.37.2).
const claimState = "dra_manager_state"

// gpuMemory bounds a container that loads the driver's library, whose mappings of an
// eight-way server are far above what the rest of the probe takes.
const gpuMemory = "512Mi"

// root is the kubelet's root.
func (o Reach) root() string {
	if o.KubeletRoot == "" {
		return DefaultKubeletRoot
	}
	return path.Clean(o.KubeletRoot)
}

// args are those of node-probe.
func (o Reach) args(node string) []string {
	parts := []string{string(nodeprobe.AskKubelet)}
	if o.GPUs {
		parts = append(parts, string(nodeprobe.AskNVML))
	}
	if o.Checkpoints {
		parts = append(parts, string(nodeprobe.AskCheckpoints))
	}
	if o.CDI {
		parts = append(parts, string(nodeprobe.AskCDI))
	}
	args := []string{"node-probe", "--node", node, "--parts", strings.Join(parts, ","), "-o", "json"}
	if o.KubeletRoot != "" {
		args = append(args, "--kubelet-root", o.root(), "--socket", path.Join(o.root(), "pod-resources", path.Base(nodeprobe.DefaultSocket)))
	}
	if o.CDI {
		args = append(args, "--cdi-dir", cdiSpecs)
	}
	if o.GPUs && o.DriverRoot != "" {
		args = append(args, "--driver-root", path.Clean(o.DriverRoot))
	}
	if o.GPUs && o.Processes {
		args = append(args, "--processes")
	}
	return args
}

// mount shows the container a file or folder of the node, read-only.
type mount struct {
	name, path, at string
	kind           corev1.HostPathType
}

// mounts are the least that the looks need. Each has a type, for without one the
// runtime would make the folder where there is none. The kubelet makes all of its own
// when it starts (pkg/kubelet/kubelet.go, setupDataDirs, v1.37.2).
func (o Reach) mounts() []mount {
	var out []mount
	add := func(kind corev1.HostPathType, name, of, at string) { out = append(out, mount{name, of, at, kind}) }
	own := func(name string) {
		add(corev1.HostPathDirectory, strings.ReplaceAll(name, "_", "-"), path.Join(o.root(), name), path.Join(o.root(), name))
	}
	own("pod-resources")
	if o.Checkpoints {
		// node-probe looks for it below the kubelet's root.
		add(corev1.HostPathDirectory, "device-plugins", devicePlugins, path.Join(o.root(), path.Base(devicePlugins)))
		own("pods")
		own("plugins")
		own("plugins_registry")
		if o.ClaimState {
			file := path.Join(o.root(), claimState)
			add(corev1.HostPathFile, claimStateVolume, file, file)
		}
	}
	if o.CDI {
		add(corev1.HostPathDirectory, "cdi", cdiSpecs, cdiSpecs)
	}
	if o.GPUs && o.DriverRoot != "" {
		add(corev1.HostPathDirectory, driverRootVolume, path.Clean(o.DriverRoot), path.Clean(o.DriverRoot))
	}
	return out
}

// The names of volumes by which it is told what needs them.
const (
	claimStateVolume = "claim-state"
	driverRootVolume = "driver-root"
)

// Needs is what looks at a volume of a probe's pod: the records, the kubelet's claims
// alone, or the GPUs. It is empty for what is none of these, as the kubelet's socket,
// without which there is no answer.
func Needs(volume string) Look {
	switch volume {
	case driverRootVolume:
		return LookGPUs
	case claimStateVolume:
		return LookClaims
	case "device-plugins", "pods", "plugins", "plugins-registry":
		return LookRecords
	}
	return ""
}

// Look is a part of a Reach that can be done without.
type Look string

// The looks, in words for a person.
const (
	LookGPUs    Look = "the GPUs"
	LookRecords Look = "what kubelet and driver have on record"
	LookClaims  Look = "the kubelet's record of claims"
)

// Has says that the look is part of the reach.
func (o Reach) Has(l Look) bool {
	switch l {
	case LookGPUs:
		return o.GPUs
	case LookRecords:
		return o.Checkpoints
	case LookClaims:
		return o.Checkpoints && o.ClaimState
	}
	return false
}

// Without is the reach without a look and all that it takes.
func (o Reach) Without(l Look) Reach {
	switch l {
	case LookGPUs:
		o.GPUs, o.Processes, o.RuntimeClass, o.DriverRoot = false, false, "", ""
	case LookRecords:
		o.Checkpoints, o.ClaimState = false, false
	case LookClaims:
		o.ClaimState = false
	}
	return o
}

// probePod is a pod of node-probe.
func (r *Runner) probePod(p Purpose, node string, o Reach, w Wait) corev1.Pod {
	security := bare()
	// The kubelet's folders are root's with mode 0750, its sockets are root's to write.
	// Being their owner is enough; no capability is needed.
	security.RunAsUser, security.RunAsGroup = ptr.To[int64](0), ptr.To[int64](0)
	c := corev1.Container{
		Image:           r.config.Image,
		Args:            o.args(node),
		Resources:       helperResources(),
		SecurityContext: security,
	}
	if o.GPUs {
		c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(gpuMemory)
		if o.DriverRoot == "" {
			c.Env = []corev1.EnvVar{
				{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"},
				{Name: "NVIDIA_DRIVER_CAPABILITIES", Value: "utility"},
			}
		} else {
			c.SecurityContext = &corev1.SecurityContext{
				Privileged: ptr.To(true), ReadOnlyRootFilesystem: ptr.To(true),
				RunAsUser: security.RunAsUser, RunAsGroup: security.RunAsGroup,
			}
		}
	}
	var volumes []corev1.Volume
	for _, m := range o.mounts() {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: m.name, MountPath: m.at, ReadOnly: true})
		volumes = append(volumes, corev1.Volume{Name: m.name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: m.path, Type: ptr.To(m.kind)},
		}})
	}
	pod := r.pod(p, node, everywhere(), w, c)
	pod.Spec.Volumes = volumes
	pod.Spec.HostPID = o.GPUs && o.Processes
	if o.GPUs && o.RuntimeClass != "" {
		pod.Spec.RuntimeClassName = ptr.To(o.RuntimeClass)
	}
	return pod
}
