package checks

import (
	"fmt"
	"slices"
	"strings"
)

// FindingSkip is a person's decision not to be stopped by what a check finds. It stands in
// the plan, with its reason, for those who review it.
type FindingSkip struct {
	// Code is the check.
	Code string `json:"code"`
	// Object is the one object that the decision is about, as a finding names it; empty
	// is every object.
	Object string `json:"object,omitempty"`
	// Reason is why, in the person's own words.
	Reason string `json:"reason"`
}

// ParseSkip reads "CODE" or "CODE=OBJECT". The reason comes from elsewhere.
func ParseSkip(value string) (FindingSkip, error) {
	code, object, named := strings.Cut(value, "=")
	s := FindingSkip{Code: strings.ToUpper(code), Object: object}
	if named && object == "" {
		return s, fmt.Errorf("%q: names no object behind the =", value)
	}
	return s, s.valid()
}

func (s FindingSkip) valid() error {
	c, ok := Find(s.Code)
	switch {
	case !ok:
		return fmt.Errorf("there is no check %q; `dramigrate check --list` shows them", s.Code)
	case c.Unskippable:
		return fmt.Errorf("%s cannot be skipped: `dramigrate explain %s` says what it guards against", s.Code, s.Code)
	default:
		return nil
	}
}

// ValidateSkips says whether the skips can be part of a plan.
func ValidateSkips(skips []FindingSkip) error {
	for _, s := range skips {
		if err := s.valid(); err != nil {
			return err
		}
		if strings.TrimSpace(s.Reason) == "" {
			return fmt.Errorf("%s is skipped without a reason", s.Code)
		}
	}
	return nil
}

// skipped marks the findings of a check that a person has decided about.
func (in Input) skipped(c Check, findings []Finding) []Finding {
	if c.Unskippable {
		return findings
	}
	for i := range findings {
		f := &findings[i]
		at := slices.IndexFunc(in.Skips, func(s FindingSkip) bool {
			return s.Code == c.Code && (s.Object == "" || s.Object == f.Object)
		})
		if at >= 0 {
			f.Skipped = in.Skips[at].Reason
		}
	}
	return findings
}

// IdleSkips says which of the skips are about an object of which nothing was found, and
// what was found instead: a name that is written wrongly decides nothing.
func IdleSkips(skips []FindingSkip, findings []Finding) []string {
	var out []string
	for _, s := range skips {
		var found []string
		for _, f := range findings {
			if f.Code == s.Code {
				found = append(found, f.Object)
			}
		}
		if s.Object == "" || slices.Contains(found, s.Object) {
			continue // a whole check may find something another time
		}
		slices.Sort(found)
		instead := "nothing"
		if len(found) > 0 {
			instead = few(slices.Compact(found))
		}
		out = append(out, fmt.Sprintf("the skip %s=%s decides nothing: %s found %s", s.Code, s.Object, s.Code, instead))
	}
	return out
}
