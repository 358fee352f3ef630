"""Run in namespaces of its own by test_restarts_live.py: FRR stops, dies and comes back.

live_restarts.py BUILD JSON ROOT OUT…: a build with one host per switch, what happens to which
switch, the tree of a newer Debian whose FRR runs (`-`: the machine's own), and renderings of the
build, each of which becomes a fabric. What happens to one fabric happens to all at the same time,
so that all have the same machine. Prints JSON: of each event and fabric the packets that were lost
in transit and the seconds for which neighbours held routes over the switch.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compilers.tables.folders.build_folder import load
from mininet_scenarios.engines.frr_router import FrrRouter
from mininet_scenarios.engines.routers import ROUTER_KINDS
from mininet_scenarios.machine.netns import run
from mininet_scenarios.scenario.engine import HostSample
from tests.compilers.targets.live_bgp import PATIENCE, Panel
from tests.debian_root import prepared
from tests.waiting import until

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
ORDER = ("mgmtd", "zebra", "bfdd", "bgpd", "staticd")
"""In which order daemons start."""
SETTLED = 180.0
"""Seconds in which all sessions are up and all routes are there, on a busy machine."""
DOWN, SURE = 30.0, 2.0
"""Seconds that a switch is without FRR at most, and without a route over it at least."""
WATCHFRR = 1.0
"""Seconds that watchfrr waits before it starts a daemon again."""
ROUNDS = 15
"""Rounds of all flows without a lost packet after which a fabric has converged."""
PERIOD = 0.1
"""Seconds of a round."""


class NewerRouter(FrrRouter):
    """FRR of a newer Debian (`tests.debian_root`): its daemons meet in a folder below /run/frr."""

    root = Path()
    """The tree that it is in."""

    def __init__(self, namespace, build, vertex, rendered, daemons):
        super().__init__(namespace, build, vertex, rendered, daemons)
        self.space = f"{daemons.name}-{vertex}"
        self.daemons = self.root / "run" / "frr" / self.space

    def begin(self):
        self.daemons.mkdir(mode=0o755)
        shutil.chown(self.daemons, "frr", "frr")
        self.namespace.run("sh", str(self.files / "load.sh"))
        for daemon in in_order(self):
            self.start_daemon(daemon)
        self.vtysh("-f", str(self.first() or self.files / "frr.conf"))

    def first(self):
        """What is configured at first, where that is not all."""
        return next(self.files.glob("first.conf"), None)

    def start_daemon(self, daemon):
        command = ["chroot", str(self.root), f"/usr/lib/frr/{daemon}", "-N", self.space]
        self.namespace.spawn(
            [*command, "--log", f"file:/run/frr/{self.space}/{daemon}.log"], **QUIET
        )
        until((self.daemons / f"{daemon}.vty").exists, f"{daemon} of {self.space}", PATIENCE)

    def vtysh(self, *words):
        folder = "/" / self.daemons.relative_to(self.root)
        inside = [str(folder.parent) if word == str(self.daemons) else word for word in words]
        return self.namespace.run("chroot", str(self.root), "vtysh", "-N", self.space, *inside)

    def bfd_is_up(self):
        """Whether BFD is up with every neighbour."""
        neighbours = int((self.build.wiring.far[self.vertex] >= 0).sum())
        return self.vtysh("-c", "show bfd peers json").count('"status":"up"') == neighbours

    @staticmethod
    def first_daemons():
        return ["mgmtd", "zebra", "staticd"]


class Restarting(Panel):
    """A fabric whose daemons are stopped and started as frrinit.sh and watchfrr do."""

    def settle(self, patience=SETTLED):
        super().settle(patience)

    def running(self, u):
        """{daemon: process} of a switch."""
        files = self.routers[u].daemons.glob("*.pid")
        return {file.stem: int(file.read_text()) for file in files if file.read_text().strip()}

    def end(self, u, daemons, how):
        """Daemons end; those that are told to finish what they do."""
        pids = self.running(u)
        for daemon in daemons:
            os.kill(pids[daemon], how)
        for daemon in daemons:
            until(lambda pid=pids[daemon]: not alive(pid), f"end of {daemon}", PATIENCE)
            for ending in ("pid", "vty"):
                (self.routers[u].daemons / f"{daemon}.{ending}").unlink(missing_ok=True)

    def stop(self, u):
        """`frrinit.sh stop`: all daemons are told to end, zebra last."""
        daemons = sorted(self.running(u).keys() - {"zebra"})
        self.end(u, daemons, signal.SIGINT)
        self.end(u, ["zebra"], signal.SIGINT)

    def begin(self, u):
        """`frrinit.sh start`: daemons without a configuration, then `vtysh -b`."""
        router = self.routers[u]
        for daemon in in_order(router):
            if daemon not in self.running(u):
                router.start_daemon(daemon)
        self.configure(u)

    def configure(self, u, *only):
        """`vtysh -b`: all daemons are told their part of frr.conf, or one of them."""
        router = self.routers[u]
        text = (router.files / "frr.conf").read_text()
        (router.daemons / "frr.conf").write_text(text)
        (router.daemons / "vtysh.conf").write_text("service integrated-vtysh-config\n")
        router.vtysh("--config_dir", str(router.daemons), "-b", *only)

    def restart(self, u):
        """`frrinit.sh restart`."""
        self.stop(u)
        self.begin(u)

    def die(self, u, daemon):
        """A daemon is killed, and watchfrr starts what it starts."""
        self.end(u, [daemon], signal.SIGKILL)
        time.sleep(WATCHFRR)
        if daemon == "zebra":  # all of them start again
            self.end(u, sorted(self.running(u)), signal.SIGINT)
            self.begin(u)
        else:
            self.routers[u].start_daemon(daemon)
            self.configure(u, "-d", daemon)

    def end_bgp(self, u):
        """bgpd is killed, and nothing starts it again; BFD and the kernel go on."""
        self.end(u, ["bgpd"], signal.SIGKILL)

    def off(self, u):
        """No power: no carrier, no daemon, no route, rule or address."""
        self.kill(u)
        self.end(u, sorted(self.running(u)), signal.SIGKILL)
        space = self.switches[u]
        space.run("ip", "nexthop", "flush", check=False)
        for family in ("-4", "-6"):
            space.run("ip", family, "rule", "flush", "protocol", "80", check=False)
            space.run("ip", family, "route", "flush", "table", "all", check=False)
        for name in json.loads(space.run("ip", "-json", "link")):
            space.run("ip", "link", "set", name["ifname"], "down")
        space.run("ip", "address", "flush", "scope", "global", check=False)

    def on(self, u):
        """Power: the unit loads the files, FRR starts, and cables have a carrier."""
        router = self.routers[u]
        self.switches[u].run("sh", str(router.files / "load.sh"))
        self.revive(u)
        self.begin(u)

    def lost_in_transit(self, u, since):
        """The packets between other hosts than those of a switch that did not arrive."""
        _, arrived, flow = self.probe.since(since)
        return int(((self.probe.flows[flow, :2] != u).all(axis=1) & ~arrived).sum())


def in_order(router):
    """The daemons of a switch, in the order in which they start."""
    return sorted([*router.first_daemons(), *router.other_daemons()], key=ORDER.index)


def alive(pid):
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def converged(fabrics, since):
    """Wait until no fabric loses packets any more; the seconds of each until then."""
    return [fabric.converged(since, ROUNDS) for fabric in fabrics]


def gone(fabrics, u):
    """The seconds for which neighbours of a stopped switch hold routes over it, in each fabric."""
    begun, stale = time.monotonic(), [0.0] * len(fabrics)
    while (passed := time.monotonic() - begun) < min(DOWN, max(stale) + SURE):
        for number, fabric in enumerate(fabrics):
            if fabric.over(u):
                stale[number] = round(passed, 1)
        time.sleep(0.2)
    return stale


def happened(fabrics, u, what, *words):
    """Something happens in all fabrics; what was lost in transit until all is well again."""
    since = time.monotonic()
    for fabric in fabrics:
        getattr(fabric, what)(u, *words)
    event = {"event": [what, u, *words]}
    if what in ("stop", "off", "end_bgp"):
        for fabric in fabrics:
            fabric.dead = u
        event["stale"] = gone(fabrics, u)
    else:
        for fabric in fabrics:
            fabric.dead = None
    event["seconds"] = converged(fabrics, since)
    if what in ("begin", "on", "restart", "die"):
        for fabric in fabrics:
            fabric.settle()
    event["transit"] = [fabric.lost_in_transit(u, since) for fabric in fabrics]
    event["all"] = [len(fabric.when(since)) for fabric in fabrics]
    print(json.dumps(event), file=sys.stderr, flush=True)
    return event


def main(build, outs, folder, events, root=None):
    if root:
        NewerRouter.root = root
        ROUTER_KINDS["frr"] = NewerRouter
        prepared(root, Path(outs[0]).parent)
    fabrics = []
    for number, out in enumerate(outs):
        daemons = folder / str(number)
        daemons.mkdir(mode=0o755)
        fabric = Restarting(build, out, "frr", HostSample.of(build, 1), daemons)
        run("ip", "-batch", "-", text="\n".join(fabric._cables()))
        fabric.panel.run("ip", "-batch", "-", text="\n".join(fabric.inside))
        fabric._cables = list
        fabric.start()
        fabrics.append(fabric)
    for fabric in fabrics * bool(root):
        late = [u for u, router in enumerate(fabric.routers) if router.first()]
        for u in late:
            fabric.configure(u)
        for u in late:
            until(fabric.routers[u].bfd_is_up, f"BFD of {u}", PATIENCE)
    for fabric in fabrics:
        fabric.converse(1, PERIOD)
    converged(fabrics, time.monotonic())
    return [happened(fabrics, u, what, *words) for what, u, *words in events]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as daemons:
        Path(daemons).chmod(0o755)  # FRR's daemons are a user of their own
        build, todo, root, *outs = sys.argv[1:]
        newer = Path(root) if root != "-" else None
        result = main(load(Path(build)), [*map(Path, outs)], Path(daemons), json.loads(todo), newer)
    print(json.dumps(result))
