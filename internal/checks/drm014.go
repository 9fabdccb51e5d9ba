package checks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/vendor"
)

func drm014() Check {
	return Check{
		Code:        "DRM014",
		Title:       "The DeviceClass of the resource does not select the driver's devices, or not these alone",
		Why:         "A class that selects none of the driver's devices makes every pod that asks for the resource wait for ever on switched nodes. One that selects partitions, or devices that are set aside for virtual machines, gives these to pods that ask for a whole device. Its expressions are evaluated here, by the scheduler's own library, on the devices that are published in the cluster: one on which an expression fails, of whatever pool or driver, keeps the pods from every node.",
		Fix:         "Correct the expression by a new class of another name, and take extendedResourceName from the old one last.",
		Sources:     []string{"k8s.io/dynamic-resource-allocation/cel", "KEP-4381", "kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, DeviceClasses"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, MigrateInto, Verify},
		Needs:       []string{cluster.PartClasses, cluster.PartSlices},
		Run: func(in Input) []Finding {
			class, _ := in.Snapshot.ClassFor(in.Resource)
			live := class != nil
			if !live {
				class = in.NewClassObject
			}
			if class == nil {
				return nil
			}
			f := Finding{Code: "DRM014", Object: "deviceclass/" + class.Name}
			own, rest := in.tried()
			// The compiler bounds the cost of an expression, so there is nothing to cancel.
			m, err := cluster.MatchClass(context.Background(), class, own)
			elsewhere, _ := cluster.MatchClass(context.Background(), class, rest)
			f.Severity = Blocker
			f.Remedy = "see its selectors: `kubectl get deviceclass " + class.Name + " -o yaml`"
			if !live {
				f.Remedy = "see its selectors in the plan's step deviceclass"
			}
			switch failed := cmp.Or(m.Failed, elsewhere.Failed); {
			case err != nil:
				f.Message = err.Error()
			case failed != "":
				f.Message = fmt.Sprintf("its selectors fail on %s; while one such device is published, wherever it is, the scheduler gives pods that ask for %s no node", failed, in.Resource)
			case len(own) == 0:
				return in.untried(class, live, elsewhere, f)
			case len(m.Selected[in.Driver]) == 0:
				f.Message = fmt.Sprintf("it maps %s, but selects none of the devices that %s publishes", in.Resource, in.Driver)
			default:
				if g, found := in.ofOtherDrivers(class, elsewhere, f); found {
					return []Finding{g}
				}
				return in.ofOtherTypes(m.Selected[in.Driver], own, f)
			}
			return []Finding{f}
		},
	}
}

// untried is about a class while the driver publishes nothing to try it on.
func (in Input) untried(class *resourcev1.DeviceClass, live bool, elsewhere cluster.Match, f Finding) []Finding {
	if other := forOther(class, in.Driver); other != "" {
		f.Message = fmt.Sprintf("it maps %s to devices of %s, and can select none of %s", in.Resource, other, in.Driver)
		f.Remedy = "name the driver that it is for by --driver, or have its owner take extendedResourceName away"
		return []Finding{f}
	}
	if g, found := in.ofOtherDrivers(class, elsewhere, f); found {
		return []Finding{g}
	}
	if !live {
		return nil // DRM047 speaks of it
	}
	f.Severity = Info
	f.Message = fmt.Sprintf("it maps %s, but %s publishes no device yet on which its selectors could be tried", in.Resource, in.Driver)
	f.Remedy = "the canary tries them on the first node, before that is opened"
	return []Finding{f}
}

// ofOtherDrivers is about a class that selects devices of other drivers as well. One that
// asks for no driver at all selects whatever anybody publishes, now or later; one that
// names several may be meant so.
func (in Input) ofOtherDrivers(class *resourcev1.DeviceClass, elsewhere cluster.Match, f Finding) (Finding, bool) {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(elsewhere.Selected)), func(d string) bool { return d == in.Driver })
	anyDriver := selectsAny(class)
	how := "has no selector"
	if len(class.Spec.Selectors) > 0 {
		how = "has selectors that no driver is asked for by"
	}
	switch {
	case anyDriver && len(others) > 0:
		f.Message = fmt.Sprintf("it maps %s and %s: it selects devices of %s as well, and a pod that asks for one %s may get such a one", in.Resource, how, few(others), in.Resource)
	case anyDriver:
		f.Severity = Warning
		f.Message = fmt.Sprintf("it maps %s and %s: it selects the devices of every driver, and a pod that asks for one %s may get any, as soon as another driver publishes some", in.Resource, how, in.Resource)
	case len(others) > 0:
		f.Severity = Warning
		f.Message = fmt.Sprintf("it maps %s and selects devices of %s as well", in.Resource, few(others))
	default:
		return f, false
	}
	return f, true
}

