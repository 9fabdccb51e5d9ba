package plan

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dramigrate/dramigrate/internal/gate"
)

// VerbAsk is the verb of a change that the tool does not make: the owner of the object
// does, and its body is what a person takes there.
const VerbAsk = "ask its owner for"

// asksOwner says that an edit of a DaemonSet is left to its owner.
func (b *builder) asksOwner(o gate.Owner) bool { return o.Owned() && !b.in.Settings.EditOwned }

// byOwner is the step that has the owner of a DaemonSet make an edit, and waits for it
// if prepare was told to.
func (b *builder) byOwner(id StepID, title string, target Object, ds *appsv1.DaemonSet, owner gate.Owner, edit gate.Edit) Step {
	h := gate.HandOver(ds, owner, edit, b.s.DaemonSets)
	asked := target
	asked.Note = h.Where
	s := Step{
		ID: id, Title: title, Target: &target,
		Needs:   []string{"a person takes the change to " + owner.String()},
		Changes: []Change{{Verb: VerbAsk, Object: asked, Body: toYAML(h.Body)}},
		Undo:    "take it out again at " + owner.String() + ", after `dramigrate unprepare`",
	}
	if len(h.Also) > 0 {
		s.Needs = append(s.Needs, "it is fine that the same values move "+strings.Join(h.Also, ", ")+" off switched nodes as well")
	}
	if wait := b.in.Settings.WaitForOwner.Duration; wait > 0 {
		s.Waits = []Wait{within("the change to arrive from "+owner.String()+" and to be rolled out", wait)}
	}
	return s
}

// editOwned adds to a step on an object that somebody owns what that means.
func editOwned(s *Step, owner gate.Owner) {
	if owner.Owned() {
		s.Needs[0] = fmt.Sprintf("it is understood that %s takes the edit back sooner or later, and with it lets the plugin onto every switched node: --edit-owned", owner)
		s.Undo += ", or whatever " + owner.String() + " does next"
	}
}
