// Package loopback gives each cluster addresses of its own on the loopback
// interface, so that several run side by side and nothing is reachable from
// outside the machine.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/dramigrate/dramigrate/test/cluster/internal/filelock"
)

// MaxNodes is how many nodes a block has addresses for.
const MaxNodes = 200

// firstNode is the last byte of the first node's address: …11, …12 and so on.
const firstNode = 11

// Block is a range 127.a.b.0/24 that no other cluster uses. Where the system
// has one loopback address only, all of a block's addresses are that one.
type Block struct {
	net  [3]byte
	lock *filelock.Lock
}

// Take finds a block that is free: not locked by another cluster of the same
// cache folder, and with nothing listening on its control plane's address.
func Take(cache string) (*Block, error) {
	if runtime.GOOS != "linux" {
		// 127.0.0.1 is the only address that is configured by default.
		return &Block{}, nil
	}
	return take(cache, func() (byte, byte) {
		// 127.0.x is where other programs' addresses are (127.0.0.53, 127.0.1.1).
		return byte(1 + rand.IntN(254)), byte(rand.IntN(256))
	})
}

// attempts bounds the search: with 65,024 blocks, failing this often means that
// something other than other clusters is wrong.
const attempts = 64

func take(cache string, pick func() (byte, byte)) (*Block, error) {
	var last error
	for range attempts {
		b := &Block{}
		b.net[0] = 127
		b.net[1], b.net[2] = pick()
		lock, err := filelock.Try(filepath.Join(cache, "loopback", fmt.Sprintf("127.%d.%d.lock", b.net[1], b.net[2])))
		if errors.Is(err, filelock.ErrHeld) {
			last = err
			continue
		}
		if err != nil {
			return nil, err
		}
		// A cluster of another user has another cache folder: see whether its API
		// server is there.
		if !free(b.Plane(), APIPort) {
			last = fmt.Errorf("%s:%d is in use", b.Plane(), APIPort)
			if err := lock.Release(); err != nil {
				return nil, err
			}
			continue
		}
		b.lock = lock
		return b, nil
	}
	return nil, fmt.Errorf("no free loopback addresses after %d attempts: %w", attempts, last)
}

// APIPort is the API server's port unless another program has it.
const APIPort = 6443

// Lock is held as long as its file is open in this or an inheriting process;
// nil where blocks are not locked.
func (b *Block) Lock() *filelock.Lock { return b.lock }

// Release gives the block up for this process.
func (b *Block) Release() error {
	if b.lock == nil {
		return nil
	}
	return b.lock.Release()
}

// Plane is the control plane's address.
func (b *Block) Plane() netip.Addr { return b.addr(1) }

// Node is the address of the node with the index, counted from 0.
func (b *Block) Node(index int) (netip.Addr, error) {
	if index < 0 || index >= MaxNodes {
		return netip.Addr{}, fmt.Errorf("node %d: a cluster has at most %d nodes with an address", index+1, MaxNodes)
	}
	return b.addr(byte(firstNode + index)), nil
}

func (b *Block) addr(last byte) netip.Addr {
	if b.net[0] == 0 {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrFrom4([4]byte{b.net[0], b.net[1], b.net[2], last})
}

// Port returns preferred if it can be listened on at addr, else a port that
// can: a program of the host that listens on all addresses may have taken it.
func Port(addr netip.Addr, preferred int) (int, error) {
	if free(addr, preferred) {
		return preferred, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(addr.String(), "0"))
	if err != nil {
		return 0, fmt.Errorf("no free port at %s: %w", addr, err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("port %d at %s: %w", port, addr, err)
	}
	return port, nil
}

func free(addr netip.Addr, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(addr.String(), strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
