package nvml

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The command line for workstations is built without cgo and must not link the binding:
// a program that has it needs the C library of its build, and no system but Linux has
// the driver.
func TestNoBindingWithoutCgo(t *testing.T) {
	const binding = "github.com/NVIDIA/go-nvml/"
	tests := []struct {
		goos, cgo string
		want      bool
	}{
		{"linux", "1", true},
		{"linux", "0", false},
		{"darwin", "0", false},
		{"windows", "0", false},
	}
	for _, tt := range tests {
		if deps := depsOf(t, tt.goos, tt.cgo, "."); strings.Contains(deps, binding) != tt.want {
			t.Errorf("GOOS=%s CGO_ENABLED=%s: the package has the binding: %v, want %v", tt.goos, tt.cgo, !tt.want, tt.want)
		}
		if deps := depsOf(t, tt.goos, "0", "../../cmd/dramigrate"); strings.Contains(deps, binding) {
			t.Errorf("GOOS=%s: the command line without cgo has the binding", tt.goos)
		}
	}
}

func depsOf(t *testing.T, goos, cgo, pkg string) string {
	t.Helper()
	list := exec.Command("go", "list", "-deps", pkg)
	list.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED="+cgo)
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("GOOS=%s CGO_ENABLED=%s: go list: %v: %s", goos, cgo, err, stderr.String())
	}
	return string(out)
}

// The search asks the loader, whatever that is: without the binding its answer is the
// package's.
func TestOpenWithoutBinding(t *testing.T) {
	none := func(string) (driver, error) { return nil, &Error{Kind: KindNotBuiltIn} }
	lib, err := open(context.Background(), Options{}, none)
	if lib != nil || KindOf(err) != KindNotBuiltIn || !strings.Contains(err.Error(), "helper image") {
		t.Errorf("Open = %v, %v; want not-built-in and what to do", lib, err)
	}
}
