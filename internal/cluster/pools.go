package cluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/dramigrate/dramigrate/internal/words"
)

// NodePool is a set of nodes chosen by a label selector.
type NodePool struct {
	// Name is what a person calls the pool: a well-known label's value, or
	// "key=value" where two keys use one value for different nodes, or the selector.
	Name string
	// Selector chooses the nodes, in the syntax of kubectl -l.
	Selector string
	// Nodes are the names of the nodes, sorted.
	Nodes []string
}

// poolKeys are the labels by which clouds and tools name the pool of a node, the
// one that stays for a node's life first.
func poolKeys() []string {
	return []string{
		"cloud.google.com/gke-nodepool",  // GKE
		"eks.amazonaws.com/nodegroup",    // EKS managed node groups
		"alpha.eksctl.io/nodegroup-name", // eksctl, self-managed groups too
		"kubernetes.azure.com/agentpool", // AKS
		"agentpool",                      // AKS, before the prefixed label
		"karpenter.sh/nodepool",          // Karpenter, EKS Auto Mode
	}
}

const (
	rolePrefix = "node-role.kubernetes.io/"
	// openShiftLabel is on every node of an OpenShift cluster. Elsewhere roles are
	// free text and name no pool.
	openShiftLabel = "node.openshift.io/os_id"
)

// builtInRole says whether a role belongs to the machine config pools that every
// OpenShift cluster has; a custom pool adds a role of its own name.
func builtInRole(role string) bool {
	return slices.Contains([]string{"", "master", "control-plane", "worker", "arbiter"}, role)
}

// label is one label that names a pool.
type label struct{ key, value string }

// selector of a role has no value: the label's presence counts.
func (l label) selector() string {
	if strings.HasPrefix(l.key, rolePrefix) {
		return l.key
	}
	return l.key + "=" + l.value
}

func (l label) pool() string {
	if role, ok := strings.CutPrefix(l.key, rolePrefix); ok {
		return role
	}
	return l.value
}

