// Package faultproxy stands between a program and the API server and tells a test
// about every request that changes something, before the server sees it and after
// it has answered. A test can kill the program at exactly that moment, which is how
// "may be killed at any time" is proven on the real program and the real server.
package faultproxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Moment is when a hook is called.
type Moment string

// Before is before the server has seen the request, After is when the server has
// answered it and the program has not seen the answer.
const (
	Before Moment = "before"
	After  Moment = "after"
)

// Mutation is one request that changes something.
type Mutation struct {
	// N counts the mutations that came through the proxy, from 1. Renewals of a
	// Lease are told by the clock, not by the program's progress, so they have no
	// number: N is 0.
	N      int
	Moment Moment
	Method string
	Path   string
	// Status is the server's answer; 0 before.
	Status int
}

// String names the mutation as a test's message should.
func (m Mutation) String() string {
	return fmt.Sprintf("%s #%d %s %s", m.Moment, m.N, m.Method, m.Path)
}

// Hook is called in the request's own goroutine, for requests of several connections
// at once. If it returns an error the request goes no further and its connection is cut.
type Hook func(Mutation) error

// Proxy is a running proxy.
type Proxy struct {
	server   *http.Server
	listener net.Listener
	hook     Hook

	mu    sync.Mutex
	count int
	seen  []Mutation
}

// Start serves plain HTTP on a loopback port in front of the server of config,
// with config's credentials.
func Start(config *rest.Config, hook Hook) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("fault proxy: server address %q: %w", config.Host, err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("fault proxy: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fault proxy: %w", err)
	}
	p := &Proxy{listener: listener, hook: hook}
	reverse := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches must not be held back
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			// A cut connection is what a killed program or server looks like.
			panic(http.ErrAbortHandler)
		},
	}
	p.server = &http.Server{Handler: p.handler(reverse), ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

func (p *Proxy) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reads(r) {
			next.ServeHTTP(w, r)
			return
		}
		m := Mutation{Moment: Before, Method: r.Method, Path: r.URL.Path}
		p.mu.Lock()
		if !renewal(r) {
			p.count++
			m.N = p.count
		}
		p.seen = append(p.seen, m)
		p.mu.Unlock()
		if err := p.hook(m); err != nil {
			panic(http.ErrAbortHandler)
		}
		answer := &held{header: http.Header{}, status: http.StatusOK}
		// The server gets the whole request even if the program dies meanwhile.
		next.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
		m.Moment, m.Status = After, answer.status
		if err := p.hook(m); err != nil {
			panic(http.ErrAbortHandler)
		}
		answer.send(w)
	})
}

// reads says that a request changes nothing. A review of the caller's own rights is sent
// by POST and stored nowhere.
func reads(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews")
}

// renewal tells a Lease's update: taking, renewing and releasing one look alike
// from here.
func renewal(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/leases/")
}

// Count is the number of numbered mutations so far.
func (p *Proxy) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Seen are all mutations so far, renewals included, in the order of arrival.
func (p *Proxy) Seen() []Mutation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Mutation(nil), p.seen...)
}

// Kubeconfig writes a kubeconfig for the proxy into dir and returns its path.
func (p *Proxy) Kubeconfig(dir string) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: "http://" + p.listener.Addr().String()}
	config.AuthInfos["proxy"] = &clientcmdapi.AuthInfo{}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "proxy"}
	config.CurrentContext = "proxy"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("fault proxy: %w", err)
	}
	path := filepath.Join(dir, fmt.Sprintf("proxy-%d.kubeconfig", p.listener.Addr().(*net.TCPAddr).Port))
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("fault proxy: %w", err)
	}
	return path, nil
}

// Close cuts all connections.
func (p *Proxy) Close() error { return p.server.Close() }

// held keeps an answer back until the hook has seen it.
type held struct {
	header http.Header
	status int
	body   []byte
}

func (h *held) Header() http.Header { return h.header }

func (h *held) WriteHeader(status int) { h.status = status }

func (h *held) Write(b []byte) (int, error) {
	h.body = append(h.body, b...)
	return len(b), nil
}

func (h *held) send(w http.ResponseWriter) {
	for k, vs := range h.header {
		w.Header()[k] = vs
	}
	w.WriteHeader(h.status)
	_, _ = w.Write(h.body)
}
