package gate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// What the tool writes on nodes, and how it marks what it makes.
const (
	// AllocationLabel is the own gate's label; see cluster.AllocationLabel.
	AllocationLabel = cluster.AllocationLabel
	// StateAnnotation holds a node's cluster.NodeState.
	StateAnnotation = cluster.StateAnnotation
	// SwitchingTaintKey is the key of the taint that keeps pods off a node while it
	// is switched. Other controllers uncordon nodes that they did not cordon; none
	// of them removes this.
	SwitchingTaintKey = "dramigrate.dev/switching"

	// DefaultNamespace is where journal, Leases and helper pods live.
	DefaultNamespace = "dramigrate-system"
	// FieldManager is the name under which the tool writes.
	FieldManager = "dramigrate"
	// ManagedByLabel with the value ManagedBy is on every object the tool creates.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "dramigrate"
)

// Folders below the kubelet's root by which DaemonSets are known for what they do.
const (
	// DevicePlugins is where device plugins register
	// (k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1, DevicePluginPath).
	DevicePlugins = "device-plugins"
	// PluginsRegistry is where DRA and CSI drivers register
	// (k8s.io/kubelet/pkg/apis/pluginregistration/v1).
	PluginsRegistry = "plugins_registry"
)

// Values of AllocationLabel. Absent means that the device plugin runs.
const (
	ValueSwitching = "switching"
	ValueDRA       = "dra"
)

// SwitchingTaint is the taint of a node that is being switched.
func SwitchingTaint() corev1.Taint {
	return corev1.Taint{Key: SwitchingTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// IsSwitchingTaint recognises it among a node's taints.
func IsSwitchingTaint(t corev1.Taint) bool {
	return t.Key == SwitchingTaintKey && t.Effect == corev1.TaintEffectNoSchedule
}

// AutoscalerAnnotations tell cluster autoscalers to leave a node alone while it is
// closed: it looks empty, and the autoscaler would remove it (Cluster Autoscaler
// FAQ; Karpenter, "Disruption").
func AutoscalerAnnotations() map[string]string {
	return map[string]string{
		"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
		"karpenter.sh/do-not-disrupt":                          "true",
	}
}
