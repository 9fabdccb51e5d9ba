package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// advice is how the parts of AdviceParts are read.
func (l *loader) advice() []loading {
	var once sync.Once
	var all served
	var failed error
	ask := func(ctx context.Context) (served, error) {
		once.Do(func() { all, failed = l.discover(ctx) })
		return all, failed
	}
	out := []loading{
		{PartJobs, func(ctx context.Context) error {
			return workloads(ctx, l, l.client.BatchV1().Jobs(metav1.NamespaceAll).List,
				func(p *batchv1.JobList) []batchv1.Job { return p.Items }, ProjectJob)
		}},
		{PartDeployments, func(ctx context.Context) error {
			return workloads(ctx, l, l.client.AppsV1().Deployments(metav1.NamespaceAll).List,
				func(p *appsv1.DeploymentList) []appsv1.Deployment { return p.Items }, ProjectDeployment)
		}},
		{PartStatefulSets, func(ctx context.Context) error {
			return workloads(ctx, l, l.client.AppsV1().StatefulSets(metav1.NamespaceAll).List,
				func(p *appsv1.StatefulSetList) []appsv1.StatefulSet { return p.Items }, ProjectStatefulSet)
		}},
		{PartCronJobs, func(ctx context.Context) error {
			return workloads(ctx, l, l.client.BatchV1().CronJobs(metav1.NamespaceAll).List,
				func(p *batchv1.CronJobList) []batchv1.CronJob { return p.Items }, ProjectCronJob)
		}},
		{PartQuotas, l.quotas}, {PartLimitRanges, l.limitRanges},
		{PartNamespaces, l.namespaces}, {PartPriorityClasses, l.priorityClasses},
		{PartResourceAPI, func(ctx context.Context) error { return l.resourceAPI(ctx, ask) }},
		{PartFeatures, l.features},
	}
	for _, kind := range CustomKinds() {
		out = append(out, loading{kind.Part, func(ctx context.Context) error { return l.custom(ctx, kind, ask) }})
	}
	return out
}

// workloads reads the workloads of one kind that ask for devices.
func workloads[L metav1.ListInterface, In any](
	ctx context.Context, l *loader,
	fetch func(context.Context, metav1.ListOptions) (L, error),
	items func(L) []In,
	project func(*In) (Workload, bool),
) error {
	var found []Workload
	err := walk(ctx, l.page, func() { found = nil }, fetch, items, func(in *In) {
		if w, asks := project(in); asks {
			found = append(found, w)
		}
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Workloads = append(l.out.Workloads, found...)
	return nil
}

func (l *loader) quotas(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.Quotas, l.client.CoreV1().ResourceQuotas(metav1.NamespaceAll).List,
		func(p *corev1.ResourceQuotaList) []corev1.ResourceQuota { return p.Items }, SlimQuota)
}

func (l *loader) limitRanges(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.LimitRanges, l.client.CoreV1().LimitRanges(metav1.NamespaceAll).List,
		func(p *corev1.LimitRangeList) []corev1.LimitRange { return p.Items }, SlimLimitRange)
}

func (l *loader) namespaces(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.Namespaces, l.client.CoreV1().Namespaces().List,
		func(p *corev1.NamespaceList) []corev1.Namespace { return p.Items }, ProjectNamespace)
}

func (l *loader) priorityClasses(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.PriorityClasses, l.client.SchedulingV1().PriorityClasses().List,
		func(p *schedulingv1.PriorityClassList) []schedulingv1.PriorityClass { return p.Items }, ProjectPriorityClass)
}

// largePage is the number of objects in one answer where each may have a megabyte.
const largePage = 50

// custom reads the objects of one kind through the dynamic client.
func (l *loader) custom(ctx context.Context, kind CustomKind, ask func(context.Context) (served, error)) error {
	if l.dynamic == nil {
		return unreadable{errors.New("there is no client for kinds of others")}
	}
	if !kind.BuiltIn {
		s, err := ask(ctx)
		if err != nil {
			return err
		}
		if there, err := s.serves(kind); !there || err != nil {
			return err
		}
	}
	list := l.dynamic.Resource(kind.Version.WithResource(kind.Resource)).List
	fetch := func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		o.LabelSelector = kind.Selector
		return list(ctx, o)
	}
	items := func(p *unstructured.UnstructuredList) []unstructured.Unstructured { return p.Items }
	if kind.Queries == nil {
		var found []OperatorObject
		err := collect(ctx, l.page, &found, fetch, items, func(u *unstructured.Unstructured) OperatorObject { return ProjectOperator(u.Object) })
		if err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.out.Operators = append(l.out.Operators, found...)
		return nil
	}
	var found []Query
	err := walk(ctx, min(l.page, largePage), func() { found = nil }, fetch, items, func(u *unstructured.Unstructured) {
		if len(found) <= MaxQueries {
			found = append(found, kind.Queries(u.Object)...)
		}
	})
	if err != nil {
		return err
	}
	kept, err := LimitQueries(found)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Queries = append(l.out.Queries, kept...)
	return err
}

// LimitQueries sorts the queries of one kind and leaves at most MaxQueries of them; the
// error says that there were more.
func LimitQueries(list []Query) ([]Query, error) {
	sortQueries(&list)
	if len(list) <= MaxQueries {
		return list, nil
	}
	return list[:MaxQueries:MaxQueries], unreadable{fmt.Errorf("there are more than %d expressions about devices, and the others were not looked at", MaxQueries)}
}

// sortQueries also leaves each but once.
func sortQueries(list *[]Query) {
	slices.SortFunc(*list, func(a, b Query) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Where, b.Where), cmp.Compare(a.Expression, b.Expression))
	})
	*list = slices.Compact(*list)
}

// sortAdvice sorts what Snapshot.Advice is about.
func (s *Snapshot) sortAdvice() {
	slices.SortFunc(s.Workloads, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	byName(s.Quotas)
	byName(s.LimitRanges)
	slices.SortFunc(s.Namespaces, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.PriorityClasses, func(a, b PriorityClass) int { return cmp.Compare(a.Name, b.Name) })
	sortQueries(&s.Queries)
	slices.SortFunc(s.Operators, func(a, b OperatorObject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// served is what the server says that it serves.
type served struct {
	// resources are the plurals of each group and version.
	resources map[schema.GroupVersion][]string
	// failed are the groups and versions that did not answer.
	failed map[schema.GroupVersion]error
}

// serves says whether the server has a kind. It is an error if that cannot be told, or
// if it has the kind in other versions alone.
func (s served) serves(kind CustomKind) (bool, error) {
	if slices.Contains(s.resources[kind.Version], kind.Resource) {
		return true, nil
	}
	for gv, err := range s.failed {
		if gv.Group == kind.Version.Group {
			return false, unreadable{fmt.Errorf("the server did not say what it serves of %s: %w", gv, err)}
		}
	}
	for gv, resources := range s.resources {
		if gv.Group == kind.Version.Group && slices.Contains(resources, kind.Resource) {
			return false, unreadable{fmt.Errorf("the server has it as %s, and this version reads %s", gv, kind.Version)}
		}
	}
	return false, nil
}
