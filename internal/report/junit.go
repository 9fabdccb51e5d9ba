package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/dramigrate/dramigrate/internal/checks"
)

// The elements of JUnit's XML that CI systems read: a suite for each group, a case for
// each check (github.com/testmoapp/junitxml).
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name      string         `xml:"name,attr"`
	Class     string         `xml:"classname,attr"`
	Failures  []junitProblem `xml:"failure,omitempty"`
	Errors    []junitProblem `xml:"error,omitempty"`
	SystemOut string         `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// CheckJUnit writes a report as JUnit's XML. A blocker is a failure; what could not be
// seen is an error, as a test that did not run to its end; what only warns is output.
func CheckJUnit(w io.Writer, r *checks.Report) error {
	all := junitSuites{Name: Clean(checkHeadline(r))}
	for _, g := range checkGroups(r) {
		s := junitSuite{Name: string(g.name)}
		for _, o := range g.outcomes {
			s.add(junitCaseOf(r, g, o))
		}
		all.Tests, all.Failures, all.Errors = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return fmt.Errorf("encode JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	if len(c.Failures) > 0 {
		s.Failures++
	}
	if len(c.Errors) > 0 {
		s.Errors++
	}
	s.Cases = append(s.Cases, c)
}

func junitCaseOf(r *checks.Report, g checkGroup, o checks.Outcome) junitCase {
	c := junitCase{Name: o.Code + " " + o.Title, Class: "dramigrate." + strings.ReplaceAll(string(g.name), " ", "-")}
	if o.Result == checks.NotRun {
		c.Errors = append(c.Errors, junitProblem{Message: Clean(strings.Join(o.Missing, ", ")) + " could not be read", Type: "unknown"})
	}
	var out []string
	for _, f := range r.Findings {
		if f.Code != o.Code {
			continue
		}
		text := Clean(f.Object + ": " + message(f))
		p := junitProblem{Message: text, Type: string(standing(f)), Text: Clean(f.Remedy)}
		switch {
		case !f.Stops():
			out = append(out, fmt.Sprintf("%s %s", standing(f), text))
		case f.Severity == checks.Blocker:
			c.Failures = append(c.Failures, p)
		default:
			c.Errors = append(c.Errors, p)
		}
	}
	c.SystemOut = strings.Join(out, "\n")
	return c
}
