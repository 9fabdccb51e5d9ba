package checks

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// hasImage says that one of the images has a repository that ends so. A tag or a digest
// is no part of it.
func hasImage(images []string, repository string) bool {
	return slices.ContainsFunc(images, func(image string) bool {
		repo, _ := splitImage(image)
		return repo == repository || strings.HasSuffix(repo, "/"+repository)
	})
}

// splitImage parts an image's repository from its tag; the tag is empty without one.
func splitImage(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		return image[:at], image[at+1:]
	}
	return image, ""
}

// imageVersion is the version in the tag of the image of that name, and the tag; nil if
// none tells.
func imageVersion(images []string, name string) (*version.Version, string) {
	for _, image := range images {
		if !hasImage([]string{image}, name) {
			continue
		}
		_, tag := splitImage(image)
		if v, err := version.ParseGeneric(tag); err == nil {
			return v, tag
		}
	}
	return nil, ""
}
