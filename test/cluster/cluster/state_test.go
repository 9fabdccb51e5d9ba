package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dramigrate/dramigrate/test/cluster/internal/process"
)

func TestClearFolder(t *testing.T) {
	if err := clearFolder(filepath.Join(t.TempDir(), "absent")); err != nil {
		t.Errorf("absent folder: %v", err)
	}
	if err := clearFolder(t.TempDir()); err != nil {
		t.Errorf("empty folder: %v", err)
	}

	foreign := t.TempDir()
	file := filepath.Join(foreign, "thesis.tex")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := clearFolder(foreign); err == nil {
		t.Error("a folder with something else was cleared")
	}
	if err := Down(foreign); !errors.Is(err, ErrNoCluster) {
		t.Errorf("down of a folder without a cluster: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}

	ended := t.TempDir()
	writeState(t, ended, `{"processes": [{"name": "etcd", "pid": 1, "started": "no such time"}]}`)
	if err := clearFolder(ended); err != nil {
		t.Errorf("ended cluster: %v", err)
	}
	if _, err := Load(ended); !errors.Is(err, ErrNoCluster) {
		t.Errorf("the ended cluster's state is left: %v", err)
	}
}

func TestClearFolderSparesARunningCluster(t *testing.T) {
	dir := t.TempDir()
	spawner := process.NewSpawner(true)
	defer spawner.Close()
	p, err := spawner.Start(process.Spec{Name: "etcd", Path: "/bin/sleep", Args: []string{"600"}, LogFile: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{dir: dir, sim: p}
	if err := c.saveState(); err != nil {
		t.Fatal(err)
	}
	if err := clearFolder(dir); err == nil || !strings.Contains(err.Error(), "already running") {
		t.Errorf("error %v, want one that says that a cluster runs", err)
	}
	if err := Down(dir); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("runs after down")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

func writeState(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(stateFile(dir), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
