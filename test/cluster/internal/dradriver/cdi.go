package dradriver

import (
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dramigrate/dramigrate/test/cluster/internal/gpu"
)

// cdiClass is the class of the CDI devices; their vendor is the driver's.
const cdiClass = "claim"

// An injector writes what a container runtime has to do to give a container the
// devices of a claim: one CDI spec a claim.
type injector struct {
	make  Make
	cache *cdi.Cache
}

func newInjector(m Make, dir string) (*injector, error) {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, fmt.Errorf("CDI folder %s: %w", dir, err)
	}
	return &injector{make: m, cache: cache}, nil
}

// injection is a device of a claim and the GPU that is to appear for it.
type injection struct {
	device string
	gpu    gpu.GPU
}

// deviceID is the qualified CDI name of a claim's device. The claim's UID in it
// keeps a runtime from serving a cached spec of an earlier claim.
func (m Make) deviceID(claim types.UID, device string) string {
	return parser.QualifiedName(m.cdiVendor, cdiClass, deviceName(claim, device))
}

func deviceName(claim types.UID, device string) string {
	return string(claim) + "-" + device
}

// write makes the CDI spec of the claim.
func (i *injector) write(claim types.UID, devices []injection) error {
	spec := &specs.Spec{
		Kind:           i.make.cdiVendor + "/" + cdiClass,
		ContainerEdits: specs.ContainerEdits{Env: i.make.env},
	}
	for _, d := range devices {
		file := gpu.FileName(d.gpu.UUID)
		spec.Devices = append(spec.Devices, specs.Device{
			Name: deviceName(claim, d.device),
			ContainerEdits: specs.ContainerEdits{
				Mounts: []*specs.Mount{{
					HostPath:      filepath.Join(gpu.FilesDir, file),
					ContainerPath: filepath.Join(gpu.VisibleDir, file),
					Options:       []string{"ro", "bind"},
				}},
			},
		})
	}
	version, err := specs.MinimumRequiredVersion(spec)
	if err != nil {
		return fmt.Errorf("CDI spec: %w", err)
	}
	spec.Version = version
	if err := i.cache.WriteSpec(spec, i.make.specName(claim)); err != nil {
		return fmt.Errorf("CDI spec: %w", err)
	}
	return nil
}

// remove deletes the CDI spec of the claim, if there is one.
func (i *injector) remove(claim types.UID) error {
	if err := i.cache.RemoveSpec(i.make.specName(claim)); err != nil {
		return fmt.Errorf("CDI spec: %w", err)
	}
	return nil
}

func (m Make) specName(claim types.UID) string {
	return cdi.GenerateTransientSpecName(m.cdiVendor, cdiClass, string(claim)) + ".yaml"
}
