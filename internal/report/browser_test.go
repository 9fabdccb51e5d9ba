package report

import (
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// browserVariable names the Chromium that TestHTMLInBrowser starts; see make test-html.
const browserVariable = "DRAMIGRATE_CHROMIUM"

// The page as a browser takes it: nothing on the console, such as a style sheet that
// its own policy forbids, no request but the one for it, and the colours of the scheme
// that the reader prefers.
func TestHTMLInBrowser(t *testing.T) {
	browser := os.Getenv(browserVariable)
	if browser == "" {
		t.Skip(browserVariable + " is not set; make test-html runs this")
	}
	colours := schemes(t)
	for name, page := range map[string]string{
		"migrate":   write(t, "html", planFile(t, "migrate")),
		"unprepare": write(t, "html", planFile(t, "unprepare")),
		"large":     write(t, "html", largePlan(t, 500, 1)),
		"hostile":   write(t, "html", hostilePlan(t)),
	} {
		for scheme, flag := range map[string]string{"light": "1", "dark": "0"} {
			t.Run(name+"/"+scheme, func(t *testing.T) {
				got := visit(t, browser, page, flag)
				if len(got.console) > 0 {
					t.Errorf("on the console: %s", got.console)
				}
				if !slices.Equal(got.asked, []string{"/plan.html"}) {
					t.Errorf("requests %v, want the page alone", got.asked)
				}
				if len(got.elsewhere) > 0 {
					t.Errorf("requests to elsewhere: %v", got.elsewhere)
				}
				if got.corner != colours[scheme]["page"] {
					t.Errorf("the page is %s, want %s", got.corner, colours[scheme]["page"])
				}
			})
		}
	}
	// The same on a page that does what ours must not.
	bad := visit(t, browser, `<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="style-src 'none'">
<body style="background: #000"><img src="https://elsewhere.invalid/x.png">`, "1")
	if len(bad.console) == 0 || !slices.Contains(bad.asked, "/favicon.ico") || len(bad.elsewhere) == 0 || bad.corner != "#ffffff" {
		t.Errorf("a page that breaks every rule was seen as %+v", bad)
	}
}

// visited is what a browser did with a page.
type visited struct {
	console   []string
	asked     []string // paths of the page's own server
	elsewhere []string
	corner    string // colour
}

func visit(t *testing.T, browser, page, scheme string) visited {
	t.Helper()
	server, asked := recorder(t, page)
	dir := t.TempDir()
	shot, netLog := filepath.Join(dir, "page.png"), filepath.Join(dir, "net.json")
	out, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--enable-logging=stderr", "--user-data-dir="+filepath.Join(dir, "profile"), "--log-net-log="+netLog,
		"--blink-settings=preferredColorScheme="+scheme, "--window-size=900,900", "--screenshot="+shot, server.URL+"/plan.html").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	v := visited{asked: asked(), elsewhere: otherRequests(t, netLog, server.URL), corner: corner(t, shot)}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, ":CONSOLE") {
			v.console = append(v.console, line)
		}
	}
	return v
}

// recorder serves the page and says which paths were asked for.
func recorder(t *testing.T, page string) (*httptest.Server, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	t.Cleanup(server.Close)
	return server, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(paths)
	}
}

// otherRequests are the URLs of Chromium's network log that are not the server's, but
// for those that the browser asks for on its own account, whatever the page.
func otherRequests(t *testing.T, path, server string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Events []struct {
			Params struct {
				URL       string `json:"url"`
				Initiator string `json:"initiator"`
			} `json:"params"`
		} `json:"events"`
	}
	if err := json.Unmarshal(data, &log); err != nil {
		t.Fatalf("the network log: %v", err)
	}
	var out []string
	for _, e := range log.Events {
		u, err := url.Parse(e.Params.URL)
		if err != nil || u.Host == "" || strings.HasPrefix(e.Params.URL, server+"/") {
			continue
		}
		if e.Params.Initiator == "" || e.Params.Initiator == "not an origin" {
			continue
		}
		out = append(out, e.Params.URL+" for "+e.Params.Initiator)
	}
	if len(log.Events) == 0 {
		t.Error("the network log is empty")
	}
	return out
}

func corner(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	r, g, b, _ := image.At(2, 2).RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
