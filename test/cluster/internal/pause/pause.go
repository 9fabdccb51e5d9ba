// Package pause is a container command that does nothing until it is stopped.
package pause

import (
	"context"
	"io"
)

// Run waits until ctx ends.
func Run(ctx context.Context, _ []string, _, _ io.Writer) error {
	<-ctx.Done()
	return nil
}
