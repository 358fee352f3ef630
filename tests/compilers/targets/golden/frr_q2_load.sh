#!/bin/sh
# 3: build 0123456789abcdef. What FRR leaves to others; it may run again at any time.
set -eu
cd "$(dirname "$0")"
ip link show hosts > /dev/null 2>&1 || ip link add hosts type bridge
sysctl --quiet --ignore --load sysctl.conf
grep -v '^link add ' links.batch | ip -batch -
for family in -4 -6; do
  ip $family rule flush protocol 80
  ip $family -batch rules.batch
done
