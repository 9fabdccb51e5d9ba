package helperpod

import (
	"regexp"
	"strings"
)

// smiLine is a line of `nvidia-smi -L`:
//
//	GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5f727037-7cce-5fc4-b316-54a2755e08e7)
//	  MIG 1g.10gb     Device  0: (UUID: MIG-8c0f2b1e-3a9d-5a55-9d8e-2f6f2a0f4b11)
var smiLine = regexp.MustCompile(`^\s*(GPU|MIG) .*\(UUID: ((?:GPU|MIG)-[^\s)]+)\)\s*$`)

// ParseSMI returns the UUIDs of the devices that a log of `nvidia-smi -L` lists, in
// its order. A GPU with MIG devices below it is not among them: the line names the
// board that they are a part of, not a device of its own. Other lines are passed
// over.
func ParseSMI(log string) []string {
	var out []string
	parent := false // the last entry is a GPU, so a MIG line is a part of it
	for line := range strings.Lines(log) {
		m := smiLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		if m[1] == "MIG" && parent {
			out = out[:len(out)-1]
		}
		parent = m[1] == "GPU"
		out = append(out, m[2])
	}
	return out
}
