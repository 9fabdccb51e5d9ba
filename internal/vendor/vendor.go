// Package vendor is what the tool knows of each maker of devices, as data: the names of
// its extended resources, by what its plugin and its DRA driver are recognised, how the
// driver publishes what the plugin advertises, and by what the two name one device.
//
// A vendor is a file and a line in the table. What is not known of one is left empty
// there; whoever asks has to say so then and never takes it for fine.
package vendor

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Vendor is one maker's devices, or another program that hands them out.
type Vendor struct {
	// Name is for messages ("AMD").
	Name string
	// Domain is that of its resources, with others' maybe.
	Domain string
	// Resources are prefixes of the extended resources of the devices. They are
	// narrower than a domain, which may hold what has nothing to do with them.
	Resources []string
	// Unbridged are resources among these that are no devices and that no driver can
	// serve, by what stands behind the last slash.
	Unbridged *regexp.Regexp
	// Names are resources of the domain that plugins for the vendor's devices serve
	// elsewhere.
	Names []Name
	// Plugins and Drivers are the programs.
	Plugins []Program
	Drivers []Program
	// Devices are the DRA drivers' devices.
	Devices []Device
	// IDs is how the plugin's IDs are made, which the kubelet knows devices by.
	IDs IDs
	// Look lists the devices that a container sees, in the form of `nvidia-smi -L` with
	// what they are joined by; nil if nothing is known to do that.
	Look []string
	// NodeLabels are by which a node shows that it has devices, the surest first.
	NodeLabels []NodeLabel
	// CountLabel is the node label by which the vendor's feature discovery tells how many
	// devices a node has; empty if it has none.
	CountLabel string
	// OptOut is how GKE's own plugin for these devices is kept off a node.
	OptOut OptOut
	// Environment are the variables of plugin and driver that decide which devices they
	// hand out, under which names, and where they find them.
	Environment []string
	// Charts are the charts whose value for the pods' affinity is known.
	Charts []Chart
}

// Name is a kind of extended resource.
type Name struct {
	// Pattern matches what stands behind the vendor's domain.
	Pattern *regexp.Regexp
	// Cannot says why DRA does not serve it by that name; empty if a DeviceClass could.
	Cannot string
}

// Program is what a plugin or a driver is recognised by. It never suffices: what its pods
// do has to fit as well, as a labeller may have the plugin's image.
type Program struct {
	// Images are alternatives: the end of an image's repository.
	Images []string
	// Labels are alternatives, of the pod template or of the DaemonSet.
	Labels []Label
	// Resources are prefixes of what a plugin serves.
	Resources []string
	// Drivers are the DRA names of a driver.
	Drivers []string
	// Containers are the names of the containers that serve one DRA name each, where
	// the program has several and its installation may leave some out.
	Containers map[string]string
}

// Label is a label's key and value.
type Label struct{ Key, Value string }

// NodeLabel matches a node's label.
type NodeLabel struct {
	Key string
	// Prefix is how the value begins, or Value what it is; any value if both are empty.
	Prefix, Value string
}

// On gives the label as key=value if the labels have it; empty if not.
func (l NodeLabel) On(labels map[string]string) string {
	value, has := labels[l.Key]
	if !has || l.Value != "" && value != l.Value || !strings.HasPrefix(value, l.Prefix) {
		return ""
	}
	return l.Key + "=" + value
}

// OptOut is a node label that keeps a plugin away with the value "true".
type OptOut struct {
	// Gate is the name of the gate in plans and records, which never changes.
	Gate  string
	Label string
}

// Chart is a chart and below which keys of its values the pods' affinity stands.
type Chart struct {
	// Prefix is how the label helm.sh/chart begins.
	Prefix string
	Values []string
}

