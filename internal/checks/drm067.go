package checks

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm067() Check {
	return Check{
		Code:       "DRM067",
		Title:      "The driver's chart is of the generation before its renaming",
		Why:        "The chart nvidia-dra-driver-gpu had versions by the calendar, up to 25.12. Its successor is called dra-driver-nvidia-gpu and began at 0.4: a lower number that is newer. An upgrade across the renaming gives every object a new name, so that for a while two drivers of one name run on a node. From 25.12 on the chart's class gpu.nvidia.com maps nvidia.com/gpu by itself, for the whole cluster at once; after a move that is a second class for the name.",
		Fix:        "Upgrade before the move, or not between prepare and the last pool; across the renaming with --set nameOverride=nvidia-dra-driver-gpu. There is no way back from 0.4 to 25.x.",
		Sources:    []string{"kubernetes-sigs/dra-driver-nvidia-gpu, releases v25.8.0, v25.12.0, v0.4.0", "kubernetes/kubernetes#141103"},
		Operations: []string{Prepare, Migrate},
		Needs:      []string{cluster.PartDaemonSets, cluster.PartPods},
		Advises:    true,
		Run: func(in Input) []Finding {
			if !in.nvidia() {
				return nil
			}
			var out []Finding
			for _, d := range in.Inventory.DriversFor(in.Driver) {
				v, by := calendarChart(d.DaemonSet)
				if v == nil {
					continue
				}
				f := Finding{
					Code: "DRM067", Severity: Info, Object: daemonSetObject(d.DaemonSet),
					Message: by + ": its successor dra-driver-nvidia-gpu has lower numbers (0.4 follows 25.12) and other names of objects",
					Remedy:  "upgrade across the renaming with --set nameOverride=nvidia-dra-driver-gpu",
				}
				if v.LessThan(version.MajorMinor(25, 12)) {
					f.Message += fmt.Sprintf("; its class does not map %s, those of 25.12 and later do, so that an upgrade after the move makes a second class for the name", in.Resource)
					f.Remedy += ", and before the first pool is moved"
				}
				out = append(out, f)
			}
			return out
		},
	}
}

// calendarChart is the version of a driver of the older chart, and where that stands; nil
// for any other.
func calendarChart(ds *appsv1.DaemonSet) (*version.Version, string) {
	if chart := templateLabel(ds, helmChart); chart != "" {
		number, ok := strings.CutPrefix(chart, "nvidia-dra-driver-gpu-")
		if !ok {
			return nil, ""
		}
		v, err := version.ParseGeneric(number)
		if err != nil {
			return nil, ""
		}
		return v, "label " + helmChart + "=" + chart
	}
	for _, image := range imagesOf(ds) {
		repo, tag := splitImage(image)
		if !strings.HasSuffix(repo, "/k8s-dra-driver-gpu") {
			continue
		}
		// Builds of both generations may have this image; the calendar tells them apart.
		if v, err := version.ParseGeneric(tag); err == nil && v.Major() >= 25 {
			return v, "image " + image
		}
	}
	return nil, ""
}

const helmChart = "helm.sh/chart"
