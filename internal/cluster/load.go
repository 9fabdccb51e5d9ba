package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// The parts of a Snapshot, as Unknown names them.
const (
	PartNodes      = "nodes"
	PartPods       = "pods"
	PartDaemonSets = "daemonsets"
	PartSlices     = "resourceslices"
	PartClasses    = "deviceclasses"
	PartClaims     = "resourceclaims"
	PartBudgets    = "poddisruptionbudgets"
	PartIdentity   = "namespaces" // the UID of kube-system
	PartVersion    = "version"
	PartJournals   = "configmaps" // the tool's own
	PartLocks      = "leases"     // the tool's own
	// PartManagers is who wrote the fields of DaemonSets. The API always tells; kubectl
	// leaves it out of what it prints unless it is told otherwise.
	PartManagers = "managedfields"
)

// The parts that are read for advice only (LoadOptions.Advice): no run depends on them.
const (
	PartDeployments     = "deployments"
	PartStatefulSets    = "statefulsets"
	PartJobs            = "jobs"
	PartCronJobs        = "cronjobs"
	PartQuotas          = "resourcequotas"
	PartLimitRanges     = "limitranges"
	PartNamespaces      = "all-namespaces" // PartIdentity is one of them
	PartPriorityClasses = "priorityclasses"

	PartPrometheusRules = "prometheusrules"
	PartServiceMonitors = "servicemonitors"
	PartAutoscalers     = "horizontalpodautoscalers"
	PartScaledObjects   = "scaledobjects"
	PartDashboards      = "dashboards" // ConfigMaps with DashboardLabel

	PartClusterPolicies = "clusterpolicies"
	PartGPUClusters     = "gpuclusters"
	PartNVIDIADrivers   = "nvidiadrivers"

	PartResourceAPI = "resource.k8s.io" // the versions that are served
	PartFeatures    = "features"
)

// AdviceParts are the parts that are read for advice only.
func AdviceParts() []string {
	return []string{
		PartDeployments, PartStatefulSets, PartJobs, PartCronJobs,
		PartQuotas, PartLimitRanges, PartNamespaces, PartPriorityClasses,
		PartPrometheusRules, PartServiceMonitors, PartAutoscalers, PartScaledObjects, PartDashboards,
		PartClusterPolicies, PartGPUClusters, PartNVIDIADrivers,
		PartResourceAPI, PartFeatures,
	}
}

// IsAdvice says that a part is read for advice only.
func IsAdvice(part string) bool { return slices.Contains(AdviceParts(), part) }

// LoadOptions bound what a load asks of the API server. Zero values mean defaults.
type LoadOptions struct {
	// PageSize is the number of objects in one answer; 500 by default, like kubectl.
	PageSize int64
	// Concurrency is the number of lists that run at the same time; 4 by default.
	Concurrency int
	// Namespace is the tool's own, whose journals and locks are read; without it they
	// are not, and nobody asks for them.
	Namespace string
	// Claims has a Watcher follow claims and DeviceClasses too, which are not needed to
	// say where nodes stand. A load reads them anyway.
	Claims bool
	// Advice asks for the parts of AdviceParts too. Without it they are not read and
	// Snapshot.Advice is false.
	Advice bool
	// Dynamic reads, with Advice, the kinds of CustomKinds; if it is nil they are
	// unknown.
	Dynamic dynamic.Interface
	// ProbeGate asks the server, with Advice, by a DeviceClass that it is told not to
	// store whether the feature DRAExtendedResource is on. That takes the right to create
	// DeviceClasses.
	ProbeGate bool
}

