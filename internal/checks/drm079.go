package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

func drm079() Check {
	return Check{
		Code:       "DRM079",
		Title:      "Something is not known of this vendor's devices",
		Why:        "The tool proves what it knows how to look at: that the driver publishes the very devices that the plugin had, and that a container sees the devices of its claim. For some vendors plugin and driver name a device differently, or no program is known that lists what a container sees. What is left is then less: the number of devices, and that the claim is allocated, reserved and served and its container starts.",
		Fix:        "Look yourself at the first node, before the others follow: the first batch is one node, and a long --soak leaves the time.",
		Sources:    []string{"ROCm/k8s-gpu-dra-driver, docs/driver-attributes.md", "intel/intel-device-plugins-for-kubernetes, cmd/gpu_plugin/gpu_plugin.go", "GKE docs, \"Set up dynamic resource allocation\""},
		Operations: []string{Prepare, Migrate, MigrateInto},
		Advises:    true,
		Needs:      []string{cluster.PartClasses},
		Run: func(in Input) []Finding {
			v, known := vendor.OfDriver(in.Driver)
			join := vendor.JoinOf(in.Driver)
			base := Finding{Code: "DRM079", Severity: Warning, Object: "driver/" + in.Driver}
			var out []Finding
			add := func(remedy, message string, args ...any) {
				f := base
				f.Message, f.Remedy = fmt.Sprintf(message, args...), remedy
				out = append(out, f)
			}
			switch {
			case in.Operation == MigrateInto: // the new pool's devices are compared with nobody's
			case !known:
				add("compare the IDs yourself: `kubectl get resourceslices -o yaml` against the plugin's log; the run stops at its first node if they differ",
					"nothing is known of this driver: its devices are compared with the plugin's by the attribute %s, as if it held the plugin's IDs", join.Attributes[0])
			case join.Key == vendor.NoKey:
				add("compare them yourself on the first node, by what `kubectl get resourceslices -o yaml` and the node say",
					"whether it publishes the very devices that the plugin had cannot be known, their number alone is compared: %s", join.Unknown)
			}
			if len(v.Look) == 0 {
				add("look into a pod of the first node yourself before the others follow (a long --soak leaves the time)",
					"no program is known that lists what a container sees of its devices: the canary proves the claim, its allocation and that the container starts, not what is in it")
			}
			return append(out, in.vendorsClass(base)...)
		},
	}
}

// vendorsClass is about the class that the driver's installation brings, if that carries
// another name than the plugin's resource.
func (in Input) vendorsClass(base Finding) []Finding {
	d, _ := vendor.DeviceOf(in.Resource, in.Driver)
	for i := range in.Snapshot.Classes {
		c := &in.Snapshot.Classes[i]
		if name := c.Spec.ExtendedResourceName; c.Name == d.Class && name != nil && *name != "" && *name != in.Resource {
			base.Severity, base.Object = Info, "deviceclass/"+c.Name
			base.Message = fmt.Sprintf("the driver's own class carries %s, not %s as the plugin does: it serves no pod that asks for %s", *name, in.Resource, in.Resource)
			base.Remedy = "leave it; the mapping is made by a class of its own"
			return []Finding{base}
		}
	}
	return nil
}
