package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

const (
	devices = "pkg/kubelet/cm/devicemanager/types.go"
	dra     = "pkg/kubelet/cm/dra/manager.go"
)

func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestQuickConstants(t *testing.T) {
	src := writeTree(t, map[string]string{
		devices:                  "package devicemanager\n\n// five minutes\nconst endpointStopGracePeriod = time.Duration(5) * time.Minute\n",
		dra:                      "package dra\n\nconst defaultWipingDelay = 30 * time.Second\n\nvar x = defaultWipingDelay\n",
		"pkg/kubelet/a_test.go":  "package kubelet\n",
		"vendor/modules.txt":     "",
		"test/e2e/e2e.go":        "package e2e\n",
		"cmd/kubelet/kubelet.go": "package main\n",
	})
	dst := filepath.Join(t.TempDir(), "kubernetes")
	if err := copySource(src, dst); err != nil {
		t.Fatal(err)
	}
	if err := patch(dst, quickConstants()); err != nil {
		t.Fatal(err)
	}
	want := "package devicemanager\n\n// five minutes\nconst endpointStopGracePeriod = time.Duration(20) * time.Second\n"
	if got := read(t, filepath.Join(dst, devices)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want = "package dra\n\nconst defaultWipingDelay = 3 * time.Second\n\nvar x = defaultWipingDelay\n"
	if got := read(t, filepath.Join(dst, dra)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, kept := range map[string]bool{
		"cmd/kubelet/kubelet.go": true, "pkg/kubelet/a_test.go": false, "vendor": false, "test": false,
	} {
		if _, err := os.Stat(filepath.Join(dst, name)); (err == nil) != kept {
			t.Errorf("%s: copied %t, want %t", name, err == nil, kept)
		}
	}
}

// A source in which a constant is written in another way, or twice, must not
// build into a kubelet that looks quick and is not.
func TestQuickConstantsNotFound(t *testing.T) {
	good := "const defaultWipingDelay = 30 * time.Second\n"
	for name, text := range map[string]string{
		"other value": "const defaultWipingDelay = 60 * time.Second\n",
		"twice":       good + good,
		"absent":      "package dra\n",
	} {
		root := writeTree(t, map[string]string{dra: text})
		err := patch(root, []constant{quickConstants()[1]})
		if err == nil || !strings.Contains(err.Error(), dra) {
			t.Errorf("%s: error %v, want one that names %s", name, err, dra)
		}
		if got := read(t, filepath.Join(root, dra)); got != text {
			t.Errorf("%s: the file was changed to %q", name, got)
		}
	}
	if err := patch(t.TempDir(), quickConstants()); err == nil {
		t.Error("a tree without the files was accepted")
	}
}

// The copy takes the place of the released module, and of nothing else.
func TestRedirectKubernetes(t *testing.T) {
	mod, err := redirectKubernetes([]byte("module kubernetes-build\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.37.2\n\nreplace k8s.io/api => k8s.io/api v0.37.2\n"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range f.Replace {
		got[r.Old.Path] = r.New.String()
	}
	if len(got) != 2 || got["k8s.io/kubernetes"] != "./kubernetes" || got["k8s.io/api"] != "k8s.io/api@v0.37.2" {
		t.Errorf("replacements %v", got)
	}
}
