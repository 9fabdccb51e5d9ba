package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/dramigrate/dramigrate/internal/jsonerr"
)

// How the tool's own objects are found and read. Each pool has a ConfigMap with its
// journal and a Lease, both by RecordName; so have the shared objects.
const (
	// JournalKey is the key of the journal in its ConfigMap.
	JournalKey = "journal.yaml"
	// PoolAnnotation holds the pool's true name, which RecordName may have cut.
	PoolAnnotation = "dramigrate.dev/pool"
	// KindLabel with the value KindJournal marks the ConfigMaps that are journals.
	KindLabel   = "dramigrate.dev/kind"
	KindJournal = "journal"
	// LockInfoPrefix begins the annotations of a Lease that tell about its holder.
	LockInfoPrefix = "dramigrate.dev/"
)

// DefaultLockTTL is how long a Lease outlives its last renewal.
const DefaultLockTTL = 60 * time.Second

// RecordName is the name of a pool's ConfigMap and Lease ("shared" for the empty
// name). A pool's name is a label's value, or what a person typed; one that does not
// fit into an object's name is cut down and carries a hash of the true name.
func RecordName(pool string) string {
	if pool == "" {
		return "shared"
	}
	name := "pool-" + pool
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(pool))
	var b strings.Builder
	for _, r := range strings.ToLower(pool) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	short := b.String()
	if len(short) > 200 {
		short = short[:200]
	}
	return "pool-" + short + "-" + hex.EncodeToString(sum[:4])
}

// DecodeJournal reads the journal of a ConfigMap. It is strict: a field that this
// version does not know would be lost at the next write.
func DecodeJournal(cm *corev1.ConfigMap) (*Journal, error) {
	object := "configmap/" + cm.Namespace + "/" + cm.Name
	data, ok := cm.Data[JournalKey]
	if !ok {
		return nil, fmt.Errorf("%s: has no key %s", object, JournalKey)
	}
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(data), &head); err != nil {
		return nil, fmt.Errorf("%s: %w", object, jsonerr.Plain(err))
	}
	if head.APIVersion != APIVersion || head.Kind != JournalKind {
		return nil, fmt.Errorf("%s: is a %s %s; this version reads %s %s only", object,
			head.APIVersion, head.Kind, APIVersion, JournalKind)
	}
	journal := &Journal{}
	if err := yaml.UnmarshalStrict([]byte(data), journal); err != nil {
		return nil, fmt.Errorf("%s: %w", object, jsonerr.AgainYAML([]byte(data), journal, err))
	}
	if RecordName(journal.Pool) != cm.Name {
		return nil, fmt.Errorf("%s: is the journal of pool %q", object, journal.Pool)
	}
	return journal, nil
}

// EncodeJournal is the ConfigMap of a journal, as DecodeJournal reads it.
func EncodeJournal(j *Journal, namespace string) (*corev1.ConfigMap, error) {
	data, err := yaml.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("encode journal of pool %q: %w", j.Pool, err)
	}
	cm := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: RecordName(j.Pool), Labels: map[string]string{KindLabel: KindJournal},
		},
		Data: map[string]string{JournalKey: string(data)},
	}
	if j.Pool != "" {
		cm.Annotations = map[string]string{PoolAnnotation: j.Pool}
	}
	return cm, nil
}

// LockInfo is what a Lease says about its holder.
type LockInfo struct {
	Namespace, Name string
	// Holder is empty if nobody holds the Lease.
	Holder string
	// Since and RenewedAt are by the holder's clock; ExpiresAt is RenewedAt + TTL.
	Since, RenewedAt, ExpiresAt time.Time
	TTL                         time.Duration
	Epoch                       int64
	// Info is what the last holder told about itself ("operation").
	Info map[string]string
}

// Held says that the Lease names a holder, whether it has expired or not.
func (i LockInfo) Held() bool { return i.Holder != "" }

// Expired compares the Lease's own times with a clock that may not be the
// holder's.
func (i LockInfo) Expired(now time.Time) bool { return i.Held() && !now.Before(i.ExpiresAt) }

// LockOf reads a Lease.
func LockOf(lease *coordinationv1.Lease) LockInfo {
	s := lease.Spec
	i := LockInfo{Namespace: lease.Namespace, Name: lease.Name, TTL: DefaultLockTTL, Info: map[string]string{}}
	if s.HolderIdentity != nil {
		i.Holder = *s.HolderIdentity
	}
	if s.LeaseDurationSeconds != nil {
		i.TTL = time.Duration(*s.LeaseDurationSeconds) * time.Second
	}
	if s.AcquireTime != nil {
		i.Since = s.AcquireTime.Time
	}
	if s.RenewTime != nil {
		i.RenewedAt = s.RenewTime.Time
		i.ExpiresAt = i.RenewedAt.Add(i.TTL)
	}
	if s.LeaseTransitions != nil {
		i.Epoch = int64(*s.LeaseTransitions)
	}
	for k, v := range lease.Annotations {
		if name, ok := strings.CutPrefix(k, LockInfoPrefix); ok {
			i.Info[name] = v
		}
	}
	return i
}

// Lease is a Lease that LockOf reads the same from.
func (i LockInfo) Lease() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Name},
		Spec: coordinationv1.LeaseSpec{
			LeaseDurationSeconds: ptr.To(int32(i.TTL / time.Second)),
			LeaseTransitions:     ptr.To(int32(i.Epoch)),
		},
	}
	if i.Holder != "" {
		lease.Spec.HolderIdentity = ptr.To(i.Holder)
	}
	if !i.Since.IsZero() {
		lease.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(i.Since))
	}
	if !i.RenewedAt.IsZero() {
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(i.RenewedAt))
	}
	for name, v := range i.Info {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, LockInfoPrefix+name, v)
	}
	return lease
}

// Journal is a pool's journal, or that of the shared objects for the empty name; nil
// if there is none.
func (s *Snapshot) Journal(pool string) *Journal {
	i := slices.IndexFunc(s.Journals, func(j Journal) bool { return j.Pool == pool })
	if i < 0 {
		return nil
	}
	return &s.Journals[i]
}

// Lock is the held lock of a pool, or of the shared objects for the empty name.
func (s *Snapshot) Lock(pool string) (LockInfo, bool) {
	i := slices.IndexFunc(s.Locks, func(l LockInfo) bool { return l.Name == RecordName(pool) && l.Held() })
	if i < 0 {
		return LockInfo{}, false
	}
	return s.Locks[i], true
}
