package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/poolprobe"
)

func probedPool(text string) *poolprobe.Result {
	two := 2
	report := &nodeprobe.NodeReport{
		Unknown: []nodeprobe.Unknown{{Part: "cdi", Reason: text}},
		Devices: []nodeprobe.DeviceState{{UUID: "GPU-1", Type: "gpu", AdvertisedBy: nodeprobe.ByBoth, HeldBy: nodeprobe.ByBoth, Verdict: nodeprobe.DoubleHeld,
			Holds: []nodeprobe.Hold{{By: nodeprobe.ByPlugin, Pod: "a/" + text}, {By: nodeprobe.ByDRA, Pod: "a/claims"}}}},
	}
	return &poolprobe.Result{
		Pool: text, Verdict: nodeprobe.DoubleHeld, Unknown: []cluster.Unknown{{Part: "resourceclaims", Reason: text}},
		Nodes: []poolprobe.Node{
			{Name: "gpu-1", Verdict: nodeprobe.Clean, Source: poolprobe.FromNode, GPUs: &two, Plugin: 2, Report: &nodeprobe.NodeReport{},
				Holders: []poolprobe.Holder{{Name: "a/x", By: nodeprobe.ByPlugin, Devices: 1}, {Name: "a/y", By: nodeprobe.ByPlugin, Devices: 1}}},
			{Name: "gpu-2", Verdict: nodeprobe.DoubleHeld, Source: poolprobe.FromNode, GPUs: &two, Both: 1, DRA: 1, Report: report,
				Holders: []poolprobe.Holder{{Name: "a/" + text, By: nodeprobe.ByPlugin, Devices: 1}, {Name: "a/claims", By: nodeprobe.ByDRA, Devices: 1}},
				Reasons: []string{"pod a/" + text + " and pod a/claims have GPU-1"}},
			{Name: "gpu-3", Verdict: nodeprobe.Undecided, Source: poolprobe.FromAPI, Error: text, Reasons: []string{"the node gave no report"}},
		},
	}
}

func TestPoolProbe(t *testing.T) {
	var got bytes.Buffer
	if err := PoolProbe(Sheet{Writer: colorprofile.NewWriter(&got, nil)}, probedPool("legacy"), false); err != nil {
		t.Fatal(err)
	}
	const want = `NODE   GPUS  PLUGIN  DRA  BOTH  HOLDERS          VERDICT
gpu-1  2     2       0    0     2 plugin         clean
gpu-2  2     0       1    1     1 plugin, 1 dra  DOUBLE-HELD
gpu-3  ?     ?       ?    ?     ?                UNKNOWN (from the API alone)

node/gpu-2
  DOUBLE  pod a/legacy and pod a/claims have GPU-1
  unknown cdi: legacy

node/gpu-3
  UNKNOWN the node gave no report
  ERROR   legacy
UNKNOWN: resourceclaims could not be read: legacy

Verdict: DOUBLE-HELD
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// What a node says is text, whatever it is: also that of a device and of its holders.
func TestPoolProbeIsText(t *testing.T) {
	var got bytes.Buffer
	if err := PoolProbe(Sheet{Writer: colorprofile.NewWriter(&got, nil)}, probedPool(hostile), true); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"\x1b", "\u202e", "\u200b", "\xff", "\n::error"} {
		if strings.Contains(got.String(), bad) {
			t.Errorf("%q got through:\n%q", bad, got.String())
		}
	}
}
