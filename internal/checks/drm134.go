package checks

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm134() Check {
	return Check{
		Code:       "DRM134",
		Title:      "Kueue admits workloads that ask for the resource",
		Why:        "Kueue counts what pods ask for by the resource's name, and goes on to. From 0.19 on it also finds out that a class maps the name, and counts the device once; if deviceClassMappings of its configuration names the same class, its quota is charged by that other name. In 0.17 and 0.18 that is behind a gate which is off, and without it a device may be counted by the request and by the claim. A workload that was found inadmissible before the class was there is not looked at again for that. Topology-aware scheduling does not see devices by DRA in any of these.",
		Fix:        "Have the class in place before workloads are queued for the pool; take it out of deviceClassMappings; make inadmissible workloads again.",
		Sources:    []string{"kubernetes-sigs/kueue, site/content/en/docs/concepts/dynamic_resource_allocation.md", "kubernetes-sigs/kueue#13102, #13577", "openshift/openshift-docs#113996"},
		Advises:    true,
		Operations: []string{Migrate, MigrateFrom},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims, cluster.PartClasses),
		Run: func(in Input) []Finding {
			owners := in.queued()
			if len(owners) == 0 {
				return nil
			}
			f := Finding{Code: "DRM134", Severity: Warning, Object: "kueue"}
			mappings := "see `kubectl get configmap kueue-manager-config -n kueue-system -o yaml`"
			v, known := in.kueueVersion()
			switch {
			case !known:
				f.Message = "Kueue admits " + few(owners) + ", and its version cannot be seen: up to 0.18 it may count a device twice, from 0.19 on it must not have the class in deviceClassMappings"
				f.Remedy = mappings + " for gates and deviceClassMappings"
			case v.LessThan(version.MajorMinor(0, 17)):
				f.Severity = Info
				f.Message = fmt.Sprintf("Kueue %s admits %s: it counts %s by name as before, and knows nothing of the claims", v, few(owners), in.Resource)
				f.Remedy = "nothing to do unless it uses topology-aware scheduling, which finds no device on switched nodes"
			case v.LessThan(version.MajorMinor(0, 19)):
				gate := "KueueDRAIntegrationExtendedResource"
				if v.LessThan(version.MajorMinor(0, 18)) {
					gate = "DRAExtendedResources"
				}
				f.Message = fmt.Sprintf("Kueue %s admits %s: its gate %s is off unless it was set, and then a device may be counted by the request and by the claim", v, few(owners), gate)
				f.Remedy = mappings + " and set the gate " + gate
			default:
				f.Message = fmt.Sprintf("Kueue %s admits %s: it finds the class by itself, which must not stand in deviceClassMappings as well; workloads found inadmissible before the class is there are not looked at again", v, few(owners))
				if class := in.className(); class != "" {
					f.Message = fmt.Sprintf("Kueue %s admits %s: it finds class %s by itself, which must not stand in deviceClassMappings as well; workloads found inadmissible before the class is there are not looked at again", v, few(owners), class)
				}
				f.Remedy = mappings + " for deviceClassMappings, and make inadmissible workloads again: `kubectl get workloads.kueue.x-k8s.io -A`"
			}
			return []Finding{f}
		},
	}
}

// queued are the owners of pods that ask for devices and that Kueue admits.
func (in Input) queued() []string {
	g := in.askers(func(p *cluster.Pod) string {
		if p.Queue == "" {
			return ""
		}
		return "queued"
	})
	places, known := in.reach(), map[string]bool{}
	for k := range g {
		known[k.object()] = true
	}
	for i := range in.Snapshot.Workloads { // the label may be on the workload alone
		w := &in.Snapshot.Workloads[i]
		if w.Queue != "" && !w.Finished && in.asks(&w.Template) && places.admit(w.Template.NodeLabels) {
			known[w.Ref()] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// kueueVersion is the version of Kueue's controller; false if it cannot be read.
func (in Input) kueueVersion() (*version.Version, bool) {
	for i := range in.Snapshot.Pods {
		p := &in.Snapshot.Pods[i]
		if p.Finished() {
			continue
		}
		if v, _ := imageVersion(p.Images, "kueue"); v != nil {
			return v, true
		}
	}
	return nil, false
}
