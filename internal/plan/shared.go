package plan

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/jsonpatch"
)

// prepare plans the one-off change of shared objects.
func (b *builder) prepare() error {
	if err := b.excludePlugins(); err != nil {
		return err
	}
	if err := b.bringDriver(); err != nil {
		return err
	}
	if recorded := b.in.Shared != nil && b.in.Shared.DriverSource != ""; len(b.p.Shared) == 0 && recorded {
		return nil
	}
	b.p.Shared = append([]Step{b.namespaceStep()}, b.p.Shared...)
	b.p.Shared = append(b.p.Shared, b.recordStep(
		"Record that prepare is done; what each step found was recorded before it changed anything"))
	return nil
}

// namespaceStep makes the place for the lock, the journal and the helper pods.
func (b *builder) namespaceStep() Step {
	ns := Namespace(b.in.Namespace)
	return Step{
		ID: StepNamespace, Title: "Make the tool's namespace; helper pods look at the kubelet's socket, which takes the pod-security level privileged",
		Target:  &Object{Kind: "Namespace", Name: ns.Name},
		Changes: []Change{{Verb: "create", Object: Object{Kind: "Namespace", Name: ns.Name, Note: "unless it is there"}, Body: namespaceBody(ns)}},
		Waits:   []Wait{within("the namespace to be active", sharedObject)},
		Undo:    "stays, with the journal in it; remove it by hand when the record is not wanted any more",
	}
}

// Namespace is the tool's namespace as prepare makes it.
func Namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			gate.ManagedByLabel:                  gate.ManagedBy,
			"pod-security.kubernetes.io/enforce": "privileged",
		}},
	}
}

// namespaceBody leaves out what the server fills in.
func namespaceBody(ns *corev1.Namespace) string {
	return toYAML(map[string]any{
		"apiVersion": ns.APIVersion, "kind": ns.Kind,
		"metadata": map[string]any{"name": ns.Name, "labels": ns.Labels},
	})
}

// recordStep writes the journal of shared objects.
func (b *builder) recordStep(title string) Step {
	journal := Object{Kind: "ConfigMap", Namespace: b.in.Namespace, Name: "shared", Note: "the journal of shared objects"}
	return Step{
		ID: StepRecord, Title: title, Target: &journal,
		Changes: []Change{{Verb: "update", Object: journal}},
		Undo:    "needs none",
	}
}

// excludePlugins keeps every DaemonSet of the plugin off switched nodes.
func (b *builder) excludePlugins() error {
	for _, d := range b.inv.PluginsFor(b.in.Resource) {
		ds := d.DaemonSet
		target := Object{Kind: "DaemonSet", Namespace: ds.Namespace, Name: ds.Name,
			Note: fmt.Sprintf("%s, belongs to %s; %s", d.Role, d.Owner, strings.Join(d.Evidence, "; "))}
		if d.Gate.Vendor {
			target.Note += "; left as it is: gate " + d.Gate.Name + " moves its pods"
		}
		b.p.Plugins = append(b.p.Plugins, target)
		if d.Gate.Vendor || d.Owner.Keeps() {
			continue
		}
		edit, err := gate.Exclude(ds)
		if err != nil {
			return err
		}
		if edit.Empty() {
			continue
		}
		const title = "Keep the device plugin off nodes with the label " + gate.AllocationLabel
		if b.asksOwner(d.Owner) {
			b.p.Shared = append(b.p.Shared, b.byOwner(StepPluginByOwner, title, target, ds, d.Owner, edit))
			if restartsPods(ds.Spec.UpdateStrategy) {
				b.restart(ds, "the template of its DaemonSet changes", nil)
			}
			continue
		}
		patch, rolls := edit.Patch, restartsPods(ds.Spec.UpdateStrategy)
		undo := "dramigrate unprepare"
		if rolls && b.in.Settings.PluginRollout == OnDelete {
			patch, rolls = merge(gate.OnDelete(ds), patch), false
			undo += "; until then the update strategy stays OnDelete, and an update of the plugin reaches a node only when its pod is deleted"
		}
		step := Step{
			ID: StepPluginExclude, Target: &target,
			Title:   title,
			Needs:   []string{"nobody else owns the DaemonSet", "its affinity is recorded in the journal"},
			Changes: []Change{{Verb: "patch", Object: target, Patch: patch.String()}},
			Waits:   []Wait{within("the DaemonSet controller to have seen the change", sharedObject)},
			Undo:    undo,
		}
		if rolls {
			n := b.restart(ds, "the template of its DaemonSet changes", nil)
			step.Waits = []Wait{within("every pod of the DaemonSet to be of the new template and ready", rolloutDeadline(n))}
		}
		editOwned(&step, d.Owner)
		b.p.Shared = append(b.p.Shared, step)
	}
	return nil
}

