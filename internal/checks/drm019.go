package checks

import (
	"fmt"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm019() Check {
	return Check{
		Code:        "DRM019",
		Title:       "The drain refuses a pod without a flag",
		Why:         "Like kubectl drain, the tool evicts a pod that nothing makes again, or one whose local data is lost, only when told to.",
		Fix:         "Move the pod yourself, or allow it with --evict-unmanaged or --delete-emptydir-data.",
		Sources:     []string{"k8s.io/kubectl/pkg/drain/filters.go, v0.37.2"},
		Unskippable: true,
		Operations:  []string{Migrate, Rollback},
		Needs:       []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					f := Finding{Code: "DRM019", Severity: Blocker, Object: podObject(&p)}
					if p.Owner.Kind == "" && !in.EvictUnmanaged {
						f.Message = fmt.Sprintf("on node %s, has no controller: nothing would make it again", v.Node.Name)
						f.Remedy = "move it yourself, or allow its eviction with --evict-unmanaged"
						out = append(out, f)
					}
					if p.LocalStorage && !in.DeleteEmptyDir {
						f.Message = fmt.Sprintf("on node %s, has an emptyDir volume, whose data an eviction deletes", v.Node.Name)
						f.Remedy = "save what it needs, and allow its eviction with --delete-emptydir-data"
						out = append(out, f)
					}
				}
			}
			return out
		},
	}
}