// Device is how a DRA driver publishes a device as the plugin advertises one: not a part
// of it, and not one that is set aside for virtual machines.
type Device struct {
	// Driver is the driver's DRA name, Resource the extended resource that this is for;
	// empty for every one.
	Driver, Resource string
	// Class is the DeviceClass that the driver's installation brings; empty if that is
	// not known.
	Class string
	// Attribute is the driver's attribute that tells such a device, Value what it is
	// then. Without them the driver has no others if Only is true, and otherwise it is
	// not known.
	Attribute, Value string
	Only             bool
	// Join is by what such a device is found among those of the plugin.
	Join Join
	// Source says where that is to be seen.
	Source string
}

// Whole says that it is known which of the driver's devices are such.
func (d Device) Whole() bool { return d.Attribute != "" || d.Only }

// Selector is the CEL expression by which a DeviceClass selects such devices.
func (d Device) Selector() string {
	expression := driverIs(d.Driver)
	if d.Attribute != "" {
		expression += ` && device.attributes["` + d.Driver + `"].` + d.Attribute + ` == "` + d.Value + `"`
	}
	return expression
}

func driverIs(driver string) string { return `device.driver == "` + driver + `"` }

// Selector is the CEL expression by which a DeviceClass for the resource selects whole
// devices of the driver, or every device of it if nothing is known of its types: a
// type that was guessed would select none.
func Selector(resource, driver string) string {
	if d, known := DeviceOf(resource, driver); known {
		return d.Selector()
	}
	return driverIs(driver)
}

// table lists the vendors; a program that serves another vendor's resources comes after
// that one.
var table = sync.OnceValue(func() []Vendor {
	return []Vendor{nvidia(), amd(), intelGPU(), gaudi(), tpu(), ascend(), hami()}
})

// All are the vendors. They are not to be changed.
func All() []Vendor { return table() }

// OfResource is the vendor of an extended resource.
func OfResource(resource string) (Vendor, bool) {
	for _, v := range table() {
		if slices.ContainsFunc(v.Resources, func(prefix string) bool { return strings.HasPrefix(resource, prefix) }) {
			return v, true
		}
	}
	return Vendor{}, false
}

// OfDomain is the vendor whose resources have the domain.
func OfDomain(domain string) (Vendor, bool) {
	for _, v := range table() {
		if v.Domain == domain {
			return v, true
		}
	}
	return Vendor{}, false
}

// Named finds what is known of a kind of resource, by what stands behind the domain.
func (v Vendor) Named(name string) (Name, bool) {
	i := slices.IndexFunc(v.Names, func(n Name) bool { return n.Pattern.MatchString(name) })
	if i < 0 {
		return Name{}, false
	}
	return v.Names[i], true
}

// OfDriver is the vendor of a DRA driver.
func OfDriver(driver string) (Vendor, bool) {
	for _, v := range table() {
		if slices.ContainsFunc(v.Devices, func(d Device) bool { return d.Driver == driver }) {
			return v, true
		}
	}
	return Vendor{}, false
}

// DeviceOf is how the driver publishes what the plugin advertises as resource; false if
// that is not known.
func DeviceOf(resource, driver string) (Device, bool) {
	v, _ := OfDriver(driver)
	for _, d := range v.Devices {
		if d.Driver == driver && (d.Resource == "" || d.Resource == resource) {
			return d, true
		}
	}
	return Device{}, false
}

// DriverOf is the DRA driver of a resource's vendor, if there is one.
func DriverOf(resource string) (string, bool) {
	v, _ := OfResource(resource)
	for _, d := range v.Devices {
		if d.Resource == "" || d.Resource == resource {
			return d.Driver, true
		}
	}
	return "", false
}

// Behaviour says whether a variable of a plugin or a driver decides which devices it
// hands out, under which names, or where it finds them.
func Behaviour(variable string) bool {
	return slices.ContainsFunc(table(), func(v Vendor) bool { return slices.Contains(v.Environment, variable) })
}

// DeviceCounts says whether the entries of a resource are devices: some stand for access
// to all of a node's.
func DeviceCounts(resource string) bool {
	v, _ := OfResource(resource)
	return v.Unbridged == nil || !v.Unbridged.MatchString(resource[strings.LastIndex(resource, "/")+1:])
}
