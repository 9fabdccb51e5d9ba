package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm039() Check {
	return Check{
		Code:       "DRM039",
		Title:      "A node has devices that are not healthy",
		Why:        "A device that the plugin has found faulty is in the node's capacity and not in allocatable. The driver has a judgement of its own: if it publishes the faulty device, its devices are not those that the plugin offered, and the run stops at that node. A plugin that restarts, as it does with every rollback, takes all devices for healthy again until the next fault: what was known is lost.",
		Fix:        "Have the faulty devices repaired, or take the node out of the pool. Write down which devices they are before the plugin or the driver restarts.",
		Sources:    []string{"NVIDIA/k8s-device-plugin#58, #111", "pkg/kubelet/cm/devicemanager/manager.go, GetCapacity, v1.37.2"},
		Operations: []string{Migrate, Rollback, Verify},
		Advises:    true,
		Needs:      []string{cluster.PartSlices},
		Run: func(in Input) []Finding {
			unhealthy, missing := nodeGroups{}, nodeGroups{}
			for _, v := range in.targets() {
				for _, r := range in.Resources {
					has, _ := v.Capacity(r)
					// With none left DRM026 asks why; after a switch capacity lags behind.
					if n, _ := v.Allocatable(r); n > 0 && n < has {
						unhealthy.add(fmt.Sprintf("%d of %d %s are allocatable: %d not healthy", n, has, r, has-n), v.Node.Name)
					}
				}
				if gone := in.noLongerPublished(v); len(gone) > 0 {
					missing.add(fmt.Sprintf("%s no longer publishes %s, which the plugin had when the node was switched", in.Driver, few(gone)), v.Node.Name)
				}
			}
			remedy := "note which they are: the plugin's log on the node names them"
			if in.Operation == Migrate {
				remedy += "; repair them, or take the node out of the pool"
			}
			lost := "after the rollback the plugin may offer them as healthy: keep this list, and see to the devices before pods get them"
			if in.Operation == Verify {
				lost = "see to the devices, `nvidia-smi -q` on the node; one that was taken out for good stays in the node's record until the pool is rolled back"
			}
			return append(
				unhealthy.findings(in, Finding{Code: "DRM039", Severity: Warning, Remedy: remedy}),
				missing.findings(in, Finding{Code: "DRM039", Severity: Warning, Remedy: lost})...)
		},
	}
}

// noLongerPublished are the devices that the plugin had before the node was switched,
// by their key, and that the driver does not publish on a node that is open. Without a
// key nothing tells which these are.
func (in Input) noLongerPublished(v cluster.NodeView) []string {
	st, err := cluster.ParseNodeState(v.Node)
	if in.Operation != Rollback && in.Operation != Verify || err != nil || st == nil || st.OpenedAt == nil {
		return nil
	}
	devices, incomplete := cluster.DevicesOf(v.Slices, in.Driver)
	if incomplete != "" {
		return nil // nothing is known; DRM041 says so
	}
	return devices.Diff(in.Driver, in.Resources, st.Advertised).Missing
}
