#!/usr/bin/env bash
# Moves a pool of GPU nodes from the device plugin to Dynamic Resource Allocation
# and back, by hand, in the order in which public guides describe it. It is what
# dramigrate is compared with, and not a recommendation: README.md says what broke.
#
#   by-hand.sh forward            device plugin -> DRA, one node after the other
#   by-hand.sh back               the way back, each node drained first
#   by-hand.sh back-driver-first  the way back as the reverse of the way there
#
# Needs kubectl and these variables:
#   POOL          label selector of the pool's nodes, key=value
#   DRIVER_DIR    folder of the DRA driver's manifests
#   DEVICE_CLASS  file with the DeviceClass that carries nvidia.com/gpu
#   WORKLOAD      Deployment to wait for after each node (optional)
#   TIMEOUT       of each drain and rollout; 180s if not set
set -euo pipefail

plugin=nvidia-device-plugin-daemonset
plugin_ns=kube-system
driver=dra-driver-nvidia-gpu-kubelet-plugin
driver_ns=dra-driver-nvidia-gpu
# Nodes with this label belong to the driver, all others to the plugin.
label=gpu-mode
timeout=${TIMEOUT:-180s}

# run shows a command as it was typed, and runs it.
run() {
  printf '\n$ %s\n' "$*"
  "$@"
}

nodes() { kubectl get nodes -l "$POOL" -o name; }

cordon_and_drain() {
  run kubectl cordon "$1"
  run kubectl drain "$1" --ignore-daemonsets --delete-emptydir-data --timeout="$timeout"
}

workload_is_back() {
  [[ -z ${WORKLOAD:-} ]] || run kubectl rollout status "deployment/$WORKLOAD" --timeout="$timeout"
}

# The plugin keeps off the nodes with the label. Its manifest has no affinity.
plugin_off_labelled_nodes() {
  run kubectl -n "$plugin_ns" patch daemonset "$plugin" --type merge -p '
    {"spec": {"template": {"spec": {"affinity": {"nodeAffinity": {
      "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "'"$label"'", "operator": "NotIn", "values": ["dra"]}]}]}}}}}}}'
  run kubectl -n "$plugin_ns" rollout status "daemonset/$plugin" --timeout="$timeout"
}

plugin_everywhere() {
  run kubectl -n "$plugin_ns" patch daemonset "$plugin" --type merge -p '
    {"spec": {"template": {"spec": {"affinity": null}}}}'
  run kubectl -n "$plugin_ns" rollout status "daemonset/$plugin" --timeout="$timeout"
}

# The driver goes to the nodes with the label only, as with a chart's nodeSelector.
install_driver() {
  local file
  for file in "$DRIVER_DIR"/*.yaml; do
    if grep -q '^kind: DaemonSet' "$file"; then
      printf '\n$ kubectl patch --local -f %s -p <nodeSelector %s=dra> -o yaml | kubectl apply -f -\n' "$file" "$label"
      kubectl patch --local -f "$file" --type merge -o yaml -p '
        {"spec": {"template": {"spec": {"nodeSelector": {"'"$label"'": "dra"}}}}}' | kubectl apply -f -
    else
      run kubectl apply -f "$file"
    fi
  done
}

driver_is_ready() { run kubectl -n "$driver_ns" rollout status "daemonset/$driver" --timeout="$timeout"; }

remove_driver() { run kubectl delete -f "$DRIVER_DIR" --timeout="$timeout"; }

forward() {
  local node first=yes
  for node in $(nodes); do
    cordon_and_drain "$node"
    run kubectl label "$node" "$label=dra"
    if [[ $first == yes ]]; then
      plugin_off_labelled_nodes
      install_driver
    fi
    driver_is_ready
    if [[ $first == yes ]]; then
      run kubectl apply -f "$DEVICE_CLASS"
      first=no
    fi
    run kubectl uncordon "$node"
    workload_is_back
  done
}

back() {
  local node
  for node in $(nodes); do
    cordon_and_drain "$node"
    # One label takes the driver away and brings the plugin back.
    run kubectl label "$node" "$label-"
    run kubectl -n "$plugin_ns" rollout status "daemonset/$plugin" --timeout="$timeout"
    run kubectl uncordon "$node"
    workload_is_back
  done
  run kubectl delete -f "$DEVICE_CLASS"
  remove_driver
  plugin_everywhere
}

back_driver_first() {
  local node
  run kubectl delete -f "$DEVICE_CLASS"
  remove_driver
  plugin_everywhere
  for node in $(nodes); do
    run kubectl label "$node" "$label-"
    cordon_and_drain "$node"
    run kubectl uncordon "$node"
    workload_is_back
  done
}

case "${1:-}" in
  forward) forward ;;
  back) back ;;
  back-driver-first) back_driver_first ;;
  *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
esac
