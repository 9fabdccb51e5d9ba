package checks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// ownerObject names what a person edits to change the pod: "deployment/ns/name", or
// the pod itself if nothing owns it.
func ownerObject(p *cluster.Pod) string {
	if o := p.WorkloadOwner(); o.Kind != "" {
		return strings.ToLower(o.Kind) + "/" + p.Namespace + "/" + o.Name
	}
	return podObject(p)
}

// counted writes each with its number of pods, those with the most first.
func counted(pods map[string]int) []string {
	var out []string
	for _, name := range slices.SortedFunc(maps.Keys(pods), func(a, b string) int {
		return cmp.Or(cmp.Compare(pods[b], pods[a]), cmp.Compare(a, b))
	}) {
		if n := pods[name]; n > 1 {
			name = fmt.Sprintf("%s (%d pods)", name, n)
		}
		out = append(out, name)
	}
	return out
}
