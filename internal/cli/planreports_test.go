package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dramigrate/dramigrate/internal/nodeprobe"
	"github.com/dramigrate/dramigrate/internal/nvml"
	"github.com/dramigrate/dramigrate/internal/plan"
)

// savedReport is the file that `probe --save` writes of node a-1, whose two GPUs the
// plugin offers, after edit. It was asked a minute before the plans of these tests.
func savedReport(t *testing.T, edit func(*nodeprobe.NodeReport)) string {
	t.Helper()
	const first, second = "GPU-46f59cc3-2558-51a1-8097-00000000000a", "GPU-46f59cc3-2558-51a1-8097-00000000000b"
	board := func(uuid, address string) nvml.Device {
		return nvml.Device{UUID: uuid, PCIBusID: address, MIG: []nvml.MIGDevice{}, Processes: []nvml.Process{}}
	}
	r := nodeprobe.NodeReport{
		APIVersion: nodeprobe.APIVersion, Kind: nodeprobe.Kind, Node: "a-1", Time: time.Unix(-60, 0).UTC(), ListCalled: true, Verdict: nodeprobe.Clean,
		Parts:      []nodeprobe.Part{nodeprobe.AskKubelet, nodeprobe.AskNVML},
		Advertised: map[string][]string{"nvidia.com/gpu": {first, second}}, Holders: []nodeprobe.Holder{},
		Hardware: &nvml.Host{Devices: []nvml.Device{board(first, "0000:1b:00.0"), board(second, "0000:3b:00.0")}},
	}
	if edit != nil {
		edit(&r)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// twoHands is what the node then says of its first GPU.
func twoHands(r *nodeprobe.NodeReport) {
	r.Verdict = nodeprobe.DoubleHeld
	r.Devices = []nodeprobe.DeviceState{{
		UUID: r.Hardware.Devices[0].UUID, Seen: true, Verdict: nodeprobe.DoubleHeld,
		AdvertisedBy: nodeprobe.ByBoth, HeldBy: nodeprobe.ByBoth,
		Reasons: []string{"pod team/legacy holds it by the plugin, and pod team/claims holds it by claim team/explicit"},
	}}
}

// planBy plans a migration by the reports of a folder with these files.
func planBy(t *testing.T, objects []runtime.Object, files map[string]string) (outcome, *plan.Plan) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := invoke(t, objects, nil, done, "plan", "gpu-a", "--helper-image", "helper:1", "--reports", dir, "-o", "json")
	o.err = strings.ReplaceAll(o.err, dir, "DIR")
	if o.stdout == "" {
		return o, nil
	}
	p := &plan.Plan{}
	if err := json.Unmarshal([]byte(o.stdout), p); err != nil {
		t.Fatalf("%v\n%s", err, o.stdout)
	}
	return o, p
}

// What a node said of itself is judged by, and the plan says by which files.
func TestPlanByReports(t *testing.T) {
	fresh := savedReport(t, nil)
	aged := func(r *nodeprobe.NodeReport) { r.Time = time.Unix(-3601, 0).UTC() }
	of := func(node string) func(*nodeprobe.NodeReport) {
		return func(r *nodeprobe.NodeReport) { r.Node = node }
	}
	for _, tt := range []struct {
		name  string
		edits []func(*nodeprobe.NodeReport)
		code  int
		// finds is the one finding of the reports, its severity and object first;
		// says is part of its message.
		finds, says string
	}{
		{"clean", nil, ExitOK, "", ""},
		{"in two hands", []func(*nodeprobe.NodeReport){twoHands}, ExitBlocked, "DRM058 blocker node/a-1",
			"by the node's own word, a device is in two hands: pod team/legacy holds it by the plugin, and pod team/claims holds it by claim team/explicit"},
		{"in two hands, without a reason", []func(*nodeprobe.NodeReport){twoHands, func(r *nodeprobe.NodeReport) {
			for i := range r.Devices {
				r.Devices[i].Reasons = nil
			}
		}}, ExitBlocked, "DRM058 blocker node/a-1", "of which the report says no more"},
		{"in two hands, on no device", []func(*nodeprobe.NodeReport){func(r *nodeprobe.NodeReport) { r.Verdict = nodeprobe.DoubleHeld }},
			ExitBlocked, "DRM058 blocker node/a-1", "in two hands: the report does not say which device"},
		{"it could not tell", []func(*nodeprobe.NodeReport){func(r *nodeprobe.NodeReport) {
			r.Verdict, r.Unknown = nodeprobe.Undecided, []nodeprobe.Unknown{{Part: "holders", Reason: "no socket"}}
		}}, ExitUnknown, "DRM094 unknown node/a-1", "cannot be told whether a device is in two hands: holders: no socket"},
		{"an hour old", []func(*nodeprobe.NodeReport){aged}, ExitOK, "DRM059 warning node/a-1", "its report is of 1969-12-31T22:59:59Z"},
		{"of a node that is not there", []func(*nodeprobe.NodeReport){twoHands, of("z-9")}, ExitUnknown, "DRM094 unknown node/a-1, DRM059 warning node/z-9", "is of"},
		{"of another pool's node", []func(*nodeprobe.NodeReport){twoHands, of("b-1")}, ExitUnknown, "DRM094 unknown node/a-1", "no report is of it"},
		{"a GPU that the plugin does not offer", []func(*nodeprobe.NodeReport){func(r *nodeprobe.NodeReport) {
			r.Advertised["nvidia.com/gpu"] = r.Advertised["nvidia.com/gpu"][:1]
		}}, ExitOK, "DRM093 warning node/a-1", "the hardware shows GPU-46f59cc3-2558-51a1-8097-00000000000b that the plugin does not offer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := fresh
			if len(tt.edits) > 0 {
				text = savedReport(t, func(r *nodeprobe.NodeReport) {
					for _, edit := range tt.edits {
						edit(r)
					}
				})
			}
			other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b-1", UID: "b-1", Labels: map[string]string{"eks.amazonaws.com/nodegroup": "gpu-b"}}}
			o, p := planBy(t, append(preparedCluster(), other), map[string]string{"report.json": text})
			if o.code != tt.code || p == nil {
				t.Fatalf("exit code %d, want %d\n%s%s", o.code, tt.code, o.stdout, o.err)
			}
			var report nodeprobe.NodeReport
			if err := json.Unmarshal([]byte(text), &report); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(text))
			if want := map[string]string{report.Node: "sha256:" + hex.EncodeToString(sum[:])}; !maps.Equal(p.Inputs.Reports, want) {
				t.Errorf("the plan's reports are %v, want %v", p.Inputs.Reports, want)
			}
			var found []string
			for _, f := range p.Findings {
				if slices.Contains([]string{"DRM058", "DRM059", "DRM093", "DRM094"}, f.Code) {
					found = append(found, f.Code+" "+string(f.Severity)+" "+f.Object)
					if !strings.Contains(f.Message, tt.says) || tt.says == "" || f.Remedy == "" {
						t.Errorf("%s says %q (next: %q), want %q", f.Code, f.Message, f.Remedy, tt.says)
					}
				}
			}
			if strings.Join(found, ", ") != tt.finds {
				t.Errorf("findings %q, want %q", found, tt.finds)
			}
		})
	}
}

