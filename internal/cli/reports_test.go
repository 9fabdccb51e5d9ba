package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReadReports(t *testing.T) {
	const head = `{"apiVersion":"dramigrate.dev/v1alpha1","kind":"NodeReport","node":"n1","time":"2026-11-03T12:00:00Z","kubeletSocket":"/s","holders":null,"listCalled":true,`
	noon := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	held := head + `"verdict":"double-held","advertised":{"nvidia.com/gpu":["GPU-1"]},"devices":[{"uuid":"GPU-1","seen":true,"verdict":"double-held","advertisedBy":"both","heldBy":"both","reasons":["a/x and a/y"]}],
		"hardware":{"library":"l","devices":[{"index":0,"uuid":"GPU-1","mig":[],"processes":null,"health":{}}]}}`
	read := func(t *testing.T, now time.Time, files map[string]string) ([]string, error) {
		t.Helper()
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found, digests, err := readReports(dir, now)
		var out []string
		for _, w := range found {
			if !strings.HasPrefix(digests[w.Node], "sha256:") {
				t.Errorf("node %s has digest %q", w.Node, digests[w.Node])
			}
			if !w.Held || !slices.Equal(w.Double, []string{"a/x and a/y"}) || len(w.GPUs) != 1 || len(w.Offered) != 1 {
				t.Errorf("%+v", w)
			}
			line := w.Node
			if w.Aged {
				line += " aged"
			}
			out = append(out, line)
		}
		return out, err
	}
	for _, tt := range []struct {
		name  string
		now   time.Time
		files map[string]string
		want  string
		fails string
	}{
		{"fresh", noon.Add(time.Hour), map[string]string{"n1.json": held, "notes.txt": "x"}, "n1", ""},
		{"aged", noon.Add(time.Hour + time.Second), map[string]string{"n1.json": held}, "n1 aged", ""},
		{"none", noon, map[string]string{"notes.txt": "x"}, "", "holds no report"},
		{"two of one node", noon, map[string]string{"a.json": held, "b.json": held}, "", "a second report of node n1"},
		{"another kind", noon, map[string]string{"a.json": strings.Replace(held, `"NodeReport"`, `"Status"`, 1)}, "", "is a dramigrate.dev/v1alpha1 Status"},
		{"unknown field", noon, map[string]string{"a.json": strings.Replace(held, `"listCalled"`, `"listCaled"`, 1)}, "", "listCaled"},
		{"too long", noon, map[string]string{"a.json": strings.Repeat(" ", maxReport+1)}, "", "is longer than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, tt.now, tt.files)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v, want %q", err, tt.fails)
				}
				return
			}
			if err != nil || strings.Join(got, ",") != tt.want {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
