package checks

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm105() Check {
	return Check{
		Code:       "DRM105",
		Title:      "Pods are placed by another scheduler",
		Why:        "It is the scheduler that turns a request for an extended resource into a claim. Another one than kube-scheduler has to do it as well: KAI Scheduler 0.13 and 0.14 keep such pods off nodes without the plugin on purpose, and older ones see no device there. A later KAI can do it (merged in July 2026). Whether Volcano, YuniKorn, HAMi or Run:ai do is not known.",
		Fix:        "Upgrade the scheduler to a release that serves extended resources by DRA, or let kube-scheduler place these pods; try one pod on a first node before the rest.",
		Sources:    []string{"kai-scheduler/KAI-Scheduler, CHANGELOG.md, v0.13.0", "kai-scheduler/KAI-Scheduler#1943, #1853", "kubernetes-sigs/scheduler-plugins", "KEP-5004"},
		Operations: []string{Migrate, MigrateFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims},
		Run: func(in Input) []Finding {
			refused, unsure := ownerGroups{}, ownerGroups{}
			var kai *version.Version
			var known bool
			movers := in.movers()
			if slices.ContainsFunc(movers, func(p *cluster.Pod) bool { return p.SchedulerName == kaiScheduler }) {
				kai, known = in.kaiVersion()
			}
			for _, p := range movers {
				switch name := p.SchedulerName; {
				case name == "" || name == corev1.DefaultSchedulerName:
				case name == kaiScheduler && known && kai.LessThan(kaiFirst()):
					refused.add(p, fmt.Sprintf("is placed by %s %s, which puts no pod that asks for %s on a node without the plugin", name, kai, in.Resource))
				case name == kaiScheduler && known:
					unsure.add(p, fmt.Sprintf("is placed by %s %s: see that its release has \"DRA-backed extended resources\" (KAI-Scheduler#1943)", name, kai))
				case name == kaiScheduler:
					unsure.add(p, fmt.Sprintf("is placed by %s, whose version cannot be seen: up to 0.14 it puts no such pod on a node without the plugin", name))
				default:
					unsure.add(p, fmt.Sprintf("is placed by scheduler %q; whether it serves %s by DRA cannot be known here, unless it is a profile of kube-scheduler", name, in.Resource))
				}
			}
			return append(
				refused.findings(Finding{Code: "DRM105", Severity: Blocker, Remedy: "upgrade KAI Scheduler to a release later than 0.14 that has KAI-Scheduler#1943, or set spec.schedulerName: default-scheduler"}),
				unsure.findings(Finding{Code: "DRM105", Severity: Warning, Remedy: "after the first node try one such pod there before the rest follows: `kubectl get pod NAME -o jsonpath={.status.extendedResourceClaimStatus}` names its claim"})...)
		},
	}
}

const kaiScheduler = "kai-scheduler"

// kaiFirst is the first version of KAI Scheduler that may serve extended resources by
// DRA: 0.14.0 of March 2026 still refuses, the change came in July.
func kaiFirst() *version.Version { return version.MajorMinor(0, 15) }

// kaiVersion is the oldest version of KAI Scheduler that runs; false if none can be read.
func (in Input) kaiVersion() (*version.Version, bool) {
	var oldest *version.Version
	for i := range in.Snapshot.Pods {
		p := &in.Snapshot.Pods[i]
		if p.Finished() {
			continue
		}
		if v, _ := imageVersion(p.Images, "kai-scheduler/scheduler"); v != nil && (oldest == nil || v.LessThan(oldest)) {
			oldest = v
		}
	}
	return oldest, oldest != nil
}
