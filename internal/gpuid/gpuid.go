// Package gpuid joins what the two mechanisms say about the devices of one node: the
// ids of the device plugin, the attributes of the DRA driver and what the hardware
// itself tells.
//
// Devices are joined by UUID, partitions also by the GPU they are of, and where there
// is no UUID by PCI address. An index, a minor number and the name of a CDI device are
// never used: they are given anew at a reboot, or by another order.
package gpuid

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// replicaMark is between a device's id and the number of a replica, which the NVIDIA
// plugin appends for time-slicing and MPS (k8s-device-plugin, internal/rm/devices.go).
const replicaMark = "::"

// Device is the device behind a plugin's id, without the replica.
func Device(pluginID string) string {
	device, _, _ := strings.Cut(pluginID, replicaMark)
	return device
}

// pciAddress is domain:bus:device.function. Drivers write the domain with 4 or 8
// digits, NVML in capital letters.
var pciAddress = regexp.MustCompile(`^([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$`)

// PCI brings a PCI address to the form of the attribute resource.kubernetes.io/pciBusID,
// such as "0000:1b:00.0": small letters, and the domain with 4 digits unless it needs
// more (k8s.io/dynamic-resource-allocation/deviceattribute, v0.37.2, and the names in
// Linux' /sys/bus/pci/devices). It is false if the text is no address.
func PCI(address string) (string, bool) {
	m := pciAddress.FindStringSubmatch(strings.TrimSpace(address))
	if m == nil {
		return "", false
	}
	domain, err := strconv.ParseUint(m[1], 16, 32)
	if err != nil {
		return "", false
	}
	return strings.ToLower(fmt.Sprintf("%04x:%s:%s.%s", domain, m[2], m[3], m[4])), true
}

// legacyMIG is the id of a partition on drivers before R470: the GPU's UUID, GPU
// instance and compute instance.
var legacyMIG = regexp.MustCompile(`^MIG-(GPU-[0-9a-fA-F-]+)/([0-9]+)/([0-9]+)$`)

func isGPU(id string) bool { return strings.HasPrefix(id, "GPU-") }
func isMIG(id string) bool { return strings.HasPrefix(id, "MIG-") }
