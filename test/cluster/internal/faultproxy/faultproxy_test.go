package faultproxy

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestHookSeesMutationsBeforeAndAfterTheServer(t *testing.T) {
	var served []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served = append(served, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()

	var seen []string
	cut := errors.New("cut")
	p, err := Start(&rest.Config{Host: server.URL}, func(m Mutation) error {
		seen = append(seen, m.String())
		if m.Moment == Before && strings.HasSuffix(m.Path, "/lost") {
			return cut
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	base := "http://" + p.listener.Addr().String()

	if _, err := http.Get(base + "/read"); err != nil {
		t.Errorf("GET: %v", err)
	}
	resp, err := http.Post(base+"/pods", "application/json", strings.NewReader("{}"))
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Errorf("POST /pods = %v, %v, want 201", resp, err)
	}
	if _, err := http.Post(base+"/lost", "application/json", nil); err == nil {
		t.Error("POST /lost was answered, want a cut connection")
	}
	renew, _ := http.NewRequest(http.MethodPut, base+"/apis/coordination.k8s.io/v1/namespaces/x/leases/pool", nil)
	if _, err := http.DefaultClient.Do(renew); err != nil {
		t.Errorf("PUT lease: %v", err)
	}

	if want := []string{"GET /read", "POST /pods", "PUT /apis/coordination.k8s.io/v1/namespaces/x/leases/pool"}; !slices.Equal(served, want) {
		t.Errorf("server saw %q, want %q", served, want)
	}
	want := []string{
		"before #1 POST /pods", "after #1 POST /pods",
		"before #2 POST /lost",
		"before #0 PUT /apis/coordination.k8s.io/v1/namespaces/x/leases/pool",
		"after #0 PUT /apis/coordination.k8s.io/v1/namespaces/x/leases/pool",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("hook saw %q, want %q", seen, want)
	}
	if p.Count() != 2 {
		t.Errorf("Count() = %d, want 2: a renewal is not counted", p.Count())
	}
}
