package jsonerr

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// What reads itself is named by its field as well.
func TestAgain(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"node": {"status": {"capacity": {"cpu": "8", "nvidia.com/gpu": "eight"}}}}`,
			`node.status.capacity[nvidia.com/gpu]: must be a quantity, as 4 or 16Gi, is "eight"`},
		{`{"node": {"status": {"capacity": {"cpu": {}}}}}`, `node.status.capacity[cpu]: must be a quantity, as 4 or 16Gi, is {}`},
		{`{"node": {"metadata": {"creationTimestamp": "yesterday"}}}`,
			`node.metadata.creationTimestamp: must be a time, as 2026-01-02T15:04:05Z, is "yesterday"`},
		{`{"node": {"status": {"conditions": [{"type": "Ready"}, {"lastHeartbeatTime": "never"}]}}}`,
			`node.status.conditions[1].lastHeartbeatTime: must be a time, as 2026-01-02T15:04:05Z, is "never"`},
		{`{"wait": "long"}`, `wait: must be a duration, as 90s or 15m, is "long"`},
		{`{"wait": "` + strings.Repeat("long", 30) + `"}`, `wait: must be a duration, as 90s or 15m, is "longlonglonglonglonglonglonglonglonglon…`},
		{`{"node": {"metadata": {"labels": {"a": "b", "nvidia.com/gpu.count": 2}}}}`, "node.metadata.labels[nvidia.com/gpu.count]: must be a text, is a number"},
		{`{"node": {"spec": {"taints": [{"key": "a"}, {"key": ["b"]}]}}}`, "node.spec.taints[1].key: must be a text, is a list"},
		{`{"sizes": {"a": 1, "b": 70000}, "name": ["a"]}`, "name: must be a text, is a list"},
		{`{"sizes": {"a": 1, "b": 70000}}`, "sizes[b]: must be a whole number from 0 to 65535, is the number 70000"},
		// Nothing of the kind: as Plain has it.
		{`{"name": "a"`, "unexpected end of JSON input"},
		{`[]`, "must be a group of fields, is a list"},
	} {
		err := json.Unmarshal([]byte(tt.text), &document{})
		if got := textOf(Again([]byte(tt.text), &document{}, err)); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
	other := errors.New("something else")
	if got := Again([]byte(`{"name": "a"}`), &document{}, other); !errors.Is(got, other) || got.Error() != other.Error() {
		t.Errorf("another error is not as it was: %v", got)
	}
}
