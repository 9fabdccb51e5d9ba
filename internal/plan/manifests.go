package plan

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/jsonerr"
)

// Manifests are the driver's manifests as they were read from a folder.
type Manifests struct {
	Objects []Manifest
	// Digest is the SHA-256 over the names and contents of the files.
	Digest string
}

// Manifest is one object and where it stands, for messages.
type Manifest struct {
	Where  string // "file, document n"
	Object *unstructured.Unstructured
}

// namespacedKinds are the kinds that a driver's manifests usually hold and that
// need a namespace. kubectl would put them into the current one, which depends on
// who applies them; a plan must not.
var namespacedKinds = []string{
	"ConfigMap", "CronJob", "DaemonSet", "Deployment", "Job", "NetworkPolicy", "Pod",
	"PodDisruptionBudget", "PodMonitor", "Role", "RoleBinding", "Service",
	"ServiceAccount", "ServiceMonitor", "StatefulSet",
}

// ReadManifests reads the *.yaml, *.yml and *.json files of a folder, in the order
// of their names, and every document in them. It is strict: what it cannot take for
// one named object of Kubernetes is an error with the file and the document.
func ReadManifests(folder fs.FS) (*Manifests, error) {
	entries, err := fs.ReadDir(folder, ".")
	var of *fs.PathError
	switch {
	case errors.As(err, &of): // the caller knows the folder, which is a dot here
		return nil, fmt.Errorf("cannot be read as a folder of manifests: %w", of.Err)
	case err != nil:
		return nil, err
	}
	hash := sha256.New()
	out := &Manifests{}
	for _, e := range entries {
		if e.IsDir() {
			return nil, fmt.Errorf("%s: is a folder; subfolders are not read", e.Name())
		}
		switch path.Ext(e.Name()) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		data, err := fs.ReadFile(folder, e.Name())
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(hash, "%s %d\n%s", e.Name(), len(data), data)
		objects, err := readFile(e.Name(), data)
		if err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, objects...)
	}
	if len(out.Objects) == 0 {
		return nil, errors.New("no object in any *.yaml, *.yml or *.json file")
	}
	if err := refuseTwins(out.Objects); err != nil {
		return nil, err
	}
	slices.SortStableFunc(out.Objects, func(a, b Manifest) int {
		return cmp.Compare(rank(a.Object.GetKind()), rank(b.Object.GetKind()))
	})
	out.Digest = "sha256:" + hex.EncodeToString(hash.Sum(nil))
	return out, nil
}

func readFile(name string, data []byte) ([]Manifest, error) {
	var out []Manifest
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		where := fmt.Sprintf("%s, document %d", name, n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		objects, err := decodeDocument(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		for _, u := range objects {
			if err := checkObject(u); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
			out = append(out, Manifest{Where: where, Object: u})
		}
	}
}

// decodeDocument returns no object for a document of comments, and the items of a
// List.
func decodeDocument(doc []byte) ([]*unstructured.Unstructured, error) {
	var content any
	if err := yaml.UnmarshalStrict(doc, &content); err != nil {
		return nil, fmt.Errorf("not YAML or JSON: %w", jsonerr.Plain(err))
	}
	if content == nil {
		return nil, nil
	}
	fields, ok := content.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("holds a %T, not an object", content)
	}
	// Decoding by the unstructured scheme keeps integers as int64, which the
	// conversion to typed objects needs.
	raw, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return nil, err
	}
	if fields["kind"] == "List" {
		list := &unstructured.UnstructuredList{}
		if err := list.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		out := make([]*unstructured.Unstructured, len(list.Items))
		for i := range list.Items {
			out[i] = &list.Items[i]
		}
		return out, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	return []*unstructured.Unstructured{u}, nil
}

func checkObject(u *unstructured.Unstructured) error {
	switch {
	case u.GetAPIVersion() == "" || u.GetKind() == "":
		return errors.New("has no apiVersion or no kind")
	case u.GroupVersionKind().Group == "kustomize.config.k8s.io":
		return errors.New("is a kustomization; give the output of `kubectl kustomize`")
	case u.GetName() == "" && u.GetGenerateName() != "":
		return fmt.Errorf("%s with generateName: a run must find its objects again, give it a name", u.GetKind())
	case u.GetName() == "":
		return fmt.Errorf("%s without metadata.name", u.GetKind())
	case u.GetKind() == "Secret":
		return fmt.Errorf("is Secret %s: a plan shows every object whole; create it before, by other means", u.GetName())
	case u.GetNamespace() == "" && slices.Contains(namespacedKinds, u.GetKind()):
		return fmt.Errorf("%s %s: has no metadata.namespace", u.GetKind(), u.GetName())
	}
	return nil
}

func refuseTwins(objects []Manifest) error {
	seen := map[string]string{}
	for _, m := range objects {
		u := m.Object
		key := fmt.Sprintf("%s %s/%s", u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName())
		if first, twice := seen[key]; twice {
			return fmt.Errorf("%s: %s stands in %s already", m.Where, key, first)
		}
		seen[key] = m.Where
	}
	return nil
}

// rank orders kinds so that nothing is applied before what it refers to.
func rank(kind string) int {
	order := []string{"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole",
		"ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Service"}
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	if slices.Contains([]string{"Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob", "Pod"}, kind) {
		return len(order) + 1
	}
	return len(order)
}
