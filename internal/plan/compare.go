package plan

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/dramigrate/dramigrate/internal/checks"
)

// Drift says in which ways a plan that is made now asks for other changes than the
// one that was reviewed; empty if none. Pods come and go all the time: which of
// them a drain meets is not drift, but a new blocker is.
func Drift(was, now *Plan) []string {
	var out []string
	differs := func(what string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			out = append(out, what)
		}
	}
	if was.Operation != now.Operation {
		return []string{fmt.Sprintf("operation %s, now %s", was.Operation, now.Operation)}
	}
	if was.Cluster.UID != now.Cluster.UID {
		return []string{fmt.Sprintf("another cluster: kube-system has UID %s, now %s", was.Cluster.UID, now.Cluster.UID)}
	}
	if was.Cluster != now.Cluster {
		out = append(out, fmt.Sprintf("server version %s, now %s", was.Cluster.ServerVersion, now.Cluster.ServerVersion))
	}
	if was.ToolVersion != now.ToolVersion {
		out = append(out, fmt.Sprintf("made by dramigrate %s, this is %s", was.ToolVersion, now.ToolVersion))
	}
	out = append(out, poolDrift(was.Pool, now.Pool)...)
	differs("namespace of the tool", was.Namespace, now.Namespace)
	differs("resource", was.Resource, now.Resource)
	differs("the plugin's resources", was.Resources, now.Resources)
	differs("gate", was.Gate, now.Gate)
	differs("device plugin DaemonSets", was.Plugins, now.Plugins)
	differs("DRA driver", was.Driver, now.Driver)
	differs("DeviceClass", was.Class, now.Class)
	differs("changes of shared objects", was.Shared, now.Shared)
	differs("steps on nodes", was.NodeSteps, now.NodeSteps)
	differs("batches", was.Batches, now.Batches)
	differs("settings", was.Settings, now.Settings)
	return append(out, newBlockers(was.Findings, now.Findings)...)
}

// Differences are Drift and all else that differs, pods and findings included.
func Differences(was, now *Plan) []string {
	out := Drift(was, now)
	out = append(out, listDrift("pod to evict", names(was.Evictions, evictionName), names(now.Evictions, evictionName))...)
	out = append(out, listDrift("pod to restart", names(was.Restarts, restartName), names(now.Restarts, restartName))...)
	out = append(out, nodesMoved(was.NodeChanges, now.NodeChanges)...)
	out = append(out, listDrift("finding", names(was.Findings, findingName), names(now.Findings, findingName))...)
	if len(out) == 0 && was.Digest != now.Digest {
		out = append(out, "details of pods or findings")
	}
	return out
}

func poolDrift(was, now *Pool) []string {
	if was == nil || now == nil {
		if was == now {
			return nil
		}
		return []string{"pool"}
	}
	var out []string
	if was.Name != now.Name || was.Selector != now.Selector {
		out = append(out, fmt.Sprintf("pool %s (%s), now %s (%s)", was.Name, was.Selector, now.Name, now.Selector))
	}
	name := func(n NodeRef) string { return fmt.Sprintf("%s with UID %s", n.Name, n.UID) }
	return append(out, listDrift("node", names(was.Nodes, name), names(now.Nodes, name))...)
}

func newBlockers(was, now []checks.Finding) []string {
	var out []string
	for _, f := range now {
		stops := f.Severity == checks.Blocker || f.Severity == checks.Unknown
		if stops && !slices.ContainsFunc(was, func(g checks.Finding) bool { return findingName(g) == findingName(f) }) {
			out = append(out, fmt.Sprintf("new %s %s on %s", f.Severity, f.Code, f.Object))
		}
	}
	return out
}

func listDrift(what string, was, now []string) []string {
	var out []string
	for _, x := range was {
		if !slices.Contains(now, x) {
			out = append(out, fmt.Sprintf("%s gone: %s", what, x))
		}
	}
	for _, x := range now {
		if !slices.Contains(was, x) {
			out = append(out, fmt.Sprintf("%s new: %s", what, x))
		}
	}
	return out
}

func names[T any](list []T, name func(T) string) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = name(x)
	}
	return out
}

func evictionName(e Eviction) string { return e.Pod + " on " + e.Node }
func restartName(r Restart) string   { return r.Pod + " on " + r.Node }
func findingName(f checks.Finding) string {
	return fmt.Sprintf("%s %s on %s", f.Severity, f.Code, f.Object)
}

// nodesMoved names the nodes whose labels, annotations or cordon are not what they
// were. One that is in one of the plans alone is drift already.
func nodesMoved(was, now []NodeChange) []string {
	fields := map[string]NodeFields{}
	for _, c := range was {
		for _, n := range c.Nodes {
			fields[n] = c.Before
		}
	}
	var out []string
	for _, c := range now {
		for _, n := range c.Nodes {
			if before, known := fields[n]; known && !reflect.DeepEqual(before, c.Before) {
				out = append(out, fmt.Sprintf("node %s: labels, annotations or cordon", n))
			}
		}
	}
	return out
}
