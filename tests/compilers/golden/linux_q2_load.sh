#!/bin/sh
# 3: build 0123456789abcdef.
# load.sh: configure everything, instead of an earlier build. load.sh watch: then stay, and load
# addresses and routes again whenever a link comes up: the kernel took those of the link away when
# it went down.
set -eu
cd "$(dirname "$0")"

routes() {
  ip -batch addresses.batch
  ip -force -batch routes.batch || echo "polarfab: not all routes are loaded; is a link down?" >&2
}

load() {
  ip link show hosts > /dev/null 2>&1 || ip link add hosts type bridge
  sysctl --quiet --ignore --load sysctl.conf
  ip -batch links.batch
  for family in -4 -6; do
    ip $family rule flush protocol 80
    ip $family route flush table all protocol 80
    ip $family -batch rules.batch
  done
  ip nexthop flush protocol 80 > /dev/null
  routes
}

if [ "${1-}" != watch ]; then
  load
  exit
fi
ip -oneline monitor link | {
  load
  while read -r line; do
    case $line in *LOWER_UP*) routes ;; esac
  done
}
