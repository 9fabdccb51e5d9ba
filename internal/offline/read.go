package offline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// Stdin is the name of a source that stands for the standard input.
const Stdin = "-"

// Limits on one object, in JSON, and on one document of YAML, in bytes. A server
// stores no object of more than 1.5 MiB (etcd, --max-request-bytes). A document of YAML
// may be a list, has to be held whole, and takes 20 to 60 times its size while it is
// read.
const (
	maxObject   = 8 << 20
	maxDocument = 8 << 20
	// maxOfKind is how many objects of one kind there may be: more than ten times what
	// Kubernetes is tested with (150,000 pods, 5,000 nodes: kubernetes/community,
	// sig-scalability/configs-and-limits/thresholds.md). They are held in memory.
	maxOfKind = 2_000_000
	maxNodes  = 100_000
)

// Options are what a Read needs beside the sources.
type Options struct {
	// Namespace is the tool's own, whose journals and locks are taken; without it they
	// are not, as with cluster.Load.
	Namespace string
	// Advice asks for the parts of cluster.AdviceParts too, as with cluster.Load.
	Advice bool
	// Events, if set, gets the events about pods: no part of a Snapshot. Without it they
	// are passed over.
	Events func(cluster.AboutPod)
	// Stdin is read for the source "-".
	Stdin io.Reader
}

// Read makes a Snapshot from files, folders and the standard input: what Write wrote,
// or what kubectl prints of objects, lists of them, and its version, in YAML or JSON,
// in any number of documents. Of a folder it reads the *.yaml, *.yml and *.json files,
// not those of its subfolders. Ignored is how many objects of kinds that the tool does
// not use were passed over, by kind.
//
// A part counts as read if there is a list of it; kubectl does not say of what an
// empty list is empty, so that such a one counts if its file is named after the part
// ("pods.yaml"). Every other part is in the Snapshot's Unknown. An error names the
// file, and where in it. A source that is named twice is read once.
func Read(ctx context.Context, sources []string, o Options) (s *cluster.Snapshot, ignored map[string]int, err error) {
	c := newCollector(o)
	for i, source := range sources {
		if slices.Contains(sources[:i], source) {
			continue
		}
		c.begin()
		if err := c.source(ctx, source, o.Stdin); err != nil {
			return nil, nil, err
		}
		if err := c.end(source); err != nil {
			return nil, nil, err
		}
	}
	s, err = c.snapshot(sources)
	return s, c.ignored, err
}

// source reads one of the sources.
func (c *collector) source(ctx context.Context, name string, stdin io.Reader) error {
	if name == Stdin {
		return c.stream(ctx, shown(name), stdin)
	}
	info, err := os.Stat(name)
	if err != nil {
		return bare(name, err)
	}
	if !info.IsDir() {
		return c.file(ctx, name)
	}
	entries, err := os.ReadDir(name) // sorted by name
	if err != nil {
		return bare(name, err)
	}
	found := false
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		found = true
		if err := c.file(ctx, filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%s: no *.yaml, *.yml or *.json file in this folder (its subfolders are not read)", name)
	}
	return nil
}

// shown is a source as messages name it.
func shown(source string) string {
	if source == Stdin {
		return "standard input"
	}
	return source
}

func (c *collector) file(ctx context.Context, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return bare(name, err)
	}
	defer f.Close()
	return c.stream(ctx, name, f)
}

// bare leaves the name of the system call out of an error.
func bare(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// stream tells JSON, YAML and everything else apart by how it begins.
func (c *collector) stream(ctx context.Context, name string, in io.Reader) error {
	r := bufio.NewReaderSize(in, 4096)
	head, err := r.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	if rest, ok := bytes.CutPrefix(head, []byte("\xef\xbb\xbf")); ok { // a byte order mark says nothing in UTF-8
		_, _ = r.Discard(3)
		head = rest
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(head) == 0:
		return fmt.Errorf("%s: is empty; has the command that should have filled it failed?", name)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return fmt.Errorf("%s: is UTF-16; save it as UTF-8", name)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return fmt.Errorf("%s: is compressed; uncompress it (gunzip) first", name)
	case bytes.IndexByte(head, 0) >= 0:
		return fmt.Errorf("%s: is not text; YAML or JSON is expected, as `kubectl get -o yaml` prints it", name)
	case bytes.HasPrefix(text, []byte("[")):
		return fmt.Errorf("%s: is a JSON array; objects or Kubernetes lists are expected, as `kubectl get -o json` prints them", name)
	}
	before := c.documents
	if bytes.HasPrefix(text, []byte("{")) {
		err = c.json(ctx, name, r)
	} else {
		err = c.yaml(ctx, name, r)
	}
	if err == nil && c.documents == before {
		err = fmt.Errorf("%s: holds no object", name)
	}
	return err
}
