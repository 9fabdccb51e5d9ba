package offline

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/dramigrate/dramigrate/internal/cluster"
)

// putEvent hands an event on, if it is about a pod.
func (c *collector) putEvent(raw []byte, at place) error {
	var e corev1.Event
	if err := decode(raw, &e); err != nil {
		return at.fail("Event: %w", err)
	}
	if c.now.objects["Event"]++; c.now.objects["Event"] > maxOfKind {
		return at.fail("more than %d events; look at where the file comes from", maxOfKind)
	}
	if about, ok := cluster.EventOf(&e); ok {
		c.events(about)
	} else {
		c.ignore("Event")
	}
	return nil
}
