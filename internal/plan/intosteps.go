package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/jsonpatch"
	"github.com/dramigrate/dramigrate/internal/words"
)

// intoSteps are the steps of a move into another pool: first on each new node, then on
// each old one.
func intoSteps(p *Plan) []Step {
	limits := p.Settings.Deadlines.orDefaults()
	resources := strings.Join(p.Resources, ", ")
	undo := words.Shell("dramigrate", "rollback", p.Pool.Name)
	fresh := []Step{
		{
			ID:    StepMark,
			Title: "Close the node: record how it is, cordon, taint, keep autoscalers away, in one PATCH; pods on it stay",
			Needs: []string{
				"this run holds the pool's lock",
				"no other run has marked the node",
				"a helper pod has run on the node, so that its image is there",
			},
			Changes: append([]Change{helperPod(p, "image pull")}, nodeChanges(closedPatch(p, cluster.RoleNew))...),
			Undo:    undo + ": the node stays closed",
		},
		{
			ID:    StepDriverReady,
			Title: "See that the driver alone offers the node's devices",
			Needs: []string{"the node is closed"},
			Waits: []Wait{
				within("the node to be ready, the driver's pods to be ready, and allocatable "+resources+" to be 0 or absent", limits.DriverReady.Duration),
				within("the driver's ResourceSlices to be complete and to hold a device", limits.SlicesComplete.Duration),
			},
			Undo: "needs none",
		},
		classStep(p),
		canaryStep(p),
		{
			ID:      StepOpen,
			Title:   "Open the node: taint away, uncordon only if this run cordoned it, annotations back",
			Needs:   []string{"the canary saw its devices"},
			Changes: nodeChanges(openPatch(StepOpen, p.Gate, false)),
			Waits:   []Wait{within(fmt.Sprintf("the node to be as it has to be, and to stay so for %s", p.Settings.Soak.Duration), pluginGone+p.Settings.Soak.Duration)},
			Undo:    undo,
		},
	}
	old := []Step{
		{
			ID:      StepMark,
			Title:   "Close the node: record how it is, cordon, taint, keep autoscalers away, in one PATCH",
			Needs:   []string{"all new nodes are open", "no other run has marked the node"},
			Changes: nodeChanges(closedPatch(p, cluster.RoleOld)),
			Undo:    undo + ": uncordons only a node that this step cordoned",
		},
		{
			ID:      StepDrain,
			Title:   "Evict the pods that hold " + p.Resource + ", budgets respected; pool " + p.Into.Name + " takes their successors",
			Needs:   []string{"the node is closed"},
			Changes: []Change{{Verb: "evict", Object: Object{Kind: "Pod", Name: "<those under evictions, and those that came since>"}}},
			Waits: []Wait{
				within("pods to leave the node", p.Settings.DrainTimeout.Duration),
				within(fmt.Sprintf("no pod, static and DaemonSet pods included, to hold %s by the device plugin", resources), limits.ClaimsGone.Duration),
			},
			Undo: undo + ": evicts them from the new nodes, and the old ones take their successors",
		},
		retireStep(p, "no pod holds "+resources, undo),
	}
	return slices.Concat(inRole(cluster.RoleNew, fresh), inRole(cluster.RoleOld, old))
}

// outOfSteps are the steps of the way back: first on each old node, then on each new
// one.
func outOfSteps(p *Plan) []Step {
	limits := p.Settings.Deadlines.orDefaults()
	drivers := strings.Join(p.Driver.Names, ", ")
	again := p.Command()
	old := []Step{
		{
			ID:      StepMark,
			Title:   "Take the closed node over; the record of how it was before stays",
			Needs:   []string{"this run holds the pool's lock", "no run of another pool has marked the node"},
			Changes: nodeChanges(closedPatch(p, cluster.RoleOld)),
			Undo:    again,
		},
		{
			ID:      StepRestore,
			Title:   "Open the node as it was: taint away, uncordon only if a run cordoned it, annotations back, record removed, in one PATCH",
			Needs:   []string{"the driver publishes nothing on the node"},
			Changes: nodeChanges(openPatch(StepRestore, p.Gate, true)),
			Waits:   []Wait{within("the device plugin to offer what it offered before", limits.PluginReady.Duration)},
			Undo:    again,
		},
	}
	fresh := []Step{
		{
			ID:      StepMark,
			Title:   "Close the node: cordon, taint, keep autoscalers away; the first record of how it was stays",
			Needs:   []string{"all old nodes that are there are open", "no run of another pool has marked the node"},
			Changes: append([]Change{helperPod(p, "image pull")}, nodeChanges(closedPatch(p, cluster.RoleNew))...),
			Undo:    again,
		},
		{
			ID:      StepDrainClaims,
			Title:   "Evict the pods that hold a claim of " + drivers + ", budgets respected",
			Needs:   []string{"the node is closed", "the driver runs on it, and goes on to"},
			Changes: []Change{{Verb: "evict", Object: Object{Kind: "Pod", Name: "<those under evictions, and those that came since>"}}},
			Waits: []Wait{
				within("pods to leave the node", p.Settings.DrainTimeout.Duration),
				within(fmt.Sprintf("no claim of %s to hold a device of the node, and no pod with a claim to be terminating", drivers), limits.ClaimsGone.Duration),
			},
			Undo: "the pods' controllers have replaced them elsewhere; nothing is moved back",
		},
		retireStep(p, "no claim of "+drivers+" is held on the node", again),
	}
	return slices.Concat(inRole(cluster.RoleOld, old), inRole(cluster.RoleNew, fresh))
}

// retireStep leaves an empty node closed, and for autoscalers to remove.
func retireStep(p *Plan, empty, undo string) Step {
	return Step{
		ID:      StepRetire,
		Title:   "Leave the node cordoned and tainted; autoscalers may remove it: their annotations go back to what they were",
		Needs:   []string{empty},
		Changes: nodeChanges(retirePatch()),
		Undo:    undo + ", as long as the node is there",
	}
}

func retirePatch() jsonpatch.Patch {
	return append(owned(StepRetire), autoscalersBack()...)
}

// inRole says for which nodes the steps are.
func inRole(role cluster.Role, steps []Step) []Step {
	for i := range steps {
		steps[i].Role = role
	}
	return steps
}
