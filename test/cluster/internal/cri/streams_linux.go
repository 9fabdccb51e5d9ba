package cri

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxLogLine is the number of bytes after which a log line is cut in two, containerd's default.
const maxLogLine = 16 << 10

// logTime is RFC 3339 with all nine digits of the nanoseconds, so that lines sort as text.
const logTime = "2006-01-02T15:04:05.000000000Z07:00"

// containerStreams takes a container's output: into the log file in the kubelet's CRI log format
// (`<time> stdout|stderr F|P <text>`, P for a part of a line) and to whoever is attached.
// A log that cannot be written never holds the container up.
type containerStreams struct {
	stdout, stderr outputStream

	mu     sync.Mutex
	path   string
	file   *os.File // nil when there is no log, or no longer
	closed chan struct{}
	once   sync.Once
}

// outputStream is one of the two streams, an io.Writer for the process.
type outputStream struct {
	parent   *containerStreams
	name     string
	partial  []byte
	attached map[io.Writer]struct{}
}

func newContainerStreams(path string) (*containerStreams, error) {
	s := &containerStreams{path: path, closed: make(chan struct{})}
	s.stdout = outputStream{parent: s, name: "stdout", attached: map[io.Writer]struct{}{}}
	s.stderr = outputStream{parent: s, name: "stderr", attached: map[io.Writer]struct{}{}}
	if path == "" {
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return s, s.reopen()
}

// reopen starts a new file at the path, after the old one was moved away.
func (s *containerStreams) reopen() error {
	if s.path == "" {
		return nil
	}
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return f.Close() // the container ended meanwhile
	default:
	}
	if s.file != nil {
		s.file.Close()
	}
	s.file = f
	return nil
}

// close writes what is left of unfinished lines and ends attached clients. It may be called twice.
func (s *containerStreams) close() {
	s.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, o := range []*outputStream{&s.stdout, &s.stderr} {
			if len(o.partial) > 0 {
				o.logLocked('P', o.partial)
			}
		}
		if s.file != nil {
			s.file.Close()
			s.file = nil
		}
		close(s.closed)
	})
}

// attach copies output from now on to the writers, nil for none, until detach.
func (s *containerStreams) attach(stdout, stderr io.Writer) (detach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stdout != nil {
		s.stdout.attached[stdout] = struct{}{}
	}
	if stderr != nil {
		s.stderr.attached[stderr] = struct{}{}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stdout.attached, stdout)
		delete(s.stderr.attached, stderr)
	}
}

// Write never fails: the process must not be killed by SIGPIPE because a disk is full.
func (o *outputStream) Write(p []byte) (int, error) {
	s := o.parent
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range o.attached {
		if _, err := w.Write(p); err != nil {
			delete(o.attached, w)
		}
	}
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		o.partial = append(o.partial, line...)
		for len(o.partial) > maxLogLine {
			o.logLocked('P', o.partial[:maxLogLine])
			o.partial = o.partial[maxLogLine:]
		}
		if ended {
			o.logLocked('F', o.partial)
			o.partial = o.partial[:0]
		}
	}
	return len(p), nil
}

func (o *outputStream) logLocked(tag byte, text []byte) {
	if o.parent.file == nil {
		return
	}
	line := time.Now().UTC().AppendFormat(make([]byte, 0, len(text)+64), logTime)
	line = append(line, ' ')
	line = append(line, o.name...)
	line = append(line, ' ', tag, ' ')
	line = append(line, text...)
	line = append(line, '\n')
	o.parent.file.Write(line)
}
