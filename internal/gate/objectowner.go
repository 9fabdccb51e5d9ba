package gate

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnerOfObject finds who owns an object of any kind, by the same marks as OwnerOf.
// Without its field managers those who leave no other mark are not seen.
func OwnerOfObject(meta metav1.ObjectMeta) Owner {
	return OwnerOf(&appsv1.DaemonSet{ObjectMeta: meta})
}