// bringDriver installs the driver from manifests, or places one that runs already.
func (b *builder) bringDriver() error {
	running := b.inv.DriversFor(b.in.Driver)
	if b.in.Manifests != nil {
		return b.installDriver()
	}
	if len(running) == 0 {
		return fmt.Errorf("no DaemonSet runs DRA driver %s: give its manifests with --driver-manifests DIR", b.in.Driver)
	}
	for _, d := range running {
		ds := d.DaemonSet
		target := Object{Kind: "DaemonSet", Namespace: ds.Namespace, Name: ds.Name,
			Note: fmt.Sprintf("belongs to %s; %s", d.Owner, strings.Join(d.Evidence, "; "))}
		b.p.Driver.DaemonSets = append(b.p.Driver.DaemonSets, target)
		edit, err := gate.PlaceDriver(ds)
		if err != nil {
			return err
		}
		if edit.Empty() {
			continue
		}
		b.placedRestarts(ds)
		title := fmt.Sprintf("Keep the DRA driver to nodes with %s=%s", gate.AllocationLabel, gate.ValueDRA)
		if b.asksOwner(d.Owner) {
			b.p.Shared = append(b.p.Shared, b.byOwner(StepDriverByOwner, title, target, ds, d.Owner, edit))
			continue
		}
		step := Step{
			ID: StepDriverPlace, Target: &target,
			Title:   title,
			Needs:   []string{"nobody else owns the DaemonSet", "no node that it leaves has a claim of it", "its affinity is recorded in the journal"},
			Changes: []Change{{Verb: "patch", Object: target, Patch: edit.Patch.String()}},
			Waits:   []Wait{within("the DaemonSet controller to have seen the change, and the driver to be ready on switched nodes", driverReady)},
			Undo:    "dramigrate unprepare",
		}
		editOwned(&step, d.Owner)
		b.p.Shared = append(b.p.Shared, step)
	}
	return nil
}

// placedRestarts are the pods of a running driver that leave their nodes, or restart.
func (b *builder) placedRestarts(ds *appsv1.DaemonSet) {
	b.restart(ds, "", func(node *corev1.Node) string {
		if at, known := gate.Switched(node.Labels); !known || at != gate.DRA {
			return "leaves its node, which is not switched"
		}
		if restartsPods(ds.Spec.UpdateStrategy) {
			return "the template of its DaemonSet changes"
		}
		return ""
	})
}

