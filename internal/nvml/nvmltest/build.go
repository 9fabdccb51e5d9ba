package nvmltest

import (
	"bytes"
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

// Build compiles the stand-in into the folder and returns the library's file. The C
// compiler is $CC, or cc. The declarations are those of the real nvml.h, from the module
// that dramigrate loads the library with.
//
// The functions of without are left out, as in a driver that is too old to have them.
func Build(dir string, without ...string) (string, error) {
	header, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		return "", fmt.Errorf("stand-in for NVML: find nvml.h: %w", reason(err))
	}
	src := filepath.Join(dir, "nvml.c")
	lib := filepath.Join(dir, SONAME)
	args := []string{
		"-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-std=gnu11",
		"-I", strings.TrimSpace(string(header)), "-Wl,-soname," + SONAME, "-o", lib, src,
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
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("stand-in for NVML: %s: %w\n%s", compiler, err, bytes.TrimSpace(out))
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
