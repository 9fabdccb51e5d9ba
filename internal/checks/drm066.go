package checks

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm066() Check {
	return Check{
		Code:       "DRM066",
		Title:      "The driver's namespace does not admit the driver's pods",
		Why:        "A quota counts the driver's pods as any others. GKE lets pods with the priority classes system-node-critical and system-cluster-critical into a namespace other than kube-system only if a quota there is about these classes. A pod with a priority class that does not exist is refused. Then the DaemonSet controller tries for ever, and the node that waits for its driver stays closed.",
		Fix:        "Give the namespace a ResourceQuota with the scope PriorityClass, room for one pod a node, or the class that the DaemonSet names.",
		Sources:    []string{"Kubernetes docs, \"Resource Quotas\", limit Priority Class consumption by default", "GKE docs, \"Set up dynamic resource allocation\"", "plugin/pkg/admission/priority/admission.go, v1.37.2"},
		Operations: []string{Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var out []Finding
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				out = append(out, in.admission(d)...)
			}
			return out
		},
	}
}

func (in Input) admission(d gate.DriverDaemonSet) []Finding {
	namespace, class := d.DaemonSet.Namespace, d.DaemonSet.Spec.Template.Spec.PriorityClassName
	var coming []string // nodes that get a pod of it
	gke := false
	for _, v := range in.targets() {
		gke = gke || v.Node.Labels[gkeNodePool] != ""
		if !among(d.Nodes, v.Node.Name) {
			coming = append(coming, v.Node.Name)
		}
	}
	if len(coming) == 0 {
		return nil
	}
	base := Finding{Code: "DRM066", Severity: Blocker, Object: daemonSetObject(d.DaemonSet)}
	critical := class == "system-node-critical" || class == "system-cluster-critical"
	var out []Finding
	reason, unread := in.Snapshot.IsUnknown(cluster.PartPriorityClasses)
	switch {
	case class == "" || critical:
	case unread && in.Snapshot.Advice:
		f := base
		f.Severity = Warning
		f.Message = fmt.Sprintf("its pods name the priority class %s, and whether that exists could not be seen (%s)", class, reason)
		f.Remedy = "`kubectl get priorityclass " + class + "`"
		out = append(out, f)
	case !unread && !slices.ContainsFunc(in.Snapshot.PriorityClasses, func(c cluster.PriorityClass) bool { return c.Name == class }):
		f := base
		f.Message = fmt.Sprintf("its pods name the priority class %s, which does not exist", class)
		f.Remedy = "make the class, or take another: `kubectl get priorityclasses`"
		out = append(out, f)
	}
	// Where its pods are let in already, the namespace has what it takes.
	guarded := gke && critical && namespace != "kube-system" && len(d.Nodes) == 0
	if reason, unread := in.Snapshot.IsUnknown(cluster.PartQuotas); unread {
		if guarded {
			f := base
			f.Severity = Warning
			f.Message = fmt.Sprintf("GKE admits its pods of class %s only with a quota for that class in namespace %s, and quotas could not be read (%s)", class, namespace, reason)
			f.Remedy = "`kubectl -n " + namespace + " get resourcequotas`"
			out = append(out, f)
		}
		return out
	}
	about := false
	for i := range in.Snapshot.Quotas {
		q := &in.Snapshot.Quotas[i]
		if q.Namespace != namespace {
			continue
		}
		applies, named := quotaFor(q, class)
		about = about || named
		if room, limited := podRoom(q); applies && limited && room < int64(len(coming)) {
			f := base
			f.Message = fmt.Sprintf("resourcequota/%s/%s leaves room for %d more pods, and the driver needs one on each of %d nodes", q.Namespace, q.Name, max(room, 0), len(coming))
			f.Remedy = fmt.Sprintf("raise the quota's hard pods by %d", int64(len(coming))-max(room, 0))
			out = append(out, f)
		}
	}
	if guarded && !about {
		f := base
		f.Message = fmt.Sprintf("GKE admits its pods of class %s only with a quota for that class, and namespace %s has none", class, namespace)
		f.Remedy = fmt.Sprintf("`echo '"+`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"gpu-driver","namespace":%q},"spec":{"hard":{"pods":"1000"},"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":[%q]}]}}}`+"' | kubectl create -f -`", namespace, class)
		out = append(out, f)
	}
	return out
}

// quotaFor says whether a quota counts a DaemonSet's pods of a priority class, and
// whether it is about that class by name. Of a scope that a template does not decide
// (quality of service, affinity to other namespaces) nothing is claimed.
func quotaFor(q *corev1.ResourceQuota, class string) (applies, named bool) {
	for _, scope := range q.Spec.Scopes {
		if scope != corev1.ResourceQuotaScopeNotTerminating {
			return false, false
		}
	}
	if q.Spec.ScopeSelector == nil {
		return true, false
	}
	applies = true
	for _, e := range q.Spec.ScopeSelector.MatchExpressions {
		has := slices.Contains(e.Values, class)
		switch {
		case e.ScopeName == corev1.ResourceQuotaScopeNotTerminating:
		case e.ScopeName != corev1.ResourceQuotaScopePriorityClass:
			return false, named
		case e.Operator == corev1.ScopeSelectorOpIn:
			applies, named = applies && has, named || has
		case e.Operator == corev1.ScopeSelectorOpNotIn:
			applies = applies && !has
		case e.Operator == corev1.ScopeSelectorOpExists:
			applies = applies && class != ""
		case e.Operator == corev1.ScopeSelectorOpDoesNotExist:
			applies = applies && class == ""
		}
	}
	return applies, named
}

// podRoom is how many more pods a quota lets in; limited is false if it does not count
// pods.
func podRoom(q *corev1.ResourceQuota) (room int64, limited bool) {
	for _, key := range []corev1.ResourceName{corev1.ResourcePods, "count/pods"} {
		hard, ok := q.Spec.Hard[key]
		if !ok {
			continue
		}
		used := q.Status.Used[key]
		left := hard.Value() - used.Value()
		if !limited || left < room {
			room, limited = left, true
		}
	}
	return room, limited
}
