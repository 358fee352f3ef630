"""Run in namespaces of its own by test_bgp_live.py: cables fail under target frr with eBGP.

live_bgp.py BUILD JSON OUT…: a build with one host per switch, what to do, and renderings of it,
each of which becomes a fabric; what happens to one happens to all. Prints JSON. Every cable goes
through a patch panel, where it is pulled (both ends lose their carrier) or falls silent (both keep
it). Hosts send each other datagrams all the time.
"""

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from compilers.tables.folders.build_folder import load
from compilers.targets.routed.bgp.drained import maintenance_lines
from mininet_scenarios.engines.routers import Routers
from mininet_scenarios.machine.netns import run
from mininet_scenarios.machine.network_namespace import NetworkNamespace
from mininet_scenarios.scenario.engine import EngineError, HostSample
from tests.compilers.routed import agreed
from tests.compilers.targets.live_probe import LATE, SURE, Probe
from tests.waiting import until

PERIOD = 0.1
"""Seconds between two datagrams of a flow."""
ROUNDED = 0.011
"""Of a share: FRR 8.4 brings weights to a sum of 100."""
FLOWS, ROUNDS = 1, 15
"""Of each pair and family; rounds of all without a lost datagram when the fabric has converged."""
PATIENCE = 60
BGP = {"routing": "bgp", "bfd": "on"}
BACK = {
    **{"pull": "mend", "silence": "mend", "shut": "open", "kill": "revive"},
    **{"pull_two": "mend_two", "restart": "nothing", "drain": "undrain"},
}


def bgp_part(text):
    """The lines of frr.conf that bgpd takes.

    `frr defaults datacenter` is one: without it, eBGP accepts no routes unless a policy is set.
    """
    words = ("bgp route-map", "ip prefix-list", "\nroute-map", "router bgp")
    start = min(at for word in words if (at := text.find(word)) >= 0)
    defaults = [line for line in text.splitlines() if line.startswith("frr defaults")]
    return "\n".join([*defaults, text[start:]])


