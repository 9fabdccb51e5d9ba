// Package manifests holds what tests and the demo install on the test cluster:
// the device plugin in the forms in which it is found in the field, the DRA
// driver, its DeviceClass, and workloads; NVIDIA's, and of other makers one form each.
//
// Names, labels, selectors, affinity terms and tolerations are those of the
// vendor's own (k8s-device-plugin v0.20.0, dra-driver-nvidia-gpu v0.4.1),
// because that is what has to be recognised.
package manifests

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

//go:embed plugin/*.yaml driver/*.yaml amd/*.yaml amd/driver/*.yaml deviceclass.yaml
var files embed.FS

// YAML writes the objects as one stream of documents.
func YAML(objects ...runtime.Object) ([]byte, error) {
	var out bytes.Buffer
	for i, o := range objects {
		data, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("%T: %w", o, err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(data)
	}
	return out.Bytes(), nil
}

// Parse reads a stream of documents into typed objects. Unknown fields,
// doubled fields and unknown kinds are errors.
func Parse(data []byte) ([]runtime.Object, error) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objects []runtime.Object
	for {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(doc, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// embedded parses a file of this package. One that does not parse is a mistake
// in this program, which its tests find, so no caller can do anything about it.
func embedded(path string) []runtime.Object {
	data, err := fs.ReadFile(files, path)
	if err != nil {
		panic(err)
	}
	objects, err := Parse(data)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", path, err))
	}
	return objects
}

// only finds the object of a type among those of a file.
func only[T runtime.Object](objects []runtime.Object) T {
	for _, o := range objects {
		if found, ok := o.(T); ok {
			return found
		}
	}
	var none T
	panic(fmt.Sprintf("no %T in the file", none))
}
