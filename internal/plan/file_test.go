package plan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
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
		if look := Compare(p, got, nil); look.Verdict != Same {
			t.Errorf("%s: %+v", name, look)
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
		{"no document", "[]", "not a plan: must be a group of fields, is a list", false},
		{"a kind that is a list", "kind: [Plan]\n", "not a plan: kind: must be a text, is a list", false},
		{"nodes that are a word", "apiVersion: " + APIVersion + "\nkind: " + Kind + "\npool: {nodes: all}\n", "not a plan of this version: pool.nodes: must be a list, is a text", false},
		{"no YAML", ":\n\t-", "not YAML", false},
	} {
		_, err := Parse([]byte(c.text))
		var file *FileError
		if !errors.As(err, &file) || !strings.Contains(err.Error(), c.want) || file.Edited != c.edited {
			t.Errorf("%s: error %v, want one with %q, edited %v", c.title, err, c.want, c.edited)
		}
	}
}
