package main

import (
	"bytes"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/dramigrate/dramigrate/internal/cli"
)

// referenceFolder is where the pages of the commands stand, beside those that are
// written by hand.
const referenceFolder = "reference"

// reference is one Markdown page for each command, by its path under the docs. It is
// the same whoever makes it, wherever and whenever.
func reference() (map[string][]byte, error) {
	root := cli.NewCommand("dramigrate", cli.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, cli.Build{})
	root.DisableAutoGenTag = true // it holds the date
	// kubectl's default is a path of the person who runs it.
	if f := root.PersistentFlags().Lookup("cache-dir"); f != nil {
		f.DefValue = "$HOME/.kube/cache"
	}
	out := map[string][]byte{}
	return out, pages(root, out)
}

func pages(cmd *cobra.Command, out map[string][]byte) error {
	var b bytes.Buffer
	if err := doc.GenMarkdownCustom(cmd, &b, func(link string) string { return link }); err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
	out[path.Join(referenceFolder, name)] = b.Bytes()
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := pages(c, out); err != nil {
			return err
		}
	}
	return nil
}
