package offline

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// endless is a stream of size bytes that is never held: head, then one piece again and
// again, then tail. It measures the heap that is in use while it is read.
type endless struct {
	head, piece, tail string
	left              int // bytes of pieces
	now               string
	ended             bool
	peak, next        uint64
	sent              uint64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.sent >= e.next { // a hundred times or so in a stream
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		e.peak = max(e.peak, m.HeapAlloc)
		e.next = e.sent + 1<<20
	}
	for e.now == "" {
		switch {
		case e.head != "":
			e.now, e.head = e.head, ""
		case e.left > 0:
			e.now = e.piece
			e.left -= len(e.piece)
		case !e.ended:
			e.now, e.ended = e.tail, true
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, e.now)
	e.now = e.now[n:]
	e.sent += uint64(n)
	return n, nil
}

// peak is the most that reading a stream keeps, and what came of it.
func peak(t *testing.T, e *endless) (uint64, error) {
	t.Helper()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := Read(t.Context(), []string{Stdin}, Options{Namespace: toolNamespace, Advice: true, Stdin: e})
	return e.peak - min(e.peak, before.HeapAlloc), err
}

// A long list takes no more memory than a short one: what is kept of it is what is used
// of it. What has to be held whole is refused before it is. The test measures what all
// tests use and therefore runs alone.
func TestReadInBoundedMemory(t *testing.T) {
	junk := strings.Repeat("x", 200<<10)
	for name, stream := range map[string]func(size int) *endless{
		"a list of objects that are not used": func(size int) *endless {
			return &endless{
				head:  `{"apiVersion":"v1","items":[` + nodeJSON,
				piece: fmt.Sprintf(`,{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":%q}}`, junk),
				tail:  `],"kind":"List"}`, left: size,
			}
		},
		"one object that is used, many times": func(size int) *endless {
			return &endless{
				head: `{"apiVersion":"v1","items":[` + nodeJSON,
				piece: fmt.Sprintf(`,{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a","annotations":{"k":%q}},`+
					`"spec":{"containers":[{"name":"c","env":[{"name":"E","value":%[1]q}]}]}}`, junk),
				tail: `],"kind":"List"}`, left: size,
			}
		},
		"workloads that ask for no device": func(size int) *endless {
			return &endless{
				head: `{"apiVersion":"v1","items":[` + nodeJSON,
				piece: fmt.Sprintf(`,{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"p","namespace":"a"},`+
					`"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"E","value":%q}]}]}}}}`, junk),
				tail: `],"kind":"List"}`, left: size,
			}
		},
		"documents of YAML": func(size int) *endless {
			return &endless{
				head:  "apiVersion: v1\nitems: [" + nodeJSON + "]\nkind: List\n",
				piece: "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: " + junk + "}\n", left: size,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			small, err := peak(t, stream(2<<20))
			if err != nil {
				t.Fatal(err)
			}
			large, err := peak(t, stream(20<<20))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d KiB for 2 MiB, %d KiB for 20 MiB", small>>10, large>>10)
			if large > 2*small+4<<20 {
				t.Errorf("%d KiB are in use for 20 MiB, %d KiB for 2 MiB, want about the same", large>>10, small>>10)
			}
		})
	}
	for _, tt := range []struct {
		name, want string
		stream     *endless
		most       uint64 // bytes
	}{
		{"one string in JSON", "is larger than 8 MiB", &endless{head: `{"kind":"`, piece: junk, left: 100 << 20}, 3 * maxObject},
		{"one item in JSON", "item 1: is larger than 8 MiB", &endless{head: `{"kind":"List","items":[{"a":"`, piece: junk, left: 100 << 20}, 3 * maxObject},
		{"one key in JSON", "is larger than 8 MiB", &endless{head: `{"`, piece: junk, left: 100 << 20}, 3 * maxObject},
		{"one document of YAML", "collect it by `kubectl get -o json`", &endless{head: "a:\n", piece: "- " + junk + "\n", left: 100 << 20}, 3 * maxDocument},
		{"one line of YAML", "collect it by `kubectl get -o json`", &endless{head: "a: ", piece: junk, left: 100 << 20}, 3 * maxDocument},
		{"blanks", "holds no object", &endless{piece: strings.Repeat(" ", 200<<10), left: 20 << 20}, 1 << 20},
		{"a comment", "holds no object", &endless{head: "# ", piece: junk, left: 20 << 20}, 1 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			used, err := peak(t, tt.stream)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if used > tt.most {
				t.Errorf("%d KiB are in use, want at most %d", used>>10, tt.most>>10)
			}
		})
	}
}