class Panel(Routers):
    """Routers whose cables meet in a patch panel; `ends[u, v]` are the panel's two ports."""

    def __init__(self, *args):
        super().__init__(*args)
        self.panel, self.ends = NetworkNamespace(), {}
        self.dead = None
        self.more = []

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
        return lines + super()._cables()[len(lines) // 2 :]

    def up_before(self):
        """Interfaces that are live when they are configured: up, with automatic addresses."""
        for vertex, space in enumerate(self.switches):
            for k in (self.build.wiring.far[vertex] >= 0).nonzero()[0].tolist():
                space.run("ip", "link", "set", self.interface_name(vertex, k), "up")
        for space in self.switches:
            until(
                lambda space=space: "tentative" not in space.run("ip", "-6", "address"),
                "DAD",
                PATIENCE,
            )

    def out(self, u, v, out=True):
        """What `settle` is to know of a link."""
        for here, far in ((u, v), (v, u)):
            (k,) = (self.build.wiring.far[here] == far).nonzero()[0].tolist()
            (self.down.add if out else self.down.discard)((here, k))
            self.changed_switches.add(here)

    def pull(self, u, v):
        self.out(u, v)
        for port in self.ends[u, v][1:]:
            self.panel.run("ip", "link", "set", port, "down")

    def silence(self, u, v):
        self.out(u, v)
        for port in self.ends[u, v][1:]:
            self.panel.run("ip", "link", "set", port, "nomaster")

    def mend(self, u, v):
        self.out(u, v, out=False)
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
        lines = maintenance_lines(
            agreed(self.build, BGP), "frr", {}, self.build.wiring.names[u], end=end
        )
        file = self.routers[u].daemons / "drain.conf"
        file.write_text("\n".join(lines) + "\n")
        self.routers[u].vtysh("-f", str(file))
        if not end:
            until(lambda: not self.over(u), f"others go around {u}", PATIENCE)

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
        router.start_daemon("bgpd")
        text = (router.files / "frr.conf").read_text()
        only = router.daemons / "bgpd.conf"
        only.write_text(bgp_part(text))
        router.vtysh("-f", str(only))

    def nothing(self, u):
        pass

    def shut(self, u, v):
        """An administrator takes one end down, not by vtysh."""
        self.switches[u].run("ip", "link", "set", self.port(u, v), "down")

    def open(self, u, v):
        self.switches[u].run("ip", "link", "set", self.port(u, v), "up")

    def port(self, u, v):
        (k,) = (self.build.wiring.far[u] == v).nonzero()[0].tolist()
        return self.interface_name(u, k)

    def weights(self):
        """Each switch, {prefix: {port: weight}} of BGP's routes in its kernel."""
        for router in self.routers:
            held = {}
            for route in router.routes(("bgp", "186")):
                hops = route.get("nexthops", [route])
                held[route["dst"]] = {hop["dev"]: hop.get("weight", 1) for hop in hops}
            yield router.files.name, held

    def converse(self, flows, period):
        """Let all hosts send to all."""
        everyone = range(len(self.hosts))
        versions = (4, 6) if self.build.addressing.ipv6 else (4,)
        addresses = [[self.address(v, version) for version in versions] for v in everyone]
        for host, known, more in zip(self.hosts, addresses, self.more, strict=False):
            for address in more:
                host.run("ip", "address", "add", address, "dev", "eth0", "nodad")
                known.append(address.partition("/")[0])
        self.probe = Probe([host.pid for host in self.hosts], addresses, flows, period)

    def when(self, since, lost=True):
        """When those datagrams were sent that did not arrive, or all: not a dead switch's."""
        sent, arrived, flow = self.probe.since(since)
        alive = (self.probe.flows[flow, :2] != self.dead).all(axis=1)
        return sent[alive & ~arrived] if lost else sent[alive]

    def lost_last(self, since):
        """When the last datagram that did not arrive was sent, `since` if all did; by any flow."""
        return max(self.when(since), default=since)

    def converged(self, since, rounds):
        """Seconds from then to the last lost datagram, once all of so many rounds arrived."""
        begun, needed = time.monotonic(), rounds * len(self.probe.flows)
        while True:
            last = self.lost_last(since)
            after = len(self.when(last, lost=False))
            if after >= needed and time.monotonic() > max(begun + LATE, last + SURE):
                return round(float(last - since), 2)
            if time.monotonic() > begun + PATIENCE:
                _, arrived, flow = self.probe.since(last - PERIOD)
                dead = self.probe.flows[np.unique(flow[~arrived])].tolist()
                raise TimeoutError(f"not converged, {after} sent since: {dead[:20]} of {len(dead)}")
            time.sleep(0.25)


def weighed(fabric, steps):
    """The weights after each step, once they are right or time is up: [step…, wanted shares]."""
    found = []
    for *step, wanted in steps:
        if step:
            getattr(fabric, step[0])(*step[1:])
        with contextlib.suppress(EngineError):
            until(lambda wanted=wanted: in_shares(fabric.weights(), wanted), "weights", PATIENCE)
        found.append(dict(fabric.weights()))
    return found


def in_shares(weights, wanted):
    """Whether all routes have these ports, in these shares but for what rounding takes.

    The first switch whose routes are others is the last that is asked.
    """
    for switch, held in weights:
        for prefix, shares in wanted[switch].items():
            hops = held.get(prefix, {})
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
        fabric = Panel(build, out, "frr", HostSample.of(build, 1), daemons)
        run("ip", "-batch", "-", text="\n".join(fabric._cables()))
        fabric.panel.run("ip", "-batch", "-", text="\n".join(fabric.inside))
        fabric._cables = list
        fabric.more = wanted.get("more", [])
        if wanted["live"]:
            fabric.up_before()
        fabric.start()
        fabrics.append(fabric)
    if wanted.get("weights"):
        return weighed(fabrics[0], wanted["failures"])
    flows, period, rounds = wanted.get("probe", (FLOWS, PERIOD, ROUNDS))
    for fabric in fabrics:
        fabric.converse(flows, period)
        fabric.converged(time.monotonic(), rounds)
    seen = []
    for how, *where in wanted["failures"]:
        begun = {"event": [how, *where]}
        try:
            seen.append(begun | failed(fabrics, rounds, how, where))
        except (EngineError, TimeoutError) as error:
            seen.append(begun | {"wrong": str(error)})
            for fabric in fabrics:
                getattr(fabric, BACK[how])(*where)
        print(json.dumps(seen[-1]), file=sys.stderr, flush=True)
    for fabric in fabrics:
        fabric.changed_switches |= {*range(len(fabric.routers))}
        fabric.settle()
    return seen


def failed(fabrics, rounds, how, where):
    """Something fails and comes back; of each fabric: [...] seconds with losses, and how many."""
    tracked = not fabrics[0].routers[0].learns
    for fabric in fabrics * tracked:
        fabric.probe.draw()
    since = time.monotonic()
    for fabric in fabrics:
        getattr(fabric, how)(*where)
    for fabric in fabrics * (how == "restart" or tracked):
        fabric.settle()
    for fabric in fabrics:
        fabric.converged(since, rounds)
    down = [round(fabric.lost_last(since) - since, 2) for fabric in fabrics]
    lost, sent = ([len(fabric.when(since, lost=x)) for fabric in fabrics] for x in (True, False))
    mended = time.monotonic()
    for fabric in fabrics:
        getattr(fabric, BACK[how])(*where)
        fabric.settle()
    up = round(time.monotonic() - mended, 2)
    again = [fabric.converged(mended, 0 if tracked else rounds) for fabric in fabrics]
    return {"down": down, "lost": lost, "sent": sent, "up": up, "again": again}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as daemons:
        Path(daemons).chmod(0o755)  # FRR's daemons are a user of their own
        build, todo, *outs = sys.argv[1:]
        result = main(load(Path(build)), map(Path, outs), Path(daemons), json.loads(todo))
    print(json.dumps(result))
