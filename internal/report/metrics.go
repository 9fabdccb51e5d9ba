package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/internal/status"
)

// Metrics writes a verification in the text format of Prometheus (exposition format
// 0.0.4). What the nodes themselves said comes with it if they were probed; nil if not.
// Each verdict is a label of a series that is 1, so that one that was and is no more
// leaves no series behind.
func Metrics(w io.Writer, v *status.Verification, probed *poolprobe.Result, at time.Time) error {
	m := &metrics{}
	m.family("dramigrate_verify_timestamp_seconds", "When the pool was verified, in seconds since 1970.")
	m.sample(fmt.Sprintf("%d", at.Unix()), "pool", v.Pool)
	m.family("dramigrate_pool_verdict", "What the verification of the pool came to: ok, failed, unknown, double.")
	m.sample("1", "pool", v.Pool, "verdict", string(v.Result))
	m.family("dramigrate_node_verdict", "What the verification of the node came to: ok, failed, unknown, double.")
	for i := range v.Nodes {
		n := &v.Nodes[i]
		m.sample("1", "node", n.Name, "pool", v.Pool, "verdict", string(n.Result()))
	}
	if probed != nil {
		m.devices(probed)
	}
	_, err := w.Write(m.text.Bytes())
	return err
}

type metrics struct {
	text bytes.Buffer
	name string
}

// family begins the samples of a gauge.
func (m *metrics) family(name, help string) {
	m.name = name
	fmt.Fprintf(&m.text, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

// sample adds one; labels are names and values by turns.
func (m *metrics) sample(value string, labels ...string) {
	var list []string
	for i := 0; i < len(labels); i += 2 {
		list = append(list, labels[i]+`="`+labelValue(labels[i+1])+`"`)
	}
	fmt.Fprintf(&m.text, "%s{%s} %s\n", m.name, strings.Join(list, ","), value)
}

// labelValue escapes what the format reserves.
func labelValue(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(Clean(s))
}

// devices are the nodes' own word, for devices that have a UUID.
func (m *metrics) devices(r *poolprobe.Result) {
	each := func(name, help, label string, value func(*nodeprobe.DeviceState) string) {
		m.family(name, help)
		for i := range r.Nodes {
			n := &r.Nodes[i]
			if n.Report == nil {
				continue
			}
			for k := range n.Report.Devices {
				if d := &n.Report.Devices[k]; d.UUID != "" {
					m.sample("1", "node", n.Name, "uuid", d.UUID, label, value(d))
				}
			}
		}
	}
	each("dramigrate_device_advertised", "Who offers the device: plugin, dra, both, none, unknown.", "by",
		func(d *nodeprobe.DeviceState) string { return string(d.AdvertisedBy) })
	each("dramigrate_device_held", "Who has the device: plugin, dra, both, process, none, unknown.", "by",
		func(d *nodeprobe.DeviceState) string { return string(d.HeldBy) })
	each("dramigrate_device_verdict", "Whether the device is in two hands, by the node's own word: clean, unknown, double-advertised, double-held.", "verdict",
		func(d *nodeprobe.DeviceState) string { return string(d.Verdict) })
}
