package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/jsonpatch"
)

// The patches below are those of a node that nobody else has marked, as the engine
// sends them. What only the run knows stands in angle brackets, and what a node has
// already is left out when it is sent.

// valueBefore stands for what the node's record holds of a label or an annotation.
const valueBefore = "<value before; removed if there was none>"

// closed is the first patch: all that keeps pods away, and the record of how the
// node was.
func closedPatch(of *Plan, role cluster.Role) jsonpatch.Patch {
	part := ""
	if role != "" {
		part = fmt.Sprintf(`,"role":%q,"into":{"name":%q,"selector":%q}`, role, of.Into.Name, of.Into.Selector)
	}
	p := jsonpatch.Patch{
		jsonpatch.Test("/metadata/uid", "<uid>"),
		jsonpatch.Test("/metadata/resourceVersion", "<resourceVersion>"),
		jsonpatch.Test(annotation(gate.StateAnnotation), "<absent, or the record of an earlier run of this pool>"),
		jsonpatch.Add(annotation(gate.StateAnnotation), fmt.Sprintf(
			`{"pool":%q,"selector":%q,"operation":%q,"run":"<run>","epoch":<epoch>,"phase":%q,"prior":<unschedulable, labels and annotations before>,"gate":%q%s}`,
			of.Pool.Name, of.Pool.Selector, of.Operation, StepMark, of.Gate.Name, part)),
	}
	autoscalers := gate.AutoscalerAnnotations()
	for _, key := range slices.Sorted(maps.Keys(autoscalers)) {
		p = append(p, jsonpatch.Add(annotation(key), autoscalers[key]))
	}
	return append(p,
		jsonpatch.Add("/spec/unschedulable", true),
		jsonpatch.Add("/spec/taints", []any{"<taints before>", gate.SwitchingTaint()}))
}

// labelPatch moves a closed node to a state of the gate; the taint goes with it if a
// DaemonSet's pod has to land.
func labelPatch(g gate.Gate, to gate.State, step StepID, lift bool) jsonpatch.Patch {
	p := owned(step)
	for _, key := range slices.Sorted(maps.Keys(g.Labels[to])) {
		switch value := g.Labels[to][key]; {
		case to == gate.Plugin && slices.Contains(g.Companions, key):
			p = append(p, jsonpatch.Add(label(key), valueBefore))
		case value != "":
			p = append(p, jsonpatch.Add(label(key), value))
		default:
			p = append(p, jsonpatch.Remove(label(key)))
		}
	}
	if lift {
		p = append(p, jsonpatch.Add("/spec/taints", []any{"<taints before>"}))
	}
	return p
}

// taintPatch puts the tool's taint back when the pod is there.
func taintPatch(step StepID) jsonpatch.Patch {
	return append(owned(step), jsonpatch.Add("/spec/taints", []any{"<taints before>", gate.SwitchingTaint()}))
}

// openPatch takes back what closedPatch did. The record stays with a migrated node,
// for its rollback, and goes with a restored one.
func openPatch(step StepID, g gate.Gate, restore bool) jsonpatch.Patch {
	p := owned(step)
	if restore {
		p[len(p)-1] = jsonpatch.Remove(annotation(gate.StateAnnotation))
		for _, key := range slices.Sorted(maps.Keys(g.Labels[gate.Plugin])) {
			p = append(p, jsonpatch.Add(label(key), valueBefore))
		}
	}
	return append(append(p, autoscalersBack()...),
		jsonpatch.Add("/spec/unschedulable", "<value before>"),
		jsonpatch.Add("/spec/taints", []any{"<taints before>"}))
}

// autoscalersBack gives the autoscalers' annotations the values that they had.
func autoscalersBack() jsonpatch.Patch {
	var p jsonpatch.Patch
	for _, key := range slices.Sorted(maps.Keys(gate.AutoscalerAnnotations())) {
		p = append(p, jsonpatch.Add(annotation(key), valueBefore))
	}
	return p
}

// owned begins every later patch: it fails if another run has marked the node since.
func owned(step StepID) jsonpatch.Patch {
	return jsonpatch.Patch{
		jsonpatch.Test("/metadata/uid", "<uid>"),
		jsonpatch.Test("/metadata/resourceVersion", "<resourceVersion>"),
		jsonpatch.Test(annotation(gate.StateAnnotation), "<record of run <run>, epoch <epoch>>"),
		jsonpatch.Add(annotation(gate.StateAnnotation), fmt.Sprintf("<the same record, phase %s>", step)),
	}
}

func annotation(key string) string { return jsonpatch.Path("/metadata/annotations", key) }
func label(key string) string      { return jsonpatch.Path("/metadata/labels", key) }
