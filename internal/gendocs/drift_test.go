package main

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	moduleRoot = filepath.Join("..", "..")
	docs       = filepath.Join(moduleRoot, "docs")
)

// What is in docs is what the code says; `make docs` brings it up to date.
func TestDocsAreCurrent(t *testing.T) {
	pages, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := schemas(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(pages)
	maps.Copy(want, kinds)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, err := os.ReadFile(filepath.Join(docs, filepath.FromSlash(name)))
		if err != nil {
			t.Errorf("docs/%s: %v; run make docs", name, err)
			continue
		}
		if diff := cmp.Diff(string(want[name]), string(got)); diff != "" {
			t.Errorf("docs/%s is not what the code says; run make docs (-code +file):\n%s", name, diff)
		}
	}
	// A page of a command that is gone would still be read.
	for _, pattern := range []string{referenceFolder + "/dramigrate*.md", schemaFolder + "/*.json"} {
		files, err := filepath.Glob(filepath.Join(docs, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Errorf("docs/%s: %d files, error %v", pattern, len(files), err)
		}
		for _, file := range files {
			name := path.Join(path.Dir(pattern), filepath.Base(file))
			if _, known := want[name]; !known {
				t.Errorf("docs/%s: nothing of the code makes this file; remove it", name)
			}
		}
	}
}

// The pages must not tell who made them.
func TestReferenceDependsOnNothingAround(t *testing.T) {
	first, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECACHEDIR", t.TempDir())
	t.Setenv("KUBECONFIG", "/nowhere")
	t.Setenv("DRAMIGRATE_HELPER_IMAGE", "mine:1")
	second, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}
