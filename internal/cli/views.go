package cli

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/report"
	"github.com/dramigrate/dramigrate/internal/wholefile"
)

// views are how a verb shows its plan: --output on stdout, and a file for each
// --report.
type views struct {
	app     *app
	all     []report.View
	format  *format
	reports []viewFile
	given   func() bool // whether --output is on the command line
}

// viewFile is one --report.
type viewFile struct {
	view report.View
	path string // standardStream for stdout
}

// standardStream stands for stdin or stdout in place of a file.
const standardStream = "-"

func newViews(a *app) *views {
	v := &views{app: a, all: report.Views()}
	var names []string
	for _, view := range v.all {
		names = append(names, view.Name)
	}
	v.format = newFormat(names...)
	return v
}

func (v *views) addFlags(cmd *cobra.Command) {
	v.format.addFlag(cmd)
	v.given = func() bool { return cmd.Flags().Changed("output") }
	cmd.Flags().Var(v, "report", "write the plan to a file as well, in one of the formats of --output; may be given again; - is stdout, in place of --output")
	// The error is for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("report", func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if strings.Contains(typed, "=") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var out []cobra.Completion
		for _, view := range v.all {
			out = append(out, view.Name+"=")
		}
		return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
}

// Set, String and Type make views the value of --report.
func (v *views) Set(value string) error {
	name, path, found := strings.Cut(value, "=")
	if !found || path == "" {
		return usageError("must be FORMAT=FILE")
	}
	view, known := v.named(name)
	if !known {
		return usageError("format %q: must be one of %s", name, strings.Join(v.format.allowed, ", "))
	}
	if path != standardStream {
		path = filepath.Clean(path)
	}
	if slices.ContainsFunc(v.reports, func(r viewFile) bool { return r.path == path }) {
		return usageError("%s is written twice", path)
	}
	v.reports = append(v.reports, viewFile{view, path})
	return nil
}

func (v *views) String() string { return "" }
func (v *views) Type() string   { return "FORMAT=FILE" }

func (v *views) named(name string) (report.View, bool) {
	i := slices.IndexFunc(v.all, func(view report.View) bool { return view.Name == name })
	if i < 0 {
		return report.View{}, false
	}
	return v.all[i], true
}

// complete refuses two documents on stdout, before anything is read.
func (v *views) complete() error {
	if v.given() && v.onStdout() {
		return usageError("--output and a --report to %s both write to stdout: leave one away", standardStream)
	}
	return nil
}

// writes says whether a report goes to the file.
func (v *views) writes(path string) bool {
	return slices.ContainsFunc(v.reports, func(r viewFile) bool { return r.path == filepath.Clean(path) })
}

func (v *views) onStdout() bool {
	return slices.ContainsFunc(v.reports, func(r viewFile) bool { return r.path == standardStream })
}

// print writes the files first: a person who is asked to confirm has them then.
func (v *views) print(p *plan.Plan) error {
	for _, r := range v.reports {
		if r.path == standardStream {
			continue
		}
		var b bytes.Buffer
		if err := r.view.Write(report.Sheet{Writer: colorprofile.NewWriter(&b, nil)}, p); err != nil {
			return fmt.Errorf("--report %s=%s: %w", r.view.Name, r.path, err)
		}
		if err := wholefile.Write(r.path, func(w io.Writer) error { _, err := b.WriteTo(w); return err }); err != nil {
			return fmt.Errorf("--report %s=%s: %w", r.view.Name, r.path, err)
		}
		fmt.Fprintf(v.app.Err, "Wrote %s.\n", report.Clean(r.path))
	}
	for _, r := range v.reports {
		if r.path == standardStream {
			return v.show(r.view, p)
		}
	}
	view, _ := v.named(v.format.value)
	return v.show(view, p)
}

func (v *views) show(view report.View, p *plan.Plan) error {
	sheet := v.app.sheet()
	if !view.Styled {
		sheet.Writer = v.app.Out
	}
	return view.Write(sheet, p)
}
