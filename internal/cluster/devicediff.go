package cluster

import (
	"slices"

	"github.com/dramigrate/dramigrate/internal/vendor"
)

// DeviceDiff is how the devices of a driver differ from those that the plugin had.
type DeviceDiff struct {
	// Join is by what they were compared.
	Join vendor.Join
	// Missing are keys of the plugin's devices that the driver does not publish,
	// Unexpected such of the driver's that the plugin had not; both sorted, and empty
	// if there is no key.
	Missing, Unexpected []string
	// Before and Now are the numbers of the plugin's devices and of the driver's. They
	// decide if there is no key.
	Before, Now int
}

// Same says that nothing differs of what could be compared.
func (d DeviceDiff) Same() bool {
	if d.Join.Key == vendor.NoKey {
		return d.Before == d.Now
	}
	return len(d.Missing)+len(d.Unexpected) == 0
}

// Diff compares the driver's devices with the IDs that the plugin had for them, as the
// kubelet told them of the resources.
func (d Devices) Diff(driver string, resources, before []string) DeviceDiff {
	diff := DeviceDiff{Join: vendor.JoinOf(driver), Before: len(before), Now: d.count(driver, resources)}
	if diff.Join.Key == vendor.NoKey {
		return diff
	}
	want := make([]string, len(before))
	for i, id := range before {
		want[i] = diff.Join.Key.Normal(id)
	}
	have := d.Keys()
	diff.Missing, diff.Unexpected = Difference(want, have), Difference(have, want)
	return diff
}

// count is how many of the devices are such as the plugin serves by the resources.
func (d Devices) count(driver string, resources []string) int {
	var kinds []string
	for _, r := range resources {
		if known, ok := vendor.DeviceOf(r, driver); ok && known.Attribute != "" {
			kinds = append(kinds, known.Value)
		}
	}
	if len(kinds) == 0 {
		return len(d)
	}
	n := 0
	for i := range d {
		if slices.Contains(kinds, d[i].Kind) {
			n++
		}
	}
	return n
}

// Difference is what is in a and not in b, sorted and each once.
func Difference(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