// A folder that cannot be judged by is one error, and there is no plan.
func TestPlanByReportsRefuses(t *testing.T) {
	fresh := savedReport(t, nil)
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // the start of the error's line
	}{
		{"nothing", nil, "Error: --reports DIR: holds no report: no *.json, *.yaml or *.yml file"},
		{"cut short", map[string]string{"a-1.json": fresh[:len(fresh)/2]}, "Error: --reports DIR: a-1.json: is no NodeReport, or not the whole of one: "},
		{"no document", map[string]string{"a-1.json": "not a report"}, "Error: --reports DIR: a-1.json: is no NodeReport, or not the whole of one: "},
		{"a list for a text", map[string]string{"a-1.json": `{"node":["a-1"]}`}, "Error: --reports DIR: a-1.json: is no NodeReport, or not the whole of one: node: must be a text, is a list\n"},
		{"a field of no report", map[string]string{"a-1.json": `{"nodes":"a-1"}`}, "Error: --reports DIR: a-1.json: is no NodeReport, or not the whole of one: unknown field \"nodes\"\n"},
		{"empty", map[string]string{"a-1.json": ""}, "Error: --reports DIR: a-1.json: is no NodeReport: it has neither apiVersion nor kind"},
		{"another document of ours", map[string]string{"a-1.json": `{"apiVersion":"dramigrate.dev/v1alpha1","kind":"PoolProbe"}`}, "Error: --reports DIR: a-1.json: is a dramigrate.dev/v1alpha1 PoolProbe, not a "},
		{"one of two", map[string]string{"a-1.json": fresh, "a-2.json": fresh[:len(fresh)-2]}, "Error: --reports DIR: a-2.json: is no NodeReport, or not the whole of one: "},
		{"of tomorrow", map[string]string{"a-1.json": savedReport(t, func(r *nodeprobe.NodeReport) { r.Time = time.Unix(86400, 0).UTC() })},
			"Error: --reports DIR: a-1.json: is of 1970-01-02T00:00:00Z, which has yet to come"},
		{"a verdict of its own", map[string]string{"a-1.json": savedReport(t, func(r *nodeprobe.NodeReport) { r.Verdict = "fine" })},
			`Error: --reports DIR: a-1.json: has the verdict "fine", which is none`},
		{"two of one node", map[string]string{"a-1.json": fresh, "copy.yaml": fresh}, "Error: --reports DIR: copy.yaml: is a second report of node a-1; keep the newer one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, _ := planBy(t, preparedCluster(), tt.files)
			if o.code != ExitError || o.stdout != "" || !strings.HasPrefix(o.err, tt.want) || strings.Count(o.err, "Error: ") != 1 {
				t.Errorf("exit code %d, stdout %q, stderr:\n%swant %d and\n%s", o.code, o.stdout, o.err, ExitError, tt.want)
			}
		})
	}
}
