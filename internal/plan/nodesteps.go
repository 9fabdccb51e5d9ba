package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/jsonpatch"
	"github.com/dramigrate/dramigrate/internal/words"
)

// migrateSteps is what happens to each node of a migration, in order. The engine
// waits for what stands here, by the place in the list, and no longer.
func migrateSteps(p *Plan) []Step {
	resources := strings.Join(p.Resources, ", ")
	drivers := strings.Join(p.Driver.Names, ", ")
	limits := p.Settings.Deadlines.orDefaults()
	undo := words.Shell("dramigrate", "rollback", p.Pool.Name)
	return []Step{
		{
			ID:    StepMark,
			Title: "Close the node: record how it is, cordon, taint, keep autoscalers away, in one PATCH",
			Needs: []string{
				"this run holds the pool's lock",
				"no other run has marked the node",
				"a helper pod has run on the node, so that its image is there",
			},
			Changes: append([]Change{helperPod(p, "image pull")}, nodeChanges(closedPatch(p, ""))...),
			Undo:    undo + ": uncordons only a node that this step cordoned, and puts labels and annotations back",
		},
		{
			ID:      StepDrain,
			Title:   "Evict the pods that hold " + p.Resource + ", budgets respected",
			Needs:   []string{"the node is closed"},
			Changes: []Change{{Verb: "evict", Object: Object{Kind: "Pod", Name: "<those under evictions, and those that came since>"}}},
			Waits: []Wait{
				within("pods to leave the node", p.Settings.DrainTimeout.Duration),
				within(fmt.Sprintf("no pod, static and DaemonSet pods included, to hold %s by the device plugin, and no claim of %s to hold a device of the node", resources, drivers), limits.ClaimsGone.Duration),
			},
			Undo: "the pods' controllers have replaced them elsewhere; nothing is moved back",
		},
		{
			ID:    StepProbeBefore,
			Title: "Record the devices that the kubelet advertises" + byKey(p),
			Needs: []string{"no pod holds " + resources},
			Changes: []Change{
				helperPod(p, "node-probe"),
				{Verb: "patch", Object: theNode(), Patch: recordPatch(StepProbeBefore)},
			},
			Waits: []Wait{within("the helper pod to answer", helperRun)},
			Undo:  "the record goes with the node's annotation",
		},
		{
			ID:      StepPluginOff,
			Title:   "Turn the device plugin off by the gate's label",
			Needs:   []string{"the devices are recorded"},
			Changes: nodeChanges(labelPatch(p.Gate, gate.Switching, StepPluginOff, false)),
			Waits: []Wait{
				within("the device plugin's pods to leave the node", limits.PluginGone.Duration),
				within(fmt.Sprintf("allocatable %s to be 0 or absent", resources), limits.PluginGone.Duration),
			},
			Undo: undo + ": the label goes, the plugin comes back",
		},
		{
			ID:      StepPodResourcesList,
			Title:   "Ask the kubelet for its pods' resources once, which clears what it remembers of the plugin",
			Needs:   []string{"allocatable " + resources + " is 0 or absent"},
			Changes: []Change{helperPod(p, "node-probe"), {Verb: "patch", Object: theNode(), Patch: recordPatch(StepPodResourcesList)}},
			Waits:   []Wait{within("the helper pod to answer", helperRun)},
			Undo:    "needs none",
		},
		{
			ID:    StepDriverOn,
			Title: "Let the DRA driver onto the node by the gate's label",
			Needs: []string{"nothing on the node is offered by the device plugin"},
			Changes: nodeChanges(
				labelPatch(p.Gate, gate.DRA, StepDriverOn, true),
				taintPatch(StepDriverOn)),
			Waits: []Wait{
				within("the driver's pods to be ready", limits.DriverReady.Duration),
				within("the driver's ResourceSlices to be complete and to hold "+recorded(p), limits.SlicesComplete.Duration),
			},
			Undo: undo + ": the label goes, the driver leaves, the kubelet wipes its slices",
		},
		classStep(p),
		canaryStep(p),
		{
			ID:      StepOpen,
			Title:   "Open the node: taint away, uncordon only if this run cordoned it, annotations back",
			Needs:   []string{canaryDone(p), "the node itself sees no device offered or held by both mechanisms"},
			Changes: append([]Change{helperPod(p, "node-probe")}, nodeChanges(openPatch(StepOpen, p.Gate, false))...),
			Waits:   []Wait{within(fmt.Sprintf("the node to be as it has to be, and to stay so for %s", p.Settings.Soak.Duration), pluginGone+p.Settings.Soak.Duration)},
			Undo:    undo,
		},
		{
			ID:      StepSettle,
			Title:   "When the kubelets' grace for the plugin is over, clear their memory once more; the nodes are open meanwhile",
			Needs:   []string{"all batches are done"},
			Changes: []Change{helperPod(p, "node-probe"), {Verb: "patch", Object: theNode(), Patch: recordPatch(StepSettle)}},
			Waits:   []Wait{within("the kubelet's grace to pass, counted from when the plugin left, and the helper pod to answer", p.Settings.KubeletGrace.Duration+helperRun)},
			Undo:    "needs none",
		},
	}
}

func canaryStep(p *Plan) Step {
	return Step{
		ID:      StepCanary,
		Title:   "Run a pod that asks for " + p.Resource + " as workloads do, and " + canaryLooks(p),
		Needs:   []string{"a DeviceClass carries " + p.Resource, "the node is still closed"},
		Changes: []Change{helperPod(p, "canary")},
		Waits:   []Wait{within(canaryWait(p), p.Settings.Deadlines.orDefaults().Canary.Duration)},
		Undo:    "the pod and its claim are removed when it has ended",
	}
}

