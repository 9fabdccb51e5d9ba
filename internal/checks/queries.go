package checks

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// queriesOf are the findings about what objects of the given kinds read of nodes'
// allocatable and capacity, one for each object.
func (in Input) queriesOf(code string, kinds ...string) []Finding {
	var out []Finding
	all := in.Snapshot.Queries // sorted by object
	for i := 0; i < len(all); {
		object := all[i].Object
		var hits []cluster.Query
		for ; i < len(all) && all[i].Object == object; i++ {
			if in.readsNodes(all[i].Expression) {
				hits = append(hits, all[i])
			}
		}
		kind, _, _ := strings.Cut(object, "/")
		if len(hits) == 0 || !slices.Contains(kinds, kind) {
			continue
		}
		out = append(out, Finding{
			Code: code, Severity: Warning, Object: object,
			Message: places(hits) + fmt.Sprintf(": reads allocatable or capacity of nodes, which is 0 for %s on switched ones: `%s`", in.Resource, excerpt(hits[0].Expression)),
			Remedy:  in.replacement(),
		})
	}
	return fewest(out, in.Resource)
}

// mostObjects is how many objects are named one by one.
const mostObjects = 25

// fewest leaves the first findings and counts the rest.
func fewest(findings []Finding, resource string) []Finding {
	if len(findings) <= mostObjects {
		return findings
	}
	rest := findings[mostObjects-1:]
	var names []string
	for _, f := range rest {
		names = append(names, f.Object)
	}
	last := rest[0]
	last.Object = "cluster"
	last.Message = fmt.Sprintf("%d more objects read allocatable or capacity of nodes, which is 0 for %s on switched ones: %s", len(rest), resource, few(names))
	return append(slices.Clone(findings[:mostObjects-1]), last)
}

func places(hits []cluster.Query) string {
	var where []string
	for _, q := range hits {
		if q.Where != "" && !slices.Contains(where, q.Where) {
			where = append(where, q.Where)
		}
	}
	if len(where) == 0 {
		return fmt.Sprintf("%d expressions", len(hits))
	}
	return few(where)
}

// excerpt is the beginning of an expression, on one line.
func excerpt(expression string) string {
	const most = 100
	line := []rune(strings.Join(strings.Fields(expression), " "))
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}

var (
	nodeMetric = regexp.MustCompile(`kube_node_status_(allocatable|capacity|[(.\[])`)
	// resourceMatcher is a matcher of PromQL on the label by which kube-state-metrics
	// tells resources apart.
	resourceMatcher = regexp.MustCompile(`\bresource\s*(=~|!~|!=|=)\s*(?:"([^"]*)"|'([^']*)')`)
)

// readsNodes says that an expression reads the resource, or one more of the plugin's,
// from allocatable or capacity: by name, by a pattern, or because it reads all resources.
// What pods request is what it was.
func (in Input) readsNodes(expression string) bool {
	if !nodeMetric.MatchString(expression) {
		return false
	}
	matchers := resourceMatcher.FindAllStringSubmatch(expression, -1)
	if len(matchers) == 0 {
		return true
	}
	return slices.ContainsFunc(in.Resources, func(r string) bool {
		return slices.ContainsFunc(matchers, func(m []string) bool { return matches(m[1], m[2]+m[3], metricName(r)) })
	})
}

func matches(operator, value, name string) bool {
	switch operator {
	case "=":
		return value == name
	case "!=":
		return value != name
	}
	re, err := regexp.Compile("^(?:" + value + ")$") // Prometheus anchors it
	if err != nil {
		return true // it may be a template's; a person has to look
	}
	return re.MatchString(name) == (operator == "=~")
}

// metricName is a resource as kube-state-metrics writes it (internal/store/utils.go,
// sanitizeLabelName).
func metricName(resource string) string {
	return regexp.MustCompile(`[^a-zA-Z0-9_]`).ReplaceAllString(resource, "_")
}

// replacement says what to read instead. kube-state-metrics has no series of
// ResourceSlices: kube_pod_resourceclaim_info (#3005) has the claims in pods' specs alone,
// which generated ones are not, and the rest (#3020) is not merged.
func (in Input) replacement() string {
	name := metricName(in.Resource)
	there := "the exporter of the device's vendor"
	if strings.HasPrefix(in.Resource, nvidiaDomain+"/") {
		there = "`count by (Hostname) (DCGM_FI_DEV_GPU_TEMP)` (dcgm-exporter)"
	}
	return fmt.Sprintf("devices there are: add %s, kube-state-metrics has none of DRA; devices asked for, as before: `sum(kube_pod_container_resource_requests{resource=%q})`; %s", there, name, in.claimMetric())
}

// claimMetric is how kube-controller-manager counts claims, by version
// (pkg/controller/resourceclaim/metrics/metrics.go, v1.35.4, v1.36.3, v1.37.2).
func (in Input) claimMetric() string {
	const labels = `{allocated="true",source="extended_resource"}`
	minor, known := in.serverMinor()
	switch {
	case known && minor >= 37:
		return "pods that DRA serves: `sum(dynamic_resource_allocation_resource_claims" + labels + ")` (kube-controller-manager)"
	case known && minor >= 35:
		return "pods that DRA serves: `sum(resourceclaim_controller_resource_claims" + labels + ")` (kube-controller-manager; from 1.37 on dynamic_resource_allocation_resource_claims)"
	default:
		return "pods that DRA serves: from 1.35 on kube-controller-manager counts their claims, resourceclaim_controller_resource_claims, and dynamic_resource_allocation_resource_claims from 1.37 on"
	}
}
