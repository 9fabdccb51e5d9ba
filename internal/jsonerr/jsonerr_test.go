package jsonerr

import (
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

type document struct {
	Name  string            `json:"name"`
	Data  []byte            `json:"data"`
	Wait  metav1.Duration   `json:"wait"`
	Sizes map[string]uint16 `json:"sizes"`
	Share *float64          `json:"share"`
	Node  corev1.Node       `json:"node"`
}

// The field and what is wanted, and nothing of Go.
func TestPlain(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"[]", "must be a group of fields, is a list"},
		{"name: [a]", "name: must be a text, is a list"},
		{"name: {a: b}", "name: must be a text, is a group of fields"},
		{"name: 7", ""}, // which sigs.k8s.io/yaml takes for a text
		{"data: [a]", "data: must be a whole number, is a text"},
		{"wait: 7", "wait: must be a text, is a number"},
		{"data: 1.5", "data: must be a text in base64, is a number"},
		{"sizes: [1]", "sizes: must be a group of fields, is a list"},
		{"sizes: {a: -1}", "sizes: must be a whole number from 0 to 65535, is the number -1"},
		{"sizes: {a: 70000}", "sizes: must be a whole number from 0 to 65535, is the number 70000"},
		{"share: true", "share: must be a number, is true or false"},
		{"node: {spec: {taints: none}}", "node.spec.taints: must be a list, is a text"},
		{"node: {spec: {taints: [{key: [a]}]}}", "node.spec.taints.key: must be a text, is a list"},
		{"node: {spec: {unschedulable: yes please}}", "node.spec.unschedulable: must be true or false, is a text"},
		{"node: {status: {daemonEndpoints: {kubeletEndpoint: {Port: 1.5}}}}", "node.status.daemonEndpoints.kubeletEndpoint.Port: must be a whole number, is the number 1.5"},
		{"node: {status: {daemonEndpoints: {kubeletEndpoint: {Port: 3000000000}}}}", "node.status.daemonEndpoints.kubeletEndpoint.Port: must be a whole number from -2147483648 to 2147483647, is the number 3000000000"},
		{"later: true", `unknown field "later"`},
		{"name: a\nname: b\nname: c\n", `line 2: key "name" already set in map; line 3: key "name" already set in map`},
		{"name: a\n b: [", "line 2: mapping values are not allowed in this context"},
	} {
		err := Plain(yaml.UnmarshalStrict([]byte(tt.text), &document{}))
		if got := textOf(err); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
	other := errors.New("something else")
	if got := Plain(other); got != other {
		t.Errorf("another error is not as it was: %v", got)
	}
	err := json.Unmarshal([]byte("[]"), &document{})
	if got := Plain(err); !errors.Is(got, err) || !Mistyped(got) || Mistyped(other) {
		t.Errorf("%v does not wrap the error that it is of", got)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
