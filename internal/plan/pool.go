package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

// migrate plans the move of a pool to DRA.
func (b *builder) migrate() error {
	if b.in.Into.Name != "" {
		return b.migrateInto()
	}
	if err := b.poolNodes(b.in.Pool.Nodes); err != nil {
		return err
	}
	if err := b.chooseClass(); err != nil {
		return err
	}
	if err := b.cut(b.migrated); err != nil {
		return err
	}
	b.p.NodeSteps = migrateSteps(b.p)
	b.p.NodeChanges = b.nodeChanges()
	b.p.Evictions = b.evictions()
	b.p.Claims = b.claims()
	return nil
}

// chooseClass fixes the DeviceClass. A configuration may name the one to create.
func (b *builder) chooseClass() error {
	b.p.Class = b.class()
	if want := b.in.Settings.ClassName; want != "" && want != b.p.Class.Name {
		return fmt.Errorf("deviceclass/%s: carries %s already or came with the driver, and the configuration names class %s: there must be one class alone; leave class.name away",
			b.p.Class.Name, b.in.Resource, want)
	}
	return nil
}

// rollback plans the way back: the nodes of the pool, and those that carry its mark
// and are in the pool no more.
func (b *builder) rollback() error {
	marked, _ := cluster.StateNodes(b.s, b.in.Pool.Name)
	nodes := slices.Concat(b.in.Pool.Nodes, marked)
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if into := b.wentInto(); into != nil {
		return b.rollbackInto(*into, nodes)
	}
	if err := b.poolNodes(nodes); err != nil {
		return err
	}
	if err := b.cut(b.onPlugin); err != nil {
		return err
	}
	b.p.NodeSteps = rollbackSteps(b.p)
	b.p.NodeChanges = b.nodeChanges()
	b.p.Evictions = b.evictions()
	return nil
}

// poolNodes fixes the pool's nodes and the DaemonSets that concern them.
func (b *builder) poolNodes(names []string) error {
	var err error
	if b.p.Pool, err = b.refs(cluster.NodePool{Name: b.in.Pool.Name, Selector: b.in.Pool.Selector, Nodes: names}); err != nil {
		return err
	}
	b.p.Gate = b.poolGate()
	for _, d := range b.inv.PluginsFor(b.in.Resource) {
		if b.concerns(func(v cluster.NodeView) bool {
			lands, _ := gate.Lands(d.DaemonSet, b.p.Gate.With(v.Node, gate.Plugin))
			return lands || slices.Contains(d.Nodes, v.Node.Name)
		}) {
			b.p.Plugins = append(b.p.Plugins, Object{
				Kind: "DaemonSet", Namespace: d.DaemonSet.Namespace, Name: d.DaemonSet.Name,
				Note: string(d.Role) + "; " + strings.Join(d.Evidence, "; "),
			})
		}
	}
	for _, d := range b.inv.DriversFor(b.in.Driver) {
		if b.concerns(func(v cluster.NodeView) bool {
			lands, _ := gate.Lands(d.DaemonSet, b.p.Gate.With(v.Node, gate.DRA))
			return lands || slices.Contains(d.Nodes, v.Node.Name)
		}) {
			b.p.Driver.DaemonSets = append(b.p.Driver.DaemonSets, Object{
				Kind: "DaemonSet", Namespace: d.DaemonSet.Namespace, Name: d.DaemonSet.Name,
				Note: strings.Join(d.Evidence, "; "),
			})
		}
	}
	return nil
}

// refs is a pool with the machines that are behind the names of its nodes now.
func (b *builder) refs(of cluster.NodePool) (*Pool, error) {
	pool := &Pool{Name: of.Name, Selector: of.Selector}
	for _, name := range of.Nodes {
		node, ok := b.s.Node(name)
		if !ok {
			return nil, fmt.Errorf("node/%s: is in pool %s and not in the cluster", name, pool.Name)
		}
		pool.Nodes = append(pool.Nodes, NodeRef{Name: name, UID: node.UID})
	}
	return pool, nil
}

// concerns says whether something holds for a node of the pool.
func (b *builder) concerns(holds func(cluster.NodeView) bool) bool {
	return slices.ContainsFunc(b.p.Pool.Nodes, func(n NodeRef) bool {
		node, ok := b.s.Node(n.Name)
		return ok && holds(cluster.NodeView{Node: node})
	})
}

// cut makes the batches of the pool's nodes. skip says why a node is left alone, or
// "".
func (b *builder) cut(skip func(cluster.NodeView) string) error {
	names, begun, fresh := b.partition(b.p.Pool.Nodes, skip)
	size, err := MaxUnavailable(b.in.Settings.MaxUnavailable, len(names))
	if err != nil {
		return err
	}
	b.p.Batches = b.cutChosen(names, begun, fresh, size)
	return nil
}

// partition takes the nodes apart: all, those that an earlier run has begun with, and those
// that are yet as they were. skip says why a node is in neither of these.
func (b *builder) partition(nodes []NodeRef, skip func(cluster.NodeView) string) (names, begun, fresh []string) {
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	views := b.s.Views(names...)
	for _, name := range names {
		v := views[name]
		// A node on which nothing is left to do but to remove a pod that a killed run has
		// left is still in: the run removes such pods first.
		if why := skip(v); why != "" && !b.leftHelper(name) {
			b.p.Skipped = append(b.p.Skipped, Skip{Node: name, Why: why})
			continue
		}
		if slices.ContainsFunc(v.Node.Spec.Taints, gate.IsSwitchingTaint) {
			begun = append(begun, name)
		} else {
			fresh = append(fresh, name)
		}
	}
	return names, begun, fresh
}

