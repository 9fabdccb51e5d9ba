package node

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// RunInit is a node's first process. It makes the node's view of the file
// system, then keeps the CRI server and the kubelet running until ctx ends.
//
//	node-init --config FILE
func RunInit(ctx context.Context, args []string, _, stderr io.Writer) error {
	flags := flag.NewFlagSet(InitCommand, flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("config", "", "JSON `file` that describes the node")
	if err := flags.Parse(args); err != nil {
		return err
	}
	data, err := os.ReadFile(*file)
	if err != nil {
		return fmt.Errorf("%s: %w", InitCommand, err)
	}
	var cfg initConfig
	if err := json.Unmarshal(data, &cfg); err != nil {
		return fmt.Errorf("%s: %s: %w", InitCommand, *file, err)
	}
	if os.Getpid() != 1 {
		return fmt.Errorf("%s is started by the cluster only: it must be the first process of its pid namespace", InitCommand)
	}
	if err := mountNode(cfg); err != nil {
		return fmt.Errorf("node/%s: %w", cfg.Name, err)
	}
	return run(ctx, cfg, slog.New(slog.NewTextHandler(stderr, nil)))
}

func run(ctx context.Context, cfg initConfig, log *slog.Logger) error {
	reaper := newReaper()
	go reaper.loop()
	criServer := newService("cri", cfg.CRI, filepath.Join(cfg.Dir.Log(), "cri.log"), reaper, log)
	kubelet := newService("kubelet", cfg.Kubelet, filepath.Join(cfg.Dir.Log(), "kubelet.log"), reaper, log)
	if err := criServer.start(); err != nil {
		return err
	}
	// The kubelet exits if the runtime does not answer when it starts.
	if err := awaitSocket(ctx, cfg.Dir.criSocket()); err != nil {
		return fmt.Errorf("CRI server: %w", err)
	}
	if err := kubelet.start(); err != nil {
		return err
	}
	listener, err := net.Listen("unix", cfg.Dir.controlSocket())
	if err != nil {
		return err
	}
	server := &http.Server{Handler: controlHandler(criServer, kubelet), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
		// With this process the kernel ends all others of the namespace.
		return errors.Join(server.Close())
	case err := <-failed:
		return fmt.Errorf("control socket: %w", err)
	}
}

// controlHandler is the other end of Control.
func controlHandler(criServer, kubelet *service) http.Handler {
	reply := func(w http.ResponseWriter, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		pid, starts := kubelet.state()
		criPID, _ := criServer.state()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(State{KubeletPID: pid, CRIPID: criPID, KubeletStarts: starts})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { reply(w, nil) })
	mux.HandleFunc("POST /kubelet/stop", func(w http.ResponseWriter, r *http.Request) { reply(w, kubelet.stop(r.Context())) })
	mux.HandleFunc("POST /kubelet/start", func(w http.ResponseWriter, _ *http.Request) { reply(w, kubelet.start()) })
	return mux
}

// socketTimeout is how long the CRI server may take to listen.
const socketTimeout = 20 * time.Second

func awaitSocket(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, socketTimeout, fmt.Errorf("does not listen on %s after %s", path, socketTimeout))
	defer cancel()
	var dialer net.Dialer
	for delay := 5 * time.Millisecond; ; delay = min(delay*2, 200*time.Millisecond) {
		conn, err := dialer.DialContext(ctx, "unix", path)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(delay):
		}
	}
}
