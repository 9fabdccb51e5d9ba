package access

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// table makes the rules of one namespace of the tool.
type table struct{ namespace string }

const (
	resourceGroup = "resource.k8s.io"
	leaseGroup    = "coordination.k8s.io"
)

// wide is a rule for the whole cluster, own one for the tool's namespace.
func wide(group, resource, why string, verbs ...string) Rule {
	return Rule{Group: group, Resource: resource, Verbs: verbs, Why: why}
}

func (t table) own(group, resource, why string, verbs ...string) Rule {
	return Rule{Group: group, Resource: resource, Verbs: verbs, Namespace: t.namespace, Why: why}
}

// look is what cluster.Load reads.
func (t table) look() []Rule {
	return []Rule{
		wide("", "nodes", "to find pools, and to see what each node advertises and how it is marked", "list"),
		wide("", "pods", "to see who holds devices, and what a drain would evict", "list"),
		wide("apps", "daemonsets", "to find the device plugin and the driver, and who owns them", "list"),
		wide(resourceGroup, "resourceslices", "to see which devices a driver publishes", "list"),
		wide(resourceGroup, "deviceclasses", "to see which class carries the extended resource", "list"),
		wide(resourceGroup, "resourceclaims", "to see which devices are in use", "list"),
		wide("policy", "poddisruptionbudgets", "to see what holds a drain up", "list"),
		{Resource: "namespaces", Names: []string{metav1.NamespaceSystem}, Verbs: []string{"get"},
			Why: "to tell this cluster from another, by the UID of kube-system"},
		{Paths: []string{"/version"}, Verbs: []string{"get"},
			Why: "to see the server's version; clusters grant it to everybody unless they took it away"},
	}
}

// records are what the tool itself has written.
func (t table) records() []Rule {
	return []Rule{
		t.own("", "configmaps", "to read the journals of earlier runs", "list"),
		t.own(leaseGroup, "leases", "to see which pools are locked, and by whom", "list"),
	}
}

// watchStatus is what `status --watch` follows.
func (t table) watchStatus() []Rule {
	const without = "`status --watch` does not see changes; `status` works"
	follow := func(r Rule) Rule { r.Without = without; return r }
	return []Rule{
		follow(wide("", "nodes", "to follow nodes in `status --watch`", "watch")),
		follow(wide("", "pods", "to follow pods in `status --watch`", "watch")),
		follow(wide("apps", "daemonsets", "to follow plugin and driver in `status --watch`", "watch")),
		follow(wide(resourceGroup, "resourceslices", "to follow published devices in `status --watch`", "watch")),
		follow(t.own("", "configmaps", "to follow journals in `status --watch`", "watch")),
		follow(t.own(leaseGroup, "leases", "to follow locks in `status --watch`", "watch")),
	}
}

// watchVerify is what `verify --watch` follows.
func (t table) watchVerify() []Rule {
	follow := func(group, resource, what string) Rule {
		r := wide(group, resource, "to follow "+what+" in `verify --watch`", "watch")
		r.Without = "`verify --watch` does not see changes; `verify` works"
		return r
	}
	return []Rule{
		follow("", "nodes", "nodes"),
		follow("", "pods", "pods"),
		follow("apps", "daemonsets", "plugin and driver"),
		follow(resourceGroup, "resourceslices", "published devices"),
		follow(resourceGroup, "resourceclaims", "claims"),
		follow(resourceGroup, "deviceclasses", "the class"),
	}
}

// review is what a caller's own rights are looked at by.
func (t table) review() []Rule {
	return []Rule{wide("authorization.k8s.io", "selfsubjectaccessreviews",
		"to know before anything begins whether the caller may do all of it; clusters grant it to everybody unless they took it away", "create")}
}

func (t table) lock() []Rule {
	return []Rule{
		t.own(leaseGroup, "leases", "to take, renew and release the lock that keeps two runs apart", "get", "create", "update"),
		{Group: leaseGroup, Resource: "leases", Verbs: []string{"watch"}, Namespace: t.namespace,
			Why: "to notice at once that another run has ended", Without: "a run that waits for another looks every 5 seconds"},
	}
}

func (t table) unlock() []Rule {
	return []Rule{
		t.own(leaseGroup, "leases", "to show who holds the lock, and to take the holder out of it", "get", "update"),
		{Group: leaseGroup, Resource: "leases", Verbs: []string{"watch"}, Namespace: t.namespace,
			Why: "to notice at once that a lock which has expired is renewed", Without: "`unlock --yes` looks every 5 seconds"},
	}
}

// seeLock is what `verify` looks at before it says what to do next.
func (t table) seeLock() []Rule {
	r := t.own(leaseGroup, "leases", "to see whether a run of the pool is under way", "get")
	r.Without = "`verify` cannot tell whether a run is under way, and says so beside the command that goes on"
	return []Rule{r}
}

func (t table) readJournal() []Rule {
	return []Rule{t.own("", "configmaps", "to read the pool's last epoch from its journal", "get")}
}

func (t table) readHelpers() []Rule {
	return []Rule{t.own("", "configmaps", "to read from the pool's journal which helper image its last run had", "get")}
}

