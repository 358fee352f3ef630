#!/bin/sh
# 3: build 0123456789abcdef.
# load.sh: configure everything, instead of an earlier build. load.sh watch: then stay, and load
# addresses and routes again whenever a link comes up: the kernel took those of the link away when
# it went down.
set -eu
cd "$(dirname "$0")"

routes() {
  ip -force -batch addresses.batch
  ip -force -batch routes.batch || echo "polarfab: not all routes are loaded; is a link down?" >&2
}

load() {
  ip link show hosts > /dev/null 2>&1 || ip link add hosts type bridge
  sysctl --quiet --ignore --load sysctl.conf
  grep -v '^link add ' links.batch | ip -batch -
  # With a link go its routes, and groups of links that have gone: those are no longer found.
  ip nexthop show protocol 80 | while read -r _ id _; do
    ip nexthop delete id "$id" 2> /dev/null || true
  done
  for family in -4 -6; do
    ip $family rule flush protocol 80
    ip $family route flush table all type unreachable protocol 80
    ip $family -batch rules.batch
  done
  routes
}

if [ "${1-}" != watch ]; then
  load
  exit
fi
ip -oneline monitor link | {
  load
  while read -r line; do
    # An interface that is missing now has not been made yet, by whoever puts new files here.
    case $line in *LOWER_UP*) routes || true ;; esac
  done
}
