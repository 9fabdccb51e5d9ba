package checks

import (
	"strings"

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
		Operations:  []string{Migrate, Rollback, MigrateFrom, RollbackFrom},
		Needs:       []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			bare, mounts, local := ownerGroups{}, ownerGroups{}, ownerGroups{}
			for _, v := range in.targets() {
				for _, p := range in.evictions(v) {
					switch {
					case p.Owner.Kind != "" || in.EvictUnmanaged:
					case servesVolume(&p):
						mounts.add(&p, "has no controller: the CSI driver makes and ends it for a volume of pods on its node, and makes it again where they start")
					default:
						bare.add(&p, "has no controller: nothing would make it again")
					}
					if p.LocalStorage && !in.DeleteEmptyDir {
						local.add(&p, "has an emptyDir volume, whose data an eviction deletes")
					}
				}
			}
			with := func(remedy string) Finding { return Finding{Code: "DRM019", Severity: Blocker, Remedy: remedy} }
			out := bare.findings(with("move it yourself, or allow its eviction with --evict-unmanaged"))
			out = append(out, mounts.findings(with("leave it in place with --drain gpu, or allow its eviction with --evict-unmanaged"))...)
			return append(out, local.findings(with("save what it needs, and allow its eviction with --delete-emptydir-data"))...)
		},
	}
}

// servesVolume says that a bare pod is one that a CSI driver looks after: the Mountpoint
// pods of awslabs/mountpoint-s3-csi-driver, v2.
func servesVolume(p *cluster.Pod) bool {
	return p.Namespace == "mount-s3" && strings.HasPrefix(p.Name, "mp-")
}
