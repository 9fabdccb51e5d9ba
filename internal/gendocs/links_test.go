package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What makes and checks the docs is not in the program that people download.
func TestShippedProgramIsWithoutTheGenerators(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./cmd/dramigrate")
	list.Dir = moduleRoot
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, module+"/internal/cli") {
		t.Fatal("the list is not that of the program")
	}
	for _, pkg := range linked {
		for _, tool := range []string{"github.com/spf13/cobra/doc", "github.com/invopop/", "github.com/santhosh-tekuri/", module + "/internal/gendocs"} {
			if strings.HasPrefix(pkg, tool) {
				t.Errorf("%s is linked into the program", pkg)
			}
		}
	}
}
