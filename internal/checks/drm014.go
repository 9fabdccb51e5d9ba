package checks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm014() Check {
	return Check{
		Code:        "DRM014",
		Title:       "The DeviceClass of the resource does not select the driver's devices",
		Why:         "A class that selects none of the driver's devices makes every pod that asks for the resource wait for ever on switched nodes. Its expressions are evaluated here, by the scheduler's own library, on the devices that are published.",
		Fix:         "Correct the expression by a new class of another name, and take extendedResourceName from the old one last.",
		Sources:     []string{"k8s.io/dynamic-resource-allocation/cel", "KEP-4381"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate},
		Needs:       []string{cluster.PartClasses, cluster.PartSlices},
		Run: func(in Input) []Finding {
			class, _ := in.Snapshot.ClassFor(in.Resource)
			if class == nil {
				return nil
			}
			f := Finding{Code: "DRM014", Object: "deviceclass/" + class.Name}
			sample := in.sampleSlices()
			if len(sample) == 0 || sample[0].Spec.Driver != in.Driver {
				f.Severity = Info
				f.Message = fmt.Sprintf("it maps %s, but %s publishes no device yet on which its selectors could be tried", in.Resource, in.Driver)
				f.Remedy = "the run tries them when the first node's devices are published, before that node is opened"
				return []Finding{f}
			}
			// The compiler bounds the cost of an expression, so there is nothing to cancel.
			m, err := cluster.MatchClass(context.Background(), class, sample)
			others := slices.DeleteFunc(slices.Sorted(maps.Keys(m.Selected)), func(d string) bool { return d == in.Driver })
			f.Severity = Blocker
			f.Remedy = "see its selectors: `kubectl get deviceclass " + class.Name + " -o yaml`"
			switch {
			case err != nil:
				f.Message = err.Error()
			case m.Failed != "":
				f.Message = "its selectors fail on " + m.Failed
			case len(m.Selected[in.Driver]) == 0:
				f.Message = fmt.Sprintf("it maps %s, but selects none of the devices that %s publishes", in.Resource, in.Driver)
			case len(others) > 0:
				f.Severity = Warning
				f.Message = fmt.Sprintf("it maps %s and selects devices of %s as well", in.Resource, few(others))
			default:
				return nil
			}
			return []Finding{f}
		},
	}
}

// sampleSlices are slices to try a class on: the driver's, of the pool if it
// publishes any there, and one of each other driver.
func (in Input) sampleSlices() []resourcev1.ResourceSlice {
	var own, rest []resourcev1.ResourceSlice
	for _, v := range in.seen() {
		own = append(own, v.SlicesOf(in.Driver)...)
	}
	inPool := len(own) > 0
	seen := map[string]bool{}
	for i := range in.Snapshot.Slices {
		s := &in.Snapshot.Slices[i]
		switch driver := s.Spec.Driver; {
		case len(s.Spec.Devices) == 0:
		case driver == in.Driver && !inPool:
			own = append(own, *s)
		case driver != in.Driver && !seen[driver]:
			seen[driver] = true
			rest = append(rest, *s)
		}
	}
	return append(own, rest...)
}
