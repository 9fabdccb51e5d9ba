package nvml

import "maps"

// xid is an Xid error of a GPU, as the driver reports it to the kernel's log too.
type xid struct {
	gpu    int
	number uint64
}

// maxXIDs bounds how many errors one look takes from the library's queue. A GPU in
// trouble can report them faster than they are read.
const maxXIDs = 1000

// watchXIDs registers each GPU for the library's events.
func (l *Library) watchXIDs(ask *asker) {
	count, ok := answer(ask, "xid", "nvmlDeviceGetCount", l.o.StartTimeout, l.driver.count)
	if !ok {
		return
	}
	l.xids = map[int][]uint64{}
	for i := range count {
		// One GPU that cannot be watched is that GPU's matter: it has no entry.
		if _, ok := answer(ask, "xid", "nvmlDeviceRegisterEvents", l.o.StartTimeout, func() (struct{}, Code) {
			return struct{}{}, l.driver.watchXIDs(i)
		}); ok {
			l.xids[i] = []uint64{}
		}
	}
}

// takeXIDs reads what has come since the last look, and returns all since Open, by the
// index of the GPU. A GPU without an entry is not watched.
func (l *Library) takeXIDs(ask *asker) map[int][]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.xids) == 0 {
		return nil
	}
	before := len(ask.errs)
	for range maxXIDs {
		e, ok := answer(ask, "xid", "nvmlEventSetWait", l.o.Timeout, l.driver.nextXID)
		if ok {
			l.xids[e.gpu] = append(l.xids[e.gpu], e.number)
			continue
		}
		// The code for "none has come" is that of a wait that was too long.
		if last := ask.errs[len(ask.errs)-1]; last.Code == codeTimeout {
			ask.errs = ask.errs[:before]
		}
		break
	}
	out := maps.Clone(l.xids)
	for i, list := range out {
		out[i] = append([]uint64{}, list...)
	}
	return out
}
