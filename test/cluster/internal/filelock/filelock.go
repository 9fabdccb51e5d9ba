// Package filelock provides advisory locks between processes on one machine.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrHeld is returned by Try when another process holds the lock.
var ErrHeld = errors.New("lock is held by another process")

// Lock is a held lock. It ends with Release, or when the last process that
// holds File open has ended: a child that inherits File keeps the lock.
type Lock struct {
	File *os.File
}

// Try takes the lock on the file at path, creating the file, or returns ErrHeld
// at once.
func Try(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return &Lock{File: f}, nil
	}
	closeErr := f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrHeld
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), closeErr)
}

// Take waits for the lock until ctx ends. The function waiting is called once
// if the lock is not free at once.
func Take(ctx context.Context, path string, waiting func()) (*Lock, error) {
	// flock cannot be cancelled while it blocks, so it is tried again and again.
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Steps: 1 << 30, Cap: 2 * time.Second}
	first := true
	for {
		l, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		if first && waiting != nil {
			waiting()
		}
		first = false
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
		case <-time.After(backoff.Step()):
		}
	}
}

// Release gives the lock up for this process; inherited copies keep it.
func (l *Lock) Release() error {
	return l.File.Close()
}
