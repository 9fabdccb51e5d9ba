package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dramigrate/dramigrate/internal/vendor"
)

// Device is one device that a DRA driver publishes.
type Device struct {
	Pool string
	Name string
	// Key is what plugin and driver both name the device by (vendor.JoinOf); empty if
	// the driver does not publish it.
	Key string
	// Kind is the driver's attribute that tells whole devices from others ("gpu",
	// "mig"); empty if there is none.
	Kind string
	// Tainted says that the driver keeps the device from claims that do not tolerate it.
	Tainted bool
}

// Devices are the devices of one driver, sorted by pool and name.
type Devices []Device

// Keys are the keys of the devices that have one, sorted.
func (d Devices) Keys() []string {
	var out []string
	for i := range d {
		if d[i].Key != "" {
			out = append(out, d[i].Key)
		}
	}
	slices.Sort(out)
	return out
}

// DevicesOf are the devices that a driver publishes in the given slices, of the
// newest generation of each pool. The second result is empty if the scheduler would
// allocate from every one of these pools: there is one, and each has as many slices
// of its newest generation as it says it has, and no device twice
// (k8s.io/dynamic-resource-allocation/structured/internal/stable/pools_stable.go,
// v0.37.2). Otherwise it says what is missing.
func DevicesOf(list []resourcev1.ResourceSlice, driver string) (Devices, string) {
	pools := map[string][]*resourcev1.ResourceSlice{}
	for i := range list {
		s := &list[i]
		if s.Spec.Driver != driver {
			continue
		}
		name := s.Spec.Pool.Name
		switch known := pools[name]; {
		case len(known) == 0 || s.Spec.Pool.Generation > known[0].Spec.Pool.Generation:
			pools[name] = []*resourcev1.ResourceSlice{s}
		case s.Spec.Pool.Generation == known[0].Spec.Pool.Generation:
			pools[name] = append(known, s)
		}
	}
	if len(pools) == 0 {
		return nil, fmt.Sprintf("driver %s publishes no ResourceSlice", driver)
	}
	var out Devices
	var missing []string
	for name, members := range pools {
		devices, incomplete := devicesOfPool(name, members)
		out = append(out, devices...)
		if incomplete != "" {
			missing = append(missing, incomplete)
		}
	}
	slices.SortFunc(out, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
	})
	slices.Sort(missing)
	return out, strings.Join(missing, "; ")
}

// devicesOfPool reads the slices of one pool's newest generation.
func devicesOfPool(pool string, members []*resourcev1.ResourceSlice) (Devices, string) {
	var out Devices
	var incomplete string
	generation := members[0].Spec.Pool.Generation
	seen := map[string]bool{}
	for _, s := range members {
		if want := s.Spec.Pool.ResourceSliceCount; want != int64(len(members)) {
			incomplete = fmt.Sprintf("pool %s of driver %s has %d of %d slices of generation %d",
				pool, s.Spec.Driver, len(members), want, generation)
		}
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			if seen[d.Name] {
				incomplete = fmt.Sprintf("pool %s of driver %s publishes device %s twice", pool, s.Spec.Driver, d.Name)
				continue
			}
			seen[d.Name] = true
			out = append(out, deviceOf(s.Spec.Driver, pool, d))
		}
	}
	return out, incomplete
}

func deviceOf(driver, pool string, d *resourcev1.Device) Device {
	join := vendor.JoinOf(driver)
	return Device{
		Pool:    pool,
		Name:    d.Name,
		Key:     join.Key.Normal(stringAttribute(d, driver, join.Attributes...)),
		Kind:    stringAttribute(d, driver, vendor.KindOf(driver)),
		Tainted: slices.ContainsFunc(d.Taints, ClosesDevice),
	}
}

// ClosesDevice says that a taint keeps its device from claims that do not tolerate it, whose
// effect is one of two (k8s.io/api/resource/v1, DeviceTaintEffect, v0.37.2).
func ClosesDevice(t resourcev1.DeviceTaint) bool {
	return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
}

// stringAttribute finds the first of some attributes that the device has: a name
// without a domain is in the driver's own (k8s.io/api/resource/v1, QualifiedName).
func stringAttribute(d *resourcev1.Device, driver string, names ...string) string {
	for _, name := range names {
		for _, key := range []string{name, driver + "/" + name} {
			if a, ok := d.Attributes[resourcev1.QualifiedName(key)]; ok && a.StringValue != nil {
				return *a.StringValue
			}
		}
	}
	return ""
}