// cutChosen makes the batches: those that a person wrote, and the others by size. Nodes
// that an earlier run has begun with go first.
func (b *builder) cutChosen(names, begun, fresh []string, size int) []Batch {
	b.skipStrangers(names)
	isBegun := func(node string) bool { return slices.Contains(begun, node) }
	written, rest := chosen(b.in.Settings.Batches, append(slices.Clone(begun), fresh...), isBegun)
	if len(b.in.Settings.Batches) == 0 {
		return batches(rest, max(b.in.Settings.FirstBatch, 1), size)
	}
	closed := len(rest) - len(slices.DeleteFunc(slices.Clone(rest), isBegun))
	return slices.Concat(batches(rest[:closed], size, size), written, batches(rest[closed:], size, size))
}

// leftHelper says that a helper pod for the node is there which nobody removes. A probe
// beside runs removes its own.
func (b *builder) leftHelper(node string) bool {
	return slices.ContainsFunc(b.s.Pods, func(p cluster.Pod) bool {
		return p.HelperNode == node && !p.Terminating && p.Labels[cluster.HelperLabel] != cluster.HelperForReport
	})
}

// skipStrangers says which nodes of the batches that a person wrote are not in the
// pool: they were replaced, or the name is wrong.
func (b *builder) skipStrangers(pool []string) {
	for _, batch := range b.in.Settings.Batches {
		for _, node := range batch.Nodes {
			if !slices.Contains(pool, node) {
				b.p.Skipped = append(b.p.Skipped, Skip{Node: node, Why: "is named in a batch and is not in the pool"})
			}
		}
	}
}

// Why nothing is left to do on a node, as Skip.Why says it.
const (
	onDRAWhy    = "is on DRA already, by run "
	onPluginWhy = "is on the device plugin"
	// neverMovedWhy is about a node that somebody else keeps off the plugin.
	neverMovedWhy = "was not moved by this tool"
)

// done says that the node is left alone because it is as the plan would leave it.
func (s Skip) done() bool {
	return s.Why == onPluginWhy || strings.HasPrefix(s.Why, onDRAWhy) || strings.HasPrefix(s.Why, retiredWhy)
}

// migrated says why a migration has nothing to do on a node. A node that was opened
// but has not settled, or that has met the plugin again since, stays in: its kubelet
// still remembers the plugin.
func (b *builder) migrated(v cluster.NodeView) string {
	if !v.HasDevices(b.in.Resource, b.in.Driver) {
		return "has no " + b.in.Resource
	}
	state, err := cluster.ParseNodeState(v.Node)
	at, known := b.p.Gate.StateOf(v.Node.Labels)
	if err == nil && state != nil && known && at == gate.DRA &&
		state.Operation == string(Migrate) && state.OpenedAt != nil && state.SettledAt != nil &&
		b.inv.MetAgain(v, b.in.Resource, state.SettledAt.Time) == "" {
		return onDRAWhy + state.Run
	}
	return ""
}

// onPlugin says why a rollback has nothing to do on a node.
func (b *builder) onPlugin(v cluster.NodeView) string {
	_, marked := v.Node.Annotations[gate.StateAnnotation]
	own, known := gate.Switched(v.Node.Labels)
	if marked || !known || own != gate.Plugin {
		return ""
	}
	if _, fits := b.p.Gate.StateOf(v.Node.Labels); !fits {
		return neverMovedWhy
	}
	return onPluginWhy
}

// class is the DeviceClass that the pool will use: the one in force, else the one
// that came with the driver's manifests, else one of the tool's own.
func (b *builder) class() *Class {
	if winner, _ := b.s.ClassFor(b.in.Resource); winner != nil {
		return &Class{Action: Adopt, Name: winner.Name}
	}
	if b.in.Shared != nil && b.in.Shared.HeldClass != nil {
		held := b.in.Shared.HeldClass.DeepCopy()
		held.TypeMeta = classType()
		metav1.SetMetaDataLabel(&held.ObjectMeta, gate.ManagedByLabel, gate.ManagedBy)
		return &Class{Action: Create, Name: held.Name, Object: held}
	}
	own := OwnClass(b.in.Resource, b.in.Driver)
	own.Name = cmp.Or(b.in.Settings.ClassName, own.Name)
	return &Class{Action: Create, Name: own.Name, Object: own}
}

// OwnClass is the DeviceClass for a resource that no class carries: the driver's
// devices that are what the plugin advertises, or all of them if it is not known how
// the driver marks these.
func OwnClass(resource, driver string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		TypeMeta: classType(),
		ObjectMeta: metav1.ObjectMeta{
			Name:   "dramigrate-" + strings.NewReplacer("/", "-", ".com", "", "_", "-").Replace(strings.ToLower(resource)),
			Labels: map[string]string{gate.ManagedByLabel: gate.ManagedBy},
		},
		Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: &resource,
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: vendor.Selector(resource, driver),
			}}},
		},
	}
}

func classType() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"}
}
