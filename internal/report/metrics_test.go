package report_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/status"
)

// What is written is read by Prometheus' own parser, and gives back what was said, also
// where a name holds what the format reserves.
func TestMetrics(t *testing.T) {
	v := &status.Verification{Pool: `a"b\c`, Result: status.Double, Nodes: []status.NodeVerified{
		{Name: "gpu-1", Looks: []status.Look{{Result: status.OK}}},
		{Name: "gpu-2", Looks: []status.Look{{Result: status.OK}, {Result: status.Unknown}, {Result: status.Double}}},
	}}
	probed := &poolprobe.Result{Nodes: []poolprobe.Node{
		{Name: "gpu-1"}, // gave no report
		{Name: "gpu-2", Report: &nodeprobe.NodeReport{Devices: []nodeprobe.DeviceState{
			{UUID: "GPU-1", AdvertisedBy: nodeprobe.ByBoth, HeldBy: nodeprobe.ByNone, Verdict: nodeprobe.DoubleAdvertised},
			{PCIBusID: "0000:1b:00.0", AdvertisedBy: nodeprobe.ByDRA},
		}}},
	}}
	var text bytes.Buffer
	if err := report.Metrics(&text, v, probed, time.Unix(1_800_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]map[string]string{
		"dramigrate_verify_timestamp_seconds": {{"pool": `a"b\c`}},
		"dramigrate_pool_verdict":             {{"pool": `a"b\c`, "verdict": "double"}},
		"dramigrate_node_verdict": {
			{"node": "gpu-1", "pool": `a"b\c`, "verdict": "ok"}, {"node": "gpu-2", "pool": `a"b\c`, "verdict": "double"}},
		"dramigrate_device_advertised": {{"node": "gpu-2", "uuid": "GPU-1", "by": "both"}},
		"dramigrate_device_held":       {{"node": "gpu-2", "uuid": "GPU-1", "by": "none"}},
		"dramigrate_device_verdict":    {{"node": "gpu-2", "uuid": "GPU-1", "verdict": "double-advertised"}},
	}
	for name, samples := range want {
		f := families[name]
		if f == nil || f.GetHelp() == "" || len(f.GetMetric()) != len(samples) {
			t.Errorf("%s is %v, want %d samples and a help text", name, f, len(samples))
			continue
		}
		for i, m := range f.GetMetric() {
			value := 1.0
			if name == "dramigrate_verify_timestamp_seconds" {
				value = 1_800_000_000
			}
			if m.GetGauge().GetValue() != value || len(m.GetLabel()) != len(samples[i]) {
				t.Errorf("%s: %v, want %v", name, m, samples[i])
			}
			for _, l := range m.GetLabel() {
				if samples[i][l.GetName()] != l.GetValue() {
					t.Errorf("%s: label %s is %q, want %q", name, l.GetName(), l.GetValue(), samples[i][l.GetName()])
				}
			}
		}
	}
	if len(families) != len(want) {
		t.Errorf("%d families, want %d", len(families), len(want))
	}
}

// Each change is one line; what is as it was is none.
func TestVerificationLines(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	verification := func(r status.Result, detail string, nodes ...string) *status.Verification {
		v := &status.Verification{Pool: "a", Result: r}
		for _, n := range nodes {
			v.Nodes = append(v.Nodes, status.NodeVerified{Name: n, Looks: []status.Look{{What: "one mechanism", Result: r, Detail: detail}}})
		}
		return v
	}
	for _, tt := range []struct {
		name        string
		before, now *status.Verification
		want        string
	}{
		{"at first", nil, verification(status.OK, "", "n1", "n2"), "10:00:00  node/n1  ok\n10:00:00  node/n2  ok\n10:00:00  pool/a  ok\n"},
		{"nothing new", verification(status.OK, "", "n1"), verification(status.OK, "", "n1"), ""},
		{"worse", verification(status.OK, "", "n1"), verification(status.Double, "both", "n1"), "10:00:00  node/n1  one mechanism  DOUBLE: both\n10:00:00  pool/a  DOUBLE\n"},
		{"a node left", verification(status.OK, "", "n1", "n2"), verification(status.OK, "", "n2"), "10:00:00  node/n1  is not looked at any more: it is gone, or has no devices\n"},
		{"a node came", verification(status.OK, "", "n2"), verification(status.OK, "", "n1", "n2"), "10:00:00  node/n1  ok\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got bytes.Buffer
			if err := report.VerificationLines(&got, tt.before, tt.now, at); err != nil {
				t.Fatal(err)
			}
			if got.String() != tt.want {
				t.Errorf("got\n%swant\n%s", got.String(), tt.want)
			}
		})
	}
}
