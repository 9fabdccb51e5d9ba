package cri

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestImages(t *testing.T) {
	n := newNode(t)
	spec := func(ref string) *runtimeapi.ImageSpec { return &runtimeapi.ImageSpec{Image: ref} }
	present := func(ref string) *runtimeapi.Image {
		r, err := n.images.ImageStatus(n.ctx(), &runtimeapi.ImageStatusRequest{Image: spec(ref)})
		if err != nil {
			t.Fatalf("ImageStatus %s: %v", ref, err)
		}
		return r.Image
	}
	if present(testImage+":v1") != nil {
		t.Error("an image is present before it was pulled")
	}
	const digest = "@sha256:2d05f9d6ec5a8d4c2b0f0e4f1f3b1c0e9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d"
	var ids []string
	for _, ref := range []string{testImage + ":v1", testImage, testImage + digest} {
		r, err := n.images.PullImage(n.ctx(), &runtimeapi.PullImageRequest{Image: spec(ref)})
		if err != nil {
			t.Fatalf("PullImage %s: %v", ref, err)
		}
		ids = append(ids, r.ImageRef)
		if got := present(ref); got == nil || got.Id != r.ImageRef || got.Size == 0 {
			t.Errorf("status of the pulled %s: %v", ref, got)
		}
	}
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("one repository has the images %v", ids)
	}
	if present(testImage+":v2") != nil {
		t.Error("a tag that was not pulled is present")
	}
	if got := present(ids[0]); got == nil || !slices.Equal(got.RepoTags, []string{testImage + ":v1", testImage + ":latest"}) {
		t.Errorf("image by its ID: %v", got)
	}
	if _, err := n.images.RemoveImage(n.ctx(), &runtimeapi.RemoveImageRequest{Image: spec(ids[0])}); err != nil {
		t.Fatalf("RemoveImage: %v", err)
	}
	if present(testImage) != nil {
		t.Error("a removed image is present")
	}
}

func TestUnknownImage(t *testing.T) {
	n := newNode(t)
	const ref = "registry.example/tools/other:v1"
	_, err := n.images.PullImage(n.ctx(), &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), ref+": not found") {
		t.Errorf("PullImage: %v; want NotFound with the reference", err)
	}
	config := n.config()
	config.Image.Image = ref
	if _, err := n.create(n.sandbox("pod"), config); status.Code(err) != codes.NotFound {
		t.Errorf("CreateContainer: %v, want NotFound", err)
	}
}
