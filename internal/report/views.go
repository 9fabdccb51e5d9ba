package report

import (
	"io"

	"github.com/dramigrate/dramigrate/internal/plan"
)

// View is one way to write a plan.
type View struct {
	// Name is the value of --output that asks for it.
	Name string
	// Styled says that it writes ANSI styles, which its writer has to reduce.
	Styled bool
	Write  func(io.Writer, *plan.Plan) error
}

// Views are all ways to write a plan, the default first.
func Views() []View {
	return []View{
		{Name: "table", Styled: true, Write: Plan},
		{Name: "yaml", Write: func(w io.Writer, p *plan.Plan) error { return YAML(w, p) }},
		{Name: "json", Write: func(w io.Writer, p *plan.Plan) error { return JSON(w, p) }},
		{Name: "markdown", Write: Markdown},
		{Name: "html", Write: HTML},
		{Name: "diff", Write: Diff},
		{Name: "github", Write: GitHub},
	}
}
