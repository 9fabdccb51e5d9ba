package checks

import (
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm080() Check {
	return Check{
		Code:       "DRM080",
		Title:      "A GPUCluster decides about the whole cluster",
		Why:        "With a GPUCluster NVIDIA's operator runs its own DRA driver on every GPU node of the cluster and no plugin on any. There is nothing to move pool by pool, and the operator refuses a ClusterPolicy beside it. NVIDIA says of both ways that a cluster in use is not to be changed from one to the other.",
		Fix:        "Leave DRA to the operator on this cluster; to move pools one by one, run it with a ClusterPolicy instead.",
		Sources:    []string{"NVIDIA/gpu-operator, controllers/gpucluster_controller.go, v26.7.0", "NVIDIA/aicr#2403"},
		Operations: []string{Prepare, Migrate, MigrateFrom},
		Needs:      []string{cluster.PartDaemonSets},
		Run: func(in Input) []Finding {
			if !in.nvidia() {
				return nil
			}
			f := Finding{Code: "DRM080", Severity: Blocker, Remedy: "see `kubectl get gpuclusters,clusterpolicies`; pools can be moved only on a cluster that has a ClusterPolicy, or no operator"}
			for i := range in.Snapshot.Operators {
				if o := &in.Snapshot.Operators[i]; o.Kind == gpuCluster {
					f.Object, f.Message = "gpucluster/"+o.Name, "it runs the DRA driver on every GPU node of the cluster and the plugin on none"
					if o.State != "" {
						f.Message += " (state " + o.State + ")"
					}
					return []Finding{f}
				}
			}
			operated := false
			for i := range in.Snapshot.DaemonSets {
				ds := &in.Snapshot.DaemonSets[i]
				owner := gate.OwnerOf(ds)
				if strings.HasPrefix(owner.Name, gpuCluster+"/") {
					f.Object, f.Message = daemonSetObject(ds), "belongs to "+owner.String()+" ("+owner.Evidence+"), which runs the DRA driver on every GPU node of the cluster and the plugin on none"
					return []Finding{f}
				}
				operated = operated || strings.HasPrefix(owner.Name, "ClusterPolicy/")
			}
			if reason, unread := in.Snapshot.IsUnknown(cluster.PartGPUClusters); unread && operated && in.Snapshot.Advice {
				f.Severity, f.Object = Warning, cluster.PartGPUClusters
				f.Message = "whether there is a GPUCluster beside the ClusterPolicy could not be read (" + reason + ")"
				f.Remedy = "`kubectl get gpuclusters`"
				return []Finding{f}
			}
			return nil
		},
	}
}

const gpuCluster = "GPUCluster"
