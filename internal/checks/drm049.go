package checks

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/vendor"
)

func drm049() Check {
	return Check{
		Code:       "DRM049",
		Title:      "The DeviceClass to be created selects every device of the driver",
		Why:        "Of this driver the tool does not know how it marks a whole device, and guesses nothing: the class that it would make selects by the driver's name alone. Should the driver publish parts of devices too, pods may get these.",
		Fix:        "Bring a class of your own with the driver's manifests if the driver publishes devices of several kinds.",
		Sources:    []string{"the driver's documentation, its attributes of devices"},
		Operations: []string{Prepare, Migrate, MigrateInto},
		Advises:    true,
		Run: func(in Input) []Finding {
			if d, _ := vendor.DeviceOf(in.Resource, in.Driver); d.Whole() || in.NewClassObject == nil {
				return nil
			}
			looks := slices.ContainsFunc(in.NewClassObject.Spec.Selectors, func(s resourcev1.DeviceSelector) bool {
				return s.CEL != nil && (strings.Contains(s.CEL.Expression, "device.attributes") || strings.Contains(s.CEL.Expression, "device.capacity"))
			})
			if looks {
				return nil
			}
			return []Finding{{
				Code: "DRM049", Severity: Warning, Object: "deviceclass/" + in.NewClass,
				Message: fmt.Sprintf("it selects every device of %s: how that driver marks a whole device is not known", in.Driver),
				Remedy:  "see the attributes of its devices, `kubectl get resourceslices -o yaml`; if there are several kinds, add a DeviceClass with a selector and extendedResourceName: " + in.Resource + " to the folder of --driver-manifests",
			}}
		},
	}
}
