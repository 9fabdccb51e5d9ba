package checks

import (
	"fmt"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm015() Check {
	return Check{
		Code:        "DRM015",
		Title:       "Prepare has not been done",
		Why:         "Pools move by node labels alone, which takes DaemonSets that heed the label: the plugin has to stay away from labelled nodes, the driver has to run on no others.",
		Fix:         "Run dramigrate prepare once for the cluster.",
		Sources:     []string{"pkg/controller/daemon/daemon_controller.go, v1.37.2"},
		Unskippable: true,
		Operations:  []string{Migrate},
		Needs:       []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			// An owner's DaemonSet that is not as it has to be is DRM003's to tell.
			told := func(o gate.Owner) bool { return o.Owned() && in.runs("DRM003") }
			base := Finding{Code: "DRM015", Severity: Blocker, Remedy: prepareRemedy(in)}
			if slices.Contains(in.reported, Prepare) {
				base.Severity = Info // it is asked about as well, and comes first
			}
			var out []Finding
			for _, p := range in.plugins() {
				if !p.Gate.Vendor && !gate.Excluded(p.DaemonSet) && !told(p.Owner) {
					f := base
					f.Object = daemonSetObject(p.DaemonSet)
					f.Message = fmt.Sprintf("the %s would stay on nodes with the label %s", p.Role, gate.AllocationLabel)
					out = append(out, f)
				}
			}
			drivers := in.Inventory.DriversFor(in.Driver)
			if len(drivers) == 0 {
				f := base
				f.Object = "driver/" + in.Driver
				f.Message = "no DaemonSet runs the driver " + in.Driver
				out = append(out, f)
			}
			for _, d := range drivers {
				if !gate.Placed(d.DaemonSet) && !told(d.Owner) {
					f := base
					f.Object = daemonSetObject(d.DaemonSet)
					f.Message = fmt.Sprintf("the driver is not kept to nodes with %s=%s", gate.AllocationLabel, gate.ValueDRA)
					out = append(out, f)
				}
			}
			return out
		},
	}
}

// prepareRemedy is the command that prepares: without a driver in the cluster it has to
// bring one.
func prepareRemedy(in Input) string {
	if len(in.Inventory.DriversFor(in.Driver)) == 0 {
		return "run `dramigrate prepare --driver-manifests DIR`"
	}
	return "run `dramigrate prepare`"
}
