#!/bin/sh
# h3-0: build 0123456789abcdef. Load everything, instead of an earlier build.
# The kernel sets aside memory for encapsulations in the background and refuses more of them for
# a moment when it is used up: go on from the line it refused.
set -eu
cd "$(dirname "$0")"
said=$(sysctl --quiet --ignore --load host-sysctl.conf 2>&1) && [ -z "$said" ] || {
  echo "polarfab: host-sysctl.conf: $said. Nothing behind it was done; run load.sh again." >&2
  exit 1
}
ip nexthop flush protocol 80 > /dev/null

line=1
tries=0
until message=$(tail -n +"$line" host.batch | ip -batch - 2>&1); do
  failed=$(printf '%s' "$message" | sed -n 's/^Command failed -:\([0-9]*\)$/\1/p')
  tries=$((tries + 1))
  [ "${failed:-1}" -le 1 ] || tries=0
  if [ -z "$failed" ] || [ "$tries" -gt 100 ]; then
    printf 'polarfab: host.batch line %s: %s. What was done before it holds, nothing behind it; run load.sh again.\n' "$line" "$message" >&2
    exit 1
  fi
  line=$((line + failed - 1))
  sleep 0.05
done
