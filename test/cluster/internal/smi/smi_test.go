package smi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// visible is what a container sees that was given GPUs 2 and 0 of node-a.
func visible(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	set := gpu.NewSet("node-a", 3)
	set.GPUs = []gpu.GPU{set.GPUs[2], set.GPUs[0]}
	if err := set.WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

const listing = `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-46f59cc3-2558-51a1-8097-3d34cde0c8ec)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-5f727037-7cce-5fc4-b316-54a2755e08e7)
`

func TestList(t *testing.T) {
	var out bytes.Buffer
	if err := Format(NVIDIA).run(t.Context(), []string{"-L"}, visible(t), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if out.String() != listing {
		t.Errorf("printed\n%swant\n%s", out.String(), listing)
	}
}

func TestWorkloadRunsUntilStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Format(NVIDIA).run(ctx, nil, visible(t), write, io.Discard) }()
	got := make([]byte, len(listing))
	if _, err := io.ReadFull(read, got); err != nil {
		t.Fatal(err)
	}
	if string(got) != listing {
		t.Errorf("printed\n%swant\n%s", got, listing)
	}
	select {
	case err := <-done:
		t.Fatalf("ended before it was stopped: %v", err)
	default:
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("ended with %v, want success", err)
	}
}

func TestNoDevices(t *testing.T) {
	for _, args := range [][]string{nil, {"-L"}} {
		var out bytes.Buffer
		err := Format(NVIDIA).run(t.Context(), args, t.TempDir(), &out, io.Discard)
		var exit *ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 6 {
			t.Errorf("args %v: %v, want exit code 6", args, err)
		}
		if out.String() != "No devices were found\n" {
			t.Errorf("args %v: printed %q", args, out.String())
		}
	}
}

func TestUnknownArguments(t *testing.T) {
	for _, args := range [][]string{{"--query-gpu=uuid"}, {"dmon"}} {
		if err := Format(NVIDIA).run(t.Context(), args, visible(t), io.Discard, io.Discard); err == nil {
			t.Errorf("args %v succeeded", args)
		}
	}
}
