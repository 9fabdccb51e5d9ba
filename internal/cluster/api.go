package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
)

// API is what the API server can do beside what its version tells.
type API struct {
	// ResourceVersions are the versions of resource.k8s.io that it serves, the most
	// stable first ("v1", "v1beta2").
	ResourceVersions []string `json:"resourceVersions,omitempty"`
	// Features are the feature gates that were seen, by name. One that is not here was
	// not seen: it may be on or off, or unknown to the server.
	Features map[string]Feature `json:"features,omitempty"`
}

// Feature is a feature gate of the API server. The scheduler and the kubelets have
// gates of their own.
type Feature struct {
	Enabled bool `json:"enabled"`
	// Evidence is where that was seen.
	Evidence string `json:"evidence"`
}

// The feature gates that decide about DRA for extended resources.
const (
	FeatureDRA              = "DynamicResourceAllocation"
	FeatureExtendedResource = "DRAExtendedResource"
	FeatureNodeAllocatable  = "DRANodeAllocatableResources"
	featureMetric           = "kubernetes_feature_enabled"
	autoUpdateAnnotation    = rbacv1.AutoUpdateAnnotationKey
)

// SchedulerRole is the ClusterRole that FeatureOfRole reads.
const SchedulerRole = "system:kube-scheduler"

// Bounds on the reading of the server's metrics: they grow with what it serves.
const (
	metricsTimeout = 20 * time.Second
	maxMetrics     = 128 << 20
)

// discover asks once for everything that the server serves; a client of discovery that
// knows the aggregated form needs two requests.
func (l *loader) discover(ctx context.Context) (served, error) {
	client := discovery.ToDiscoveryInterfaceWithContext(l.client.Discovery())
	_, lists, err := client.ServerGroupsAndResourcesWithContext(ctx)
	out := served{resources: map[schema.GroupVersion][]string{}}
	var partly *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partly):
		out.failed = partly.Groups
	case err != nil:
		return out, err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // of somebody else's API server
		}
		for i := range list.APIResources {
			out.resources[gv] = append(out.resources[gv], list.APIResources[i].Name)
		}
	}
	return out, nil
}

// resourceAPI notes the versions of resource.k8s.io.
func (l *loader) resourceAPI(ctx context.Context, ask func(context.Context) (served, error)) error {
	served, err := ask(ctx)
	if err != nil {
		return err
	}
	for gv, err := range served.failed {
		if gv.Group == resourcev1.GroupName {
			return unreadable{fmt.Errorf("the server did not say what it serves of %s: %w", gv, err)}
		}
	}
	l.out.API.ResourceVersions = nil
	for gv := range served.resources {
		if gv.Group == resourcev1.GroupName {
			l.out.API.ResourceVersions = append(l.out.API.ResourceVersions, gv.Version)
		}
	}
	SortVersions(l.out.API.ResourceVersions)
	return nil
}

// SortVersions sorts versions of an API group, the most stable first.
func SortVersions(versions []string) {
	slices.SortFunc(versions, func(a, b string) int { return apiversion.CompareKubeAwareVersionStrings(b, a) })
}

// features looks at the server's own metric of its gates, and, where that may not be
// read, at what the gate leaves behind: with DRAExtendedResource on, the server gives
// the scheduler the right to make and remove claims
// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, v1.37.2).
func (l *loader) features(ctx context.Context) error {
	if !l.probe {
		return l.seenFeatures(ctx)
	}
	probed, refused := l.probeGate(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	seen := l.seenFeatures(ctx)
	if refused != nil && seen != nil {
		refused = fmt.Errorf("%w; %w", refused, seen)
	}
	if refused != nil {
		return unreadable{refused}
	}
	if l.out.API.Features == nil {
		l.out.API.Features = map[string]Feature{}
	}
	l.out.API.Features[FeatureExtendedResource] = probed
	if errors.As(seen, &unreadable{}) {
		return nil // what matters most is known
	}
	return seen
}

// seenFeatures is features without a probe.
func (l *loader) seenFeatures(ctx context.Context) error {
	found, noMetrics := l.featureMetrics(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if noMetrics == nil && len(found) > 0 {
		l.out.API.Features = found
		return nil
	}
	if noMetrics == nil {
		noMetrics = fmt.Errorf("it has no %s", featureMetric)
	}
	role, err := l.client.RbacV1().ClusterRoles().Get(ctx, SchedulerRole, metav1.GetOptions{})
	if err != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		return unreadable{fmt.Errorf("the API server's /metrics: %w; clusterrole/%s: %w", noMetrics, SchedulerRole, err)}
	}
	feature, err := FeatureOfRole(role)
	if err != nil {
		return unreadable{fmt.Errorf("the API server's /metrics: %w; %w", noMetrics, err)}
	}
	l.out.API.Features = map[string]Feature{FeatureExtendedResource: feature}
	return nil
}

// FeatureOfRole tells from the scheduler's ClusterRole whether DRAExtendedResource is
// on. The server adds rules to it when it starts and removes none, so that a gate that
// was on once may be off now; the evidence says what was seen.
func FeatureOfRole(role *rbacv1.ClusterRole) (Feature, error) {
	verbs := map[string]bool{}
	for _, rule := range role.Rules {
		if slices.Contains(rule.APIGroups, resourcev1.GroupName) && slices.Contains(rule.Resources, "resourceclaims") {
			for _, v := range rule.Verbs {
				verbs[v] = true
			}
		}
	}
	if verbs["create"] && verbs["delete"] {
		return Feature{Enabled: true, Evidence: "clusterrole/" + role.Name + " may create and delete resourceclaims"}, nil
	}
	if role.Annotations[autoUpdateAnnotation] == "false" {
		return Feature{}, fmt.Errorf("clusterrole/%s is not kept up to date (%s), and says nothing", role.Name, autoUpdateAnnotation)
	}
	return Feature{Evidence: "clusterrole/" + role.Name + " may not create and delete resourceclaims"}, nil
}

// featureMetrics reads the gates from the server's metrics.
func (l *loader) featureMetrics(ctx context.Context) (map[string]Feature, error) {
	client := l.client.Discovery().RESTClient()
	if client == nil || reflect.ValueOf(client).IsNil() { // as a fake client has it
		return nil, errors.New("there is no client to read it by")
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	body, err := client.Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return parseFeatures(io.LimitReader(body, maxMetrics))
}

// parseFeatures takes from metrics in the text format of Prometheus the gates that
// matter. Families come whole, so that the reading ends with theirs.
func parseFeatures(in io.Reader) (map[string]Feature, error) {
	wanted := []string{FeatureDRA, FeatureExtendedResource, FeatureNodeAllocatable}
	out := map[string]Feature{}
	r := bufio.NewReaderSize(in, 64<<10)
	for seen := false; ; {
		line, err := r.ReadSlice('\n')
		rest, ours := bytes.CutPrefix(line, []byte(featureMetric+"{"))
		switch {
		case ours:
			seen = true
			labels, value, _ := strings.Cut(string(rest), "}")
			for _, name := range wanted {
				if strings.Contains(","+labels+",", `,name="`+name+`",`) {
					out[name] = Feature{Enabled: strings.HasPrefix(strings.TrimSpace(value), "1"), Evidence: featureMetric + " of the API server"}
				}
			}
		case seen && !bytes.HasPrefix(line, []byte("#")):
			return out, nil
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = r.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