// Load reads the cluster once. Lists are paged, and a page is dropped as soon as
// what the tool needs was taken from it. A part that the caller may not read, or
// that the server does not serve, becomes an entry of Unknown; only nodes must be
// readable. Every other failure, a context that ended included, is an error, unless it
// is of a part for advice.
func Load(ctx context.Context, client kubernetes.Interface, o LoadOptions) (*Snapshot, error) {
	l := &loader{client: client, dynamic: o.Dynamic, page: cmp.Or(o.PageSize, 500), namespace: o.Namespace, probe: o.ProbeGate}
	l.out.Advice = o.Advice
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cmp.Or(o.Concurrency, 4))
	// The longest list goes first, so that the others run beside it.
	parts := []loading{
		{PartPods, l.pods},
		{PartNodes, l.nodes},
		{PartSlices, l.slices},
		{PartClaims, l.claims},
		{PartDaemonSets, l.daemonSets},
		{PartBudgets, l.budgets},
		{PartClasses, l.classes},
		{PartIdentity, l.identity},
		{PartVersion, l.version},
		{PartJournals, l.journals},
		{PartLocks, l.locks},
	}
	if o.Advice {
		parts = append(parts, l.advice()...)
	}
	for _, part := range parts {
		g.Go(func() error { return l.tolerate(part.name, part.load(ctx)) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	l.out.Sort()
	return &l.out, nil
}

// loading is how one part is read.
type loading struct {
	name string
	load func(context.Context) error
}

type loader struct {
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	page      int64
	namespace string
	probe     bool
	// mu guards what has more than one writer: out.Unknown, out.Workloads, out.Queries
	// and out.Operators.
	mu  sync.Mutex
	out Snapshot
}

// tolerate turns the failures that say "you cannot see this" into an Unknown.
func (l *loader) tolerate(part string, err error) error {
	switch {
	case err == nil:
		return nil
	case part != PartNodes && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err) || errors.As(err, &unreadable{}) || IsAdvice(part) && !ended(err)):
		l.mu.Lock()
		defer l.mu.Unlock()
		l.out.Unknown = append(l.out.Unknown, Unknown{Part: part, Reason: err.Error()})
		return nil
	default:
		return fmt.Errorf("read %s: %w", part, err)
	}
}

// ended says that an error is that of a context. Every other one may be of a kind that
// belongs to others, such as a broken conversion webhook, and no run depends on advice.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// maxRestarts bounds how often a list begins anew because the server forgot the
// state that its pages were taken from.
const maxRestarts = 3

// collect goes through a paged list and keeps of each object what slim makes of it.
// If the server expired the continue token, the list begins anew: pages of two
// states must not be mixed. After maxRestarts it asks for everything in one answer,
// which cannot expire.
func collect[L metav1.ListInterface, In, Out any](
	ctx context.Context, size int64, out *[]Out,
	fetch func(context.Context, metav1.ListOptions) (L, error),
	items func(L) []In,
	slim func(*In) Out,
) error {
	return walk(ctx, size, func() { *out = nil }, fetch, items, func(in *In) { *out = append(*out, slim(in)) })
}

// walk goes through a paged list like collect; take is called with each object, and
// restart when those that were taken no longer count.
func walk[L metav1.ListInterface, In any](
	ctx context.Context, size int64, restart func(),
	fetch func(context.Context, metav1.ListOptions) (L, error),
	items func(L) []In,
	take func(*In),
) error {
	opts := metav1.ListOptions{Limit: size}
	for restarts := 0; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := fetch(ctx, opts)
		switch {
		case err != nil && opts.Continue != "" && apierrors.IsResourceExpired(err):
			restart()
			restarts++
			opts = metav1.ListOptions{Limit: size}
			if restarts > maxRestarts {
				opts.Limit = 0
			}
			continue
		case err != nil:
			return err
		}
		objects := items(page)
		for i := range objects {
			take(&objects[i])
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			return nil
		}
	}
}

func (l *loader) nodes(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.Nodes, l.client.CoreV1().Nodes().List,
		func(p *corev1.NodeList) []corev1.Node { return p.Items }, SlimNode)
}

func (l *loader) pods(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.Pods, l.client.CoreV1().Pods(metav1.NamespaceAll).List,
		func(p *corev1.PodList) []corev1.Pod { return p.Items }, ProjectPod)
}

func (l *loader) daemonSets(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.DaemonSets, l.client.AppsV1().DaemonSets(metav1.NamespaceAll).List,
		func(p *appsv1.DaemonSetList) []appsv1.DaemonSet { return p.Items }, SlimDaemonSet)
}

func (l *loader) slices(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.Slices, l.client.ResourceV1().ResourceSlices().List,
		func(p *resourcev1.ResourceSliceList) []resourcev1.ResourceSlice { return p.Items }, SlimSlice)
}

