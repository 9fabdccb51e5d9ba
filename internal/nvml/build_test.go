package nvml

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The binding is for the helper on the nodes, which is built with cgo and the tag nvml.
// The command line for workstations must not link it, however it is built: a program that
// has it needs the C library of its build, no system but Linux has the driver, and where
// the C compiler resolves all symbols at the start it does not start at all without a
// flag of its own to the linker (see load).
func TestBindingIsForTheHelperAlone(t *testing.T) {
	const binding = "github.com/NVIDIA/go-nvml/"
	if !strings.Contains(depsOf(t, "linux", "1", "nvml", "../../cmd/dramigrate"), binding) {
		t.Error("with cgo and the tag on Linux the helper is without the binding")
	}
	for _, build := range []struct{ goos, cgo, tags string }{
		{"linux", "1", ""}, {"linux", "0", ""}, {"linux", "0", "nvml"}, {"darwin", "0", "nvml"}, {"windows", "0", "nvml"},
	} {
		if strings.Contains(depsOf(t, build.goos, build.cgo, build.tags, "../../cmd/dramigrate"), binding) {
			t.Errorf("GOOS=%s CGO_ENABLED=%s tags %q: the package or the command line has the binding", build.goos, build.cgo, build.tags)
		}
	}
}

// depsOf are the dependencies of this package and of others.
func depsOf(t *testing.T, goos, cgo, tags string, others ...string) string {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-tags", tags, "-deps", "."}, others...)...)
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
