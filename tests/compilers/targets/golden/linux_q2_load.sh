#!/bin/sh
# 3: build 0123456789abcdef.
# load.sh: configure everything, instead of an earlier build; it stops at the first command that fails, and
# says what holds. load.sh watch: then stay, and load addresses and routes again whenever a link comes up: the
# kernel took those of the link away when it went down.
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
for file in sysctl.conf links.batch addresses.batch rules.batch routes.batch; do
  [ -r "$file" ] || { echo "polarfab: no file $file; nothing was changed" >&2; exit 1; }
done
for port in lo eth1 eth2 eth3 eth4 eth5; do
  ip link show dev "$port" > /dev/null || { echo "polarfab: no interface $port; nothing was changed" >&2; exit 1; }
done

# The commands of routes.batch but for those that only lead to links that are down, which the kernel refuses.
usable() {
  ip -oneline link show up | awk '
    FILENAME == "-" { if (/LOWER_UP/) { sub(/[:@].*/, "", $2); up[$2] = 1 }; next }
    /^nexthop replace id [0-9]+ via / { if (!($8 in up)) { gone[$4] = 1; next } }
    /^nexthop replace id [0-9]+ group / {
      count = split($6, member, "/"); left = ""
      for (n = 1; n <= count; n++) {
        split(member[n], part, ",")
        if (!(part[1] in gone)) left = left (left == "" ? "" : "/") member[n]
      }
      if (left == "") { gone[$4] = 1; next }
      $6 = left
    }
    /^route replace [^ ]+ nhid / { if ($5 in gone) next }
    { print }' - routes.batch
}

routes() {
  ip -batch addresses.batch || stop "addresses.batch: the command of the line above failed"
  commands=$(usable)
  if ! said=$(echo "$commands" | ip -batch - 2>&1); then
    line=$(echo "$said" | sed -n 's/^Command failed -:\([0-9]*\)$/\1/p')
    stop "routes.batch: $(echo "$commands" | sed -n "${line:-1}p"): $said"
  fi
}

load() {
  ip link show hosts > /dev/null 2>&1 || ip link add hosts type bridge || stop "no bridge hosts"
  settings
  grep -v '^link add ' links.batch | ip -batch - || stop "links.batch: the command of the line above failed"
  # With a link go its routes, and groups of links that have gone: those are no longer found.
  ip nexthop show protocol 80 | while read -r _ id _; do
    ip nexthop delete id "$id" 2> /dev/null || true
  done
  for family in -4 -6; do
    ip $family rule flush protocol 80 || stop "old rules"
    ip $family route flush table all type unreachable protocol 80 || stop "old routes"
    ip $family -batch rules.batch || stop "rules.batch: the command of the line above failed"
  done
  routes
}

load
[ "${1-}" = watch ] || exit 0
{
  ip -oneline monitor link &
  # A link that comes up before it listens is found by the look after that; /proc/net/netlink says when it does.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    awk -v p=$! '$3 == p && $4 !~ /^0+$/ { found = 1 } END { exit !found }' /proc/net/netlink && break
    sleep 1
  done
  echo LOWER_UP
  wait
} | while read -r line; do
  # An interface that is missing now has not been made yet, by whoever puts new files here.
  case $line in *LOWER_UP*) (routes) || true ;; esac
done
