package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/engine"
	"github.com/dramigrate/dramigrate/internal/status"
)

// records reads the pools' journals and locks. What may not be read is said and left
// out: a status is worth having without it.
func (a *app) records(ctx context.Context, l *look, pools []cluster.NodePool) map[string]status.Record {
	out := map[string]status.Record{}
	for _, p := range pools {
		r, err := a.record(ctx, l, p.Name)
		if err != nil {
			fmt.Fprintf(a.Err, "Warning: %v\n", err)
			if apierrors.IsForbidden(err) {
				return out // as are all the others
			}
		}
		out[p.Name] = r
	}
	return out
}

func (a *app) record(ctx context.Context, l *look, pool string) (status.Record, error) {
	var r status.Record
	journal, found, err := a.journals(l.client).Load(ctx, pool)
	if err != nil {
		return r, err
	}
	if found {
		r.Journal = journal
	}
	info, err := engine.Inspect(ctx, l.client, a.namespace, engine.ObjectName(pool))
	if err != nil {
		return r, err
	}
	if info.Held() {
		r.Lock = &status.Lock{
			Holder: info.Holder, Operation: info.Info["operation"], Since: info.Since,
			Expires: info.ExpiresAt, Expired: info.Expired(a.Clock().Now()),
		}
	}
	return r, nil
}
