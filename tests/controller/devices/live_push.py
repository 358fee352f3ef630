"""Run in namespaces of its own by test_push_live.py: pushes to real FRR daemons and kernels.

live_push.py OLD OUT NEW TARGET: brings the switches up with the files of an old build in OUT,
spoils some, pushes the new build, reboots a switch, lets a port flap; prints what was seen.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from compilers.audit.route_report import RouteReport
from compilers.tables.folders.build_folder import load
from controller.devices.device_push import PushSettings
from mininet_scenarios.engines.routers import Routers
from mininet_scenarios.scenario.engine import HostSample
from polarfab.fabric import Fabric
from polarfab.switches import push
from tests.waiting import until

PATIENCE = 90
REACH = """#!/bin/sh
# The shell of a switch in its namespace; vtysh finds the daemons of that switch.
test -e "{folder}/away-$1" && case "$2" in
  *"$(cat "{folder}/away-$1")"*) echo "no route to host" >&2; exit 255 ;;
esac
export NODE="$1" PATH="{folder}:$PATH"
exec nsenter -t "$(cat {folder}/pid-$1)" -n sh -c "$2"
"""
VTYSH = """#!/bin/sh
exec {vtysh} --vty_socket "{folder}/daemons/$NODE" --config_dir "{folder}/daemons/$NODE" "$@"
"""
TABLES = {
    "frr": "vtysh -c 'show ip route table all json' -c 'show ipv6 route table all json'",
    "linux": "ip -json route show table all; ip -json nexthop",
}


class Site:
    """The switches, and what an operator has of them: a shell on each."""

    def __init__(self, old, out, new, target, folder):
        self.new, self.target, self.folder = new, target, folder
        (folder / "daemons").mkdir()
        (folder / "daemons").chmod(0o755)
        build = load(old)
        self.fabric = Routers(build, out, target, HostSample.of(build), folder / "daemons")
        for name, space in zip(build.wiring.names, self.fabric.switches, strict=True):
            (folder / f"pid-{name}").write_text(str(space.pid))
            # Files that run are those that a push replaces, as in /etc.
            (folder / "etc" / name).mkdir(parents=True)
            (folder / "etc" / name / "polarfab").symlink_to(out / name)
            (folder / "etc" / name / "frr").symlink_to(folder / "daemons" / name)
        for name, text in (("reach", REACH), ("vtysh", VTYSH)):
            if name == "reach" or target == "frr":
                (folder / name).write_text(text.format(folder=folder, vtysh=shutil.which("vtysh")))
                (folder / name).chmod(0o755)
        self.fabric.start()
        for daemons in (folder / "daemons").iterdir():
            for name in ("frr.conf", "vtysh.conf"):
                (daemons / name).write_text("service integrated-vtysh-config\n" * (name[0] == "v"))
                shutil.chown(daemons / name, "frr", "frr")

    def sh(self, node, command):
        return self.fabric.switches[int(node)].run(str(self.folder / "reach"), node, command)

    def push(self, nodes=(), **settings):
        reach = PushSettings(
            f"{self.folder}/reach {{node}}", f"{self.folder}/etc/{{node}}", **settings
        )
        found = push(Fabric.load(self.new), self.target, reach, nodes=nodes, unverified=True)
        return [{**one.as_dict(), "differences": len(one.differences)} for one in found.switches]

    def wrong(self):
        """What the switches' own tables have that is not the new build's."""
        folder = self.folder / "tables"
        folder.mkdir(exist_ok=True)
        build = load(self.new)
        for name in build.wiring.names:
            (folder / f"{name}.txt").write_text(self.sh(name, TABLES[self.target]))
        return [one.as_dict() for one in RouteReport.of(build, [folder]).differences]

    def settled(self):
        """The same, once nothing is wrong any more, or PATIENCE is over."""
        began = time.monotonic()
        limit = began + PATIENCE
        while (wrong := self.wrong()) and time.monotonic() < limit:
            time.sleep(time.monotonic() - began)  # a look at all switches is dear
            began = time.monotonic()
        return wrong

    def spoil(self):
        """What others left: a route inside the pools, a second next hop, a route of management."""
        if self.target == "linux":
            self.sh("2", "ip route add 10.0.0.10/32 dev lo metric 7 protocol 80")
            self.sh("2", "ip nexthop add id 500099 via fe80::99 dev eth1 protocol 80")
            return self.sh("2", "ip route add 192.0.2.0/24 dev lo")
        lines = self.sh("2", "vtysh -c 'show running-config'").splitlines()
        line = next(one for one in lines if one.startswith("ip route") and "onlink" in one)
        prefix = line.split()[2]
        other = next(
            one
            for one in lines
            if one.startswith("ip route") and one.split()[3:5] != line.split()[3:5] and "onl" in one
        )
        more = [
            f"ip route {prefix} {' '.join(other.split()[3:5])} onlink",
            "ip route 192.0.2.0/24 lo",
        ]
        words = " ".join(f"-c '{one}'" for one in ["configure", *more])
        return self.sh("2", f"vtysh {words}")

    def reboot(self, node):
        """Everything that is not saved is lost: daemons, addresses, rules, routes."""
        polarfab = self.folder / "etc" / node / "polarfab"
        if self.target == "frr":
            daemons = self.folder / "daemons" / node
            for file in daemons.glob("*.pid"):
                os.kill(int(file.read_text()), 9)
                file.unlink()
            for file in daemons.glob("*.vty"):
                file.unlink()
        self.sh(node, "ip -4 rule flush protocol 80; ip -6 rule flush protocol 80")
        for link in json.loads(self.sh(node, "ip -json link")):
            self.sh(node, f"ip link set {link['ifname']} down")
        self.sh(node, "ip address flush scope global; ip address flush scope link; true")
        # All of them: a zebra that starts takes a route that is there from before for its own.
        flush = "ip nexthop flush; for f in -4 -6; do ip $f route flush table all; done; true"
        self.sh(node, flush)
        left = len(json.loads(self.sh(node, "ip -json route show")))
        if self.target == "frr":
            self.sh(node, f"sh {polarfab}/load.sh")
            router = self.fabric.routers[int(node)]
            for daemon in router.first_daemons():
                router.start_daemon(daemon)
            self.sh(node, "vtysh -b")
        else:
            self.sh(node, f"sh {polarfab}/load.sh")
        return left


def _wrong_at(site, node):
    """What is wrong anywhere, once something is at this node."""
    wrong = site.wrong()
    return wrong if any(one["switch"] == node for one in wrong) else None


def main(old, out, new, target, folder):
    site = Site(old, out, new, target, folder)
    site.spoil()
    seen = {"before": site.wrong(), "dry": site.push(dry=True), "after dry": site.wrong()}
    (folder / "away-2").write_text("sh -s")
    seen["staged"] = site.push(batch=2, stop_on=1)
    (folder / "away-2").unlink()
    seen["pushed"], seen["after"] = site.push(), site.settled()
    seen["again"] = site.push(("2", "3"))
    seen["management"] = site.sh("2", "ip route show 192.0.2.0/24")
    seen["rebooted"], seen["after reboot"] = site.reboot("2"), site.settled()
    site.fabric.set_link(1, 0, up=False)
    seen["flap"] = until(lambda: _wrong_at(site, "1"), "routes over the dead link are gone")
    site.fabric.set_link(1, 0, up=True)
    far = str(site.fabric.build.wiring.far[1, 0])
    seen["pushed after flap"], seen["after flap"] = site.push(("1", far)), site.settled()
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # FRR's daemons are a user of their own
        old, out, new = map(Path, sys.argv[1:4])
        print(json.dumps(main(old, out, new, sys.argv[4], Path(folder))))
