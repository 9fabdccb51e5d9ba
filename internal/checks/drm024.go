package checks

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm024() Check {
	return Check{
		Code:        "DRM024",
		Title:       "A node still needs what prepare did",
		Why:         "What prepare gave the DaemonSets is what keeps the two mechanisms apart on every node that has been switched.",
		Fix:         "Roll back every pool that is on DRA first, and end what holds claims of the driver elsewhere.",
		Sources:     []string{"the gate of this tool: label dramigrate.dev/allocation"},
		Unskippable: true,
		Operations:  []string{Unprepare},
		Needs:       []string{cluster.PartPods, cluster.PartClaims, cluster.PartSlices, cluster.PartDaemonSets},
		Run: func(in Input) []Finding {
			switched, parked, held := nodeGroups{}, nodeGroups{}, nodeGroups{}
			var names []string
			pools := map[string]bool{}
			for i := range in.Snapshot.Nodes {
				n := &in.Snapshot.Nodes[i]
				value, labelled := n.Labels[gate.AllocationLabel]
				st, err := cluster.ParseNodeState(n)
				back := st != nil && st.Role == cluster.RoleNew && st.Retired()
				if st == nil || back {
					names = append(names, n.Name)
				} else {
					pools[st.Pool] = true // a rollback ends what holds claims there
				}
				switch {
				case back:
					parked.add(fmt.Sprintf("has the driver, and stays closed since pool %s came back from it", st.Pool), n.Name)
				case st.Retired():
					switched.add(fmt.Sprintf("is closed, since pool %s went into pool %s", st.Pool, st.Into.Name), n.Name)
				case st.Received():
					switched.add("is on DRA and takes the workloads of pool "+st.Pool, n.Name)
				case st != nil && st.Operation == Migrate && st.SettledAt != nil:
					switched.add("is on DRA as part of pool "+st.Pool, n.Name)
				case st != nil:
					switched.add("is being moved as part of pool "+st.Pool, n.Name)
				case err != nil:
					switched.add("carries annotation "+gate.StateAnnotation, n.Name)
				case labelled:
					switched.add(fmt.Sprintf("carries label %s=%s", gate.AllocationLabel, value), n.Name)
				}
			}
			for name, v := range in.Snapshot.Views(names...) {
				for _, c := range v.ClaimsOf(in.Driver) {
					held.add(fmt.Sprintf("claim %s holds %s of %s", c.Ref(), words.Count(len(c.Devices), "device"), in.Driver), name)
				}
			}
			return append(
				switched.findings(in, Finding{Code: "DRM024", Severity: Blocker, Remedy: rollBack(slices.Sorted(maps.Keys(pools)))}),
				append(parked.findings(in, Finding{Code: "DRM024", Severity: Blocker, Remedy: "remove its node group: without the driver it would serve nobody"}),
					held.findings(in, Finding{Code: "DRM024", Severity: Blocker, Remedy: "end the workload first"})...)...)
		},
	}
}

func rollBack(pools []string) string {
	switch len(pools) {
	case 0:
		return "roll its pool back first: `dramigrate rollback POOL`"
	case 1:
		return "roll the pool back first: " + words.Command("rollback", pools[0])
	default:
		return fmt.Sprintf("roll the pools %s back first: `dramigrate rollback POOL` for each", few(pools))
	}
}
