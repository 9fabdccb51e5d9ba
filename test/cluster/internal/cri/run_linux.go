package cri

import (
	"context"
	"errors"
	"flag"
	"io"
)

// Run serves the CRI until ctx ends, then kills what it started.
//
//	cri --config FILE
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("cri", flag.ContinueOnError)
	fs.SetOutput(stderr)
	file := fs.String("config", "", "JSON `file` with the server's config")
	if err := fs.Parse(args); err != nil {
		return err
	}
	cfg, err := LoadConfig(*file)
	if err != nil {
		return err
	}
	_ = cfg
	return errors.New("not serving yet")
}
