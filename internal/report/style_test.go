package report

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The style sheet of the page is the one that its policy allows.
func TestHTMLPolicy(t *testing.T) {
	text := write(t, "html", planFile(t, "migrate"))
	_, rest, _ := strings.Cut(text, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	want := `content="default-src &#39;none&#39;; style-src &#39;sha256-` + base64.StdEncoding.EncodeToString(sum[:]) + `&#39;; img-src data:; base-uri &#39;none&#39;; form-action &#39;none&#39;"`
	plain := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace
	if !strings.Contains(plain(text), plain(want)) {
		t.Errorf("no policy %s", plain(want))
	}
	for _, bad := range []string{"<script", "style=", "url(", "@import", "http:", "//cdn"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// schemes are the custom properties of the light, the dark and the printed page.
func schemes(t *testing.T) map[string]map[string]string {
	t.Helper()
	light, rest, found := strings.Cut(htmlStyle, "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("no dark scheme")
	}
	dark, _, _ := strings.Cut(rest, "\n}\n")
	_, print, found := strings.Cut(rest, "@media print")
	if !found {
		t.Fatal("no style for print")
	}
	out := map[string]map[string]string{}
	for name, css := range map[string]string{"light": light, "dark": dark, "print": print} {
		out[name] = map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
			out[name][m[1]] = m[2]
		}
	}
	return out
}

// Text has a contrast of 4.5 to what is behind it, shapes and frames that mean
// something 3 (WCAG 2.2, 1.4.3 and 1.4.11).
func TestContrast(t *testing.T) {
	const text, shape = 4.5, 3.0
	pairs := []struct {
		front, back string
		least       float64
	}{
		{"text", "page", text}, {"text", "card", text}, {"text", "sunk", text},
		{"muted", "page", text}, {"muted", "card", text}, {"muted", "sunk", text},
		{"link", "page", text}, {"link", "card", text},
		{"bad", "bad-back", text}, {"warn", "warn-back", text}, {"unknown", "unknown-back", text},
		{"good", "good-back", text}, {"calm", "calm-back", text},
		{"text", "bad-back", text}, {"text", "warn-back", text}, {"text", "unknown-back", text}, {"text", "calm-back", text},
		{"plugin", "card", shape}, {"neither", "card", shape}, {"dra", "card", shape},
		{"focus", "page", shape}, {"focus", "card", shape}, {"focus", "sunk", shape},
	}
	for name, colours := range schemes(t) {
		for _, p := range pairs {
			front, back := colours[p.front], colours[p.back]
			if front == "" || back == "" {
				t.Errorf("%s: no colour %s or %s", name, p.front, p.back)
				continue
			}
			if c := contrast(t, front, back); c < p.least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, p.front, p.back, c, p.least)
			}
		}
	}
	// The formula itself: black on white, and the grey that just passes on white.
	if c := contrast(t, "#000000", "#ffffff"); math.Abs(c-21) > 0.001 {
		t.Errorf("black on white: %f", c)
	}
	if c := contrast(t, "#767676", "#ffffff"); math.Abs(c-4.54) > 0.01 {
		t.Errorf("#767676 on white: %f", c)
	}
}

// Every colour of the page is one of those that TestContrast knows.
func TestNoColourBesideTheSchemes(t *testing.T) {
	for line := range strings.Lines(htmlStyle) {
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		if m := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|\b(rgb|hsl|oklch|color-mix)\(`).FindString(line); m != "" {
			t.Errorf("%s in %s", m, strings.TrimSpace(line))
		}
	}
}

// contrast is the ratio of WCAG 2.2, "contrast ratio" and "relative luminance".
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	la, lb := luminance(t, a), luminance(t, b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
