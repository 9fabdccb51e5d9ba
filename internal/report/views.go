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
	Write  func(Sheet, *plan.Plan) error
}

// Views are all ways to write a plan, the default first.
func Views() []View {
	return []View{
		{Name: "table", Styled: true, Write: Plan},
		{Name: "yaml", Write: func(s Sheet, p *plan.Plan) error { return YAML(s, p) }},
		{Name: "json", Write: func(s Sheet, p *plan.Plan) error { return JSON(s, p) }},
		{Name: "markdown", Write: alike(Markdown)},
		{Name: "html", Write: alike(HTML)},
		{Name: "diff", Styled: true, Write: Diff},
		{Name: "github", Write: alike(GitHub)},
	}
}

// alike is a view that is the same on every terminal.
func alike[T any](write func(io.Writer, T) error) func(Sheet, T) error {
	return func(s Sheet, document T) error { return write(s, document) }
}
