package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Load reads a set that [Set.Save] wrote. An absent file is an error that
// matches [os.ErrNotExist].
func Load(path string) (Set, error) {
	var s Set
	if err := readJSON(path, &s); err != nil {
		return Set{}, fmt.Errorf("load GPU set: %w", err)
	}
	return s, nil
}

// Save writes the set to path in one step: a reader that watches the file sees
// the old content or the new.
func (s Set) Save(path string) error {
	if err := writeJSON(path, s); err != nil {
		return fmt.Errorf("save GPU set of node %s: %w", s.Node, err)
	}
	return nil
}

// WriteFiles makes dir hold one file <uuid>.json for each GPU of the set and
// none for any other.
func (s Set) WriteFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("GPU files of node %s: %w", s.Node, err)
	}
	for _, g := range s.GPUs {
		if err := writeJSON(filepath.Join(dir, FileName(g.UUID)), g); err != nil {
			return fmt.Errorf("GPU files of node %s: %w", s.Node, err)
		}
	}
	present, err := filepath.Glob(filepath.Join(dir, FileName("*")))
	if err != nil {
		return fmt.Errorf("GPU files of node %s: %w", s.Node, err)
	}
	for _, path := range present {
		if _, ours := s.ByUUID(strings.TrimSuffix(filepath.Base(path), ".json")); ours {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("GPU files of node %s: remove one that left: %w", s.Node, err)
		}
	}
	return nil
}

// FileName of a GPU in [FilesDir] and [VisibleDir].
func FileName(uuid string) string { return uuid + ".json" }

// Visible reads the GPUs whose files are in dir, in the order of their index.
// An absent folder is an empty one: a container that was given no GPU.
func Visible(dir string) ([]GPU, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("visible GPUs: %w", err)
	}
	var found []GPU
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		var g GPU
		if err := readJSON(filepath.Join(dir, e.Name()), &g); err != nil {
			return nil, fmt.Errorf("visible GPUs: %w", err)
		}
		found = append(found, g)
	}
	slices.SortFunc(found, func(a, b GPU) int { return a.Index - b.Index })
	return found, nil
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(data, '\n'))
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
