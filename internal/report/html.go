package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/dramigrate/dramigrate/internal/plan"
	"github.com/dramigrate/dramigrate/internal/words"
)

//go:embed html/plan.html
var htmlTemplate string

//go:embed html/plan.css
var htmlStyle string

// HTML writes a plan as one file that stands alone: no script, no request to anywhere,
// which its content security policy has the browser enforce.
func HTML(w io.Writer, p *plan.Plan) error {
	t, err := template.New("plan").Funcs(template.FuncMap{
		"capital": capital, "object": object, "why": evictionWhy, "lower": strings.ToLower,
		"plural": words.Plural, "thousands": thousands, "inc": func(i int) int { return i + 1 },
		"byReason": byReason, "join": func(list []string) string { return strings.Join(list, ", ") },
	}).Parse(htmlTemplate)
	if err != nil {
		return fmt.Errorf("the page's template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newHTMLPage(p)); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	// The template escapes what would be markup. What would hide or reorder text is
	// none, so it is made visible here, for the page as a whole.
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(w, Clean(strings.TrimRight(line, "\r\n"))+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// styleSource is the style sheet as the policy names it: the hash of its bytes.
func styleSource() string {
	sum := sha256.Sum256([]byte(htmlStyle))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
