"""Run in namespaces of its own by test_bgp_live.py: cables fail under target frr with eBGP.

live_bgp.py BUILD JSON OUT…: a build with one host per switch, what to do, and renderings of it,
each of which becomes a fabric; what happens to one happens to all. Prints JSON. Every cable goes
through a patch panel, where it is pulled (both ends lose their carrier) or falls silent (both keep
it). Hosts send each other datagrams all the time.
"""

import contextlib
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
from compilers.targets.routed.bgp.drained import maintenance_lines
from mininet_scenarios.engines.routers import Routers, Space, run, until
from mininet_scenarios.scenario.engine import EngineError, HostSample

TALKER = Path(__file__).with_name("live_talker.py")
PERIOD, GAP = 0.1, 0.35
"""Seconds between datagrams of a flow, and without any after which one was lost."""
ROUNDED = 0.011
"""Of a share: FRR 8.4 brings weights to a sum of 100."""
CALM, LATE = 1.5, 1.0
"""Seconds without a lost datagram after which the fabric has converged, and for news to come."""
PATIENCE = 60
BGP = {"routing": "bgp", "bfd": "on"}
BACK = {
    **{"pull": "mend", "silence": "mend", "shut": "open", "kill": "revive"},
    **{"pull_two": "mend_two", "restart": "nothing", "drain": "undrain"},
}


def bgp_part(text):
    """The lines of frr.conf that bgpd takes."""
    start = min(at for word in ("ip prefix-list", "router bgp") if (at := text.find(word)) >= 0)
    return text[start:]


class Panel(Routers):
    """Routers whose cables meet in a patch panel; `ends[u, v]` are the panel's two ports."""

    def __init__(self, *args):
        super().__init__(*args)
        self.panel, self.ends = Space(), {}
        self.heard = defaultdict(list)
        self.talkers, self.dead = [], None

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

    def kill(self, u):
        """A switch dies: no cable of it has a carrier."""
        self.dead = u
        for end in self.at(u):
            self.pull(*end)

    def revive(self, u):
        for end in self.at(u):
            self.mend(*end)
        self.dead = None

    def at(self, u):
        return [(u, v) for v in self.build.wiring.far[u].tolist() if v >= 0]

    def pull_two(self, u, v, w, x):
        self.pull(u, v)
        self.pull(w, x)

    def mend_two(self, u, v, w, x):
        self.mend(u, v)
        self.mend(w, x)

    def drain(self, u, end=False):
        """Others go around a switch, by what `polarfab drain` prints."""
        if "announced-ipv4" not in (self.routers[u].files / "frr.conf").read_text():
            return  # one that was written by hand
        lines = maintenance_lines(self.build, "frr", BGP, self.build.wiring.names[u], end=end)
        file = self.routers[u].daemons / "drain.conf"
        file.write_text("\n".join(lines) + "\n")
        self.routers[u]._vtysh("-f", str(file))
        if not end:
            until(lambda: not self.over(u), f"others go around {u}")

    def over(self, u):
        """The routes of other switches that lead over a switch, and not to it."""
        a, found = self.build.addressing, []
        own = {str(a.network(u)), str(a.network6(u))}
        for v in self.build.wiring.far[u].tolist():
            if v >= 0:
                port = self.port(v, u)
                for route in self.routers[v].routes(("bgp", "static", "186", "196")):
                    paths = route.get("nexthops", [route])
                    if any(path.get("dev") == port for path in paths) and route["dst"] not in own:
                        found.append((v, route["dst"]))
        return found

    def undrain(self, u):
        self.drain(u, end=True)

    def restart(self, u):
        """bgpd is killed, and starts again after a second with its configuration."""
        router = self.routers[u]
        pid = (router.daemons / "bgpd.pid").read_text().strip()
        self.switches[u].run("kill", "-9", pid)
        (router.daemons / "bgpd.vty").unlink()
        time.sleep(1)
        router._start("bgpd")
        text = (router.files / "frr.conf").read_text()
        only = router.daemons / "bgpd.conf"
        only.write_text(bgp_part(text))
        router._vtysh("-f", str(only))

    def nothing(self, u):
        pass

    def shut(self, u, v):
        """An administrator takes one end down, not by vtysh."""
        self.switches[u].run("ip", "link", "set", self.port(u, v), "down")

    def open(self, u, v):
        self.switches[u].run("ip", "link", "set", self.port(u, v), "up")

    def port(self, u, v):
        (k,) = (self.build.wiring.far[u] == v).nonzero()[0].tolist()
        return self.name(u, k)

    def weights(self):
        """{switch: {prefix: {port: weight}}} of BGP's routes in the kernels."""
        return {
            router.files.name: {
                route["dst"]: {
                    hop["dev"]: hop.get("weight", 1) for hop in route.get("nexthops", [route])
                }
                for route in router.routes(("bgp", "186"))
            }
            for router in self.routers
        }

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
        everyone = [v for v in range(len(self.hosts)) if v != self.dead]
        return [(s, d, six) for s in everyone for d in everyone for six in (0, 1) if s != d]

    def gaps(self, since):
        """Begins and ends of times in which no datagram of a flow arrived, of every flow."""
        now = time.monotonic() - LATE
        for flow in self.flows():
            times = [since, *(t for t in self.heard[flow][-4000:] if t > since)]
            times.append(max(now, times[-1]))
            yield from ((a, b) for a, b in pairwise(times) if b - a > GAP)

    def lost_last(self, since):
        """When the last datagram that did not arrive was sent, `since` if all did; by any flow."""
        return max([since, *(b for _, b in self.gaps(since))])

    def lost(self, since):
        """How many datagrams did not arrive, about."""
        return sum(round((b - a) / PERIOD) - 1 for a, b in self.gaps(since))

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


