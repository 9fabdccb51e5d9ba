package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// fieldManager owns what Apply writes.
const fieldManager = "dramigrate-test-cluster"

// Apply creates or updates objects by server-side apply, in their order. An
// object without a namespace goes to "default" if its kind has namespaces.
func (c *Cluster) Apply(ctx context.Context, objects ...runtime.Object) error {
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	for _, o := range objects {
		u, err := toUnstructured(o)
		if err != nil {
			return err
		}
		gvk := u.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", gvk.Kind, u.GetName(), err)
		}
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if u.GetNamespace() == "" {
				u.SetNamespace(metav1.NamespaceDefault)
			}
			resource = client.Resource(mapping.Resource).Namespace(u.GetNamespace())
		}
		if _, err := resource.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return fmt.Errorf("apply %s %s/%s: %w", gvk.Kind, u.GetNamespace(), u.GetName(), err)
		}
	}
	return nil
}

// ApplyYAML applies a stream of YAML documents.
func (c *Cluster) ApplyYAML(ctx context.Context, text []byte) error {
	objects, err := parseYAML(text)
	if err != nil {
		return err
	}
	return c.Apply(ctx, objects...)
}

func parseYAML(text []byte) ([]runtime.Object, error) {
	var out []runtime.Object
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for i := 1; ; i++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("YAML document %d: %w", i, err)
		}
		var u unstructured.Unstructured
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			return nil, fmt.Errorf("YAML document %d: %w", i, err)
		}
		if len(u.Object) == 0 {
			continue // comments only
		}
		if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
			return nil, fmt.Errorf("YAML document %d: apiVersion, kind and metadata.name are needed", i)
		}
		out = append(out, &u)
	}
}

// toUnstructured also gives a typed object its kind, and drops what is not the
// caller's to set: the status and the empty times that typed objects carry.
func toUnstructured(o runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	if u.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, err
		}
		u.SetGroupVersionKind(kinds[0])
	}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	u.SetManagedFields(nil)
	return u, nil
}
