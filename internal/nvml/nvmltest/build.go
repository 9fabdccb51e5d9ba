package nvmltest

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed standin/nvml.c
var source []byte

// SONAME is the library's name.
const SONAME = "libnvidia-ml.so.1"

// Build compiles the stand-in into the folder and returns the library's file; see
// [Compiler.Build].
func Build(dir string) (string, error) {
	c, err := NewCompiler()
	if err != nil {
		return "", err
	}
	return c.Build(dir)
}

// Compiler builds variants of the stand-in.
type Compiler struct {
	command string
	headers string // the folder of nvml.h
}

// NewCompiler takes the C compiler $CC, or cc, and the declarations of the real nvml.h,
// from the module that dramigrate loads the library with.
func NewCompiler() (Compiler, error) {
	headers, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		return Compiler{}, fmt.Errorf("stand-in for NVML: find nvml.h: %w", reason(err))
	}
	return Compiler{command: cmp.Or(os.Getenv("CC"), "cc"), headers: strings.TrimSpace(string(headers))}, nil
}

// Build compiles the stand-in into the folder and returns the library's file. The
// functions of without are left out, as in a driver that is too old to have them.
func (c Compiler) Build(dir string, without ...string) (string, error) {
	src := filepath.Join(dir, "nvml.c")
	lib := filepath.Join(dir, SONAME)
	args := []string{
		"-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-std=gnu11",
		"-I", c.headers, "-Wl,-soname," + SONAME, "-o", lib, src,
	}
	files := map[string][]byte{src: source}
	if len(without) > 0 {
		hidden := filepath.Join(dir, "hidden.map")
		files[hidden] = fmt.Appendf(nil, "{ local: %s; };\n", strings.Join(without, "; "))
		args = append(args, "-Wl,--version-script="+hidden)
	}
	for path, text := range files {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return "", fmt.Errorf("stand-in for NVML: %w", err)
		}
	}
	if out, err := exec.Command(c.command, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("stand-in for NVML: %s: %w\n%s", c.command, err, bytes.TrimSpace(out))
	}
	return lib, nil
}

// reason adds what a command wrote on its error output.
func reason(err error) error {
	if exit, ok := err.(*exec.ExitError); ok {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
