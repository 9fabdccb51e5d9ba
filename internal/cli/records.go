package cli

import (
	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/status"
)

// records are the pools' journals and locks.
func (a *app) records(s *cluster.Snapshot, pools []cluster.NodePool) map[string]status.Record {
	out := map[string]status.Record{}
	for _, p := range pools {
		r := status.Record{Journal: s.Journal(p.Name)}
		if lock, held := s.Lock(p.Name); held {
			r.Lock = &status.Lock{
				Holder: lock.Holder, Operation: lock.Info["operation"], Since: lock.Since,
				Expires: lock.ExpiresAt, Expired: lock.Expired(a.Clock().Now()),
			}
		}
		out[p.Name] = r
	}
	return out
}
