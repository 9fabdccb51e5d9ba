package checks

import (
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm076() Check {
	return Check{
		Code:       "DRM076",
		Title:      "What the driver remembers of earlier claims cannot be seen",
		Why:        "The driver keeps a checkpoint on each node. A claim that was deleted while the driver was away, or whose preparation failed, stays in it and holds its device for ever: the next pod that is given the device fails with \"already allocated to different claim\". The API shows nothing of it, so that it matters only where the driver has run before.",
		Fix:        "If the canary of a node fails with such a message: with no claim of the driver allocated on the node, remove /var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json there while the driver's pod is away.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu#840", "kubernetes-sigs/dra-driver-nvidia-gpu#1278", "cmd/gpu-kubelet-plugin/checkpoint.go"},
		Operations: []string{Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			if !in.nvidia() {
				return nil
			}
			// A journal forgets the nodes of a rollback, but not that there was one.
			j := in.Snapshot.Journal(in.Pool.Name)
			back := j != nil && in.Pool.Name != "" && slices.ContainsFunc(j.Runs, func(r cluster.RunRecord) bool { return r.Operation == Rollback })
			seen := nodeGroups{}
			for _, v := range in.targets() {
				if state, _ := in.Gate.StateOf(v.Node.Labels); state != gate.Plugin {
					continue // the run that is under way knows
				}
				runs := slices.ContainsFunc(in.Inventory.DriversFor(in.Driver), func(d gate.DriverDaemonSet) bool {
					return among(d.Nodes, v.Node.Name) && !slices.Contains(d.Lacks, in.Driver)
				})
				if runs || back {
					seen.add("the driver has run here before: whether its checkpoint still holds a claim of then cannot be seen from the API", v.Node.Name)
				}
			}
			return seen.findings(in, Finding{
				Code: "DRM076", Severity: Info,
				Remedy: "the canary on each node shows it before the node is opened; `dramigrate explain DRM076` says what to do then",
			})
		},
	}
}
