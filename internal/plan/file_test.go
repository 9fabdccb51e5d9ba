package plan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/checks"
)

func savedPlan(t *testing.T) *Plan {
	t.Helper()
	s, record := prepared(t)
	in := intent(Migrate)
	in.Shared = record
	return build(t, in, s)
}

func TestPlanSurvivesItsFile(t *testing.T) {
	p := savedPlan(t)
	asYAML, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"YAML": asYAML, "JSON": asJSON} {
		got, err := Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(p, got); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
		if d := Differences(p, got); len(d) != 0 {
			t.Errorf("%s: differences %v", name, d)
		}
	}
}

// The hash was computed by jq and sha256sum, as ComputeDigest says.
func TestDigestCanBeRecomputed(t *testing.T) {
	p := &Plan{APIVersion: APIVersion, Kind: Kind, Operation: Migrate, Resource: "nvidia.com/gpu", Namespace: "<&>"}
	got, err := ComputeDigest(p)
	if err != nil {
		t.Fatal(err)
	}
	if want := "sha256:8cd7c53617300cb6f7e1f5ac6bea1d4122f0bfa423eec73c5738ecb6ac97db1a"; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	p := savedPlan(t)
	data, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, c := range []struct {
		title, text, want string
		edited            bool
	}{
		{"an edited batch", strings.Replace(text, "maxUnavailable: 50%", "maxUnavailable: 100%", 1), "was changed after it was planned", true},
		{"no digest", strings.Replace(text, "digest: ", "#digest: ", 1), "(none)", true},
		{"an unknown field", text + "surprise: true\n", `unknown field "surprise"`, false},
		{"a field twice", text + "operation: migrate\n", "already", false},
		{"another kind", "apiVersion: v1\nkind: Pod\n", `kind "Pod"`, false},
		{"a later version", strings.Replace(text, "v1alpha1", "v1beta1", 1), `"dramigrate.dev/v1beta1"`, false},
		{"no YAML", ":\n\t-", "not YAML", false},
	} {
		_, err := Parse([]byte(c.text))
		var file *FileError
		if !errors.As(err, &file) || !strings.Contains(err.Error(), c.want) || file.Edited != c.edited {
			t.Errorf("%s: error %v, want one with %q, edited %v", c.title, err, c.want, c.edited)
		}
	}
}

func TestDrift(t *testing.T) {
	for _, c := range []struct {
		title  string
		change func(*Plan)
		want   []string // of Drift
		also   string   // of Differences
	}{
		{"nothing", func(*Plan) {}, nil, ""},
		{"a pod moved", func(p *Plan) { p.Evictions = p.Evictions[1:] }, nil, "pod to evict gone: default/x1 on a-1"},
		{"a pod restarts", func(p *Plan) { p.Restarts = []Restart{{Pod: "a/b", Node: "n"}} }, nil, "pod to restart new: a/b on n"},
		{"a cordon", func(p *Plan) { p.NodeChanges[0].Before.Unschedulable = true }, nil, "node a-2: labels, annotations or cordon"},
		{"a warning", func(p *Plan) { p.Findings = append(p.Findings, finding(checks.Warning)) }, nil, "finding new: warning DRM099 on node/x"},
		{"a blocker", func(p *Plan) { p.Findings = append(p.Findings, finding(checks.Blocker)) }, []string{"new blocker DRM099 on node/x"}, ""},
		{"unknown", func(p *Plan) { p.Findings = append(p.Findings, finding(checks.Unknown)) }, []string{"new unknown DRM099 on node/x"}, ""},
		{"another cluster", func(p *Plan) { p.Cluster.UID = "z" }, []string{"another cluster: kube-system has UID cluster-uid, now z"}, ""},
		{"a node was replaced", func(p *Plan) { p.Pool.Nodes[0].UID = "z" },
			[]string{"node gone: a-1 with UID uid-a-1", "node new: a-1 with UID z"}, ""},
		{"a batch", func(p *Plan) { p.Batches = p.Batches[1:] }, []string{"batches"}, ""},
		{"a class", func(p *Plan) { p.Class.Object.Spec.Selectors = []resourcev1.DeviceSelector{} }, []string{"DeviceClass"}, ""},
		{"a setting", func(p *Plan) { p.Settings.Soak.Duration = time.Hour }, []string{"settings"}, ""},
		{"a deadline", func(p *Plan) { p.NodeSteps[1].Waits[0].Deadline.Duration = time.Hour }, []string{"steps on nodes"}, ""},
	} {
		t.Run(c.title, func(t *testing.T) {
			was, now := savedPlan(t), savedPlan(t)
			c.change(now)
			if diff := cmp.Diff(c.want, Drift(was, now)); diff != "" {
				t.Errorf("drift (-want +got):\n%s", diff)
			}
			all := strings.Join(Differences(was, now), "\n")
			if !strings.Contains(all, c.also) || (c.also == "" && len(c.want) == 0 && all != "") {
				t.Errorf("differences %q, want %q", all, c.also)
			}
		})
	}
}

func finding(s checks.Severity) checks.Finding {
	return checks.Finding{Code: "DRM099", Severity: s, Object: "node/x"}
}
