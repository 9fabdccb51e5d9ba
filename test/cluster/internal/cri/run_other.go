//go:build !linux

package cri

import (
	"context"
	"errors"
	"io"
)

var errLinuxOnly = errors.New("the CRI server needs Linux: it runs containers in mount and pid namespaces")

// Run says that this system cannot run containers.
func Run(context.Context, []string, io.Writer, io.Writer) error { return errLinuxOnly }

// Shim says that this system cannot run containers.
func Shim(context.Context, []string, io.Writer, io.Writer) error { return errLinuxOnly }
