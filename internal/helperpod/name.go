package helperpod

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// Purpose is what a helper pod is for.
type Purpose string

// The purposes.
const (
	ForProbe  Purpose = "probe"
	ForCanary Purpose = "canary"
	ForPull   Purpose = "pull"
	// ForReport is a probe beside runs, which takes no lock: its pod has a name of its
	// own in each run, so that it replaces nobody's and nobody replaces it.
	ForReport Purpose = cluster.HelperForReport
)

// maxName is shorter than the 253 characters that a pod's name may have: the pod's
// hostname and the name of its generated claim are made of it.
const maxName = 63

// podName is the one name of a purpose's pod on a node, and for ForReport of one in
// each run. A node's name may have 253
// characters (RFC 1123 subdomain), so it is cut, and its hash keeps two nodes with
// one beginning apart.
func podName(p Purpose, node, run string) string {
	key := node
	if p == ForReport {
		key += "/" + run
	}
	sum := sha256.Sum256([]byte(key))
	prefix := "dramigrate-" + string(p) + "-"
	suffix := "-" + hex.EncodeToString(sum[:5])
	// A cut may end at a dot, and a dot before the dash is no valid name.
	readable := strings.ReplaceAll(node, ".", "-")
	if room := maxName - len(prefix) - len(suffix); len(readable) > room {
		readable = readable[:room]
	}
	return prefix + strings.Trim(readable, "-") + suffix
}
