package vendor

import (
	"regexp"
	"strings"

	"github.com/dramigrate/dramigrate/internal/gpuid"
)

// Key is what plugin and driver both name a device by.
type Key string

// The keys, as messages have them.
const (
	// NoKey: the two have no name in common, or it is not known which. The numbers of
	// devices can be compared and nothing else.
	NoKey  Key = ""
	UUID   Key = "UUID"
	PCI    Key = "PCI address"
	Serial Key = "serial number"
)

// Join is by what a device of the driver is found among those of the plugin.
type Join struct {
	Key Key
	// Attributes are the driver's attributes with the key: the first that a device has
	// counts, as versions of a driver differ.
	Attributes []string
	// Unknown says of NoKey what is not known.
	Unknown string
}

// JoinOf is the driver's. Of a driver that the tool does not know it is supposed that it
// publishes the plugin's IDs as the attribute uuid, which a run finds out on its first
// node.
func JoinOf(driver string) Join {
	v, _ := OfDriver(driver)
	for _, d := range v.Devices {
		if d.Driver == driver {
			return d.Join
		}
	}
	return byUUID()
}

// KindOf is the driver's attribute that tells whole devices from others; "type", as most
// drivers have it, of one that the tool does not know.
func KindOf(driver string) string {
	v, _ := OfDriver(driver)
	for _, d := range v.Devices {
		if d.Driver == driver && d.Attribute != "" {
			return d.Attribute
		}
	}
	return "type"
}

func byUUID() Join { return Join{Key: UUID, Attributes: []string{"uuid"}} }

// longDomain is a PCI address with a domain of eight digits, as management libraries
// print it; drivers and the kernel have four.
var longDomain = regexp.MustCompile(`^0000([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$`)

// Normal is a key as it is compared.
func (k Key) Normal(value string) string {
	if k != PCI {
		return value
	}
	value = strings.ToLower(value)
	if m := longDomain.FindStringSubmatch(value); m != nil {
		return m[1]
	}
	return value
}

// IDs is how a plugin makes the IDs of its devices.
type IDs struct {
	// What they are ("PCI address"); empty if that is not known.
	What string
	// Replica stands between the device and a number where the plugin offers one device
	// several times.
	Replica string
	// Always is true if the number is there with one replica as well.
	Always bool
	// Part is how the ID of a part of a device begins that the driver names otherwise.
	Part string
}

// DeviceID is the device behind an ID of a resource: without the number of a replica. Of
// a plugin that the tool does not know it is cut as many have it from NVIDIA's.
func DeviceID(resource, id string) string {
	v, known := OfResource(resource)
	if !known || v.IDs.Replica == "" {
		return gpuid.Device(id)
	}
	if i := strings.LastIndex(id, v.IDs.Replica); i > 0 {
		return id[:i]
	}
	return id
}

// IsPart says that an ID stands for a part of a device, which no device of the driver can
// be compared with.
func IsPart(resource, id string) bool {
	v, _ := OfResource(resource)
	return v.IDs.Part != "" && strings.HasPrefix(id, v.IDs.Part)
}
