package faultproxy

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

func TestHookSeesMutationsBeforeAndAfterTheServer(t *testing.T) {
	// Each connection has its goroutines, and a cut one is followed by a new one.
	var mu sync.Mutex
	var served, seen []string
	note := func(list *[]string, what string) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, what)
	}
	noted := func(list *[]string) []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(*list)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(&served, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()

	cut := errors.New("cut")
	p, err := Start(&rest.Config{Host: server.URL}, func(m Mutation) error {
		note(&seen, m.String())
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

	if want := []string{"GET /read", "POST /pods", "PUT /apis/coordination.k8s.io/v1/namespaces/x/leases/pool"}; !slices.Equal(noted(&served), want) {
		t.Errorf("server saw %q, want %q", noted(&served), want)
	}
	want := []string{
		"before #1 POST /pods", "after #1 POST /pods",
		"before #2 POST /lost",
		"before #0 PUT /apis/coordination.k8s.io/v1/namespaces/x/leases/pool",
		"after #0 PUT /apis/coordination.k8s.io/v1/namespaces/x/leases/pool",
	}
	if !slices.Equal(noted(&seen), want) {
		t.Errorf("hook saw %q, want %q", noted(&seen), want)
	}
	if p.Count() != 2 {
		t.Errorf("Count() = %d, want 2: a renewal is not counted", p.Count())
	}
}
