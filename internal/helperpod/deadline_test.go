package helperpod

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
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

// A server's refusal of a log says who may not read it, and is asked for once.
func TestForbiddenLog(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
			"message":"pods \"p\" is forbidden: User \"she\" cannot get resource \"pods/log\""}`)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	j := &job{node: "n", purpose: ForReport}
	j.pod.Namespace, j.pod.Name = "tool", "p"
	_, err = New(client, clock.RealClock{}, Config{Namespace: "tool"}).log(t.Context(), j)
	if want := `User "she" cannot get resource "pods/log"`; err == nil || !strings.Contains(err.Error(), want) || asked != 1 {
		t.Errorf("asked %d times, error %v; want once, and %s", asked, err, want)
	}
}
