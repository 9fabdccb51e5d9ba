//go:build linux

package loopback

import (
	"net"
	"net/netip"
	"testing"
)

// picks offers the blocks in their order, the last one again and again.
func picks(blocks ...[2]byte) func() (byte, byte) {
	return func() (byte, byte) {
		b := blocks[0]
		if len(blocks) > 1 {
			blocks = blocks[1:]
		}
		return b[0], b[1]
	}
}

func mustTake(t *testing.T, cache string, pick func() (byte, byte)) *Block {
	t.Helper()
	b, err := take(cache, pick)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Release() })
	return b
}

func TestBlocksDoNotOverlap(t *testing.T) {
	cache := t.TempDir()
	first := mustTake(t, cache, picks([2]byte{201, 7}))
	if first.Plane() != netip.MustParseAddr("127.201.7.1") {
		t.Errorf("control plane at %s", first.Plane())
	}
	second := mustTake(t, cache, picks([2]byte{201, 7}, [2]byte{201, 7}, [2]byte{201, 8}))
	if second.Plane() != netip.MustParseAddr("127.201.8.1") {
		t.Errorf("control plane of the second at %s, want the next offered block", second.Plane())
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	third := mustTake(t, cache, picks([2]byte{201, 7}))
	if third.Plane() != netip.MustParseAddr("127.201.7.1") {
		t.Errorf("a released block was not given again: %s", third.Plane())
	}
}

func TestAllTaken(t *testing.T) {
	cache := t.TempDir()
	mustTake(t, cache, picks([2]byte{201, 9}))
	if b, err := take(cache, picks([2]byte{201, 9})); err == nil {
		t.Errorf("took %s twice", b.Plane())
	}
}

// A cluster of another user is not seen by its lock.
func TestBlockWithAListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.201.10.1:6443")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := mustTake(t, t.TempDir(), picks([2]byte{201, 10}, [2]byte{201, 11}))
	if b.Plane() != netip.MustParseAddr("127.201.11.1") {
		t.Errorf("control plane at %s, where another listens", b.Plane())
	}
}

func TestNodeAddresses(t *testing.T) {
	b := mustTake(t, t.TempDir(), picks([2]byte{201, 12}))
	for index, want := range map[int]string{0: "127.201.12.11", 1: "127.201.12.12", 199: "127.201.12.210"} {
		if got, err := b.Node(index); err != nil || got.String() != want {
			t.Errorf("node %d: %s, %v, want %s", index, got, err, want)
		}
	}
	for _, index := range []int{-1, 200} {
		if got, err := b.Node(index); err == nil {
			t.Errorf("node %d got %s", index, got)
		}
	}
}

func TestPort(t *testing.T) {
	addr := netip.MustParseAddr("127.201.13.1")
	if got, err := Port(addr, 10250); err != nil || got != 10250 {
		t.Errorf("free port: %d, %v, want 10250", got, err)
	}
	l, err := net.Listen("tcp", "127.201.13.1:10250")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got, err := Port(addr, 10250); err != nil || got == 10250 || got == 0 {
		t.Errorf("taken port: %d, %v, want another", got, err)
	}
}
