package offline

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// QueryKind is the kind of the document of a cluster.Query, which is a part of an object
// that is not kept; its API version is cluster.APIVersion.
const QueryKind = "Query"

// queryDocument is a cluster.Query in a file.
type queryDocument struct {
	APIVersion    string `json:"apiVersion"`
	Kind          string `json:"kind"`
	cluster.Query `json:",inline"`
}

// adviceSections are the objects of the parts that are read for advice.
func adviceSections(s *cluster.Snapshot) []section {
	out := []section{
		{"Namespace", cluster.PartNamespaces, len(s.Namespaces), func(i int) (any, error) { return s.Namespaces[i].Object(), nil }},
		typed(cluster.PartQuotas, s.Quotas, corev1.SchemeGroupVersion.WithKind("ResourceQuota")),
		typed(cluster.PartLimitRanges, s.LimitRanges, corev1.SchemeGroupVersion.WithKind("LimitRange")),
		{"PriorityClass", cluster.PartPriorityClasses, len(s.PriorityClasses), func(i int) (any, error) { return s.PriorityClasses[i].Object(), nil }},
		ofKind(cluster.KindDeployment, cluster.PartDeployments, s.Workloads, workloadKind, workloadObject),
		ofKind(cluster.KindStatefulSet, cluster.PartStatefulSets, s.Workloads, workloadKind, workloadObject),
		ofKind(cluster.KindJob, cluster.PartJobs, s.Workloads, workloadKind, workloadObject),
		ofKind(cluster.KindCronJob, cluster.PartCronJobs, s.Workloads, workloadKind, workloadObject),
	}
	for _, k := range cluster.CustomKinds() {
		if k.Queries == nil {
			out = append(out, ofKind(k.Kind, k.Part, s.Operators,
				func(o *cluster.OperatorObject) string { return o.Kind }, func(o *cluster.OperatorObject) any { return o.Object() }))
		}
	}
	return append(out, section{QueryKind, "queries", len(s.Queries), func(i int) (any, error) {
		return &queryDocument{APIVersion: cluster.APIVersion, Kind: QueryKind, Query: s.Queries[i]}, nil
	}})
}

func workloadKind(w *cluster.Workload) string { return w.Kind }
func workloadObject(w *cluster.Workload) any  { return w.Object() }

// ofKind is a section of those of a list that are of one kind.
func ofKind[T any](kind, part string, list []T, kindOf func(*T) string, object func(*T) any) section {
	var these []*T
	for i := range list {
		if kindOf(&list[i]) == kind {
			these = append(these, &list[i])
		}
	}
	return section{kind, part, len(these), func(i int) (any, error) { return object(these[i]), nil }}
}

// none is the index of an object of which nothing was kept.
const none = -1

// keepWorkload is like keep for workloads, of which only those count that ask for
// devices.
func keepWorkload[In any](project func(*In) (cluster.Workload, bool)) func(*collector, []byte, identity, place) (bool, error) {
	return func(c *collector, raw []byte, id identity, at place) (bool, error) {
		var object In
		if err := decodeObject(raw, &object); err != nil {
			return false, err
		}
		w, asks := project(&object)
		index := len(c.out.Workloads)
		if !asks {
			w, index = cluster.Workload{}, none
		}
		twin, err := c.unique(id, at, index, func(i int) any {
			if i == none {
				return cluster.Workload{}
			}
			return c.out.Workloads[i]
		}, w)
		if asks && !twin && err == nil {
			c.out.Workloads = append(c.out.Workloads, w)
		}
		return true, err
	}
}

// custom is how a kind without Go types is taken.
func custom(k cluster.CustomKind) resource {
	r := resource{part: k.Part, version: k.Version, namespaced: k.Namespaced, advice: true}
	if k.Queries == nil {
		r.put = keep(func(s *cluster.Snapshot) *[]cluster.OperatorObject { return &s.Operators }, func(object *map[string]any) cluster.OperatorObject {
			out := cluster.ProjectOperator(*object)
			out.APIVersion, out.Kind = k.Version.String(), k.Kind // items of a typed list have none
			return out
		})
		return r
	}
	r.put = func(c *collector, raw []byte, id identity, at place) (bool, error) {
		var object map[string]any
		if err := decode(raw, &object); err != nil {
			return false, err
		}
		return true, c.keepQueries(id, at, k.Queries(object))
	}
	return r
}

