package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dramigrate/dramigrate/internal/cluster"
	"github.com/dramigrate/dramigrate/internal/offline"
	"github.com/dramigrate/dramigrate/internal/report"
)

// addFrom lets a verb read files instead of a cluster.
func (a *app) addFrom(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.from, "from", nil,
		"read this instead of a cluster: a file or folder of snapshot or kubectl get -o yaml|json, or - for standard input; may be repeated")
}

// offline says whether the verb reads files. It opens no connection then.
func (a *app) offline() bool { return len(a.from) > 0 }

// lookAtFiles reads what --from names.
func (a *app) lookAtFiles(ctx context.Context, o cluster.LoadOptions) (*cluster.Snapshot, error) {
	return a.lookAtFilesAndEvents(ctx, o, nil)
}

// lookAtFilesAndEvents hands on the events about pods, too, unless events is nil.
func (a *app) lookAtFilesAndEvents(ctx context.Context, o cluster.LoadOptions, events func(cluster.AboutPod)) (*cluster.Snapshot, error) {
	if slices.Contains(a.from, "") {
		return nil, usageError("--from: name a file, a folder, or - for standard input")
	}
	s, ignored, err := a.readFiles(ctx, o, events)
	if err != nil {
		return nil, err
	}
	if s.Source != nil {
		fmt.Fprintf(a.Err, "Note: %s.\n", s.Source.Note)
	}
	if len(ignored) > 0 {
		fmt.Fprintf(a.Err, "Ignored in --from, as nothing here depends on them: %s\n", report.Clean(counts(ignored)))
	}
	return s, nil
}

// readFiles reads, or gives up when the context ends: a pipe that nobody writes to
// would hold the process for ever.
func (a *app) readFiles(ctx context.Context, o cluster.LoadOptions, events func(cluster.AboutPod)) (*cluster.Snapshot, map[string]int, error) {
	var ignored map[string]int
	s, err := interruptible(ctx, func() (s *cluster.Snapshot, err error) {
		s, ignored, err = offline.Read(ctx, a.from, offline.Options{Namespace: o.Namespace, Advice: o.Advice, Stdin: a.In, Events: events})
		return s, err
	})
	switch {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		return nil, nil, fmt.Errorf("--from %w", err)
	}
	return s, ignored, nil
}

// counts writes how many there are of each kind: "2 ConfigMap, 1 Secret".
func counts(of map[string]int) string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		out = append(out, fmt.Sprintf("%d %s", of[kind], kind))
	}
	return strings.Join(out, ", ")
}
