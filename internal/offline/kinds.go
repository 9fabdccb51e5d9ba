package offline

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// resource is a kind of Kubernetes that a Snapshot has objects of.
type resource struct {
	part       string
	version    schema.GroupVersion
	namespaced bool
	// advice is true for what is taken with Options.Advice only.
	advice bool
	// put decodes an object and takes it into the collection; false if the tool does
	// not use this one.
	put func(c *collector, raw []byte, id identity, at place) (used bool, err error)
}

// resources are the kinds, by group and kind.
func resources() map[schema.GroupKind]resource {
	out := map[schema.GroupKind]resource{}
	add := func(kind string, r resource) {
		r.advice = cluster.IsAdvice(r.part) && kind != "Namespace" // which tells the cluster, too
		out[schema.GroupKind{Group: r.version.Group, Kind: kind}] = r
	}
	add("Node", resource{part: cluster.PartNodes, version: corev1.SchemeGroupVersion, namespaced: false, put: keep(func(s *cluster.Snapshot) *[]corev1.Node { return &s.Nodes }, cluster.SlimNode)})
	add("Pod", resource{part: cluster.PartPods, version: corev1.SchemeGroupVersion, namespaced: true, put: keep(func(s *cluster.Snapshot) *[]cluster.Pod { return &s.Pods }, cluster.ProjectPod)})
	add("DaemonSet", resource{part: cluster.PartDaemonSets, version: appsv1.SchemeGroupVersion, namespaced: true, put: keep(func(s *cluster.Snapshot) *[]appsv1.DaemonSet { return &s.DaemonSets }, cluster.SlimDaemonSet)})
	add("ResourceSlice", resource{part: cluster.PartSlices, version: resourcev1.SchemeGroupVersion, namespaced: false, put: keep(func(s *cluster.Snapshot) *[]resourcev1.ResourceSlice { return &s.Slices }, cluster.SlimSlice)})
	add("DeviceClass", resource{part: cluster.PartClasses, version: resourcev1.SchemeGroupVersion, namespaced: false, put: keep(func(s *cluster.Snapshot) *[]resourcev1.DeviceClass { return &s.Classes }, cluster.SlimClass)})
	add("ResourceClaim", resource{part: cluster.PartClaims, version: resourcev1.SchemeGroupVersion, namespaced: true, put: keep(func(s *cluster.Snapshot) *[]resourcev1.ResourceClaim { return &s.Claims }, cluster.SlimClaim)})
	add("PodDisruptionBudget", resource{part: cluster.PartBudgets, version: policyv1.SchemeGroupVersion, namespaced: true, put: keep(func(s *cluster.Snapshot) *[]policyv1.PodDisruptionBudget { return &s.Budgets }, cluster.SlimBudget)})
	add("Lease", resource{part: cluster.PartLocks, version: coordinationv1.SchemeGroupVersion, namespaced: true, put: keep(func(s *cluster.Snapshot) *[]cluster.LockInfo { return &s.Locks }, cluster.LockOf)})
	add("ConfigMap", resource{part: cluster.PartJournals, version: corev1.SchemeGroupVersion, namespaced: true, put: putJournal})
	add("Namespace", resource{part: cluster.PartNamespaces, version: corev1.SchemeGroupVersion, namespaced: false, put: putNamespace})
	add("Deployment", resource{part: cluster.PartDeployments, version: appsv1.SchemeGroupVersion, namespaced: true, put: keepWorkload(cluster.ProjectDeployment)})
	add("StatefulSet", resource{part: cluster.PartStatefulSets, version: appsv1.SchemeGroupVersion, namespaced: true, put: keepWorkload(cluster.ProjectStatefulSet)})
	add("Job", resource{part: cluster.PartJobs, version: batchv1.SchemeGroupVersion, namespaced: true, put: keepWorkload(cluster.ProjectJob)})
	add("CronJob", resource{part: cluster.PartCronJobs, version: batchv1.SchemeGroupVersion, namespaced: true, put: keepWorkload(cluster.ProjectCronJob)})
	add("ResourceQuota", resource{part: cluster.PartQuotas, version: corev1.SchemeGroupVersion, namespaced: true, put: keep(func(s *cluster.Snapshot) *[]corev1.ResourceQuota { return &s.Quotas }, cluster.SlimQuota)})
	add("LimitRange", resource{part: cluster.PartLimitRanges, version: corev1.SchemeGroupVersion, namespaced: true, put: keep(func(s *cluster.Snapshot) *[]corev1.LimitRange { return &s.LimitRanges }, cluster.SlimLimitRange)})
	add("PriorityClass", resource{part: cluster.PartPriorityClasses, version: schedulingv1.SchemeGroupVersion, namespaced: false, put: keep(func(s *cluster.Snapshot) *[]cluster.PriorityClass { return &s.PriorityClasses }, cluster.ProjectPriorityClass)})
	for _, k := range cluster.CustomKinds() {
		if k.Kind != "ConfigMap" { // most of them are no dashboards
			add(k.Kind, custom(k))
		}
	}
	return out
}

// keep decodes an object, drops what the tool does not need of it, and appends the
// rest to a list of the Snapshot.
func keep[In, Out any](list func(*cluster.Snapshot) *[]Out, slim func(*In) Out) func(*collector, []byte, identity, place) (bool, error) {
	return func(c *collector, raw []byte, id identity, at place) (bool, error) {
		var object In
		if err := decodeObject(raw, &object); err != nil {
			return false, err
		}
		to := list(&c.out)
		slimmed := slim(&object)
		twin, err := c.unique(id, at, len(*to), func(i int) any { return (*to)[i] }, slimmed)
		if !twin && err == nil {
			*to = append(*to, slimmed)
		}
		return true, err
	}
}

// putJournal takes the ConfigMaps that are journals. One that cannot be understood
// makes all of them unknown, as it does when a cluster is read.
func putJournal(c *collector, raw []byte, id identity, at place) (bool, error) {
	var cm corev1.ConfigMap
	if err := decode(raw, &cm); err != nil {
		return false, err
	}
	if cm.Labels[cluster.KindLabel] != cluster.KindJournal {
		return false, nil
	}
	journal, err := cluster.DecodeJournal(&cm)
	if err != nil {
		c.spoil(cluster.PartJournals, err.Error())
		return true, nil
	}
	twin, err := c.unique(id, at, len(c.out.Journals), func(i int) any { return c.out.Journals[i] }, *journal)
	if !twin && err == nil {
		c.out.Journals = append(c.out.Journals, *journal)
	}
	return true, err
}

// putNamespace takes the UID of kube-system, by which a cluster is known, and for advice
// all of them.
func putNamespace(c *collector, raw []byte, id identity, at place) (bool, error) {
	var ns corev1.Namespace
	if err := decode(raw, &ns); err != nil {
		return false, err
	}
	system := ns.Name == metav1.NamespaceSystem
	if system {
		if err := c.identify(cluster.Identity{UID: ns.UID}, at); err != nil {
			return false, err
		}
	}
	if !c.advice {
		return system, nil
	}
	return keep(func(s *cluster.Snapshot) *[]cluster.Namespace { return &s.Namespaces }, cluster.ProjectNamespace)(c, raw, id, at)
}
