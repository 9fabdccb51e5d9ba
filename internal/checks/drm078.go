package checks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/words"
)

func drm078() Check {
	return Check{
		Code:       "DRM078",
		Title:      "The image of the helper pods may not be what it is taken for, or not to be had",
		Why:        "The helper pods look at each node, and the run rests on what they say. They are pulled if the node has not got the image: a tag that moves, such as latest, leaves nodes with an older program under the same name, and a registry that the nodes have not pulled from so far may want a secret or a way out. The pull is tried on each node before it is closed, so the worst is a run that stops there.",
		Fix:        "Name the image by its digest, IMAGE@sha256:…, from a registry that the nodes reach; make the pull secret in the tool's namespace.",
		Sources:    []string{"Kubernetes docs, \"Images\", image names and pull policy", "pkg/kubelet/images/image_manager.go, v1.37.2"},
		Operations: []string{Migrate, Rollback, MigrateInto, RollbackFrom},
		Given:      func(in Input) bool { return in.HelperImage != "" },
		Advises:    true,
		Needs:      []string{cluster.PartPods},
		Run: func(in Input) []Finding {
			if in.HelperImage == "" || len(in.targets()) == 0 {
				return nil
			}
			image := parseImage(in.HelperImage)
			base := Finding{Code: "DRM078", Object: "image/" + in.HelperImage}
			var out []Finding
			if image.digest == "" && (image.tag == "" || image.tag == "latest") {
				f := base
				f.Severity = Warning
				f.Message = "its tag is latest, which moves: nodes that have pulled it before keep what they have, and may run another version of the helper than this tool's"
				f.Remedy = "name it by its version, or by its digest: " + image.name + "@sha256:…"
				out = append(out, f)
			}
			if f, new := in.newRegistry(image); new {
				out = append(out, f)
			}
			if in.PullSecret != "" {
				f := base
				f.Severity, f.Object = Info, "secret/"+in.Namespace+"/"+in.PullSecret
				f.Message = "whether the pull secret is there cannot be known: the tool asks for no right to read Secrets"
				f.Remedy = "`" + words.Shell("kubectl", "-n", in.Namespace, "get", "secret", in.PullSecret) + "`"
				out = append(out, f)
			}
			return out
		},
	}
}

// newRegistry says that no pod on the nodes comes from the image's registry. It is not
// said of nodes without pods.
func (in Input) newRegistry(image imageName) (Finding, bool) {
	var seen []string
	for _, v := range in.targets() {
		for i := range v.Pods {
			if v.Pods[i].IsHelper() {
				continue // it may not have been pulled either
			}
			for _, name := range v.Pods[i].Images {
				seen = append(seen, parseImage(name).host)
			}
		}
	}
	slices.Sort(seen)
	seen = slices.Compact(seen)
	if len(seen) == 0 || slices.Contains(seen, image.host) {
		return Finding{}, false
	}
	return Finding{
		Code: "DRM078", Severity: Info, Object: "image/" + in.HelperImage,
		Message: fmt.Sprintf("no pod on the nodes is from its registry %s; theirs are from %s", image.host, few(seen)),
		Remedy:  "see that the nodes reach the registry, and give --helper-pull-secret if it wants one; the pull is tried before a node is closed",
	}, true
}

// imageName is an image's name in its parts.
type imageName struct {
	// name is without tag and digest, host the registry that it is pulled from.
	name, host, tag, digest string
}

// parseImage reads an image's name as container runtimes do: a first part without a dot,
// a port or "localhost" is no host, and the image is Docker Hub's
// (github.com/distribution/reference, splitDockerDomain).
func parseImage(image string) imageName {
	name, digest, _ := strings.Cut(image, "@")
	out := imageName{name: name, digest: digest}
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		out.name, out.tag = name[:i], name[i+1:]
	}
	first, _, several := strings.Cut(out.name, "/")
	if several && (strings.ContainsAny(first, ".:") || first == "localhost") {
		out.host = first
	}
	out.host = cmp.Or(out.host, "docker.io")
	return out
}
