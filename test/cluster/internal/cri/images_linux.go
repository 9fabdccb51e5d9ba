package cri

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageService answers the image half of the CRI from the table of shipped images. Pulling an image
// makes it present, as a registry would.
type imageService struct {
	runtimeapi.UnimplementedImageServiceServer

	stateDir   string
	commandDir string
	commands   map[string]string // normalised repository to command

	mu     sync.RWMutex
	pulled map[string]*runtimeapi.Image // by repository
}

func newImageService(cfg Config) *imageService {
	s := &imageService{
		stateDir:   cfg.StateDir,
		commandDir: cfg.CommandDir,
		commands:   map[string]string{},
		pulled:     map[string]*runtimeapi.Image{},
	}
	for repo, command := range cfg.Images {
		if named, err := reference.ParseNormalizedNamed(repo); err == nil {
			repo = named.Name()
		}
		s.commands[repo] = command
	}
	return s
}

// find returns a present image, by name or ID, and its command; nil if it is not present.
func (s *imageService) find(ref string) (*runtimeapi.Image, string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for repo, image := range s.pulled {
		if image.GetId() == ref {
			return image, s.commands[repo]
		}
	}
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return nil, ""
	}
	image := s.pulled[named.Name()]
	if image == nil {
		return nil, ""
	}
	full := reference.TagNameOnly(named).String()
	if !slices.Contains(image.GetRepoTags(), full) && !slices.Contains(image.GetRepoDigests(), full) {
		return nil, ""
	}
	return image, s.commands[named.Name()]
}

// PullImage knows the repositories of the table, under any tag or digest, and answers for all
// others as a registry does: not found.
func (s *imageService) PullImage(_ context.Context, r *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	ref := r.GetImage().GetImage()
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "failed to parse image reference %q: %v", ref, err)
	}
	named = reference.TagNameOnly(named)
	command, ok := s.commands[named.Name()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", named, named, named)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Readers hold the old record, so a new one takes its place.
	image := &runtimeapi.Image{Uid: &runtimeapi.Int64Value{}}
	sum := sha256.Sum256([]byte(named.Name() + "\x00" + command))
	image.Id = "sha256:" + hex.EncodeToString(sum[:])
	image.Spec = &runtimeapi.ImageSpec{Image: image.Id}
	if old := s.pulled[named.Name()]; old != nil {
		image.RepoTags = slices.Clone(old.RepoTags)
		image.RepoDigests = slices.Clone(old.RepoDigests)
	} else {
		image.RepoDigests = []string{named.Name() + "@" + image.Id}
	}
	if info, err := os.Stat(filepath.Join(s.commandDir, command)); err == nil {
		image.Size = uint64(info.Size())
	}
	list := &image.RepoTags
	if _, byDigest := named.(reference.Digested); byDigest {
		list = &image.RepoDigests
	}
	if !slices.Contains(*list, named.String()) {
		*list = append(*list, named.String())
	}
	s.pulled[named.Name()] = image
	return &runtimeapi.PullImageResponse{ImageRef: image.Id}, nil
}

func (s *imageService) ImageStatus(_ context.Context, r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	image, _ := s.find(r.GetImage().GetImage())
	return &runtimeapi.ImageStatusResponse{Image: image}, nil
}

func (s *imageService) ListImages(_ context.Context, r *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	if ref := r.GetFilter().GetImage().GetImage(); ref != "" {
		out := &runtimeapi.ListImagesResponse{}
		if image, _ := s.find(ref); image != nil {
			out.Images = append(out.Images, image)
		}
		return out, nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := &runtimeapi.ListImagesResponse{}
	for _, image := range s.pulled {
		out.Images = append(out.Images, image)
	}
	slices.SortFunc(out.Images, func(a, b *runtimeapi.Image) int { return strings.Compare(a.GetId(), b.GetId()) })
	return out, nil
}

// RemoveImage makes the image absent. Running containers do not need it.
func (s *imageService) RemoveImage(_ context.Context, r *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	image, _ := s.find(r.GetImage().GetImage())
	s.mu.Lock()
	defer s.mu.Unlock()
	for repo, present := range s.pulled {
		if image != nil && present.GetId() == image.GetId() {
			delete(s.pulled, repo)
		}
	}
	return &runtimeapi.RemoveImageResponse{}, nil
}

// ImageFsInfo reports the filesystem of the state folder. Images take no room of their own there,
// and containers write into memory.
func (s *imageService) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.stateDir, &fs); err != nil {
		return nil, fmt.Errorf("image filesystem %s: %w", s.stateDir, err)
	}
	usage := &runtimeapi.FilesystemUsage{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: s.stateDir},
		UsedBytes:  &runtimeapi.UInt64Value{},
		InodesUsed: &runtimeapi.UInt64Value{},
	}
	return &runtimeapi.ImageFsInfoResponse{
		ImageFilesystems:     []*runtimeapi.FilesystemUsage{usage},
		ContainerFilesystems: []*runtimeapi.FilesystemUsage{usage},
	}, nil
}
