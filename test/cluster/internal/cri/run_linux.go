package cri

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxMessage is the largest CRI message in bytes; the kubelet's client uses the same limit.
const maxMessage = 16 << 20

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
	return serve(ctx, cfg, slog.New(slog.NewTextHandler(stderr, nil)))
}

// serve runs one server. It returns after the last container process is gone.
func serve(ctx context.Context, cfg Config, log *slog.Logger) error {
	for _, dir := range []string{filepath.Dir(cfg.Socket), cfg.StateDir, cfg.LogDir} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("CRI server: %w", err)
		}
	}
	if err := os.Remove(cfg.Socket); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("CRI server: stale socket: %w", err)
	}

	streams, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("CRI server: streaming: %w", err)
	}
	defer streams.Close()
	s, err := newServer(cfg, log, streams.Addr().String())
	if err != nil {
		return err
	}
	defer s.close()

	listener, err := net.Listen("unix", cfg.Socket)
	if err != nil {
		return fmt.Errorf("CRI server: %w", err)
	}
	rpc := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	runtimeapi.RegisterRuntimeServiceServer(rpc, s)
	runtimeapi.RegisterImageServiceServer(rpc, s.images)
	web := &http.Server{Handler: s.streaming, ReadHeaderTimeout: 10 * time.Second}

	failed := make(chan error, 2)
	go func() { failed <- rpc.Serve(listener) }()
	go func() { failed <- web.Serve(streams) }()
	log.Info("serving", "socket", cfg.Socket, "streaming", streams.Addr())
	select {
	case <-ctx.Done():
		err = nil
	case err = <-failed:
		err = fmt.Errorf("CRI server: %w", err)
	}
	rpc.Stop()
	web.Close()
	return err
}