// otherDriver refuses manifests of a driver that is known, and is not that of the resource.
// One that is not known may be any.
func otherDriver(placed []*appsv1.DaemonSet, in Intent) error {
	s := &cluster.Snapshot{}
	for _, ds := range placed {
		s.DaemonSets = append(s.DaemonSets, *ds)
	}
	var found []string
	for _, d := range gate.Detect(s).Drivers {
		if len(d.DriverNames) == 0 || slices.Contains(d.DriverNames, in.Driver) {
			return nil
		}
		found = append(found, fmt.Sprintf("DaemonSet %s/%s of %s", d.DaemonSet.Namespace, d.DaemonSet.Name, strings.Join(d.DriverNames, ", ")))
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("driver manifests: are those of another driver: %s; %s is to be served by %s: give its manifests by --driver-manifests, or name the resource or the driver that is meant by --resource or --driver",
		strings.Join(found, "; "), in.Resource, in.Driver)
}

// installDriver applies the driver's manifests, each of its DaemonSets kept to
// switched nodes first.
func (b *builder) installDriver() error {
	placed, err := Place(b.in.Manifests, b.in.Resource)
	if err != nil {
		return fmt.Errorf("driver manifests: %w", err)
	}
	if err := otherDriver(placed.Drivers, b.in); err != nil {
		return err
	}
	for _, ds := range placed.Drivers {
		b.p.Driver.DaemonSets = append(b.p.Driver.DaemonSets, Object{Kind: "DaemonSet", Namespace: ds.Namespace, Name: ds.Name})
	}
	if err := b.refuseSecondDriver(placed.Drivers); err != nil {
		return err
	}
	same := b.p.Driver.Source == b.in.Manifests.Digest && len(b.inv.DriversFor(b.in.Driver)) > 0
	b.p.Driver.Source = b.in.Manifests.Digest
	if winner, _ := b.s.ClassFor(b.in.Resource); winner != nil {
		b.p.Class = &Class{Action: Adopt, Name: winner.Name}
	} else if placed.HeldClass != nil {
		b.p.Class = &Class{Action: Create, Name: placed.HeldClass.Name, Object: placed.HeldClass}
	}
	if same {
		return nil
	}
	step := Step{
		ID:    StepDriverInstall,
		Title: fmt.Sprintf("Install the DRA driver; it runs on no node until one has %s=%s", gate.AllocationLabel, gate.ValueDRA),
		Needs: []string{"no other DaemonSet runs the driver"},
		Waits: []Wait{within("the DaemonSet controller to have seen the driver's DaemonSets, and to want pods on switched nodes alone", sharedObject)},
		Undo:  "dramigrate unprepare removes what this step made, in reverse",
	}
	for _, u := range placed.Objects {
		step.Changes = append(step.Changes, Change{Verb: "apply", Object: Object{
			Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		}, Body: toYAML(u.Object)})
	}
	if placed.HeldClass != nil {
		step.Needs = append(step.Needs, fmt.Sprintf("DeviceClass %s is kept back: it would map %s for every pool at once; the first migration creates it",
			placed.HeldClass.Name, b.in.Resource))
	}
	b.p.Shared = append(b.p.Shared, step)
	return nil
}

// refuseSecondDriver fails if the driver runs already by a DaemonSet that the tool
// did not install: two would register under one name.
func (b *builder) refuseSecondDriver(ours []*appsv1.DaemonSet) error {
	for _, d := range b.inv.DriversFor(b.in.Driver) {
		named := slices.ContainsFunc(ours, func(ds *appsv1.DaemonSet) bool {
			return ds.Namespace == d.DaemonSet.Namespace && ds.Name == d.DaemonSet.Name
		})
		if !named || !b.created("DaemonSet", d.DaemonSet.Namespace, d.DaemonSet.Name) {
			return fmt.Errorf("daemonset/%s/%s runs DRA driver %s already and was not installed by this tool: leave --driver-manifests away to use it",
				d.DaemonSet.Namespace, d.DaemonSet.Name, b.in.Driver)
		}
	}
	return nil
}

// created says whether prepare made the object.
func (b *builder) created(kind, namespace, name string) bool {
	return b.in.Shared != nil && slices.ContainsFunc(b.in.Shared.Created, func(c cluster.CreatedObject) bool {
		return c.Kind == kind && c.Namespace == namespace && c.Name == name
	})
}

func restartsPods(s appsv1.DaemonSetUpdateStrategy) bool {
	return s.Type != appsv1.OnDeleteDaemonSetStrategyType
}

// merge joins patches of one object, the test of its UID once.
func merge(first, second jsonpatch.Patch) jsonpatch.Patch {
	const uid = "/metadata/uid"
	if len(first) > 0 && len(second) > 0 && first[0].Path == uid && second[0].Path == uid {
		second = second[1:]
	}
	return append(slices.Clone(first), second...)
}
