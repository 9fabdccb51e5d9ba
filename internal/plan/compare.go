package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/dramigrate/dramigrate/internal/checks"
)

// comparison is one Compare. Each of its methods looks at one part of the plans.
type comparison struct {
	was, now *Plan
	// resumes is the unfinished run of the plan, if there is one.
	resumes string

	reasons, moved, done []string
}

func (c *comparison) reason(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.reasons, text) {
		c.reasons = append(c.reasons, text)
	}
}

func (c *comparison) harmless(list ...string) { c.moved = append(c.moved, list...) }

// origin is what both plans were made by and with.
func (c *comparison) origin() {
	was, now := c.was, c.now
	if was.Cluster != now.Cluster {
		c.harmless(fmt.Sprintf("server version %s, now %s", was.Cluster.ServerVersion, now.Cluster.ServerVersion))
	}
	if was.ToolVersion != now.ToolVersion {
		c.reason("made by dramigrate %s, this is %s", was.ToolVersion, now.ToolVersion)
	}
	for what, equal := range map[string]bool{
		"namespace of the tool":  was.Namespace == now.Namespace,
		"resource":               was.Resource == now.Resource,
		"the plugin's resources": slices.Equal(was.Resources, now.Resources),
		"gate":                   reflect.DeepEqual(was.Gate, now.Gate),
		"settings":               reflect.DeepEqual(was.Settings, now.Settings),
		"name of the DRA driver": was.Driver.Name == now.Driver.Name,
	} {
		if !equal {
			c.reason("%s", what)
		}
	}
	slices.Sort(c.reasons)
	if was.Driver.Source != now.Driver.Source {
		c.reason("source of the DRA driver: %s, now %s", orNone(was.Driver.Source), orNone(now.Driver.Source))
	}
}

func (c *comparison) pools() {
	c.pool(c.was.Pool, c.now.Pool)
	c.pool(c.was.Into, c.now.Into)
}

func (c *comparison) pool(was, now *Pool) {
	if was == nil || now == nil {
		if was != now {
			c.reason("pool")
		}
		return
	}
	if was.Name != now.Name || was.Selector != now.Selector {
		c.reason("pool %s (%s), now %s (%s)", was.Name, was.Selector, now.Name, now.Selector)
	}
	name := func(n NodeRef) string { return fmt.Sprintf("%s with UID %s", n.Name, n.UID) }
	c.reasons = append(c.reasons, listDrift("node", names(was.Nodes, name), names(now.Nodes, name))...)
}

// daemonSets are those of the plugin and of the driver. Those that an unfinished
// run of prepare or unprepare has edited are not what they were, on purpose.
func (c *comparison) daemonSets() {
	edited := c.editedAlready()
	for what, lists := range map[string][2][]Object{
		"device plugin DaemonSet": {c.was.Plugins, c.now.Plugins},
		"DRA driver DaemonSet":    {c.was.Driver.DaemonSets, c.now.Driver.DaemonSets},
	} {
		for _, text := range listDrift(what, without(names(lists[0], objectName), edited), without(names(lists[1], objectName), edited)) {
			c.reason("%s", text)
		}
	}
	for _, name := range sortedKeys(c.was.Inputs.DaemonSets, c.now.Inputs.DaemonSets) {
		was, had := c.was.Inputs.DaemonSets[name]
		now, has := c.now.Inputs.DaemonSets[name]
		switch {
		case was == now || slices.Contains(edited, name):
		case !had:
			c.reason("daemonset/%s is new", name)
		case !has:
			c.reason("daemonset/%s is gone", name)
		default:
			c.reason("daemonset/%s has changed", name)
		}
	}
	// A claim of any of them needs the driver's pod. While the driver is brought or
	// taken away they come and go with it.
	if c.was.Pool != nil && !slices.Equal(c.was.Driver.Names, c.now.Driver.Names) {
		c.reason("names that the DRA driver serves: %v, now %v", c.was.Driver.Names, c.now.Driver.Names)
	}
	slices.Sort(c.reasons)
}

