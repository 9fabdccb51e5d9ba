package report

import (
	"fmt"
	"strings"
	"unicode"
)

// Clean makes text from a cluster safe to print. Names, messages and annotations
// are written by others: an escape sequence or a right-to-left override in one must
// not move the cursor or change what a reviewer sees.
func Clean(s string) string {
	if !strings.ContainsFunc(s, unsafeRune) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unsafeRune(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// capital begins a word that is ours with a capital letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
