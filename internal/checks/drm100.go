package checks

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm100() Check {
	return Check{
		Code:       "DRM100",
		Title:      "Pods of the pool ask for a resource that needs a DeviceClass of its own",
		Why:        "A DeviceClass maps one name. A MIG profile (nvidia.com/mig-1g.10gb) or a model (nvidia.com/a100) is another resource than nvidia.com/gpu: once the plugin is gone from the pool nothing serves it, and the pods that ask for it wait for ever.",
		Fix:        "Make a class for each such name before the pool moves. It must select only the devices that the name stands for: of MIG by type and profile, of a model by productName.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu, demo/specs/extended-resources", "NVIDIA/k8s-device-plugin#424", "KEP-5004"},
		Operations: []string{Migrate, MigrateFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims, cluster.PartClasses},
		Run: func(in Input) []Finding {
			asking := map[string]map[string]bool{} // resource → owners
			for _, p := range in.besides() {
				classes, _ := in.unserved(&p)
				for _, r := range classes {
					if asking[r] == nil {
						asking[r] = map[string]bool{}
					}
					asking[r][ownerObject(&p)] = true
				}
			}
			var out []Finding
			for _, r := range slices.Sorted(maps.Keys(asking)) {
				stays := ""
				if _, profile := migProfile(r); profile && in.runs("DRM009") && slices.ContainsFunc(in.targets(), func(v cluster.NodeView) bool { return mig(v) != "" }) {
					stays = "leave the pool on the plugin, for partitioned GPUs are not moved (DRM009); a pool that has these partitions by DRA needs a class of their own: "
				}
				out = append(out, Finding{
					Code: "DRM100", Severity: Blocker, Object: "resource/" + r,
					Message: fmt.Sprintf("asked for on the pool by %s, and no DeviceClass maps it: without the plugin nothing serves it", few(slices.Sorted(maps.Keys(asking[r])))),
					Remedy:  stays + in.classRemedy(r),
				})
			}
			return out
		},
	}
}

// besides are the unfinished pods on the operation's nodes that ask for another resource
// than the one that the run maps.
func (in Input) besides() []cluster.Pod {
	var out []cluster.Pod
	for _, v := range in.targets() {
		for i := range v.Pods {
			p := &v.Pods[i]
			if !p.Finished() && !p.IsHelper() && slices.ContainsFunc(p.Requests, func(r cluster.Request) bool {
				f, _ := in.fateOf(string(r.Resource))
				return r.Count > 0 && f != served
			}) {
				out = append(out, *p)
			}
		}
	}
	return out
}