// class is the DeviceClass that carries the resource. One that is there by now just
// as the plan would have made it, by this pool's run or by another's, is no change.
func (c *comparison) class() {
	was, now := c.was.Class, c.now.Class
	if c.was.Operation != Migrate {
		if c.was.Inputs.Class != c.now.Inputs.Class {
			c.harmless("the DeviceClass that carries " + c.was.Resource)
		}
		return
	}
	switch {
	case was == nil || now == nil:
		if was != now {
			c.reason("DeviceClass")
		}
	case was.Action == Create && now.Action == Adopt:
		if planned, err := specDigest(was.Object); err != nil || was.Name != now.Name || planned != c.now.Inputs.Class {
			c.reason("deviceclass/%s carries %s and is not the one that the plan would create, deviceclass/%s", now.Name, c.now.Resource, was.Name)
			return
		}
		c.harmless("deviceclass/" + now.Name + " is there already, as the plan would create it")
	case was.Action == Adopt && now.Action == Create:
		c.reason("deviceclass/%s does not carry %s any more", was.Name, c.was.Resource)
	case was.Name != now.Name:
		c.reason("deviceclass/%s, now deviceclass/%s", was.Name, now.Name)
	case !reflect.DeepEqual(was.Object, now.Object) || c.was.Inputs.Class != c.now.Inputs.Class:
		c.reason("deviceclass/%s has changed", was.Name)
	}
}

// batches are the nodes that are worked on. Where an unfinished run of the plan has
// been, nothing is left to do on some of them.
func (c *comparison) batches() {
	if reflect.DeepEqual(c.was.Batches, c.now.Batches) {
		return
	}
	was, now := batched(c.was.Batches), batched(c.now.Batches)
	other := false
	for _, n := range without(was, now) {
		i := slices.IndexFunc(c.now.Skipped, func(s Skip) bool { return s.Node == n })
		switch {
		case i < 0: // it left the pool, which is said already
		case c.resumes != "" && c.now.Skipped[i].done():
			c.done = append(c.done, n)
		default:
			c.reason("node %s is left alone now: %s", n, c.now.Skipped[i].Why)
		}
		other = true
	}
	for _, n := range without(now, was) {
		c.reason("node %s is in a batch now", n)
		other = true
	}
	if c.resumes == "" && !other {
		c.reason("the order or the size of the batches")
	}
}

func (c *comparison) nodeSteps() {
	id := func(s Step) StepID { return s.ID }
	if was, now := names(c.was.NodeSteps, id), names(c.now.NodeSteps, id); !slices.Equal(was, now) {
		c.reason("steps on nodes: %v, now %v", was, now)
		return
	}
	for i, was := range c.was.NodeSteps {
		if was.ID == StepDeviceClass && c.was.Class != nil && c.now.Class != nil && c.was.Class.Action != c.now.Class.Action {
			continue // class has judged that
		}
		if !reflect.DeepEqual(was, c.now.NodeSteps[i]) {
			c.reason("step %s on nodes", was.ID)
		}
	}
}

// shared are the changes of shared objects. Deadlines follow from the number of pods,
// which restarts judges.
func (c *comparison) shared() {
	var reviewed []Change
	for _, s := range c.was.Shared {
		reviewed = append(reviewed, bareChanges(s)...)
	}
	same := func(was, now Step) bool {
		if was.ID != now.ID || targetName(was) != targetName(now) {
			return false
		}
		// What a step that is done has removed may stand in a later one that removes the
		// rest; it finds it gone.
		return reflect.DeepEqual(bareChanges(was), bareChanges(now)) ||
			c.resumes != "" && !slices.ContainsFunc(bareChanges(now), func(c Change) bool { return !slices.Contains(reviewed, c) })
	}
	left := c.was.Shared
	for _, now := range c.now.Shared {
		i := slices.IndexFunc(left, func(was Step) bool { return same(was, now) })
		if i < 0 {
			c.reason("step %s%s", now.ID, on(targetName(now)))
			continue
		}
		c.missing(left[:i])
		left = left[i+1:]
	}
	c.missing(left)
}

// missing judges steps of the plan that are not asked for any more.
func (c *comparison) missing(steps []Step) {
	for _, s := range steps {
		if c.resumes == "" {
			c.reason("step %s%s is not needed any more", s.ID, on(targetName(s)))
		}
	}
}

// editedAlready are the objects of the plan's shared steps, if a run of it has begun.
func (c *comparison) editedAlready() []string {
	if c.resumes == "" {
		return nil
	}
	var out []string
	for _, s := range c.was.Shared {
		for _, change := range s.Changes {
			out = append(out, objectName(change.Object))
		}
	}
	return out
}

