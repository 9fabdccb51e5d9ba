//go:build !linux

package node

import (
	"context"
	"errors"
	"io"
)

// RunInit says that this system cannot run a node.
func RunInit(context.Context, []string, io.Writer, io.Writer) error {
	return errors.New("a real kubelet needs Linux: each node has mount and pid namespaces of its own")
}