// Pools finds the pools that well-known labels name. Labels that give one name to
// the same nodes are one pool; labels that give one name to different nodes make a
// pool each, named "key=value". A node may be in several pools, or in none.
func Pools(nodes []corev1.Node) []NodePool {
	members := map[label][]string{}
	var order []label
	for i := range nodes {
		for _, l := range poolLabels(&nodes[i]) {
			if members[l] == nil {
				order = append(order, l)
			}
			members[l] = append(members[l], nodes[i].Name)
		}
	}
	keys := poolKeys()
	rank := func(l label) int {
		if i := slices.Index(keys, l.key); i >= 0 {
			return i
		}
		return len(keys)
	}
	slices.SortStableFunc(order, func(a, b label) int { return rank(a) - rank(b) })

	byName := map[string][]NodePool{}
	for _, l := range order {
		p := NodePool{Name: l.pool(), Selector: l.selector(), Nodes: members[l]}
		slices.Sort(p.Nodes)
		known := slices.ContainsFunc(byName[p.Name], func(q NodePool) bool { return slices.Equal(q.Nodes, p.Nodes) })
		if !known {
			byName[p.Name] = append(byName[p.Name], p)
		}
	}
	var out []NodePool
	for _, same := range byName {
		for _, p := range same {
			if len(same) > 1 {
				p.Name = p.Selector
			}
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b NodePool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func poolLabels(n *corev1.Node) []label {
	var out []label
	for _, key := range poolKeys() {
		if v := n.Labels[key]; v != "" {
			out = append(out, label{key, v})
		}
	}
	if _, ok := n.Labels[openShiftLabel]; ok {
		for key := range n.Labels {
			if role, isRole := strings.CutPrefix(key, rolePrefix); isRole && !builtInRole(role) {
				out = append(out, label{key: key})
			}
		}
	}
	return out
}

// SelectPool finds the pool that a person means: by a name that Pools gives, by a
// label selector, or by a name for a selector of her own. A name that no label
// gives any more is looked for in the annotations of nodes, so that a pool can be
// put back whatever became of its labels. It is an error if no node is selected.
func SelectPool(s *Snapshot, name, selector string) (NodePool, error) {
	switch {
	case name == "" && selector == "":
		return NodePool{}, fmt.Errorf("no pool: neither a name nor a selector is given")
	case selector == "":
		return poolByName(s, name)
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		return NodePool{}, fmt.Errorf("selector %q: %w", selector, err)
	}
	if parsed.Empty() {
		return NodePool{}, fmt.Errorf("selector %q selects every node of the cluster", selector)
	}
	p := NodePool{Name: name, Selector: parsed.String(), Nodes: selected(s, parsed)}
	if len(p.Nodes) == 0 {
		return NodePool{}, fmt.Errorf("selector %q selects no node", selector)
	}
	if name == "" {
		p.Name = p.Selector
		// One pool must have one name: the lock and the journal go by it.
		for _, known := range Pools(s.Nodes) {
			if means(parsed, known.Selector) {
				return known, nil
			}
		}
	}
	return p, nil
}

// means says that a selector is a pool's own, however it is spelt.
func means(parsed labels.Selector, known string) bool {
	if parsed.String() == known {
		return true
	}
	key, value, _ := strings.Cut(known, "=")
	reqs, _ := parsed.Requirements()
	got, exact := parsed.RequiresExactMatch(key)
	return len(reqs) == 1 && exact && got == value
}

func poolByName(s *Snapshot, name string) (NodePool, error) {
	var names, alike []string
	for _, p := range Pools(s.Nodes) {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
		if strings.HasSuffix(p.Selector, "="+name) || p.Selector == rolePrefix+name {
			alike = append(alike, p.Name)
		}
	}
	if len(alike) > 1 {
		return NodePool{}, fmt.Errorf("pool %q: several labels give that name to different nodes; choose one of %s", name, strings.Join(alike, ", "))
	}
	if p, ok := poolByState(s, name); ok {
		return p, nil
	}
	if len(names) == 0 {
		return NodePool{}, fmt.Errorf("pool %q: no node carries a label that names a pool; give a selector", name)
	}
	return NodePool{}, fmt.Errorf("pool %q: there is none; the pools are %s", name, strings.Join(names, ", "))
}

// poolByState finds a pool by what runs wrote on nodes.
func poolByState(s *Snapshot, name string) (NodePool, bool) {
	nodes, selector := StateNodes(s, name)
	if len(nodes) == 0 {
		// Its nodes may be gone, and its workloads in another pool.
		into := WentInto(s, name)
		return NodePool{Name: name}, into != nil
	}
	if parsed, err := labels.Parse(selector); err == nil && !parsed.Empty() {
		for _, n := range selected(s, parsed) {
			if !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	slices.Sort(nodes)
	return NodePool{Name: name, Selector: selector, Nodes: nodes}, true
}

// StateNodes are the nodes whose annotation says that they are of the pool, sorted,
// and the selector that the first of them names. The nodes of another pool that its
// workloads went to are not among them. Annotations that cannot be read are passed over
// here; a check reports them.
func StateNodes(s *Snapshot, pool string) (nodes []string, selector string) {
	for i := range s.Nodes {
		st, err := ParseNodeState(&s.Nodes[i])
		if err != nil || st == nil || st.Pool != pool || st.Role == RoleNew {
			continue
		}
		if len(nodes) == 0 {
			selector = st.Selector
		}
		nodes = append(nodes, s.Nodes[i].Name)
	}
	slices.Sort(nodes)
	return nodes, selector
}

func selected(s *Snapshot, sel labels.Selector) []string {
	var out []string
	for i := range s.Nodes {
		if sel.Matches(labels.Set(s.Nodes[i].Labels)) {
			out = append(out, s.Nodes[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

// OfferedTwice says by which counts the node offers devices by plugin and driver both, as
// far as the API knows; "" if it does not.
func (v NodeView) OfferedTwice(resource, driver string) string {
	count, _ := v.Allocatable(resource)
	devices, _ := DevicesOf(v.SlicesOf(driver), driver)
	if count == 0 || len(devices) == 0 {
		return ""
	}
	return fmt.Sprintf("allocatable %s is %d, and %s publishes %s: one device may be given away twice",
		resource, count, driver, words.Count(len(devices), "device"))
}

// HasDevices says whether the node has, or had, devices of the resource or the
// driver: in its capacity, in a slice, or by the tool's own marks.
func (v NodeView) HasDevices(resource, driver string) bool {
	_, switched := v.Node.Labels[AllocationLabel]
	_, marked := v.Node.Annotations[StateAnnotation]
	n, _ := v.Capacity(resource)
	return switched || marked || n > 0 || len(v.SlicesOf(driver)) > 0
}
