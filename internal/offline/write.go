package offline

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/wholefile"
)

// About is what a written Snapshot says about itself.
type About struct {
	ToolVersion string
	// Namespace is the tool's, as it was given to cluster.Load.
	Namespace string
	Taken     time.Time
}

// A stream separates documents by separator and ends with terminator: a stream
// without it was cut off.
const (
	separator  = "---\n"
	terminator = "...\n"
)

// headerFile is the name of the header's file in a folder.
const headerFile = "snapshot.yaml"

// section is all objects of one kind.
type section struct {
	kind, part string
	count      int
	object     func(i int) (any, error)
}

// sections are a Snapshot's objects as Kubernetes has them, in the order in which they
// are written.
func sections(s *cluster.Snapshot, namespace string) []section {
	out := []section{
		typed(cluster.PartNodes, s.Nodes, corev1.SchemeGroupVersion.WithKind("Node")),
		{"Pod", cluster.PartPods, len(s.Pods), func(i int) (any, error) { return s.Pods[i].Object(), nil }},
		typed(cluster.PartDaemonSets, s.DaemonSets, appsv1.SchemeGroupVersion.WithKind("DaemonSet")),
		typed(cluster.PartSlices, s.Slices, resourcev1.SchemeGroupVersion.WithKind("ResourceSlice")),
		typed(cluster.PartClasses, s.Classes, resourcev1.SchemeGroupVersion.WithKind("DeviceClass")),
		typed(cluster.PartClaims, s.Claims, resourcev1.SchemeGroupVersion.WithKind("ResourceClaim")),
		typed(cluster.PartBudgets, s.Budgets, policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")),
	}
	out = append(out, adviceSections(s)...)
	if namespace == "" {
		return out
	}
	return append(out,
		section{"ConfigMap", cluster.PartJournals, len(s.Journals), func(i int) (any, error) { return cluster.EncodeJournal(&s.Journals[i], namespace) }},
		section{"Lease", cluster.PartLocks, len(s.Locks), func(i int) (any, error) { return s.Locks[i].Lease(), nil }},
	)
}

// typed gives objects the version and kind that a list of the API leaves out.
func typed[T any, P interface {
	*T
	runtime.Object
}](part string, list []T, gvk schema.GroupVersionKind) section {
	return section{gvk.Kind, part, len(list), func(i int) (any, error) {
		object := list[i]
		P(&object).GetObjectKind().SetGroupVersionKind(gvk)
		return &object, nil
	}}
}

// Write writes a Snapshot as one stream of YAML documents, the header first. The same
// Snapshot gives the same bytes, but for the time that a names. The result is how many
// objects of each kind there are.
func Write(w io.Writer, s *cluster.Snapshot, a About) (map[string]int, error) {
	h, all := describe(s, a)
	if err := document(w, h); err != nil {
		return nil, err
	}
	for _, sec := range all {
		if err := sec.write(w, separator); err != nil {
			return nil, err
		}
	}
	_, err := io.WriteString(w, terminator)
	return h.Objects, err
}

// WriteFolder is like Write, with the header and each kind in a file of its own. Other
// files of these names are removed: they are of another Snapshot.
func WriteFolder(folder string, s *cluster.Snapshot, a About) (map[string]int, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	h, all := describe(s, a)
	// The header goes first and comes last: without it the folder is no snapshot, and
	// what is half replaced cannot be taken for the former one.
	if err := os.Remove(filepath.Join(folder, headerFile)); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, sec := range all {
		name := filepath.Join(folder, sec.part+".yaml")
		if sec.count == 0 {
			if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
				return nil, err
			}
			continue
		}
		err := wholefile.Write(name, func(w io.Writer) error {
			if err := sec.write(w, ""); err != nil {
				return err
			}
			_, err := io.WriteString(w, terminator)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return h.Objects, wholefile.Write(filepath.Join(folder, headerFile), func(w io.Writer) error {
		if err := document(w, h); err != nil {
			return err
		}
		_, err := io.WriteString(w, terminator)
		return err
	})
}

func describe(s *cluster.Snapshot, a About) (*ClusterSnapshot, []section) {
	h, all := newHeader(s, a), sections(s, a.Namespace)
	h.Objects = map[string]int{}
	for _, sec := range all {
		h.Objects[sec.kind] = sec.count
	}
	return h, all
}

// write writes the objects as documents; first stands before the first of them.
func (sec section) write(w io.Writer, first string) error {
	before := first
	for i := range sec.count {
		object, err := sec.object(i)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, before); err != nil {
			return err
		}
		if err := document(w, object); err != nil {
			return err
		}
		before = separator
	}
	return nil
}

func document(w io.Writer, object any) error {
	data, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode %T: %w", object, err)
	}
	_, err = w.Write(data)
	return err
}
