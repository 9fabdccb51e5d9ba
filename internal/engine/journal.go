package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/event"
)

// How large a journal may become.
const (
	// MaxRuns is how many runs a journal keeps.
	MaxRuns = 20
	// MaxJournalBytes is far below the 1 MiB that an object may have, so that a
	// journal never gets near it.
	MaxJournalBytes = 256 << 10
)

// ErrFenced is the cause of an error that says that another run has gone on with
// what this run was doing. Such a run must stop.
var ErrFenced = errors.New("another run has taken over")

// FencedError names the run that has taken over, where it is known.
type FencedError struct {
	Object string // "node/gpu-7", "configmap/dramigrate-system/pool-a"
	// Run and Epoch are the other run's; empty if the mark is simply gone.
	Run   string
	Epoch int64
	// Pool is the other run's pool, if it is not ours.
	Pool     string
	OwnRun   string
	OwnEpoch int64
}

func (e *FencedError) Error() string {
	if e.Run == "" {
		return fmt.Sprintf("%s: the mark of run %s, epoch %d, is gone", e.Object, e.OwnRun, e.OwnEpoch)
	}
	other := fmt.Sprintf("run %s, epoch %d", e.Run, e.Epoch)
	if e.Pool != "" {
		other += " of pool " + e.Pool
	}
	return fmt.Sprintf("%s: %v: %s (ours is epoch %d)", e.Object, ErrFenced, other, e.OwnEpoch)
}

func (e *FencedError) Unwrap() error { return ErrFenced }

// JournalTooLargeError says that a journal would outgrow MaxJournalBytes.
type JournalTooLargeError struct {
	Object string
	Bytes  int
}

func (e *JournalTooLargeError) Error() string {
	return fmt.Sprintf("%s: the journal would have %d bytes, more than the %d that are allowed", e.Object, e.Bytes, MaxJournalBytes)
}

// Journals keeps the journals in ConfigMaps of the tool's namespace: one for each
// pool, and one for the shared objects, whose pool name is empty.
type Journals struct {
	Client    kubernetes.Interface
	Namespace string
	Clock     clock.Clock
}

func (j *Journals) object(pool string) string {
	return "configmap/" + j.Namespace + "/" + cluster.RecordName(pool)
}

// Load reads a journal. One that does not exist yet is returned empty, with found
// false.
func (j *Journals) Load(ctx context.Context, pool string) (journal *cluster.Journal, found bool, err error) {
	cm, err := j.Client.CoreV1().ConfigMaps(j.Namespace).Get(ctx, cluster.RecordName(pool), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return newJournal(pool), false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", j.object(pool), err)
	}
	journal, err = j.decode(cm, pool)
	return journal, err == nil, err
}

// Update changes a journal: it reads it, lets change work on it, and writes it
// back, again from the start if somebody else wrote in between. change may
// therefore be called several times, each time with a fresh journal. epoch is that
// of the lock which is held; a journal that a later epoch has written gives
// ErrFenced, because then the lock was lost.
func (j *Journals) Update(ctx context.Context, pool string, epoch int64, change func(*cluster.Journal) error) (*cluster.Journal, error) {
	maps := j.Client.CoreV1().ConfigMaps(j.Namespace)
	object := j.object(pool)
	var journal *cluster.Journal
	err := retry(ctx, j.Clock, func() (again bool, err error) {
		cm, err := maps.Get(ctx, cluster.RecordName(pool), metav1.GetOptions{})
		fresh := apierrors.IsNotFound(err)
		switch {
		case fresh:
			journal = newJournal(pool)
		case err != nil:
			return transient(err), err
		default:
			if journal, err = j.decode(cm, pool); err != nil {
				return false, err
			}
		}
		if last := LastRun(journal); last != nil && lastEpoch(journal) > epoch {
			return false, &FencedError{Object: object, Run: last.ID, Epoch: lastEpoch(journal), OwnEpoch: epoch}
		}
		if err := change(journal); err != nil {
			return false, err
		}
		data, err := encodeJournal(journal)
		if err != nil {
			return false, err
		}
		if len(data) > MaxJournalBytes {
			return false, &JournalTooLargeError{Object: object, Bytes: len(data)}
		}
		if fresh {
			_, err = maps.Create(ctx, j.newConfigMap(pool, data), metav1.CreateOptions{FieldManager: FieldManager})
			return apierrors.IsAlreadyExists(err) || transient(err), err
		}
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[cluster.JournalKey] = string(data)
		_, err = maps.Update(ctx, cm, metav1.UpdateOptions{FieldManager: FieldManager})
		// NotFound: deleted in between; the next round creates it anew.
		return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || transient(err), err
	})
	if err != nil {
		var fenced *FencedError
		var large *JournalTooLargeError
		if errors.As(err, &fenced) || errors.As(err, &large) {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", object, err)
	}
	return journal, nil
}

func newJournal(pool string) *cluster.Journal {
	return &cluster.Journal{APIVersion: cluster.APIVersion, Kind: cluster.JournalKind, Pool: pool}
}

func (j *Journals) newConfigMap(pool string, data []byte) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, Name: cluster.RecordName(pool),
			Labels: map[string]string{ManagedByLabel: FieldManager, cluster.KindLabel: cluster.KindJournal},
		},
		Data: map[string]string{cluster.JournalKey: string(data)},
	}
	if pool != "" {
		cm.Annotations = map[string]string{cluster.PoolAnnotation: pool}
	}
	return cm
}

func (j *Journals) decode(cm *corev1.ConfigMap, pool string) (*cluster.Journal, error) {
	journal, err := cluster.DecodeJournal(cm)
	if err != nil {
		return nil, err
	}
	if journal.Pool != pool {
		return nil, fmt.Errorf("%s: is the journal of pool %q, not of %q", j.object(pool), journal.Pool, pool)
	}
	return journal, nil
}

func encodeJournal(j *cluster.Journal) ([]byte, error) {
	if n := len(j.Runs); n > MaxRuns {
		j.Runs = append([]cluster.RunRecord(nil), j.Runs[n-MaxRuns:]...)
	}
	data, err := yaml.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("encode journal: %w", err)
	}
	return data, nil
}

// LastRun is the newest run, or nil.
func LastRun(j *cluster.Journal) *cluster.RunRecord {
	if len(j.Runs) == 0 {
		return nil
	}
	return &j.Runs[len(j.Runs)-1]
}

func lastEpoch(j *cluster.Journal) int64 {
	var last int64
	for i := range j.Runs {
		last = max(last, j.Runs[i].Epoch)
	}
	return last
}

// MaxEpoch is the highest epoch that a journal knows, for LockOptions.MinEpoch.
func MaxEpoch(j *cluster.Journal) int64 { return lastEpoch(j) }

// StartRun appends a run.
func StartRun(j *cluster.Journal, r cluster.RunRecord) { j.Runs = append(j.Runs, r) }

// EndRun records how a run ended. A run that is not in the journal any more is
// left out.
func EndRun(j *cluster.Journal, id string, outcome event.Outcome, message string, when time.Time) {
	for i := range j.Runs {
		if j.Runs[i].ID == id {
			t := metav1.NewTime(when)
			j.Runs[i].Ended, j.Runs[i].Outcome, j.Runs[i].Message = &t, string(outcome), message
		}
	}
}
