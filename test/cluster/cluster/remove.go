package cluster

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// removeLimit is how long what was killed may still be writing into a folder: the kernel
// ends a process, and what it has begun to write, after the signal is sent.
const removeLimit = 5 * time.Second

// removeAll removes a folder in which processes wrote that have just been killed.
func removeAll(dir string) error {
	pause := 10 * time.Millisecond
	for end := time.Now().Add(removeLimit); ; pause *= 2 {
		err := os.RemoveAll(dir)
		filled := errors.Is(err, syscall.ENOTEMPTY)
		if !filled || !time.Now().Add(pause).Before(end) {
			return err
		}
		time.Sleep(pause)
	}
}
