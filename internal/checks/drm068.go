package checks

import (
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm068() Check {
	return Check{
		Code:       "DRM068",
		Title:      "Two DaemonSets would run one driver on a node",
		Why:        "A driver's name is registered with the kubelet once a node. Of two programs that serve the same name each takes the registration, the sockets and the checkpoint from the other, and both publish the same devices. It comes about when the NVIDIA chart is installed again under its new name, or beside the operator's driver.",
		Fix:        "Leave one of them: uninstall the other release, or keep the two to different nodes.",
		Sources:    []string{"pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go, v1.37.2", "kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, nameOverride"},
		Operations: []string{Prepare, Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			drivers := slices.DeleteFunc(in.Inventory.DriversFor(in.Driver), func(d gate.DriverDaemonSet) bool {
				return slices.Contains(d.Lacks, in.Driver)
			})
			if len(drivers) < 2 {
				return nil
			}
			double := nodeGroups{}
			for _, v := range in.targets() {
				node := in.Gate.With(v.Node, gate.DRA)
				var names []string
				for _, d := range drivers {
					if lands, _ := gate.Lands(d.DaemonSet, node); lands {
						names = append(names, daemonSetObject(d.DaemonSet))
					}
				}
				if len(names) > 1 {
					double.add(strings.Join(names, " and ")+" would both run "+in.Driver+" there", v.Node.Name)
				}
			}
			return double.findings(in, Finding{
				Code: "DRM068", Severity: Blocker,
				Remedy: "leave one of them: `helm list -A` shows whose they are; or keep them to different nodes by their node selectors",
			})
		},
	}
}
