package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// OperatorObject tells a vendor's operator what to run. A field that is nil or empty is
// not set; what the operator does then is its own default.
type OperatorObject struct {
	APIVersion, Kind string
	Namespace        string // empty for kinds of the whole cluster
	Name             string
	UID              types.UID
	// State is status.state ("ready", "notReady").
	State string
	// DevicePlugin says whether the operator runs it: devicePlugin.enabled of a
	// ClusterPolicy.
	DevicePlugin *bool
	// DevicePluginConfig is the ConfigMap of the plugin's configurations
	// (devicePlugin.config.name).
	DevicePluginConfig string
	MIGStrategy        string // mig.strategy
	// SandboxWorkloads is sandboxWorkloads.enabled: devices may go to virtual machines.
	SandboxWorkloads *bool
	// Driver says whether the operator installs the kernel driver, AutoUpgrade whether
	// it replaces it by itself, which drains nodes.
	Driver, AutoUpgrade *bool
	// EvictionNodeLabel is the value of NODE_LABEL_FOR_GPU_POD_EVICTION of the driver
	// manager: the label by which it moves pods away before it replaces the driver.
	EvictionNodeLabel string
}

// evictionVariable names the label in the environment of NVIDIA's driver manager.
const evictionVariable = "NODE_LABEL_FOR_GPU_POD_EVICTION"

// ProjectOperator takes from an operator's object what the tool needs of it.
func ProjectOperator(object map[string]any) OperatorObject {
	spec := field(object, "spec")
	out := OperatorObject{
		APIVersion:         text(object, "apiVersion"),
		Kind:               text(object, "kind"),
		Namespace:          text(object, "metadata", "namespace"),
		Name:               text(object, "metadata", "name"),
		UID:                types.UID(text(object, "metadata", "uid")),
		State:              bounded(text(object, "status", "state"), maxReason),
		DevicePlugin:       flag(spec, "devicePlugin", "enabled"),
		DevicePluginConfig: text(spec, "devicePlugin", "config", "name"),
		MIGStrategy:        text(spec, "mig", "strategy"),
		SandboxWorkloads:   flag(spec, "sandboxWorkloads", "enabled"),
		Driver:             flag(spec, "driver", "enabled"),
		AutoUpgrade:        flag(spec, "driver", "upgradePolicy", "autoUpgrade"),
	}
	// A ClusterPolicy has the manager below the driver, an NVIDIADriver is the driver.
	for _, e := range append(slices.Clip(list(spec, "driver", "manager", "env")), list(spec, "manager", "env")...) {
		if text(e, "name") == evictionVariable && out.EvictionNodeLabel == "" {
			out.EvictionNodeLabel = text(e, "value")
		}
	}
	return out
}

// Object is an object that ProjectOperator makes o of again.
func (o *OperatorObject) Object() map[string]any {
	meta := map[string]any{"name": o.Name}
	spec := map[string]any{}
	put := func(in map[string]any, value any, path ...string) {
		for _, key := range path[:len(path)-1] {
			next, ok := in[key].(map[string]any)
			if !ok {
				next = map[string]any{}
				in[key] = next
			}
			in = next
		}
		in[path[len(path)-1]] = value
	}
	putText := func(in map[string]any, value string, path ...string) {
		if value != "" {
			put(in, value, path...)
		}
	}
	putFlag := func(value *bool, path ...string) {
		if value != nil {
			put(spec, *value, path...)
		}
	}
	out := map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "metadata": meta, "spec": spec}
	putText(meta, o.Namespace, "namespace")
	putText(meta, string(o.UID), "uid")
	putText(out, o.State, "status", "state")
	putFlag(o.DevicePlugin, "devicePlugin", "enabled")
	putText(spec, o.DevicePluginConfig, "devicePlugin", "config", "name")
	putText(spec, o.MIGStrategy, "mig", "strategy")
	putFlag(o.SandboxWorkloads, "sandboxWorkloads", "enabled")
	putFlag(o.Driver, "driver", "enabled")
	putFlag(o.AutoUpgrade, "driver", "upgradePolicy", "autoUpgrade")
	if o.EvictionNodeLabel != "" {
		put(spec, []any{map[string]any{"name": evictionVariable, "value": o.EvictionNodeLabel}}, "driver", "manager", "env")
	}
	return out
}
