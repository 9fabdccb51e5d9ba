package checks

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/gate"
)

func drm138() Check {
	return Check{
		Code:       "DRM138",
		Title:      "The metrics of GPUs lose their pods, or GPUs",
		Why:        "dcgm-exporter names the pod that has a GPU. For GPUs by DRA it does so only when told to (KUBERNETES_ENABLE_DRA), so that labels such as exported_pod go from the series of switched nodes. With it, 4.4.1 leaves out GPUs that no pod has as soon as one has one.",
		Fix:        "Set KUBERNETES_ENABLE_DRA=true on dcgm-exporter, in a version later than 4.4.1; see after the first node that each of its GPUs has a series.",
		Sources:    []string{"NVIDIA/dcgm-exporter#569, #570, #501", "NVIDIA/dcgm-exporter, pkg/cmd/app.go", "kubernetes-sigs/dra-driver-nvidia-gpu#886"},
		Advises:    true,
		Operations: []string{Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Run: func(in Input) []Finding {
			var out []Finding
			for i := range in.Snapshot.DaemonSets {
				ds := &in.Snapshot.DaemonSets[i]
				c, ok := exporter(ds)
				if !ok || !in.landsOnDRA(ds) {
					continue
				}
				f := Finding{Code: "DRM138", Severity: Warning, Object: daemonSetObject(ds)}
				v, _ := imageVersion([]string{c.Image}, dcgmExporter)
				switch {
				case !enablesDRA(c):
					f.Message = "does not set KUBERNETES_ENABLE_DRA: the series of switched nodes will not say which pod has a GPU"
					f.Remedy = "set it where the exporter is configured (ClusterPolicy: spec.dcgmExporter.env; its chart: kubernetesDRA.enabled=true)"
				case v != nil && !v.GreaterThan(version.MustParseGeneric("4.4.1")):
					f.Message = fmt.Sprintf("is %s: GPUs that no pod has may have no series once one is in use by DRA (seen with 4.4.1)", c.Image)
					f.Remedy = "upgrade it to a release with NVIDIA/dcgm-exporter#570, and count the series of the first switched node"
				default:
					continue
				}
				out = append(out, f)
			}
			return out
		},
	}
}

const dcgmExporter = "dcgm-exporter"

func exporter(ds *appsv1.DaemonSet) (*corev1.Container, bool) {
	list := ds.Spec.Template.Spec.Containers
	i := slices.IndexFunc(list, func(c corev1.Container) bool { return hasImage([]string{c.Image}, dcgmExporter) })
	if i < 0 {
		return nil, false
	}
	return &list[i], true
}

// enablesDRA says that the exporter is told to look for claims; the Snapshot keeps the
// variable's name without its value.
func enablesDRA(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "KUBERNETES_ENABLE_DRA" && e.Value != "false" }) ||
		slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(a string) bool { return strings.HasPrefix(a, "--kubernetes-enable-dra") })
}

// landsOnDRA says that a DaemonSet has a pod on one of the nodes once that is on DRA.
func (in Input) landsOnDRA(ds *appsv1.DaemonSet) bool {
	return slices.ContainsFunc(in.targets(), func(v cluster.NodeView) bool {
		lands, _ := gate.Lands(ds, in.Gate.With(v.Node, gate.DRA))
		return lands
	})
}
