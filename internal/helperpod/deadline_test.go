package helperpod

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What is refused stays so, also where the refusal is of a log, which client-go takes for
// an answer that it did not expect. What the server could not do now it may do later.
func TestTransient(t *testing.T) {
	log := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "get", corev1.Resource("pods"), "p", "the body", 0, true)
	}
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"forbidden", apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("not yours")), false},
		{"a log is forbidden", log(403), false},
		{"a log takes another identity", log(401), false},
		{"the kubelet has no log yet", log(400), true},
		{"the kubelet does not answer", log(502), true},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), true},
		{"gone", apierrors.NewNotFound(corev1.Resource("pods"), "p"), false},
	} {
		if got := transient(tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A person without the right to read logs is told by which command to see that.
func TestNextOfAForbiddenLog(t *testing.T) {
	j := &job{pod: corev1.Pod{}}
	j.pod.Namespace, j.pod.Name = "tool", "p"
	err := apierrors.NewGenericServerResponse(403, "get", corev1.Resource("pods"), "p", "the body", 0, true)
	if got, want := j.next(NoAnswer, err), "kubectl auth can-i get pods --subresource=log -n tool"; got != want {
		t.Errorf("next is %q, want %q", got, want)
	}
}
