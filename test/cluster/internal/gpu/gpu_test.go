package gpu

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The UUIDs were computed with another implementation of RFC 9562 version 5
// (Python's uuid.uuid5 over "<node>/<index>"): they are part of what tests of
// the cluster assert, so they must never change.
func TestUUIDsAreStable(t *testing.T) {
	want := []string{
		"GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec",
		"GPU-0bfeb96d-8a9f-59d4-beff-12eb65372aea",
		"GPU-5f727037-7cce-5fc4-b316-54a2755e08e7",
	}
	if got := NewSet("node-a", 3).UUIDs(); !slices.Equal(got, want) {
		t.Errorf("UUIDs of node-a = %v, want %v", got, want)
	}
	if got := NewSetOf(L40S(), "node-a", 3).UUIDs(); !slices.Equal(got, want) {
		t.Errorf("UUIDs of node-a with another model = %v, want %v", got, want)
	}
	if got, want := NewSet("node-b", 1).GPUs[0].UUID, "GPU-8bfb6023-1278-520d-af9d-c24f9295a4d3"; got != want {
		t.Errorf("UUID of node-b's first GPU = %s, want %s", got, want)
	}
}

func TestPlacesOfASet(t *testing.T) {
	// Eight boards fill domain 0000; the ninth starts the next one. Minors are
	// swapped in pairs and the odd one out keeps its own.
	set := NewSet("node-a", 9)
	tests := []struct {
		index  int
		device string
		busID  string
		root   string
	}{
		{0, "gpu-1", "0000:1b:00.0", "pci0000:15"},
		{1, "gpu-0", "0000:43:00.0", "pci0000:37"},
		{7, "gpu-6", "0000:df:00.0", "pci0000:d7"},
		{8, "gpu-8", "0001:1b:00.0", "pci0001:15"},
	}
	for _, tt := range tests {
		g := set.GPUs[tt.index]
		if g.Index != tt.index || g.DeviceName() != tt.device || g.PCIBusID != tt.busID || g.PCIeRoot != tt.root {
			t.Errorf("GPU %d = index %d, %s, %s, %s; want %s, %s, %s",
				tt.index, g.Index, g.DeviceName(), g.PCIBusID, g.PCIeRoot, tt.device, tt.busID, tt.root)
		}
		if byName, ok := set.ByDeviceName(tt.device); !ok || byName.UUID != g.UUID {
			t.Errorf("ByDeviceName(%s) = %v, %v; want %s", tt.device, byName.UUID, ok, g.UUID)
		}
	}
	if g, ok := set.ByDeviceName("gpu-9"); ok {
		t.Errorf("ByDeviceName(gpu-9) found %s in a set of 9", g.UUID)
	}
}

func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpus.json")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of an absent file: %v, want not-exist", err)
	}
	set := NewSet("node-a", 2)
	set.GPUs[1].Unhealthy = true
	if err := set.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Node != "node-a" || !slices.Equal(got.GPUs, set.GPUs) || got.DriverVersion != set.DriverVersion {
		t.Errorf("loaded %+v, want %+v", got, set)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil {
		t.Error("Load of a torn file succeeded")
	}
}

func TestWriteFilesFollowsTheSet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gpus")
	if err := NewSet("node-a", 3).WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	set := NewSet("node-a", 2)
	if err := set.WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Visible(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, set.GPUs) {
		t.Errorf("files hold %v, want %v", got, set.GPUs)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Errorf("%d entries in the folder, want the 2 GPUs and no temporary file: %v", len(entries), entries)
	}
}

func TestVisibleWithoutFolder(t *testing.T) {
	got, err := Visible(filepath.Join(t.TempDir(), "absent"))
	if err != nil || len(got) != 0 {
		t.Errorf("Visible of an absent folder = %v, %v; want none", got, err)
	}
}
