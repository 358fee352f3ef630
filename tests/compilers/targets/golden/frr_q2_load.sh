#!/bin/sh
# 3: build 0123456789abcdef. What FRR leaves to others; it may run again at any time. It stops at the
# first command that fails, and says what holds.
set -eu
cd "$(dirname "$0")"

stop() {
  echo "polarfab: $1. What was done before it holds, nothing behind it; run load.sh again." >&2
  exit 1
}

# sysctl goes on behind a line that it cannot read, and says so.
settings() {
  said=$(sysctl --quiet --ignore --load sysctl.conf 2>&1) && [ -z "$said" ] || stop "sysctl.conf: $said"
}

# Before anything changes: the files, and the interfaces that they are about.
for file in sysctl.conf links.batch rules.batch; do
  [ -r "$file" ] || { echo "polarfab: no file $file; nothing was changed" >&2; exit 1; }
done
for port in lo eth1 eth2 eth3 eth4 eth5; do
  ip link show dev "$port" > /dev/null || { echo "polarfab: no interface $port; nothing was changed" >&2; exit 1; }
done

ip link show hosts > /dev/null 2>&1 || ip link add hosts type bridge || stop "no bridge hosts"
settings
grep -v '^link add ' links.batch | ip -batch - || stop "links.batch: the command of the line above failed"
for family in -4 -6; do
  ip $family rule flush protocol 80 || stop "old rules"
  ip $family -batch rules.batch || stop "rules.batch: the command of the line above failed"
done