func (l *loader) classes(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.Classes, l.client.ResourceV1().DeviceClasses().List,
		func(p *resourcev1.DeviceClassList) []resourcev1.DeviceClass { return p.Items }, SlimClass)
}

func (l *loader) claims(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.Claims, l.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List,
		func(p *resourcev1.ResourceClaimList) []resourcev1.ResourceClaim { return p.Items }, SlimClaim)
}

func (l *loader) budgets(ctx context.Context) error {
	return collect(ctx, l.page, &l.out.Budgets, l.client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List,
		func(p *policyv1.PodDisruptionBudgetList) []policyv1.PodDisruptionBudget { return p.Items }, SlimBudget)
}

func (l *loader) journals(ctx context.Context) error {
	if l.namespace == "" {
		return nil
	}
	var maps []corev1.ConfigMap
	list := func(ctx context.Context, o metav1.ListOptions) (*corev1.ConfigMapList, error) {
		o.LabelSelector = labels.Set{KindLabel: KindJournal}.String()
		return l.client.CoreV1().ConfigMaps(l.namespace).List(ctx, o)
	}
	err := collect(ctx, l.page, &maps, list,
		func(p *corev1.ConfigMapList) []corev1.ConfigMap { return p.Items }, func(c *corev1.ConfigMap) corev1.ConfigMap { return *c })
	if err != nil {
		return err
	}
	for i := range maps {
		journal, err := DecodeJournal(&maps[i])
		if err != nil {
			return unreadable{err}
		}
		l.out.Journals = append(l.out.Journals, *journal)
	}
	return nil
}

func (l *loader) locks(ctx context.Context) error {
	if l.namespace == "" {
		return nil
	}
	return collect(ctx, l.page, &l.out.Locks, l.client.CoordinationV1().Leases(l.namespace).List,
		func(p *coordinationv1.LeaseList) []coordinationv1.Lease { return p.Items }, LockOf)
}

// unreadable is an object that is there and cannot be understood.
type unreadable struct{ error }

func (l *loader) identity(ctx context.Context) error {
	ns, err := l.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return err
	}
	l.out.Identity.UID = ns.UID
	return nil
}

// version asks for /version. The discovery client takes no context; its request is
// bounded by the timeout of the rest.Config.
func (l *loader) version(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	v, err := l.client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	return l.out.Identity.SetVersion(v)
}

// SetVersion takes what an API server says about its version.
func (i *Identity) SetVersion(v *version.Info) error {
	if v == nil || v.GitVersion == "" {
		return errors.New("the server does not say its version")
	}
	i.ServerVersion, i.EmulationVersion = v.GitVersion, ""
	// Vendors mark their builds with a "+" behind the minor version.
	own := v.Major + "." + strings.TrimSuffix(v.Minor, "+")
	if e := v.EmulationMajor + "." + strings.TrimSuffix(v.EmulationMinor, "+"); e != "." && e != own {
		i.EmulationVersion = e
	}
	return nil
}

// Sort brings a Snapshot into the order that it promises. It is for those who make
// one; nobody else may change it.
func (s *Snapshot) Sort() {
	slices.SortFunc(s.Nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	byName(s.DaemonSets)
	byName(s.Slices)
	byName(s.Classes)
	byName(s.Claims)
	byName(s.Budgets)
	slices.SortFunc(s.Journals, func(a, b Journal) int { return cmp.Compare(a.Pool, b.Pool) })
	slices.SortFunc(s.Locks, func(a, b LockInfo) int { return cmp.Compare(a.Name, b.Name) })
	s.sortAdvice()
	slices.SortFunc(s.Unknown, func(a, b Unknown) int { return cmp.Compare(a.Part, b.Part) })
}

// byName sorts objects by namespace and name.
func byName[T any, P interface {
	*T
	metav1.Object
}](objects []T) {
	slices.SortFunc(objects, func(a, b T) int {
		pa, pb := P(&a), P(&b)
		return cmp.Or(cmp.Compare(pa.GetNamespace(), pb.GetNamespace()), cmp.Compare(pa.GetName(), pb.GetName()))
	})
}
