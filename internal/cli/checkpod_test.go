package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// waitingPod asks for a GPU on a node whose plugin offers two, and is told that there
// are none.
func waitingPod(namespace, name, text string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u", CreationTimestamp: metav1.NewTime(time.Unix(0, 0).Add(-time.Hour))},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: text}}},
	}
}

func TestCheckPod(t *testing.T) {
	t.Parallel()
	const lacks = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
	objects := append(preparedCluster(), waitingPod("team", "train", lacks), waitingPod("other", "train", lacks),
		waitingPod("team", "odd", "the moon is full"))
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"check pod/train", ExitBlocked, "NODES-TOO-SMALL"},
		{"check pod/train -n other", ExitBlocked, "pod/other/train"},
		{"check pods/other/train -o json", ExitBlocked, `"cause": "nodes-too-small"`},
		{"check pod/odd", ExitUnknown, "the moon is full"},
		{"check pod/kube-system/plugin-1 -o yaml", ExitOK, "cause: none"},
		{"check pod/none", ExitUsage, "there is none in namespace team"},
		{"check pod/", ExitUsage, "pod/NAME"},
		{"check pod/a/b/c", ExitUsage, "pod/NAME"},
		{"check pod/other/train -n team", ExitUsage, "--namespace team"},
		{"check pod/train -o junit", ExitUsage, "--output"},
		{"check pod/train --only DRM006", ExitUsage, "--only"},
		{"check gpu-a -n team", ExitUsage, "--tool-namespace"},
	} {
		o := invoke(t, objects, nil, done, strings.Fields(c.args)...)
		if o.code != c.code || !strings.Contains(o.stdout+o.err, c.says) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", c.args, o.code, c.code, c.says, o.stdout, o.err)
		}
	}
}

// Files tell of a pod without its events, and the answer says so.
func TestCheckPodFromFiles(t *testing.T) {
	t.Parallel()
	objects := append(preparedCluster(), waitingPod("other", "train", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."))
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	taken := invoke(t, objects, nil, done, "snapshot")
	if taken.code != ExitOK {
		t.Fatal(taken.err)
	}
	if err := os.WriteFile(file, []byte(taken.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	o := invoke(t, []runtime.Object{}, nil, done, "check", "pod/train", "--from", file)
	if o.code != ExitBlocked || !strings.Contains(o.stdout, "UNKNOWN: events could not be read: the files hold none about pods") {
		t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.err)
	}
}

// Events that kubectl has printed tell what the pod itself does not: that its claim was
// refused. Those of another pod, and of one that had the name before, say nothing.
func TestCheckPodFromFilesWithEvents(t *testing.T) {
	t.Parallel()
	pod := waitingPod("other", "train", "0/3 nodes are available: waiting for the claim.")
	claim := "train-channel-x"
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "channel", ResourceClaimTemplateName: &claim}}
	event := func(of string, uid types.UID, message string) runtime.Object {
		return &corev1.Event{
			TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
			ObjectMeta:     metav1.ObjectMeta{Namespace: "other", Name: of + "." + string(uid)},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "other", Name: of, UID: uid},
			Type:           "Warning", Reason: "FailedResourceClaimCreation", Message: message,
			Source: corev1.EventSource{Component: "resource_claim"}, LastTimestamp: metav1.NewTime(time.Unix(0, 0)), Count: 3,
		}
	}
	const refused = `PodResourceClaim channel: failed to create ResourceClaim: resourceclaims.resource.k8s.io "train-channel-x" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=0`
	taken := invoke(t, append(preparedCluster(), pod), nil, done, "snapshot")
	if taken.code != ExitOK {
		t.Fatal(taken.err)
	}
	for _, c := range []struct {
		name   string
		events []runtime.Object
		code   int
		says   string
	}{
		{"its own", []runtime.Object{event("train", "u", refused)}, ExitBlocked, "resourcequota/other/team"},
		{"of another, and of an earlier one", []runtime.Object{event("serve", "u", refused), event("train", "before", refused)}, ExitBlocked, "CLAIM-MISSING"},
	} {
		dir := t.TempDir()
		var text []byte
		for _, e := range c.events {
			raw, err := yaml.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			text = append(append(text, "---\n"...), raw...)
		}
		for name, content := range map[string][]byte{"cluster.yaml": []byte(taken.stdout), "events.yaml": text} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o := invoke(t, nil, nil, done, "check", "pod/train", "--from", filepath.Join(dir, "cluster.yaml"), "--from", filepath.Join(dir, "events.yaml"))
		if o.code != c.code || !strings.Contains(o.stdout, c.says) || strings.Contains(o.stdout, "events could not be read") || strings.Contains(o.err, "Event") {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", c.name, o.code, c.code, c.says, o.stdout, o.err)
		}
	}
}