def weighed(fabric, steps):
    """The weights after each step, once they are right or time is up: [step…, wanted shares]."""
    found = []
    for *step, wanted in steps:
        if step:
            getattr(fabric, step[0])(*step[1:])
        with contextlib.suppress(EngineError):
            until(lambda wanted=wanted: in_shares(fabric.weights(), wanted), "weights")
        found.append(fabric.weights())
    return found


def in_shares(weights, wanted):
    """Whether all routes have these ports, in these shares but for what rounding takes."""
    for switch, routes in wanted.items():
        for prefix, shares in routes.items():
            hops = weights[switch].get(prefix, {})
            if hops.keys() != shares.keys():
                return False
            if any(
                abs(hops[p] / sum(hops.values()) - part) > ROUNDED for p, part in shares.items()
            ):
                return False
    return True


def main(build, outs, folder, wanted):
    fabrics = []
    for number, out in enumerate(outs):
        daemons = folder / str(number)
        daemons.mkdir(mode=0o755)
        fabric = Panel(build, out, "frr", HostSample.of(build), daemons)
        run("ip", "-batch", "-", text="\n".join(fabric._cables()))
        fabric.panel.run("ip", "-batch", "-", text="\n".join(fabric.inside))
        fabric._cables = list
        if wanted["live"]:
            fabric.up_before()
        fabric.start()
        fabrics.append(fabric)
    if wanted.get("weights"):
        return weighed(fabrics[0], wanted["failures"])
    for fabric in fabrics:
        fabric.converse()
    seen = {"quiet": [fabric.converged(time.monotonic()) for fabric in fabrics], "failures": []}
    for how, *where in wanted["failures"]:
        since = time.monotonic()
        for fabric in fabrics:
            getattr(fabric, how)(*where)
        for fabric in fabrics * (how == "restart"):
            fabric.settle()
        for fabric in fabrics:
            fabric.converged(since)
        down = [round(fabric.lost_last(since) - since, 2) for fabric in fabrics]
        lost = [fabric.lost(since) for fabric in fabrics]
        since = time.monotonic()
        for fabric in fabrics:
            getattr(fabric, BACK[how])(*where)
            fabric.settle()
        up = round(time.monotonic() - since, 2)
        again = [fabric.converged(since) for fabric in fabrics]
        seen["failures"].append(
            {"event": [how, *where], "down": down, "lost": lost, "again": again}
        )
        print({**seen["failures"][-1], "up": up}, file=sys.stderr, flush=True)
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as daemons:
        Path(daemons).chmod(0o755)  # FRR's daemons are a user of their own
        build, todo, *outs = sys.argv[1:]
        result = main(load(Path(build)), map(Path, outs), Path(daemons), json.loads(todo))
    print(json.dumps(result))
