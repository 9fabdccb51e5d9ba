package checks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

// mostOwners is how many owners of a kind in a namespace are named one by one where
// there is the same to say of them. A thousand Jobs of one queue are one finding.
const mostOwners = 10

// ownerGroups collects pods and workloads for which there is the same to say, by what a
// person edits to change them: 500 pods of a Deployment are one finding.
type ownerGroups map[ownerKey]*ownerPods

type ownerKey struct{ kind, namespace, name, evidence string }

// object is the owner as a finding names it.
func (k ownerKey) object() string { return k.kind + "/" + k.namespace + "/" + k.name }

// ownerPods are an owner's pods; there are none if the evidence is about its template.
type ownerPods struct {
	pods  []string
	nodes map[string]bool
}

// add adds a pod. The evidence has to be the same for all pods of its owner.
func (g ownerGroups) add(p *cluster.Pod, evidence string) {
	have := g.of(ownerOf(p, evidence))
	have.pods = append(have.pods, p.Name)
	if p.Node != "" {
		have.nodes[p.Node] = true
	}
}

// addTemplate adds a workload that has no pod of its own to show.
func (g ownerGroups) addTemplate(w *cluster.Workload, evidence string) {
	kind, _, _ := strings.Cut(w.Ref(), "/")
	g.of(ownerKey{kind, w.Namespace, w.Name, evidence})
}

func (g ownerGroups) of(k ownerKey) *ownerPods {
	if g[k] == nil {
		g[k] = &ownerPods{nodes: map[string]bool{}}
	}
	return g[k]
}

func ownerOf(p *cluster.Pod, evidence string) ownerKey {
	o := p.WorkloadOwner()
	if o.Kind == "" || p.Static {
		return ownerKey{"pod", p.Namespace, p.Name, evidence}
	}
	return ownerKey{strings.ToLower(o.Kind), p.Namespace, o.Name, evidence}
}

// ownerObject is what a finding about all pods of a pod's owner names.
func ownerObject(p *cluster.Pod) string { return ownerOf(p, "").object() }

// findings makes one finding of each owner, or of each namespace where there are many
// of a kind.
func (g ownerGroups) findings(base Finding) []Finding {
	crowds := map[ownerKey][]ownerKey{} // without a name
	for _, k := range slices.SortedFunc(maps.Keys(g), compareOwners) {
		crowd := k
		crowd.name = ""
		crowds[crowd] = append(crowds[crowd], k)
	}
	var out []Finding
	for _, crowd := range slices.SortedFunc(maps.Keys(crowds), compareOwners) {
		keys := crowds[crowd]
		if len(keys) > mostOwners {
			out = append(out, g.crowd(crowd, keys, base))
			continue
		}
		for _, k := range keys {
			f := base
			f.Object, f.Message = k.object(), k.evidence
			if subject := g[k].subject(k); subject != "" {
				f.Message = subject + ": " + k.evidence
			}
			out = append(out, f)
		}
	}
	return out
}

func (g ownerGroups) crowd(crowd ownerKey, keys []ownerKey, base Finding) Finding {
	var names []string
	pods := 0
	for _, k := range keys {
		names = append(names, k.name)
		pods += len(g[k].pods)
	}
	base.Object = "namespace/" + crowd.namespace
	who := fmt.Sprintf("%d of kind %s (%s)", len(keys), crowd.kind, few(names))
	if crowd.kind != "pod" && pods > 0 {
		who += " with " + words.Count(pods, "pod")
	}
	base.Message = who + ": " + crowd.evidence
	return base
}

// subject says which pods of the owner it is about.
func (o *ownerPods) subject(k ownerKey) string {
	where := ""
	if len(o.nodes) > 0 {
		where = "on " + nodeList(slices.Sorted(maps.Keys(o.nodes)))
	}
	switch {
	case len(o.pods) == 0 || k.kind == "pod":
		return where
	case len(o.pods) == 1:
		return strings.TrimSpace("pod " + o.pods[0] + " " + where)
	default:
		return strings.TrimSpace(words.Count(len(o.pods), "pod") + " " + where)
	}
}

func compareOwners(a, b ownerKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.name, b.name), cmp.Compare(a.evidence, b.evidence))
}

// counted writes each with its number of pods, those with the most first.
func counted(pods map[string]int) []string {
	var out []string
	for _, name := range slices.SortedFunc(maps.Keys(pods), func(a, b string) int {
		return cmp.Or(cmp.Compare(pods[b], pods[a]), cmp.Compare(a, b))
	}) {
		if n := pods[name]; n > 1 {
			name = name + " (" + words.Count(n, "pod") + ")"
		}
		out = append(out, name)
	}
	return out
}
