package plan

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/jsonerr"
)

// FileError says why a plan file is refused. Edited is true if the file is a plan,
// but not as it was written: what it says was never reviewed as a whole.
type FileError struct {
	Edited bool
	Reason string
}

func (e *FileError) Error() string { return e.Reason }

// Parse reads a plan file, YAML or JSON. It refuses what this version does not
// know in full: an unknown field would be a promise that nobody keeps.
func Parse(data []byte) (*Plan, error) {
	p, edited, err := ParseEdited(data)
	switch {
	case err != nil:
		return nil, err
	case edited != nil:
		return nil, edited
	}
	return p, nil
}

// ParseEdited is Parse for a file that may have been edited by hand: edited says how
// it shows that it was, and is nil for one that is as it was written. Everything else
// is refused as by Parse.
func ParseEdited(data []byte) (p *Plan, edited *FileError, err error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(data, &head); err != nil {
		if jsonerr.Mistyped(err) {
			return nil, nil, &FileError{Reason: fmt.Sprintf("not a plan: %v", jsonerr.Plain(err))}
		}
		return nil, nil, &FileError{Reason: fmt.Sprintf("not YAML or JSON: %v", jsonerr.Plain(err))}
	}
	if head.APIVersion != APIVersion || head.Kind != Kind {
		return nil, nil, &FileError{Reason: fmt.Sprintf("apiVersion %q, kind %q: want %s, %s",
			head.APIVersion, head.Kind, APIVersion, Kind)}
	}
	p = &Plan{}
	if err := yaml.UnmarshalStrict(data, p); err != nil {
		return nil, nil, &FileError{Reason: fmt.Sprintf("not a plan of this version: %v", jsonerr.Plain(err))}
	}
	want, err := ComputeDigest(p)
	if err != nil {
		return nil, nil, err
	}
	if p.Digest != want {
		edited = &FileError{Edited: true, Reason: fmt.Sprintf(
			"digest %s does not match the contents (%s): the file was changed after it was planned", orNone(p.Digest), want)}
	}
	if err := p.validate(); err != nil {
		return nil, nil, &FileError{Edited: edited != nil, Reason: fmt.Sprintf("not a plan that can be read: %v", err)}
	}
	return p, edited, nil
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}
