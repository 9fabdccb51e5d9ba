package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/dramigrate/dramigrate/internal/plan"
)

// patched is an object before and after a JSON patch, in YAML, in the fields that the
// patch tests and writes. The tests hold how the fields were: the server refuses the
// patch if they are not so any more. A patch that writes what it does not test is an
// error.
func patched(c plan.Change) (before, after string, err error) {
	var list []patchOperation
	if err := json.Unmarshal([]byte(c.Patch), &list); err != nil {
		return "", "", fmt.Errorf("it is no JSON patch: %w", err)
	}
	old := identity(c.Object)
	var tested []string
	var writes []patchOperation
	for _, op := range list {
		if op.Op != "test" {
			if !slices.ContainsFunc(tested, func(t string) bool { return op.Path == t || strings.HasPrefix(op.Path, t+"/") }) {
				return "", "", fmt.Errorf("the plan does not hold how %s is now", op.Path)
			}
			writes = append(writes, op)
			continue
		}
		if err := plant(old, op); err != nil {
			return "", "", err
		}
		tested = append(tested, op.Path)
	}
	data, err := json.Marshal(old)
	if err != nil {
		return "", "", err
	}
	patch, err := json.Marshal(writes)
	if err != nil {
		return "", "", err
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return "", "", err
	}
	changed, err := decoded.Apply(data)
	if err != nil {
		return "", "", err
	}
	var result map[string]any
	if err := json.Unmarshal(changed, &result); err != nil {
		return "", "", err
	}
	for _, path := range tested {
		names := pointer(path)
		prune(old, names[:len(names)-1])
		prune(result, names[:len(names)-1])
	}
	return yamlOf(old), yamlOf(result), nil
}

// prune removes the objects along a path that are empty: they are there because a
// field below them was looked for, and the object itself has more.
func prune(object map[string]any, names []string) {
	if len(names) == 0 {
		return
	}
	if inner, ok := object[names[0]].(map[string]any); ok {
		prune(inner, names[1:])
		if len(inner) == 0 {
			delete(object, names[0])
		}
	}
}

// pointer are the names of a JSON pointer (RFC 6901).
func pointer(path string) []string {
	names := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, n := range names {
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(n)
	}
	return names
}

// plant puts the value that a test expects into a bare object; null stands for a field
// that is absent, and leaves the objects around it.
func plant(object map[string]any, op patchOperation) error {
	var value any
	if err := json.Unmarshal(op.Value, &value); err != nil {
		return fmt.Errorf("the value of its test of %s: %w", op.Path, err)
	}
	names := pointer(op.Path)
	for _, n := range names[:len(names)-1] {
		inner, ok := object[n].(map[string]any)
		if !ok {
			if object[n] != nil {
				return errors.New("it tests inside of what is no object")
			}
			inner = map[string]any{}
			object[n] = inner
		}
		object = inner
	}
	if value != nil {
		object[names[len(names)-1]] = value
	}
	return nil
}
