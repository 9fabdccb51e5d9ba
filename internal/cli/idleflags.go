package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// idle refuses flags that mean something only beside what was not given: they would be
// left out without a word. with is what they are for, as a person types it.
func idle(set *pflag.FlagSet, with string, names ...string) error {
	for _, name := range names {
		if set.Changed(name) {
			return usageError("--%s goes with %s: give that as well, or leave --%s out", name, with, name)
		}
	}
	return nil
}

// flagVerbs are the verbs that a flag of `plan` says something about, where it is not
// about all. --into has words of its own.
var flagVerbs = map[string][]string{
	"max-unavailable":      {"apply", "rollback"},
	"drain":                {"apply", "rollback"},
	"drain-timeout":        {"apply", "rollback"},
	"delete-emptydir-data": {"apply", "rollback"},
	"evict-unmanaged":      {"apply", "rollback"},
	"helper-image":         {"apply", "rollback"},
	"helper-pull-secret":   {"apply", "rollback"},
	"runtime-class":        {"apply", "rollback"},
	"driver-root":          {"apply", "rollback"},
	"reports":              {"apply", "rollback"},
	"soak":                 {"apply"},
	"kubelet-grace":        {"apply"},
	"driver-manifests":     {"prepare"},
	"plugin-rollout":       {"prepare"},
	"edit-owned":           {"prepare"},
	"wait-for-owner":       {"prepare"},
	"probe-gate":           {"prepare", "apply"},
}

// notForVerb refuses the flags of a plan that its verb does not have.
func notForVerb(cmd *cobra.Command, verb string) error {
	var wrong error
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		verbs, some := flagVerbs[f.Name]
		if wrong == nil && f.Changed && some && !slices.Contains(verbs, verb) {
			wrong = usageError("--%s is for %s: leave it out of a plan for %s", f.Name, strings.Join(verbs, " and "), verb)
		}
	})
	return wrong
}