// selectsAny says that a class selects the devices of drivers that it does not know: it
// has no selector, or its selectors say yes to a device of which nothing is known.
func selectsAny(class *resourcev1.DeviceClass) bool {
	m, err := cluster.MatchClass(context.Background(), class, bare("unheard-of.invalid"))
	return err == nil && len(m.Selected) > 0
}

// bare is one device of a driver, without an attribute.
func bare(driver string) []resourcev1.ResourceSlice {
	return []resourcev1.ResourceSlice{{Spec: resourcev1.ResourceSliceSpec{Driver: driver, Devices: []resourcev1.Device{{Name: "any"}}}}}
}

// namedDriver finds the drivers that an expression compares with.
var namedDriver = regexp.MustCompile(`device\.driver\s*==\s*["']([^"']+)["']`)

// forOther is the driver that a class is for, if it can select no device of the given
// one, whatever that would publish: its expressions answer no for a device of the
// driver without looking at an attribute, and not for one of the driver that they name.
// Empty if that is not so, or cannot be told.
func forOther(class *resourcev1.DeviceClass, driver string) string {
	var named []string
	for _, s := range class.Spec.Selectors {
		if s.CEL != nil {
			for _, m := range namedDriver.FindAllStringSubmatch(s.CEL.Expression, -1) {
				named = append(named, m[1])
			}
		}
	}
	refuses := func(driver string) bool {
		m, err := cluster.MatchClass(context.Background(), class, bare(driver))
		return err == nil && m.Failed == "" && len(m.Selected) == 0
	}
	if slices.Contains(named, driver) || !refuses(driver) {
		return ""
	}
	for _, other := range named {
		if !refuses(other) {
			return other
		}
	}
	return ""
}

// ofOtherTypes compares what a class selects with what pods mean that ask for the
// resource, where it is known how the driver marks that.
func (in Input) ofOtherTypes(selected cluster.Devices, sample []resourcev1.ResourceSlice, f Finding) []Finding {
	whole, known := vendor.DeviceOf(in.Resource, in.Driver)
	if !known || whole.Attribute == "" {
		return nil
	}
	count := map[string]int{}
	for _, d := range selected {
		count[d.Kind]++
	}
	all := 0
	for i := range sample {
		devices, _ := cluster.DevicesOf(sample[i:i+1], in.Driver)
		for _, d := range devices {
			if d.Kind == whole.Value {
				all++
			}
		}
	}
	var out []Finding
	f.Severity = Warning
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		if kind != whole.Value {
			g := f
			g.Message = fmt.Sprintf("it maps %s and selects %d devices of %s %q as well: a pod that asks for one %s may get such a one", in.Resource, count[kind], whole.Attribute, kind, in.Resource)
			out = append(out, g)
		}
	}
	if missed := all - count[whole.Value]; missed > 0 {
		f.Message = fmt.Sprintf("it maps %s and selects %d of the %d devices of %s %q that were looked at: no pod that asks for %s gets the others", in.Resource, count[whole.Value], all, whole.Attribute, whole.Value, in.Resource)
		out = append(out, f)
	}
	return out
}

// tried are the slices of the cluster to try a class on. own are the driver's, of the
// pool if it publishes any there: what the class selects of these counts. rest are all
// others: none of their devices may be selected that is of another driver, and on none
// may an expression fail, for that keeps pods from every node (a scheduler of 1.36 or
// 1.37; see docs/truth.md, K1.1i and K1.1j).
func (in Input) tried() (own, rest []resourcev1.ResourceSlice) {
	pool := map[string]bool{}
	for _, v := range in.seen() {
		for _, s := range v.SlicesOf(in.Driver) {
			if len(s.Spec.Devices) > 0 && !pool[s.Name] {
				pool[s.Name] = true
				own = append(own, s)
			}
		}
	}
	for i := range in.Snapshot.Slices {
		s := &in.Snapshot.Slices[i]
		switch {
		case len(s.Spec.Devices) == 0 || pool[s.Name]:
		case s.Spec.Driver == in.Driver && len(pool) == 0:
			own = append(own, *s)
		default:
			rest = append(rest, *s)
		}
	}
	return own, rest
}
