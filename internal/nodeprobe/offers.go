package nodeprobe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/gpuid"
)

// pluginOffers enters what the kubelet gives to pods by a plugin.
func (j *join) pluginOffers() {
	if j.r.Advertised == nil {
		j.plugin.offerGaps = append(j.plugin.offerGaps, "what device plugins offer is unknown")
		return
	}
	for _, resource := range sortedKeys(j.r.Advertised) {
		for _, id := range j.r.Advertised[resource] {
			p, err := j.inventory.OfPlugin(id)
			if err != nil {
				if j.drivers(resource) {
					j.plugin.offerGaps = append(j.plugin.offerGaps, fmt.Sprintf("resource %s: %v", resource, err))
				}
				continue
			}
			e := j.at(p, id)
			if !slices.Contains(e.state.Resources, resource) {
				e.state.Resources = append(e.state.Resources, resource)
			}
			j.plugin.touches = append(j.plugin.touches, touch{place: p, what: fmt.Sprintf("the plugin offers %s as %s", id, resource)})
		}
	}
}

// draOffers enters what DRA drivers offer, which only the API's slices tell in full. On
// the node itself there are two signs: a driver that has prepared a device offers it,
// and where no driver has registered none is offered.
func (j *join) draOffers() {
	if j.api.Slices == nil {
		if files := j.r.Files; files != nil && files.Sockets != nil && files.Sockets.noDRADriver() {
			return
		}
		j.dra.offerGaps = append(j.dra.offerGaps,
			"which devices DRA drivers offer is not told on the node: it takes the API's ResourceSlices")
		for _, c := range j.preparedClaims() {
			for _, d := range c.Devices {
				if p, err := j.inventory.OfDRA(d.attributes()); err == nil {
					j.offeredByDRA(Device{Driver: nvidiaDriver, Pool: d.Pool, Name: d.Name}, p)
				}
			}
		}
		return
	}
	for _, pool := range j.slices {
		if pool.incomplete != "" && j.plugins(pool.driver) {
			j.dra.offerGaps = append(j.dra.offerGaps, pool.incomplete)
		}
		for _, d := range pool.devices {
			p, err := j.inventory.OfDRA(d.attributes)
			if err != nil {
				if j.plugins(pool.driver) {
					j.dra.offerGaps = append(j.dra.offerGaps, fmt.Sprintf("device %s: %v", d.triplet, err))
				}
				continue
			}
			e := j.offeredByDRA(d.triplet, p)
			if e.state.Product == "" {
				e.state.Product = d.product
			}
			if e.state.Profile == "" {
				e.state.Profile = d.profile
			}
			if e.state.Type == "" || d.attributes.Type == "vfio" {
				e.state.Type = d.attributes.Type
			}
			e.vfio = e.vfio || d.attributes.Type == "vfio"
		}
	}
}

func (j *join) offeredByDRA(d Device, p gpuid.Place) *entry {
	e := j.at(p, d.String())
	if !slices.Contains(e.state.DRADevices, d) {
		e.state.DRADevices = append(e.state.DRADevices, d)
		j.dra.touches = append(j.dra.touches, touch{place: p, what: "DRA offers " + d.String()})
	}
	return e
}

// String is "driver/pool/name", as the API's messages have it.
func (d Device) String() string { return d.Driver + "/" + d.Pool + "/" + d.Name }

// computeDomains is NVIDIA's driver for channels between nodes, which are no GPUs.
const computeDomains = "compute-domain.nvidia.com"

// sameVendor says whether resource and driver can be about the same hardware: both
// names end in the vendor's domain.
func sameVendor(resource, driver string) bool {
	domain, _, _ := strings.Cut(resource, "/")
	return driver != computeDomains && (driver == domain || strings.HasSuffix(driver, "."+domain))
}

// drivers says whether a DRA driver of the resource's vendor is at work on the node, as
// far as is known. An id that cannot be placed matters only then.
func (j *join) drivers(resource string) bool {
	if j.api.Slices == nil && (j.r.Files == nil || j.r.Files.Sockets == nil) {
		return true
	}
	for _, p := range j.slices {
		if len(p.devices) > 0 && sameVendor(resource, p.driver) {
			return true
		}
	}
	if j.r.Files != nil && j.r.Files.Sockets != nil {
		return slices.ContainsFunc(j.r.Files.Sockets.Drivers, func(d string) bool { return sameVendor(resource, d) })
	}
	return false
}

// plugins says whether a plugin of the driver's vendor offers or has given something, as
// far as is known.
func (j *join) plugins(driver string) bool {
	if driver == computeDomains {
		return false
	}
	if j.r.Advertised == nil || j.r.Holders == nil {
		return true
	}
	for resource, ids := range j.r.Advertised {
		if len(ids) > 0 && sameVendor(resource, driver) {
			return true
		}
	}
	return slices.ContainsFunc(j.r.Holders, func(h Holder) bool { return h.Resource != "" && sameVendor(h.Resource, driver) })
}
