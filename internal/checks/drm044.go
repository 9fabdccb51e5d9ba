package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm044() Check {
	return Check{
		Code:       "DRM044",
		Title:      "Containers reach GPUs beside plugin and driver",
		Why:        "A privileged container sees every device of its node, and the NVIDIA runtime gives a container all that NVIDIA_VISIBLE_DEVICES names, whether or not the pod was given any. Neither mechanism knows of it: such a pod uses devices that others hold, is not evicted for its devices, and after the move does not see what its claim says but what it saw before.",
		Fix:        "Let the workload ask for its devices, and take privileged and the variable away; NVIDIA_VISIBLE_DEVICES=void is fine.",
		Sources:    []string{"NVIDIA/k8s-device-plugin#1294", "NVIDIA/nvidia-container-toolkit, docs, \"Specialized configurations\""},
		Operations: []string{Migrate, Verify, MigrateFrom, MigrateInto},
		Advises:    true,
		Needs:      []string{cluster.PartPods, cluster.PartDaemonSets},
		Run: func(in Input) []Finding {
			around := map[string]map[string]int{} // evidence → owner → pods
			agents := map[string]int{}
			ours := in.infrastructure()
			for _, v := range in.targets() {
				for i := range v.Pods {
					p := &v.Pods[i]
					why := in.bypasses(p)
					switch owner := ownerObject(p); {
					case why == "" || p.Finished() || p.IsHelper() || ours[owner]:
					case p.Owner.Kind == "DaemonSet" && !slices.ContainsFunc(in.Resources, p.Asks):
						agents[owner]++
					default:
						if around[owner] == nil {
							around[owner] = map[string]int{}
						}
						around[owner][why]++
					}
				}
			}
			var out []Finding
			owners := slices.Sorted(maps.Keys(around))
			for i, owner := range owners {
				if i == mostOwners {
					out = append(out, Finding{
						Code: "DRM044", Severity: Warning, Object: in.poolObject(),
						Message: fmt.Sprintf("%d more workloads do the same: %s", len(owners)-i, few(owners[i:])),
						Remedy:  "the same for each of them: let it ask for its devices and take the setting away",
					})
					break
				}
				pods := 0
				for _, n := range around[owner] {
					pods += n
				}
				out = append(out, Finding{
					Code: "DRM044", Severity: Warning, Object: owner,
					Message: fmt.Sprintf("%s on the pool: %s", words.Count(pods, "pod"), strings.Join(slices.Sorted(maps.Keys(around[owner])), "; ")),
					Remedy:  "let it ask for its devices and take the setting away; a drain by devices leaves it where it is if it asks for none (--drain all does not)",
				})
			}
			if len(agents) > 0 {
				out = append(out, Finding{
					Code: "DRM044", Severity: Info, Object: in.poolObject(),
					Message: "DaemonSets see GPUs there by NVIDIA_VISIBLE_DEVICES and ask for none, as monitoring does: " + few(counted(agents)),
					Remedy:  "nothing, if they only look; the drain leaves them alone",
				})
			}
			return out
		},
	}
}

// bypasses says how a pod reaches GPUs that nobody has given it; empty if by nothing.
// A privileged pod that asks for none is a matter of its own: networking and storage
// have many.
func (in Input) bypasses(p *cluster.Pod) string {
	asks := slices.ContainsFunc(in.Resources, p.Asks)
	switch v := p.VisibleDevices; {
	case strings.HasPrefix(in.Resource, "nvidia.com/") && v != "" && v != "void" && v != "none":
		if asks {
			return fmt.Sprintf("NVIDIA_VISIBLE_DEVICES=%s is set beside a request for %s", v, in.Resource)
		}
		return fmt.Sprintf("NVIDIA_VISIBLE_DEVICES=%s is set without a request for %s", v, in.Resource)
	case p.Privileged && asks:
		return "privileged: sees every device of the node, not those that it was given"
	default:
		return ""
	}
}

// infrastructure are the DaemonSets of plugins and drivers, as owners are named.
func (in Input) infrastructure() map[string]bool {
	out := map[string]bool{}
	for _, p := range in.Inventory.Plugins {
		out[daemonSetObject(p.DaemonSet)] = true
	}
	for _, d := range in.Inventory.Drivers {
		out[daemonSetObject(d.DaemonSet)] = true
	}
	return out
}
