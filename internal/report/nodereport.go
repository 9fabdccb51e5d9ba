package report

import (
	"cmp"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
)

// NodeReport writes what a node said of its devices: one row a device, then why one is
// not clean and what is unknown.
func NodeReport(sheet Sheet, r *nodeprobe.NodeReport) error {
	d := newPage(sheet)
	title := "node/" + Clean(r.Node)
	if r.Verdict != "" {
		title += ": " + Clean(string(r.Verdict))
	}
	d.para("", title, d.theme.title)
	t := table{header: []string{"DEVICE", "TYPE", "OFFERED BY", "HELD BY", "VERDICT", "HOLDERS"}}
	for i := range r.Devices {
		s := &r.Devices[i]
		t.add(Clean(deviceName(s)), Clean(cmp.Or(s.Profile, s.Type, "-")), Clean(string(s.AdvertisedBy)), Clean(string(s.HeldBy)),
			Clean(string(s.Verdict)), Clean(holdersCell(s)))
	}
	if len(t.rows) > 0 {
		d.listing(t, false)
	} else if r.Verdict != "" && len(r.Unknown) > 0 {
		d.line("No device was seen; there may be some, as not all could be looked at:")
	} else if r.Verdict != "" {
		d.line("The node shows no device.")
	}
	for i := range r.Devices {
		s := &r.Devices[i]
		for _, why := range s.Reasons {
			d.para("  ", fmt.Sprintf("%s: %s", deviceName(s), why), lipgloss.NewStyle())
		}
	}
	for _, u := range r.Unknown {
		d.para("  ", fmt.Sprintf("Unknown: %s: %s", u.Part, u.Reason), lipgloss.NewStyle())
	}
	return d.err
}

// deviceName is what identifies a device, as far as it has anything that does.
func deviceName(s *nodeprobe.DeviceState) string {
	name := cmp.Or(s.UUID, s.PCIBusID)
	if s.UUID == "" && len(s.DRADevices) > 0 {
		name = s.DRADevices[0].Name
	}
	return cmp.Or(name, "no name")
}

func holdersCell(s *nodeprobe.DeviceState) string {
	var out []string
	for _, h := range s.Holds {
		out = append(out, h.String())
	}
	return cmp.Or(strings.Join(out, "; "), "-")
}
