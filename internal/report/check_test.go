package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/dramigrate/dramigrate/internal/checks"
	"github.com/dramigrate/dramigrate/internal/cluster"
)

// checkReport has a finding of each kind: one that stops, one unseen, one that warns,
// one that informs, one that a person skipped, and a check that was not run.
func checkReport() *checks.Report {
	return &checks.Report{
		APIVersion: cluster.APIVersion, Kind: checks.ReportKind,
		Cluster: cluster.Identity{UID: "c1", ServerVersion: "v1.37.2"},
		Pool:    "gpu-a", Resource: "nvidia.com/gpu", Driver: "gpu.nvidia.com",
		Operations: []string{"prepare", "migrate"},
		Checks: []checks.Outcome{
			{Code: "DRM001", Title: "The control plane is too old", Group: "Versions and API", Result: checks.Passed},
			{Code: "DRM002", Title: "A node's kubelet is too old", Group: "Versions and API", Result: checks.Found},
			{Code: "DRM006", Title: "A pod combines a ResourceClaim with the extended resource", Group: "Workloads", Result: checks.Found},
			{Code: "DRM020", Title: "A pod asks for more devices than one claim can hold", Group: "Workloads", Result: checks.Found},
			{Code: "DRM018", Title: "A disruption budget allows no eviction now", Group: "Budgets and drain", Result: checks.NotRun, Missing: []string{"poddisruptionbudgets"}},
			{Code: "DRM021", Title: "A node is not ready", Group: "Budgets and drain", Result: checks.Passed},
		},
		Findings: []checks.Finding{
			{Code: "DRM006", Severity: checks.Blocker, Object: "pod/team/both", Message: "uses a claim & asks for <nvidia.com/gpu>", Remedy: "change the workload"},
			{Code: "DRM002", Severity: checks.Unknown, Object: "node/n1", Message: `kubelet version "x" cannot be read`},
			{Code: "DRM006", Severity: checks.Warning, Object: "pod/team/old", Message: "mapped already"},
			{Code: "DRM002", Severity: checks.Info, Object: "node/n2", Message: "is newer"},
			{Code: "DRM020", Severity: checks.Blocker, Object: "pod/team/wide", Message: "asks for 40", Skipped: "CHG-7"},
		},
		Unknown: []cluster.Unknown{{Part: "poddisruptionbudgets", Reason: "forbidden"}},
	}
}

func TestCheckViews(t *testing.T) {
	for file, name := range map[string]string{
		"check.txt": "table", "check-short.txt": "short", "check.xml": "junit", "check.sarif": "sarif",
		"check.github": "github", "check.md": "markdown", "check.yaml": "yaml",
	} {
		for _, v := range CheckViews() {
			if v.Name != name {
				continue
			}
			text := golden(t, file, func(w *colorprofile.Writer) error { return v.Write(Sheet{Writer: w}, checkReport()) })
			if name != "table" {
				continue
			}
			for line := range strings.Lines(text) {
				if n := lipgloss.Width(strings.TrimRight(line, "\n")); n > Width {
					t.Errorf("a line has %d columns: %s", n, line)
				}
			}
		}
	}
}

// What machines read stays what they can read, whatever a cluster has for names.
func TestCheckViewsOfHostileNames(t *testing.T) {
	r := checkReport()
	for i := range r.Findings {
		r.Findings[i].Object = "pod/\x1b[31m\x00]]>&<\u202e\xff"
		r.Findings[i].Message = "a\r\n::error::b\x07"
	}
	for _, v := range CheckViews() {
		var b bytes.Buffer
		if err := v.Write(Sheet{Writer: colorprofile.NewWriter(&b, nil)}, r); err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		switch v.Name {
		case "json", "sarif":
			if err := json.Unmarshal(b.Bytes(), &map[string]any{}); err != nil {
				t.Errorf("%s: %v", v.Name, err)
			}
		case "junit":
			for dec := xml.NewDecoder(&b); ; {
				if _, err := dec.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Errorf("%s: %v", v.Name, err)
					break
				}
			}
		case "yaml": // its encoder escapes
		default:
			if strings.ContainsAny(b.String(), "\x1b\x00\x07\r\u202e") {
				t.Errorf("%s: a control character passed: %q", v.Name, b.String())
			}
		}
	}
}

func TestExplain(t *testing.T) {
	c, ok := checks.Find("DRM006")
	if !ok {
		t.Fatal("no DRM006")
	}
	golden(t, "explain.txt", func(w *colorprofile.Writer) error { return Explain(Sheet{Writer: w}, c) })
}