func (t table) journal() []Rule {
	return []Rule{t.own("", "configmaps", "to keep the journal: who ran what, and how shared objects were before", "get", "create", "update")}
}

// nodes is what a run does to nodes and what it waits for there.
func (t table) nodes() []Rule {
	return []Rule{
		wide("", "nodes", "to close, switch and open a node, each time as it was just read", "get", "patch"),
		wide("", "nodes", "to wait for what the kubelet advertises", "watch"),
		wide("", "pods", "to wait until a node's pods are gone, or its plugin and driver are there", "watch"),
		wide(resourceGroup, "resourceslices", "to wait until the driver publishes a node's devices, or none any more", "watch"),
		wide(resourceGroup, "resourceclaims", "to wait until no claim holds a device of the node", "watch"),
		{Resource: "pods/eviction", Verbs: []string{"create"},
			Why: "to evict the pods that hold a node's devices, within their budgets", When: "in the namespaces of the pods that the plan evicts"},
		{Resource: "events", Verbs: []string{"create"}, Namespace: metav1.NamespaceDefault,
			Why: "to record on the node, for auditors, what was done to it", Without: "a warning each time, and no Event"},
	}
}

// helperPods are the short pods on the nodes. They run under the namespace's default
// ServiceAccount without its token, so that they need no rights themselves.
func (t table) helperPods() []Rule {
	return []Rule{
		t.own("", "pods", "to run short pods on the nodes, which ask the kubelet and stand in for a workload, and to remove them", "create", "get", "list", "watch", "delete"),
		t.own("", "pods/log", "to read what those pods have found", "get"),
		{Resource: "events", Verbs: []string{"list", "watch"}, Namespace: t.namespace,
			Why: "to say why such a pod does not start", Without: "an error says that the pod did not start, and not why"},
	}
}

// podEvents is what `check pod/NAME` reads beside the rest.
func (t table) podEvents() []Rule {
	return []Rule{{Resource: "events", Verbs: []string{"list"},
		Why: "to say why a pod waits, in `check pod/NAME`", Without: "it goes by the pod's conditions alone, and less can be told of pods that have a node"}}
}

// canary is what following a canary's claim needs.
func (t table) canary() []Rule {
	return []Rule{
		wide("", "nodes", "to let the canary tolerate the taints of its node", "get"),
		t.own(resourceGroup, "resourceclaims", "to compare what the canary sees with its claim, and to wait until the claim is gone", "get", "list", "watch"),
	}
}

func (t table) createClass() []Rule {
	return []Rule{
		{Group: resourceGroup, Resource: "deviceclasses", Verbs: []string{"create"},
			Why: "to map the extended resource to the driver's devices, once a cluster", When: "if no class carries the resource yet"},
		{Group: resourceGroup, Resource: "deviceclasses", Verbs: []string{"patch"},
			Why: "to have the server try the class in `--dry-run=server`", Without: "`--dry-run=server` says that it would refuse the class; a run works"},
	}
}

func (t table) deleteClass() []Rule {
	return []Rule{{Group: resourceGroup, Resource: "deviceclasses", Verbs: []string{"get", "delete", "watch"},
		Why: "to delete the class that a migration made, and to wait until it is gone", When: "if a migration has made the class"}}
}

// editDaemonSets is the edit of the plugin's and of a running driver's placement.
func (t table) editDaemonSets() []Rule {
	return []Rule{{Group: "apps", Resource: "daemonsets", Verbs: []string{"get", "patch", "watch"},
		Why: "to change where the device plugin and the driver run, and to wait until that is rolled out", When: "in the namespaces of the DaemonSets that the plan edits"}}
}

// discovery is how a kind becomes a resource. Its paths are patterns, about which nobody
// can be asked.
func (t table) discovery() []Rule {
	return []Rule{{Paths: []string{"/api", "/api/*", "/apis", "/apis/*"}, Verbs: []string{"get"}, When: "for objects of the driver's manifests",
		Why: "to find out what the server calls the kinds of the driver's objects; clusters grant it to everybody unless they took it away"}}
}

// findNamespace has no right to make the namespace beside it: whoever deletes it deletes
// the Role in it too, and who grants that anew makes the namespace.
func (t table) findNamespace() []Rule {
	return []Rule{{Resource: "namespaces", Names: []string{t.namespace}, Verbs: []string{"get"},
		Why: "to see whether the tool's namespace is still there", Without: "a rollback after the tool's namespace was deleted is told that it may not do what it wants, rather than why"}}
}

// makeNamespace is a right that names no object: RBAC cannot bound a create by name.
func (t table) makeNamespace() []Rule {
	return []Rule{wide("", "namespaces", "to make the tool's namespace; RBAC cannot restrict a create to one name", "create")}
}

func (t table) dryRunOfShared() []Rule {
	return []Rule{{Resource: "namespaces", Names: []string{t.namespace}, Verbs: []string{"get", "patch"},
		Why: "to have the server try the tool's namespace in `--dry-run=server`", Without: "`--dry-run=server` says that it would refuse the namespace; a run works"}}
}