func classStep(p *Plan) Step {
	s := Step{
		ID:    StepDeviceClass,
		Title: fmt.Sprintf("Use DeviceClass %s, which carries %s already", p.Class.Name, p.Resource),
		Needs: []string{"the node's slices are complete"},
		Waits: []Wait{within("DeviceClass "+p.Class.Name+" to be there", sharedObject)},
		Undo:  "needs none",
	}
	if p.Class.Action == Create {
		s.Title = fmt.Sprintf("Create DeviceClass %s, once: %s is then served by DRA on every switched node of the cluster", p.Class.Name, p.Resource)
		s.Needs = append(s.Needs, "this run holds the lock of shared objects", "the class's selectors match devices that the node publishes")
		s.Changes = []Change{{Verb: "create", Object: Object{Kind: "DeviceClass", Name: p.Class.Name}, Body: toYAML(p.Class.Object)}}
		s.Undo = "dramigrate unprepare, when no node uses it any more"
	}
	return s
}

// rollbackSteps is what happens to each node of a rollback, in order.
func rollbackSteps(p *Plan) []Step {
	resources := strings.Join(p.Resources, ", ")
	drivers := strings.Join(p.Driver.Names, ", ")
	limits := p.Settings.Deadlines.orDefaults()
	again := words.Shell("dramigrate", "apply", p.Pool.Name)
	return []Step{
		{
			ID:    StepMark,
			Title: "Close the node: cordon, taint, keep autoscalers away; the first record of how it was stays",
			Needs: []string{
				"this run holds the pool's lock",
				"no run of another pool has marked the node",
				"a helper pod has run on the node, so that its image is there",
			},
			Changes: append([]Change{helperPod(p, "image pull")}, nodeChanges(closedPatch(p, ""))...),
			Undo:    again,
		},
		{
			ID:      StepDrainClaims,
			Title:   "Evict the pods that hold a claim of " + drivers + " while the driver still runs, budgets respected",
			Needs:   []string{"the node is closed", "the driver still runs on it"},
			Changes: []Change{{Verb: "evict", Object: Object{Kind: "Pod", Name: "<those under evictions, and those that came since>"}}},
			Waits: []Wait{
				within("pods to leave the node", p.Settings.DrainTimeout.Duration),
				within(fmt.Sprintf("no claim of %s to hold a device of the node, and no pod with a claim to be terminating", drivers), limits.ClaimsGone.Duration),
			},
			Undo: "the pods' controllers have replaced them elsewhere; nothing is moved back",
		},
		{
			ID:      StepDriverOff,
			Title:   "Turn the DRA driver off by the gate's label",
			Needs:   []string{"no claim of " + drivers + " is held on the node"},
			Changes: nodeChanges(labelPatch(p.Gate, gate.Switching, StepDriverOff, false)),
			Waits: []Wait{
				within("the driver's pods to leave the node", limits.PluginGone.Duration),
				within("the kubelet to have wiped the driver's ResourceSlices of the node", limits.SlicesGone.Duration),
			},
			Undo: again,
		},
		{
			ID:    StepPluginOn,
			Title: "Let the device plugin back by the gate's label",
			Needs: []string{"no slice of the driver is left on the node"},
			Changes: append(nodeChanges(
				labelPatch(p.Gate, gate.Plugin, StepPluginOn, true),
				taintPatch(StepPluginOn)), helperPod(p, "node-probe")),
			Waits: []Wait{
				within("the device plugin's pods to be ready", limits.PluginReady.Duration),
				within(fmt.Sprintf("%s to be allocatable again, every recorded device included", resources), limits.PluginReady.Duration),
			},
			Undo: again,
		},
		{
			ID:      StepRestore,
			Title:   "Open the node and remove the tool's record: cordon, taints, labels and annotations as before the migration",
			Needs:   []string{"every recorded device is advertised by the plugin"},
			Changes: nodeChanges(openPatch(StepRestore, p.Gate, true)),
			Waits:   []Wait{within("the node to offer its devices by the plugin alone", slicesGone)},
			Undo:    again,
		},
	}
}

func theNode() Object { return Object{Kind: "Node", Name: "<node>"} }

func nodeChanges(patches ...jsonpatch.Patch) []Change {
	out := make([]Change, len(patches))
	for i, p := range patches {
		out[i] = Change{Verb: "patch", Object: theNode(), Patch: p.String()}
	}
	return out
}

// recordPatch writes the node's record and nothing else.
func recordPatch(step StepID) string { return owned(step).String() }

// helperPod is a short pod that the step makes and removes.
func helperPod(p *Plan, purpose string) Change {
	note := "image " + orNone(p.Settings.HelperImage) + "; removed at the end of the step"
	if purpose == "node-probe" && p.Settings.DriverRoot != "" {
		note = "privileged, to reach the GPUs by " + p.Settings.DriverRoot + "; " + note
	}
	return Change{Verb: "create", Object: Object{
		Kind: "Pod", Namespace: p.Namespace, Name: "<" + purpose + " on the node>", Note: note,
	}}
}

// rolloutDeadline gives each pod of a rolling update its share.
func rolloutDeadline(pods int) time.Duration { return sharedObject + time.Duration(pods)*pluginRestart }
