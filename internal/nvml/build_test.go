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
	if !strings.Contains(depsOf(t, "linux", "1"), binding) {
		t.Error("with cgo on Linux the package is without the binding")
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		if strings.Contains(depsOf(t, goos, "0", "../../cmd/dramigrate"), binding) {
			t.Errorf("GOOS=%s without cgo: the package or the command line has the binding", goos)
		}
	}
}

// depsOf are the dependencies of this package and of others.
func depsOf(t *testing.T, goos, cgo string, others ...string) string {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-deps", "."}, others...)...)
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