// restarts are what a change of shared objects does to pods: on a node that the
// reviewers did not see, it is more than they agreed to.
func (c *comparison) restarts() {
	node := func(r Restart) string { return r.Node }
	for _, n := range without(names(c.now.Restarts, node), names(c.was.Restarts, node)) {
		c.reason("a pod on node %s would restart", n)
	}
	c.harmless(listDrift("pod to restart", names(c.was.Restarts, restartName), names(c.now.Restarts, restartName))...)
}

// budgets are those over the pods to evict. They come and go with the pods; one that
// covers a pod which was there before, and did not, was changed.
func (c *comparison) budgets() {
	was, now := c.was.Inputs.Budgets, c.now.Inputs.Budgets
	covered := map[string][]string{}
	for _, e := range c.was.Evictions {
		covered[e.Pod] = append([]string{}, e.Budgets...)
	}
	judged := map[string]bool{}
	judge := func(name, format string) {
		judged[name] = true
		c.reason(format, name)
	}
	for _, e := range c.now.Evictions {
		before, known := covered[e.Pod]
		if !known {
			continue
		}
		for _, b := range without(e.Budgets, before) {
			judge(b, "poddisruptionbudget/%s covers pods that it did not")
		}
		for _, b := range without(before, e.Budgets) {
			judge(b, "poddisruptionbudget/%s does not cover pods any more that it did")
		}
	}
	for _, name := range sortedKeys(was, now) {
		before, had := was[name]
		after, has := now[name]
		switch {
		case judged[name] || before == after:
		case had && has:
			c.reason("poddisruptionbudget/%s has changed", name)
		case has:
			c.harmless("budget new: " + name)
		default:
			c.harmless("budget gone: " + name)
		}
	}
}

func (c *comparison) findings() {
	was, now := c.was.Findings, c.now.Findings
	stops := checks.Finding.Stops
	known := names(was, findingName)
	for _, f := range was {
		// Who runs the plan has no reports, so that nothing now speaks against them.
		if f.Code == "DRM058" && stops(f) && len(c.now.Inputs.Reports) == 0 {
			c.reason("%s, and no newer report says otherwise", findingName(f))
		}
	}
	for _, f := range now {
		if stops(f) && !slices.Contains(known, findingName(f)) {
			c.reason("new %s", findingName(f))
		}
	}
	milder := slices.DeleteFunc(slices.Clone(now), stops)
	for _, text := range without(names(milder, findingName), known) {
		c.harmless("finding new: " + text)
	}
	for _, text := range without(known, names(now, findingName)) {
		c.harmless("finding gone: " + text)
	}
}

func (c *comparison) pods() {
	c.harmless(listDrift("pod to evict", names(c.was.Evictions, evictionName), names(c.now.Evictions, evictionName))...)
	c.harmless(nodesMoved(c.was.NodeChanges, c.now.NodeChanges)...)
}

// listDrift says what is in one of two lists alone.
func listDrift(what string, was, now []string) []string {
	var out []string
	for _, x := range without(was, now) {
		out = append(out, fmt.Sprintf("%s gone: %s", what, x))
	}
	for _, x := range without(now, was) {
		out = append(out, fmt.Sprintf("%s new: %s", what, x))
	}
	return out
}

// without is what is in list and not in other, in its order.
func without(list, other []string) []string {
	known := make(map[string]bool, len(other))
	for _, x := range other {
		known[x] = true
	}
	var out []string
	for _, x := range list {
		if !known[x] {
			out = append(out, x)
		}
	}
	return out
}

func names[T, N any](list []T, name func(T) N) []N {
	out := make([]N, len(list))
	for i, x := range list {
		out[i] = name(x)
	}
	return out
}

func sortedKeys(a, b map[string]string) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
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

// objectName is the object without what is said about it.
func objectName(o Object) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

func targetName(s Step) string {
	if s.Target == nil {
		return ""
	}
	return objectName(*s.Target)
}

func on(target string) string {
	if target == "" {
		return ""
	}
	return " on " + target
}

// bareChanges are a step's changes without the notes for readers.
func bareChanges(s Step) []Change {
	out := slices.Clone(s.Changes)
	for i := range out {
		out[i].Object.Note = ""
	}
	return out
}
