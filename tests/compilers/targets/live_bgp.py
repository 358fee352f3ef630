"""Run in namespaces of its own by test_bgp_live.py: cables fail under target frr with eBGP.

live_bgp.py BUILD OUT JSON: a build with one host per switch, its rendering, and what to do; prints
JSON. Every cable goes through a patch panel, where it is pulled (both ends lose their carrier) or
falls silent (both keep it). Hosts send each other datagrams all the time.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from compilers.tables.folders.build_folder import load
from mininet_scenarios.engines.router_space import Space, run, until
from mininet_scenarios.engines.routers import Routers
from mininet_scenarios.scenario.engine import HostSample

TALKER = Path(__file__).with_name("live_talker.py")
GAP = 0.35
"""Seconds without a datagram of a flow after which one was lost."""
CALM, LATE = 1.5, 1.0
"""Seconds without a lost datagram after which the fabric has converged, and for news to come."""
PATIENCE = 60


class Panel(Routers):
    """Routers whose cables meet in a patch panel; `ends[u, v]` are the panel's two ports."""

    def __init__(self, *args):
        super().__init__(*args)
        self.panel, self.ends = Space(), {}
        self.heard = defaultdict(list)
        self.talkers = []

    def _cables(self):
        wiring, lines = self.build.wiring, []
        inside = []
        for number, (u, here, v, there) in enumerate(wiring.each_cable()):
            ports = f"p{number}a", f"p{number}b"
            self.ends[u, v] = self.ends[v, u] = (f"c{number}", *ports)
            for vertex, at, port in ((u, here, ports[0]), (v, there, ports[1])):
                near = wiring.port_name(vertex, at)
                lines.append(
                    f"link add name {near} netns {self.switches[vertex].pid} "
                    f"type veth peer name {port} netns {self.panel.pid}"
                )
            inside.append(f"link add c{number} type bridge mcast_snooping 0")
            inside += [f"link set {port} master c{number}" for port in ports]
            inside += [f"link set {name} up" for name in (*ports, f"c{number}")]
        self.inside = inside
        hosts = [line for line in super()._cables() if " eth0 " in line]
        return lines + hosts

    def up_before(self):
        """Interfaces that are live when they are configured: up, with automatic addresses."""
        for vertex, space in enumerate(self.switches):
            for k in (self.build.wiring.far[vertex] >= 0).nonzero()[0].tolist():
                space.run("ip", "link", "set", self.name(vertex, k), "up")
        for space in self.switches:
            until(lambda space=space: "tentative" not in space.run("ip", "-6", "address"), "DAD")

    def pull(self, u, v):
        for port in self.ends[u, v][1:]:
            self.panel.run("ip", "link", "set", port, "down")

    def silence(self, u, v):
        for port in self.ends[u, v][1:]:
            self.panel.run("ip", "link", "set", port, "nomaster")

    def mend(self, u, v):
        bridge, *ports = self.ends[u, v]
        for port in ports:
            self.panel.run("ip", "link", "set", port, "master", bridge)
            self.panel.run("ip", "link", "set", port, "up")

    def shut(self, u, v):
        """An administrator takes one end down, not by vtysh."""
        self.switches[u].run("ip", "link", "set", self.port(u, v), "down")

    def open(self, u, v):
        self.switches[u].run("ip", "link", "set", self.port(u, v), "up")

    def port(self, u, v):
        (k,) = (self.build.wiring.far[u] == v).nonzero()[0].tolist()
        return self.name(u, k)

    def converse(self):
        """Let all hosts send to all."""
        everyone = range(len(self.hosts))
        addresses = [[self.address(v, version) for version in (4, 6)] for v in everyone]
        for me, host in enumerate(self.hosts):
            command = [sys.executable, str(TALKER), str(me), json.dumps(addresses)]
            talker = host.spawn(command, stdout=subprocess.PIPE, text=True)
            self.talkers.append(talker)
            threading.Thread(target=self._hear, args=(me, talker.stdout), daemon=True).start()

    def _hear(self, me, lines):
        for line in lines:
            for source, six, sent in json.loads(line):
                self.heard[source, me, six].append(sent / 1000)

    def flows(self):
        everyone = range(len(self.hosts))
        return [(s, d, six) for s in everyone for d in everyone for six in (0, 1) if s != d]

    def lost_last(self, since):
        """When the last datagram that did not arrive was sent, `since` if all did; by any flow."""
        now, last = time.monotonic() - LATE, since
        for flow in self.flows():
            times = [since, *(t for t in self.heard[flow][-4000:] if t > since)]
            times.append(max(now, times[-1]))
            gaps = [b for a, b in pairwise(times) if b - a > GAP]
            last = max([last, *gaps])
        return last

    def converged(self, since):
        """Seconds from then to the last lost datagram, once none was lost for some time."""
        limit = since + PATIENCE
        while True:
            last = self.lost_last(since)
            if time.monotonic() - LATE - last > CALM:
                return round(last - since, 2)
            if time.monotonic() > limit:
                dead = {
                    f for f in self.flows() if time.monotonic() - max(self.heard[f][-1:] or [0]) > 3
                }
                raise TimeoutError(f"not converged: {sorted(dead)[:20]} of {len(dead)}")
            time.sleep(0.2)


def main(build, out, folder, wanted):
    fabric = Panel(build, out, "frr", HostSample.of(build), folder)
    run("ip", "-batch", "-", text="\n".join(fabric._cables()))
    fabric.panel.run("ip", "-batch", "-", text="\n".join(fabric.inside))
    fabric._cables = list
    if wanted["live"]:
        fabric.up_before()
    start = time.monotonic()
    fabric.start()
    seen = {"start": round(time.monotonic() - start, 1)}
    fabric.converse()
    seen["quiet"] = fabric.converged(time.monotonic())
    seen["failures"] = []
    for how, u, v in wanted["failures"]:
        back = {"pull": "mend", "silence": "mend", "shut": "open"}[how]
        since = time.monotonic()
        getattr(fabric, how)(u, v)
        down = fabric.converged(since)
        since = time.monotonic()
        getattr(fabric, back)(u, v)
        fabric.settle()
        up = round(time.monotonic() - since, 2)
        again = fabric.converged(since)
        seen["failures"].append([how, u, v, down, up, again])
        print(seen["failures"][-1], file=sys.stderr, flush=True)
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as daemons:
        Path(daemons).chmod(0o755)  # FRR's daemons are a user of their own
        build, out = Path(sys.argv[1]), Path(sys.argv[2])
        result = main(load(build), out, Path(daemons), json.loads(sys.argv[3]))
    print(json.dumps(result))
