package nodeprobe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/dramigrate/dramigrate/internal/nvml"
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
	// Parts are what to ask; the kubelet's PodResources API alone if empty, and then
	// there is no verdict.
	Parts []Part
	// Socket is the PodResources socket; DefaultSocket if empty.
	Socket string
	// Timeout is for each call to the kubelet; DefaultTimeout if 0.
	Timeout time.Duration
	// KubeletRoot is the kubelet's folder; DefaultKubeletRoot if empty.
	KubeletRoot string
	// CDIDirs are the folders of CDI; DefaultCDIDirs if empty.
	CDIDirs []string
	// Processes has the owners of the processes on the devices looked up, in NVML.Proc.
	Processes bool
	// NVML says where the driver's library is, and the host's process table.
	NVML nvml.Options
	// API is the API server's view of the node; nil if there is none.
	API *APIView
	// Now tells the report's time; time.Now if nil.
	Now func() time.Time
}

func (o *Options) asks(p Part) bool {
	return slices.Contains(o.Parts, p) || len(o.Parts) == 0 && p == AskKubelet
}

// Run probes the node and writes the report to stdout, as JSON in one line: a
// pod's log is one text of both output streams, in which only lines stay whole.
//
// The exit code is that of the report, see [NodeReport.Exit]. An error comes with
// ExitError, and then there is no report, or not all of it.
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
	return report.Exit(), nil
}

// Exit is the exit code of a report: ExitDouble if a device is advertised or held by
// both mechanisms, else ExitUnknown if a part is unknown, or a device is for that reason
// not clean. The latter is no error of the probe: the report says what and why.
func (r *NodeReport) Exit() int {
	switch {
	case r.Verdict == DoubleHeld || r.Verdict == DoubleAdvertised:
		return ExitDouble
	case r.Verdict == Undecided || len(r.Unknown) > 0:
		return ExitUnknown
	}
	return ExitOK
}

// Collect asks the node for all parts at the same time. What it does not answer is
// unknown in the report; an error means that nothing could be asked at all.
func Collect(ctx context.Context, o Options) (report *NodeReport, err error) {
	if o.Node == "" {
		return nil, errors.New("node-probe: no node is named")
	}
	o.setDefaults()
	report = &NodeReport{
		APIVersion:    APIVersion,
		Kind:          Kind,
		Node:          o.Node,
		Time:          o.Now().UTC(),
		KubeletSocket: o.Socket,
		Parts:         o.Parts,
		Processes:     o.Processes && o.asks(AskNVML),
	}
	k, err := connect(o.Socket)
	if err != nil {
		return nil, fmt.Errorf("node/%s: %w", o.Node, err)
	}
	defer func() { err = errors.Join(err, k.close()) }()

	// Each part has its own list of what is unknown, so that they need no lock and
	// always stand in the same order.
	var kubelet, files, hardware gaps
	var all sync.WaitGroup
	if o.asks(AskKubelet) {
		all.Go(func() { kubelet = askKubelet(ctx, k, o, report) })
	}
	if o.asks(AskCheckpoints) || o.asks(AskCDI) {
		all.Go(func() { report.Files, files = readFiles(o) })
	}
	if o.asks(AskNVML) {
		all.Go(func() { report.Hardware, hardware = lookAtHardware(ctx, o) })
	}
	all.Wait()
	report.Unknown = slices.Concat(kubelet, files, hardware)
	if len(o.Parts) == 0 || slices.Equal(o.Parts, []Part{AskKubelet}) {
		report.Parts = nil
		return report, nil
	}
	report.checkAbsent()
	joined := Join(*report, o.API)
	if joined.Verdict == DoubleHeld && o.asks(AskKubelet) && confirm(ctx, k, o, &joined) {
		joined = Join(joined, o.API)
	}
	return &joined, nil
}

func (o *Options) setDefaults() {
	if o.Socket == "" {
		o.Socket = DefaultSocket
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.KubeletRoot == "" {
		o.KubeletRoot = DefaultKubeletRoot
	}
	if len(o.CDIDirs) == 0 {
		o.CDIDirs = DefaultCDIDirs()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if !o.Processes {
		o.NVML.Proc = ""
	}
}

// gaps are the unknown parts of one source.
type gaps []Unknown

func (g *gaps) add(part, reason string) { *g = append(*g, Unknown{Part: part, Reason: reason}) }

// readFiles reads what kubelet and driver have on disk.
func readFiles(o Options) (*Files, gaps) {
	f := &Files{KubeletRoot: o.KubeletRoot}
	var g gaps
	var err error
	if o.asks(AskCheckpoints) {
		if f.DeviceManager, err = readDeviceManager(o.KubeletRoot); err != nil {
			g.add(PartDeviceManager, err.Error())
		}
		if f.Claims, err = readClaimState(o.KubeletRoot); err != nil {
			g.add(PartClaims, err.Error())
		}
		if f.DriverCheckpoints, err = readDriverCheckpoints(o.KubeletRoot); err != nil {
			g.add(PartDriverCheckpoints, err.Error())
		}
		if f.PodFolders, err = readPodFolders(o.KubeletRoot); err != nil {
			g.add(PartPodFolders, err.Error())
		}
		if f.Sockets, err = readSockets(o.KubeletRoot); err != nil {
			g.add(PartSockets, err.Error())
		}
	}
	if o.asks(AskCDI) {
		if f.CDI, err = readCDI(o.CDIDirs); err != nil {
			g.add(PartCDI, err.Error())
		}
	}
	return f, g
}

// checkAbsent doubts a device manager without a checkpoint where plugins are at work:
// somebody has removed the file, and the kubelet has then forgotten what it gave to
// whom at its next start.
func (r *NodeReport) checkAbsent() {
	if r.Files == nil || r.Files.DeviceManager == nil || !r.Files.DeviceManager.Absent {
		return
	}
	plugins := r.Files.Sockets == nil || len(r.Files.Sockets.DevicePlugins) > 0 || r.Advertised == nil || len(r.Advertised) > 0
	if plugins {
		r.Files.DeviceManager = nil
		r.Unknown = append(r.Unknown, Unknown{PartDeviceManager, "not found: " + r.Files.KubeletRoot + "/" +
			devicePluginsDir + "/" + deviceManagerFile + ", though device plugins are, or may be, at work"})
	}
}

// lookAtHardware loads the driver's library for one look. A GPU that does not answer is
// that GPU's matter; a node without a library, or with one that fails, is unknown.
func lookAtHardware(ctx context.Context, o Options) (*nvml.Host, gaps) {
	var g gaps
	lib, err := nvml.Open(ctx, o.NVML)
	if err != nil {
		g.add(PartHardware, err.Error())
		return nil, g
	}
	host, err := lib.Look(ctx)
	if err != nil {
		g.add(PartHardware, err.Error())
		// What a library that hangs says at its end is said already.
		_ = lib.Close()
		return nil, g
	}
	if err := host.Err(); err != nil {
		g.add(PartHardware, err.Error())
	}
	// The report is complete: that the library does not end in order changes nothing.
	_ = lib.Close()
	return &host, g
}
