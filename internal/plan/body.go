package plan

import "sigs.k8s.io/yaml"

// toYAML is an object as a plan shows it. Every object of this package can be
// encoded; an error would stand in its place for the reviewer to see.
func toYAML(object any) string {
	data, err := yaml.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
