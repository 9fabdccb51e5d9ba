package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/access"
	"github.com/dramigrate/dramigrate/internal/cluster"
)

func drm030() Check {
	return Check{
		Code:        "DRM030",
		Title:       "The caller may not do what the plan will do",
		Why:         "A right that is missing is found before anything begins, and not by a request that is refused half-way. Who only looks at a plan may be somebody else than who runs it: then it is a warning. In files there is no caller, and a plan from them is looked at all the same.",
		Fix:         "Have an administrator grant the least role for the verb, which dramigrate rbac prints.",
		Sources:     []string{"k8s.io/api/authorization/v1, SelfSubjectAccessReview, v0.37.2"},
		Unskippable: true,
		Operations:  []string{Prepare, Migrate, Rollback, Unprepare, MigrateFrom, RollbackFrom},
		Run: func(in Input) []Finding {
			if in.Snapshot.Access == nil && !in.Offline {
				return nil // nobody has asked yet
			}
			lacking := map[string]*lack{}
			notAsked := 0
			for _, need := range in.Rights {
				answer, reason := in.answer(need)
				switch answer {
				case cluster.Allowed:
				case cluster.NotAsked:
					notAsked++
				default:
					object := "access/" + strings.ReplaceAll(need.Resource, "/", ".")
					if need.Path != "" {
						object = "access" + need.Path
					}
					if need.Namespace != "" {
						object = "access/" + need.Namespace + "/" + strings.ReplaceAll(need.Resource, "/", ".")
					}
					l := lacking[object]
					if l == nil {
						l = &lack{}
						lacking[object] = l
					}
					l.add(need, answer, reason)
				}
			}
			var out []Finding
			for _, object := range slices.Sorted(maps.Keys(lacking)) {
				out = append(out, lacking[object].finding(in, object))
			}
			if notAsked > 0 {
				out = append(out, Finding{
					Code: "DRM030", Severity: Info, Object: "access",
					Message: fmt.Sprintf("whether whoever runs the plan may do so is not in the files (%d rights): it is looked at when the plan is run", notAsked),
					Remedy:  in.rbac(false),
				})
			}
			return out
		},
	}
}

// answer is what is known of a need: of its right, or of one that does as well.
func (in Input) answer(need access.Need) (cluster.Answer, string) {
	answer, reason := in.Snapshot.Access.Look(need.Right)
	if answer == cluster.Allowed {
		return answer, ""
	}
	for _, other := range need.Or {
		if also, _ := in.Snapshot.Access.Look(other); also == cluster.Allowed {
			return also, ""
		}
	}
	return answer, reason
}

// lack is what is missing of one resource in one place.
type lack struct {
	denied, unanswered []string
	why, reasons       []string
	manifests          bool
}

func (l *lack) add(need access.Need, answer cluster.Answer, reason string) {
	to := &l.denied
	if answer == cluster.Unanswered {
		to = &l.unanswered
	}
	note := func(list *[]string, text string) {
		if text != "" && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	note(to, need.String())
	note(&l.why, need.Why)
	note(&l.reasons, reason)
	l.manifests = l.manifests || need.Manifests
}

func (l *lack) finding(in Input, object string) Finding {
	f := Finding{Code: "DRM030", Severity: Blocker, Object: object, Remedy: in.rbac(l.manifests)}
	var said []string
	if len(l.denied) > 0 {
		said = append(said, "the caller may not "+strings.Join(l.denied, ", "))
	}
	if len(l.unanswered) > 0 {
		said = append(said, "the server does not say whether the caller may "+strings.Join(l.unanswered, ", "))
		if len(l.denied) == 0 {
			f.Severity = Unknown
		}
	}
	f.Message = strings.Join(said, "; ") + ": needed " + strings.Join(l.why, "; ")
	if len(l.reasons) > 0 {
		f.Message += "; the answer is: " + strings.Join(l.reasons, "; ")
	}
	if !in.Runs {
		f.Severity = Warning
	}
	return f
}

// rbac is the command that prints the roles for the operation.
func (in Input) rbac(manifests bool) string {
	verb := map[string]string{Prepare: access.Prepare, Migrate: access.Apply, MigrateFrom: access.Apply, Rollback: access.Rollback, RollbackFrom: access.Rollback, Unprepare: access.Unprepare}[in.Operation]
	more := ""
	if in.Namespace != "" {
		more = " --tool-namespace " + in.Namespace
	}
	if manifests {
		more += " --driver-manifests DIR"
	}
	return fmt.Sprintf("have an administrator run `dramigrate rbac %s%s --user NAME | kubectl apply -f -`", verb, more)
}
