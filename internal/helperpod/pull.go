package helperpod

import (
	"context"
)

// PullOptions are the choices of one pull.
type PullOptions struct {
	Wait
}

// Pull proves that a helper image can be pulled and runs on a node, before anything
// on the node is changed: a probe that fails for its image would leave it closed.
func (r *Runner) Pull(ctx context.Context, node, image string, o PullOptions) error {
	j := &job{purpose: ForPull, node: node, pod: r.pullPod(node, image, o.Wait), wait: o.Wait}
	j.until = j.ended
	return r.run(ctx, j, func(_ context.Context, v view, log string) error {
		if terminated(v.pod).ExitCode == 0 {
			return nil
		}
		e := j.failed(Failed, "image "+image+" does not run: "+ending(v.pod), nil)
		e.Log = tail(log)
		return e
	})
}
