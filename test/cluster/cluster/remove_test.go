package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Somebody who still writes for a moment does not keep a folder from being removed.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "node")
	inside := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
			// The folder may be gone already.
			_ = os.WriteFile(filepath.Join(inside, time.Now().Format("05.000000000")), nil, 0o644)
			select {
			case <-begun:
			default:
				close(begun)
			}
		}
	}()
	<-begun
	if err := removeAll(dir); err != nil {
		t.Error(err)
	}
	<-ended
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there still: %v", err)
	}
}
