package checks

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm114() Check {
	return Check{
		Code:       "DRM114",
		Title:      "A workload's template can be served by DRA alone",
		Why:        "It is what DRM016 says of pods, before there are any: a template that uses a claim or asks for a class by its implicit name makes pods that wait for ever once no pool that they fit is on DRA.",
		Fix:        "Let the template ask for the extended resource again, or keep the workload to a pool that stays on DRA.",
		Sources:    []string{"KEP-5004, implicit extended resource name", "pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, v1.37.2"},
		Advises:    true,
		Operations: []string{Rollback, RollbackFrom},
		Needs:      append(workloadParts(), cluster.PartPods, cluster.PartClaims, cluster.PartClasses),
		Run: func(in Input) []Finding {
			claims := in.claimsByRef()
			drivers := in.driversByOwner(claims)
			g := ownerGroups{}
			for _, w := range in.templates(nil) {
				if why := in.needsDRA(w, claims, drivers[w.Ref()]); why != "" {
					g.addTemplate(w, why)
				}
			}
			return g.findings(Finding{
				Code: "DRM114", Severity: Warning,
				Remedy: "let it ask for " + in.Resource + " instead, or keep it to a pool that stays on DRA by its node selector",
			})
		},
	}
}

// needsDRA says why the plugin could not serve a workload; empty if it could, or if its
// claims are of other drivers.
func (in Input) needsDRA(w *cluster.Workload, claims map[string]*resourcev1.ResourceClaim, drivers []string) string {
	t := &w.Template
	if name := implicit(t); name != "" && in.mayServe(strings.TrimPrefix(string(name), cluster.ImplicitResourcePrefix)) {
		return fmt.Sprintf("its template asks for %s, which no plugin serves", name)
	}
	if len(drivers) > 0 { // of its pods' claims
		if !slices.Contains(drivers, in.Driver) {
			return ""
		}
		return "its template uses claims, and those of its pods hold devices of " + in.Driver
	}
	for _, name := range t.Claims {
		if name == "" {
			continue
		}
		c := claims[t.Namespace+"/"+name]
		switch {
		case c == nil:
			return fmt.Sprintf("its template uses ResourceClaim %s, which is not there: whether that is for devices of %s cannot be known", name, in.Driver)
		case slices.Contains(driversOf(c), in.Driver):
			return fmt.Sprintf("its template uses ResourceClaim %s, which holds devices of %s", name, in.Driver)
		case c.Status.Allocation == nil:
			return fmt.Sprintf("its template uses ResourceClaim %s, which holds nothing yet: whether that is for devices of %s cannot be known", name, in.Driver)
		}
	}
	if len(t.ClaimTemplates) > 0 {
		return fmt.Sprintf("its template uses ResourceClaimTemplate %s; whether that is for devices of %s cannot be known here", few(t.ClaimTemplates), in.Driver)
	}
	return ""
}

// driversByOwner are the drivers of the devices that the pods of each owner hold by
// claims of their own.
func (in Input) driversByOwner(claims map[string]*resourcev1.ResourceClaim) map[string][]string {
	out := map[string][]string{}
	for i := range in.Snapshot.Pods {
		p := &in.Snapshot.Pods[i]
		for _, name := range p.Claims {
			if c := claims[p.Namespace+"/"+name]; c != nil {
				for _, d := range driversOf(c) {
					add(out, ownerObject(p), d)
				}
			}
		}
	}
	return out
}

func driversOf(c *resourcev1.ResourceClaim) []string {
	if c.Status.Allocation == nil {
		return nil
	}
	var out []string
	for _, r := range c.Status.Allocation.Devices.Results {
		if !slices.Contains(out, r.Driver) {
			out = append(out, r.Driver)
		}
	}
	return out
}
