package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/jsonpatch"
)

// unprepare plans to take back what prepare did. Nothing of it may be in use any
// more: the mapping goes first, then the driver, and the plugin's DaemonSets last.
func (b *builder) unprepare() error {
	b.deleteClass()
	if err := b.removeDriver(); err != nil {
		return err
	}
	if err := b.includePlugins(); err != nil {
		return err
	}
	if len(b.p.Shared) == 0 && b.in.Shared == nil {
		return nil
	}
	b.p.Shared = append(b.p.Shared, b.recordStep("Record that nothing of prepare is left; namespace and journal stay"))
	return nil
}

// deleteClass removes the DeviceClass that the journal says the tool made, and no
// other.
func (b *builder) deleteClass() {
	for i := range b.s.Classes {
		c := &b.s.Classes[i]
		mapped := c.Spec.ExtendedResourceName != nil && *c.Spec.ExtendedResourceName == b.in.Resource
		if !mapped || !b.created("DeviceClass", "", c.Name) {
			continue
		}
		target := Object{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass", Name: c.Name, Note: "made by this tool"}
		b.p.Shared = append(b.p.Shared, Step{
			ID: StepDeviceClassDelete, Target: &target,
			Title:   fmt.Sprintf("Delete DeviceClass %s: DRA serves %s no more", c.Name, b.in.Resource),
			Needs:   []string{"no node of the cluster is switched, and no pool's run is under way", "no claim of the driver is allocated"},
			Changes: []Change{{Verb: "delete", Object: target}},
			Waits:   []Wait{within("the DeviceClass to be gone", sharedObject)},
			Undo:    "the next migration makes it again",
		})
	}
}

// removeDriver deletes what prepare applied, in reverse, or takes the gate's label
// out of a driver that was there before.
func (b *builder) removeDriver() error {
	for _, d := range b.inv.DriversFor(b.in.Driver) {
		b.p.Driver.DaemonSets = append(b.p.Driver.DaemonSets, Object{
			Kind: "DaemonSet", Namespace: d.DaemonSet.Namespace, Name: d.DaemonSet.Name})
	}
	if b.in.Shared != nil {
		b.deleteCreated()
	}
	for _, d := range b.inv.DriversFor(b.in.Driver) {
		ds := d.DaemonSet
		pre := b.preImage(ds, gate.AffinityPath)
		if b.created("DaemonSet", ds.Namespace, ds.Name) || (pre == nil && b.in.Shared != nil) {
			continue
		}
		edit, err := gate.Unplace(ds, pre)
		if err != nil {
			return err
		}
		if edit.Empty() {
			continue
		}
		target := Object{Kind: "DaemonSet", Namespace: ds.Namespace, Name: ds.Name, Note: "belongs to " + d.Owner.String()}
		if restartsPods(ds.Spec.UpdateStrategy) {
			b.restart(ds, "the template of its DaemonSet changes", nil)
		}
		b.p.Shared = append(b.p.Shared, Step{
			ID: StepDriverRemove, Target: &target,
			Title:   "Let the DRA driver onto all nodes that it was on before prepare",
			Needs:   []string{"no node of the cluster is switched, and no pool's run is under way"},
			Changes: []Change{{Verb: "patch", Object: target, Patch: edit.Patch.String()}},
			Waits:   []Wait{within("the DaemonSet controller to have seen the change", sharedObject)},
			Undo:    "dramigrate prepare",
		})
	}
	return nil
}

func (b *builder) deleteCreated() {
	step := Step{
		ID:    StepDriverRemove,
		Title: "Remove the DRA driver: what prepare made, in reverse",
		Needs: []string{"no node of the cluster is switched, and no pool's run is under way", "no claim of the driver is allocated", "each object is still the one that prepare made"},
		Waits: []Wait{within("the driver's objects to be gone", sharedObject)},
		Undo:  "dramigrate prepare --driver-manifests DIR",
	}
	for _, c := range slices.Backward(b.in.Shared.Created) {
		object := Object{APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
		switch {
		case c.Kind == "Namespace" && c.Name == b.in.Namespace, c.Kind == "DeviceClass" && b.deletes(c.Name):
			continue
		case c.Kind == "Namespace":
			if other := b.othersIn(c.Name); other != "" {
				step.Needs = append(step.Needs, fmt.Sprintf("namespace/%s stays: pod %s in it is not the driver's", c.Name, other))
				continue
			}
			object.Note = "and all that is in it"
		case c.Kind == "DaemonSet":
			b.removedPods(c)
		}
		step.Changes = append(step.Changes, Change{Verb: "delete", Object: object})
	}
	if len(step.Changes) > 0 {
		b.p.Shared = append(b.p.Shared, step)
	}
}

// deletes says whether an earlier step deletes the DeviceClass already.
func (b *builder) deletes(class string) bool {
	return slices.ContainsFunc(b.p.Shared, func(s Step) bool {
		return s.ID == StepDeviceClassDelete && s.Target.Name == class
	})
}

// othersIn finds a pod in the namespace that none of the objects which prepare made
// controls.
func (b *builder) othersIn(namespace string) string {
	for i := range b.s.Pods {
		p := &b.s.Pods[i]
		if p.Namespace != namespace {
			continue
		}
		ours := slices.ContainsFunc(b.in.Shared.Created, func(c cluster.CreatedObject) bool {
			return c.Namespace == namespace && (c.Kind == p.Owner.Kind && c.Name == p.Owner.Name ||
				c.Kind == "Deployment" && p.Owner.Kind == "ReplicaSet" && strings.HasPrefix(p.Owner.Name, c.Name+"-"))
		})
		if !ours {
			return p.Ref()
		}
	}
	return ""
}

func (b *builder) removedPods(c cluster.CreatedObject) {
	for i := range b.s.DaemonSets {
		if ds := &b.s.DaemonSets[i]; ds.Namespace == c.Namespace && ds.Name == c.Name {
			b.restart(ds, "its DaemonSet is deleted", nil)
		}
	}
}

// includePlugins lets the plugin's DaemonSets onto all their nodes again and puts
// their update strategy back.
func (b *builder) includePlugins() error {
	for _, d := range b.inv.PluginsFor(b.in.Resource) {
		ds := d.DaemonSet
		target := Object{Kind: "DaemonSet", Namespace: ds.Namespace, Name: ds.Name, Note: "belongs to " + d.Owner.String()}
		b.p.Plugins = append(b.p.Plugins, target)
		pre := b.preImage(ds, gate.AffinityPath)
		if pre == nil && (b.in.Shared != nil || d.Gate.Vendor) {
			continue // the expression was there before prepare
		}
		edit, err := gate.Unexclude(ds, pre)
		if err != nil {
			return err
		}
		strategy, patch, err := b.strategyBack(ds)
		if err != nil {
			return err
		}
		patch = merge(patch, edit.Patch)
		if len(patch) == 0 {
			continue
		}
		step := Step{
			ID: StepPluginInclude, Target: &target,
			Title:   "Put the device plugin's DaemonSet back as it was before prepare",
			Needs:   []string{"no node of the cluster is switched, and no pool's run is under way", "nobody else owns the DaemonSet"},
			Changes: []Change{{Verb: "patch", Object: target, Patch: patch.String()}},
			Waits:   []Wait{within("the DaemonSet controller to have seen the change", sharedObject)},
			Undo:    "dramigrate prepare",
		}
		if n := b.restartedByInclude(ds, strategy); n > 0 {
			step.Waits = []Wait{within("every pod of the DaemonSet to be of the former template and ready", rolloutDeadline(n))}
		}
		b.p.Shared = append(b.p.Shared, step)
	}
	return nil
}

// strategyBack is the update strategy after unprepare, and the patch to it.
func (b *builder) strategyBack(ds *appsv1.DaemonSet) (appsv1.DaemonSetUpdateStrategy, jsonpatch.Patch, error) {
	now := ds.Spec.UpdateStrategy
	pre := b.preImage(ds, gate.StrategyPath)
	if pre == nil {
		return now, nil, nil
	}
	patch, err := gate.RestoreStrategy(ds, *pre)
	if err != nil || len(patch) == 0 {
		return now, nil, err
	}
	var before appsv1.DaemonSetUpdateStrategy
	if err := json.Unmarshal(pre.Before, &before); err != nil {
		return now, nil, fmt.Errorf("daemonset/%s/%s: recorded update strategy: %w", ds.Namespace, ds.Name, err)
	}
	return before, patch, nil
}

func (b *builder) restartedByInclude(ds *appsv1.DaemonSet, strategy appsv1.DaemonSetUpdateStrategy) int {
	if !restartsPods(strategy) {
		return 0
	}
	n := 0
	for _, p := range b.podsOf(ds) {
		if ofCurrentTemplate(&p, ds) {
			b.p.Restarts = append(b.p.Restarts, Restart{Pod: p.Ref(), Node: p.Node, Why: "the template of its DaemonSet changes back"})
			n++
		}
	}
	return n
}

// preImage finds what prepare recorded of a field of this very DaemonSet.
func (b *builder) preImage(ds *appsv1.DaemonSet, path string) *cluster.PreImage {
	if b.in.Shared == nil {
		return nil
	}
	for i := range b.in.Shared.PreImages {
		pre := &b.in.Shared.PreImages[i]
		if pre.Object.Kind == "DaemonSet" && pre.Object.Namespace == ds.Namespace && pre.Object.Name == ds.Name &&
			pre.Object.UID == ds.UID && pre.Path == path {
			return pre
		}
	}
	return nil
}
