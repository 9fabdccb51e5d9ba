package checks

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm016() Check {
	return Check{
		Code:       "DRM016",
		Title:      "Workloads on the pool that only DRA can serve",
		Why:        "A plugin serves requests for its own resources alone. A pod with a claim of its own, or one that asks for a class by its implicit name, cannot run on the pool once that is back on the plugin; one that waits for a node now waits for ever, if no other pool that it fits is on DRA.",
		Fix:        "Move the workload to a pool that stays on DRA, or end it.",
		Sources:    []string{"KEP-5004, implicit extended resource name"},
		Operations: []string{Rollback, RollbackFrom},
		Needs:      []string{cluster.PartPods, cluster.PartClaims, cluster.PartSlices},
		Run: func(in Input) []Finding {
			g := ownerGroups{}
			for _, v := range in.targets() {
				claims := map[string]cluster.ClaimUse{}
				for _, c := range v.ClaimsOf(in.Driver) {
					claims[c.Ref()] = c
				}
				for i := range v.Pods {
					if why := in.onlyDRA(&v.Pods[i], claims); why != "" {
						g.add(&v.Pods[i], why+", which the device plugin cannot serve")
					}
				}
			}
			return append(g.findings(Finding{
				Code: "DRM016", Severity: Blocker,
				Remedy: "move the workload to another pool that stays on DRA, or end it",
			}), in.waitingForDRA().findings(Finding{
				Code: "DRM016", Severity: Warning,
				Remedy: "let it ask for " + in.Resource + " instead, or see that a pool which it fits stays on DRA",
			})...)
		},
	}
}

// waitingForDRA are the pods without a node that the pool's nodes would have, and that
// ask for the driver's devices in a way that no plugin serves.
func (in Input) waitingForDRA() ownerGroups {
	out := ownerGroups{}
	places := in.reach()
	var claims map[string]*resourcev1.ResourceClaim
	for i := range in.Snapshot.Pods {
		p := &in.Snapshot.Pods[i]
		if p.Node != "" || p.Finished() || p.IsHelper() || (len(p.Claims) == 0 && implicit(p) == "") || !places.admit(p.NodeLabels) {
			continue
		}
		if class, ok := strings.CutPrefix(string(implicit(p)), cluster.ImplicitResourcePrefix); ok && in.mayServe(class) {
			out.add(p, fmt.Sprintf("waits for a node and asks for %s, which the device plugin cannot serve", implicit(p)))
			continue
		}
		if claims == nil {
			claims = in.claimsByRef()
		}
		for _, name := range p.Claims {
			if c := claims[p.Namespace+"/"+name]; c != nil && slices.ContainsFunc(classesOf(c), in.mayServe) {
				out.add(p, fmt.Sprintf("waits for a node and for its claim %s, which the device plugin cannot serve", claimed(p, name)))
				break
			}
		}
	}
	return out
}

func (in Input) claimsByRef() map[string]*resourcev1.ResourceClaim {
	out := map[string]*resourcev1.ResourceClaim{}
	for i := range in.Snapshot.Claims {
		c := &in.Snapshot.Claims[i]
		out[c.Namespace+"/"+c.Name] = c
	}
	return out
}

// mayServe says that a class may be for the driver's devices: it is not there, or nothing
// shows that it is for those of another driver.
func (in Input) mayServe(class string) bool {
	i := slices.IndexFunc(in.Snapshot.Classes, func(c resourcev1.DeviceClass) bool { return c.Name == class })
	return i < 0 || forOther(&in.Snapshot.Classes[i], in.Driver) == ""
}

// classesOf are the classes that a claim asks for devices of.
func classesOf(c *resourcev1.ResourceClaim) []string {
	var out []string
	for _, r := range c.Spec.Devices.Requests {
		if r.Exactly != nil {
			out = append(out, r.Exactly.DeviceClassName)
		}
		for _, s := range r.FirstAvailable {
			out = append(out, s.DeviceClassName)
		}
	}
	return out
}

// onlyDRA says why the pod cannot be served by the plugin; empty if it can.
func (in Input) onlyDRA(p *cluster.Pod, claims map[string]cluster.ClaimUse) string {
	if p.Finished() {
		return ""
	}
	for _, name := range p.Claims {
		if c, ok := claims[p.Namespace+"/"+name]; ok {
			return fmt.Sprintf("holds %s by its claim %s", words.Count(len(c.Devices), "device"), claimed(p, name))
		}
	}
	if p.Bridge == nil {
		return ""
	}
	if _, ok := claims[p.Namespace+"/"+p.Bridge.Claim]; !ok {
		return ""
	}
	for _, r := range p.Requests {
		if !slices.Contains(in.Resources, string(r.Resource)) && cluster.BridgeBacked(p, string(r.Resource), in.Snapshot.Claims) {
			return fmt.Sprintf("holds devices by asking for %s", r.Resource)
		}
	}
	return ""
}

// claimed is what made a claim where a template makes one for each pod, or its name.
func claimed(p *cluster.Pod, name string) string {
	if len(p.ClaimTemplates) > 0 {
		return "of ResourceClaimTemplate " + few(p.ClaimTemplates)
	}
	return name
}
