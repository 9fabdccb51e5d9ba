package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
)

func TestBreakOnlyWhatWasShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t, leaseOf("bob@b/2", time.Now(), 7))
		shown, err := Inspect(t.Context(), client, "tool", "pool-a")
		if err != nil || !shown.Held() || shown.Expired(time.Now()) || !shown.Expired(time.Now().Add(time.Minute)) {
			t.Fatalf("%+v, %v", shown, err)
		}
		other := shown
		other.Holder = "carol@c/3"
		var locked *LockedError
		if err := Break(t.Context(), client, other); !errors.As(err, &locked) || locked.Holder != "bob@b/2" {
			t.Errorf("breaking another holder's lock: %v", err)
		}
		if err := Break(t.Context(), client, shown); err != nil {
			t.Fatal(err)
		}
		if l := mustAcquire(t, lockOptions(client, "ann@a/1")); l.Epoch() != 8 {
			t.Errorf("epoch %d", l.Epoch())
		}
	})
}

// What was read as expired is not taken when it turns out to live.
func TestBreakExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var real clock.RealClock
		for name, tc := range map[string]struct {
			age, renewed time.Duration // of the last renewal when it is shown, and when it is taken
			epoch        int64         // when it is taken; 7 when it is shown
			broken       bool
		}{
			"expired":                         {time.Hour, time.Hour, 7, true},
			"at its expiry":                   {time.Minute, time.Minute, 7, true},
			"a second before":                 {59 * time.Second, 59 * time.Second, 7, false},
			"renewed meanwhile":               {time.Hour, 0, 7, false},
			"renewed by a clock that is late": {2 * time.Hour, time.Hour, 7, false},
			"taken over meanwhile":            {time.Hour, time.Hour, 8, false},
		} {
			client := newServer(t, leaseOf("bob@b/2", time.Now().Add(-tc.age), 7))
			shown, err := Inspect(t.Context(), client, "tool", "pool-a")
			if err != nil {
				t.Fatal(err)
			}
			later := leaseOf("bob@b/2", time.Now().Add(-tc.renewed), int32(tc.epoch))
			if _, err := client.CoordinationV1().Leases("tool").Update(t.Context(), later, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			var locked *LockedError
			begin := time.Now()
			if err := BreakExpired(t.Context(), client, shown, real); (err == nil) != tc.broken || !tc.broken && !errors.As(err, &locked) {
				t.Errorf("%s: %v", name, err)
			}
			if got := readHolder(client); (got == "") != tc.broken {
				t.Errorf("%s: holder is %q", name, got)
			}
			want := time.Duration(0)
			if tc.broken { // 60 s / 4 + 60 s / 12
				want = 20 * time.Second
			}
			if took := time.Since(begin); took != want {
				t.Errorf("%s: watched for %s, want %s", name, took, want)
			}
		}
	})
}

// A caller whose clock is hours ahead reads the Lease of a live run as expired.
func TestBreakExpiredOfLiveHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newServer(t)
		bob := mustAcquire(t, lockOptions(client, "bob@b/2"))
		ahead := skewed{by: 3 * time.Hour}
		shown, err := Inspect(t.Context(), client, "tool", "pool-a")
		if err != nil || !shown.Expired(ahead.Now()) {
			t.Fatalf("%+v, %v; want a Lease that looks expired", shown, err)
		}
		begin := time.Now()
		var locked *LockedError
		if err := BreakExpired(t.Context(), client, shown, ahead); !errors.As(err, &locked) || locked.Holder != "bob@b/2" {
			t.Errorf("got %v, want that bob@b/2 holds it", err)
		}
		if took := time.Since(begin); took != 15*time.Second {
			t.Errorf("refused after %s, want at the next renewal: 15s", took)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := bob.Alive(); err != nil {
			t.Errorf("the live holder has lost its lock: %v", err)
		}
	})
}

// What ends the watch over an expired Lease before its time.
func TestBreakExpiredEndsEarly(t *testing.T) {
	interrupt := errors.New("interrupted")
	for name, tc := range map[string]struct {
		after  func(*testing.T, *fake.Clientset, context.CancelCauseFunc)
		holder string
		err    error
	}{
		"interrupted": {holder: "bob@b/2", err: interrupt,
			after: func(_ *testing.T, _ *fake.Clientset, cancel context.CancelCauseFunc) { cancel(interrupt) }},
		"given back": {
			after: func(t *testing.T, client *fake.Clientset, _ context.CancelCauseFunc) {
				lease := readLease(t, client)
				free(lease)
				if _, err := client.CoordinationV1().Leases("tool").Update(context.Background(), lease, metav1.UpdateOptions{}); err != nil {
					t.Error(err)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newServer(t, leaseOf("bob@b/2", time.Now().Add(-time.Hour), 7))
				shown, err := Inspect(t.Context(), client, "tool", "pool-a")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				begin := time.Now()
				go func() {
					time.Sleep(7 * time.Second)
					tc.after(t, client, cancel)
				}()
				if err := BreakExpired(ctx, client, shown, clock.RealClock{}); !errors.Is(err, tc.err) {
					t.Errorf("got %v, want %v", err, tc.err)
				}
				if took := time.Since(begin); took != 7*time.Second {
					t.Errorf("watched for %s, want 7s", took)
				}
				if got := readHolder(client); got != tc.holder {
					t.Errorf("holder is %q, want %q", got, tc.holder)
				}
			})
		})
	}
}
