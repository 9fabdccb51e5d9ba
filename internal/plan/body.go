package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// body is an object in YAML as a plan shows it. The values of a Secret are hidden,
// as a plan is passed around for review; the digest of the manifests
// (Driver.Source) still tells if one changed.
func body(u *unstructured.Unstructured) (string, error) {
	if u.GetAPIVersion() == "v1" && u.GetKind() == "Secret" {
		u = hideValues(u)
	}
	data, err := yaml.Marshal(u.Object)
	if err != nil {
		return "", fmt.Errorf("%s/%s: %w", strings.ToLower(u.GetKind()), u.GetName(), err)
	}
	return string(data), nil
}

func hideValues(secret *unstructured.Unstructured) *unstructured.Unstructured {
	shown := secret.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		if values, ok := shown.Object[field].(map[string]any); ok {
			for k := range values {
				values[k] = "(hidden)"
			}
		}
	}
	return shown
}

// toYAML is a typed object in YAML. Every object of this package can be encoded; an
// error would stand in its place for the reviewer to see.
func toYAML(object any) string {
	data, err := yaml.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
