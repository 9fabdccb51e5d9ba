package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Names of the program as a kubectl plugin. kubectl runs the first, and for a tab the
// second, with the words after "kubectl dramigrate".
const (
	pluginName     = "kubectl-dramigrate"
	completionName = "kubectl_complete-dramigrate"
	pluginTyped    = "kubectl dramigrate"
)

func programName(argv0 string) string {
	return strings.TrimSuffix(filepath.Base(argv0), ".exe")
}

// completes says whether kubectl called the program to complete a command line.
func completes(argv0 string) bool { return programName(argv0) == completionName }

// calledByKubectl says whether the program runs as a plugin of kubectl.
func calledByKubectl(argv0 string) bool {
	return strings.HasPrefix(programName(argv0), "kubectl-") || completes(argv0)
}

// actAsPlugin has help and usage say what a person types.
func actAsPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginTyped}
	rename := strings.NewReplacer("\n  dramigrate ", "\n  "+pluginTyped+" ", "'dramigrate ", "'"+pluginTyped+" ")
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		cmd.Long = rename.Replace(cmd.Long)
		cmd.Example = strings.TrimPrefix(rename.Replace("\n"+cmd.Example), "\n")
		for _, c := range cmd.Commands() {
			each(c)
		}
	}
	each(root)
}

// asTyped puts the program's name, as it was called, into the commands of a message.
// They stand in backticks, wherever the message comes from.
func asTyped(message, name string) string {
	return strings.ReplaceAll(message, "`dramigrate ", "`"+name+" ")
}

// kubectlShim is what kubectl looks for when a person presses the tab key.
const kubectlShim = `#!/bin/sh
# Completion of "kubectl dramigrate" by kubectl 1.26 and later, in every shell in which
# kubectl itself completes. Save this file in a folder of PATH as
# ` + completionName + ` and make it executable:
#
#   ` + pluginTyped + ` completion kubectl-shim > ~/.local/bin/` + completionName + `
#   chmod +x ~/.local/bin/` + completionName + `
#
# A link of that name to the program itself does the same:
#
#   ln -s "$(command -v ` + pluginName + `)" ~/.local/bin/` + completionName + `
exec ` + pluginTyped + ` __complete "$@"
`
