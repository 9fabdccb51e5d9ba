package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dramigrate/dramigrate/test/cluster/versions"
)

// TestDocumented wants docs/truth.md to have every claim, word for word, and every text
// that its proof compares with: people look a text up there.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "truth.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for _, c := range claims() {
		if row := "| " + c.id + " | " + cell(c.says) + " | "; !strings.Contains(doc, row) {
			t.Errorf("docs/truth.md has no row that begins with\n%s", row)
		}
		for _, text := range c.texts {
			if !strings.Contains(doc, text) {
				t.Errorf("docs/truth.md does not have the text of claim %s: %s", c.id, text)
			}
		}
	}
	row := regexp.MustCompile(`(?m)^\| (K[0-9.]+[a-z]) \|`)
	known := map[string]bool{}
	for _, c := range claims() {
		known[c.id] = true
	}
	for _, m := range row.FindAllStringSubmatch(doc, -1) {
		if !known[m[1]] {
			t.Errorf("docs/truth.md has %s, which is no claim", m[1])
		}
	}
}

// cell is a sentence as it stands in a Markdown table: < would begin a tag.
func cell(text string) string { return strings.ReplaceAll(text, "<", "&lt;") }

func TestClaimsAreWhole(t *testing.T) {
	id := regexp.MustCompile(`^K[0-9]+(\.[0-9]+)?[a-z]$`)
	seen := map[string]bool{}
	for _, c := range claims() {
		if seen[c.id] || !id.MatchString(c.id) {
			t.Errorf("id %q is taken, or not of the form K1.2a", c.id)
		}
		seen[c.id] = true
		if c.says == "" || strings.HasSuffix(c.says, ".") || c.source == "" || c.prove == nil || len(c.place.nodes()) == 0 {
			t.Errorf("claim %s is not whole: %+v", c.id, c)
		}
		if _, err := c.expected("1.37.2"); err != nil {
			t.Error(err)
		}
	}
}

func TestExpected(t *testing.T) {
	holds := func(id, version string) bool {
		t.Helper()
		for _, c := range claims() {
			if c.id == id {
				is, err := c.expected(version)
				if err != nil {
					t.Fatal(err)
				}
				return is
			}
		}
		t.Fatalf("no claim %s", id)
		return false
	}
	// The two faults of K1.4 and K3.3 are mended in 1.38; DeviceTaintRule is on from 1.37.
	for _, c := range []struct {
		id, version string
		want        bool
	}{
		{"K1.4a", "1.36.3", true}, {"K1.4a", "1.37.2", true}, {"K1.4a", "1.38.0", false}, {"K1.4a", "1.34.4", false},
		{"K3.3a", "1.37.2", true}, {"K3.3a", "1.38.1", false},
		{"K9b", "1.36.3", false}, {"K9b", "1.37.0", true},
		{"K1.4e", "1.38.0", true},
	} {
		if got := holds(c.id, c.version); got != c.want {
			t.Errorf("claim %s for %s: %t, want %t", c.id, c.version, got, c.want)
		}
	}
	if _, err := claims()[0].expected("latest"); err == nil {
		t.Error("latest is taken for a version")
	}
}

// TestPlaces wants nodes to have names of their own, and only kubelets that can be built.
func TestPlaces(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range nodesOf(claims()) {
		if seen[n.Name] {
			t.Errorf("two nodes are called %s", n.Name)
		}
		seen[n.Name] = true
		if n.KubeletVersion == "" {
			continue
		}
		if _, err := versions.Lookup(n.KubeletVersion); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d nodes, want 10: two to serve, three for DaemonSets, and one each of the five other places", len(seen))
	}
}
