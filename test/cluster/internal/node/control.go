package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
)

// State is what runs in a node.
type State struct {
	// KubeletPID and CRIPID are 0 if the program does not run. They count within
	// the node's pid namespace.
	KubeletPID int `json:"kubeletPID"`
	CRIPID     int `json:"criPID"`
	// KubeletStarts counts how often the kubelet has been started.
	KubeletStarts int `json:"kubeletStarts"`
}

// Control speaks to the first process of a running node, started by this or by
// another process.
type Control struct {
	name string
	http *http.Client
}

// NewControl returns the control of the node whose folder is dir.
func NewControl(name string, dir Dir) *Control {
	var dialer net.Dialer
	return &Control{name: name, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", dir.controlSocket())
		},
		DisableKeepAlives: true,
	}}}
}

// State asks what runs.
func (c *Control) State(ctx context.Context) (State, error) {
	return c.call(ctx, http.MethodGet, "/state")
}

// StopKubelet ends the kubelet and nothing else: containers and the CRI server
// go on, as on a node whose kubelet service is stopped. It returns when the
// process has ended.
func (c *Control) StopKubelet(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodPost, "/kubelet/stop")
	return err
}

// StartKubelet starts the kubelet if it does not run.
func (c *Control) StartKubelet(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodPost, "/kubelet/start")
	return err
}

func (c *Control) call(ctx context.Context, method, path string) (State, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://node"+path, nil)
	if err != nil {
		return State{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return State{}, fmt.Errorf("node/%s: %s: %w", c.name, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return State{}, fmt.Errorf("node/%s: %s: %w", c.name, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return State{}, fmt.Errorf("node/%s: %s: %s", c.name, path, bytes.TrimSpace(body))
	}
	var s State
	if err := json.Unmarshal(body, &s); err != nil {
		return State{}, fmt.Errorf("node/%s: %s: %w", c.name, path, err)
	}
	return s, nil
}
