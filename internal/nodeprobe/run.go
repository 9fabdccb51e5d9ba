package nodeprobe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Exit codes of a probe, from the one table of the command line.
const (
	ExitOK      = 0
	ExitError   = 1
	ExitDouble  = 3
	ExitUnknown = 7
)

// DefaultTimeout bounds each call to the kubelet. It answers from memory, so one
// that needs seconds is not well.
const DefaultTimeout = 10 * time.Second

// Options of a probe. Node must be set; the other fields have defaults.
type Options struct {
	Node string
	// Socket is the PodResources socket; DefaultSocket if empty.
	Socket string
	// Timeout is for each call to the kubelet; DefaultTimeout if 0.
	Timeout time.Duration
	// Now tells the report's time; time.Now if nil.
	Now func() time.Time
}

// Run probes the node and writes the report to stdout, as JSON in one line: a
// pod's log is one text of both output streams, in which only lines stay whole.
//
// The exit code is ExitUnknown if a part of the report is unknown, which is not an
// error of the probe: the report says what and why. An error comes with ExitError,
// and then there is no report, or not all of it.
func Run(ctx context.Context, o Options, stdout io.Writer) (exit int, err error) {
	report, err := Collect(ctx, o)
	if err != nil {
		return ExitError, err
	}
	line, err := json.Marshal(report)
	if err != nil {
		return ExitError, fmt.Errorf("node/%s: encode report: %w", o.Node, err)
	}
	if _, err := stdout.Write(append(line, '\n')); err != nil {
		return ExitError, fmt.Errorf("node/%s: write report: %w", o.Node, err)
	}
	if len(report.Unknown) > 0 {
		return ExitUnknown, nil
	}
	return ExitOK, nil
}

// Collect asks the kubelet. What it does not answer is unknown in the report; an
// error means that nothing could be asked at all.
func Collect(ctx context.Context, o Options) (report *NodeReport, err error) {
	if o.Node == "" {
		return nil, errors.New("node-probe: no node is named")
	}
	if o.Socket == "" {
		o.Socket = DefaultSocket
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	k, err := connect(o.Socket)
	if err != nil {
		return nil, fmt.Errorf("node/%s: %w", o.Node, err)
	}
	defer func() { err = errors.Join(err, k.close()) }()

	report = &NodeReport{
		APIVersion:    APIVersion,
		Kind:          Kind,
		Node:          o.Node,
		Time:          o.Now().UTC(),
		KubeletSocket: o.Socket,
	}
	// One call may fail where the other works, so each has its own deadline.
	if resp, err := within(ctx, o.Timeout, func(ctx context.Context) (*podresources.AllocatableResourcesResponse, error) {
		return k.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	}); err != nil {
		report.unknown(PartAdvertised, "GetAllocatableResources: "+k.reason(err, o.Timeout))
	} else {
		report.Advertised = advertised(resp)
	}
	if resp, err := within(ctx, o.Timeout, func(ctx context.Context) (resp *podresources.ListPodResourcesResponse, err error) {
		resp, report.ListCalled, err = callList(ctx, k)
		return resp, err
	}); err != nil {
		report.unknown(PartHolders, "List: "+k.reason(err, o.Timeout))
	} else if report.ListCalled {
		report.Holders = holders(resp)
	}
	return report, nil
}

func within[T any](ctx context.Context, timeout time.Duration, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return call(ctx)
}

func (r *NodeReport) unknown(part, reason string) {
	r.Unknown = append(r.Unknown, Unknown{Part: part, Reason: reason})
}