// keepQueries keeps the queries of one object.
func (c *collector) keepQueries(id identity, at place, queries []cluster.Query) error {
	kept := c.queries[id.part]
	if len(kept) > cluster.MaxQueries { // joinQueries says so
		return nil
	}
	index := len(kept)
	if len(queries) == 0 {
		index = none
	}
	twin, err := c.unique(id, at, index, func(i int) any {
		if i == none {
			return []cluster.Query(nil)
		}
		return kept[i]
	}, queries)
	if len(queries) > 0 && !twin && err == nil {
		c.queries[id.part] = append(kept, queries)
	}
	return err
}

// joinQueries puts the queries of all objects together.
func (c *collector) joinQueries() {
	for part, queries := range c.queries {
		kept, err := cluster.LimitQueries(slices.Concat(queries...))
		if err != nil {
			c.spoil(part, err.Error())
		}
		c.out.Queries = append(c.out.Queries, kept...)
	}
}

// dashboards are the ConfigMaps that hold some.
func dashboards() resource {
	kinds := cluster.CustomKinds()
	return custom(kinds[slices.IndexFunc(kinds, func(k cluster.CustomKind) bool { return k.Part == cluster.PartDashboards })])
}

// isDashboard tells a ConfigMap with dashboards from every other.
func (c *collector) isDashboard(raw []byte) bool {
	var cm metav1.PartialObjectMetadata
	if !c.advice || decode(raw, &cm) != nil {
		return false
	}
	_, is := cm.Labels[cluster.DashboardLabel]
	return is
}

// putQuery takes a query of a written Snapshot.
func (c *collector) putQuery(raw []byte, at place) error {
	if c.now.objects[QueryKind]++; c.now.objects[QueryKind] > cluster.MaxQueries*len(cluster.CustomKinds()) {
		return at.fail("more than %d objects of kind %s: no snapshot has so many", cluster.MaxQueries*len(cluster.CustomKinds()), QueryKind)
	}
	if !c.advice {
		c.passOver(QueryKind)
		return nil
	}
	var q queryDocument
	if err := decode(raw, &q); err != nil {
		return at.fail("%s: %w", QueryKind, err)
	}
	if q.Object == "" || q.Expression == "" {
		return at.fail("%s: has no object or no expression", QueryKind)
	}
	c.out.Queries = append(c.out.Queries, q.Query)
	c.files[QueryKind]++
	return nil
}

// putRole takes what the scheduler's role tells about a feature. It is not put back
// into a written Snapshot: the header has what it tells.
func (c *collector) putRole(raw []byte, at place) error {
	var role rbacv1.ClusterRole
	if err := decode(raw, &role); err != nil {
		return at.fail("ClusterRole: %w", err)
	}
	if !c.advice || role.Name != cluster.SchedulerRole {
		c.ignore("ClusterRole")
		return nil
	}
	feature, err := cluster.FeatureOfRole(&role)
	if err != nil {
		c.spoil(cluster.PartFeatures, err.Error())
		return nil
	}
	if c.out.API.Features == nil {
		c.out.API.Features = map[string]cluster.Feature{cluster.FeatureExtendedResource: feature}
	}
	c.files["ClusterRole"]++
	return nil
}

// putAPIGroup takes the versions of resource.k8s.io from what
// `kubectl get --raw /apis/resource.k8s.io` prints.
func (c *collector) putAPIGroup(raw []byte, at place) error {
	var group metav1.APIGroup
	if err := decode(raw, &group); err != nil {
		return at.fail("APIGroup: %w", err)
	}
	if !c.advice || group.Name != resourcev1.GroupName {
		c.ignore("APIGroup")
		return nil
	}
	var versions []string
	for _, v := range group.Versions {
		versions = append(versions, v.Version)
	}
	cluster.SortVersions(versions)
	c.out.API.ResourceVersions = versions
	c.files["APIGroup"]++
	return nil
}
