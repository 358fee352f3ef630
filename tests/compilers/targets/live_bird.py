"""Run in namespaces of its own by test_bird_live.py: BIRD routes, and a cable falls silent.

live_bird.py BUILD OUT CONTROL EVENTS: a build with one host per switch, its rendering for target
bird or for the system of each switch, what neighbours agree on, and what happens: [[how, switch,
switch]]. Prints JSON.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compilers.audit.expected_routes import ExpectedRoutes
from compilers.tables.folders.build_folder import load
from compilers.targets.node_systems import system_target
from compilers.targets.routed.link_addresses import LinkPlan
from compilers.targets.target_lookup import target
from mininet_scenarios.engines.routers import ROUTER_KINDS, RouterProcesses
from mininet_scenarios.machine.netns import entered, run
from mininet_scenarios.scenario.engine import HostSample
from tests.compilers.routed import agreed
from tests.compilers.targets.forged_reset import forge
from tests.compilers.targets.live_bgp import BACK, FLOWS, PERIOD, ROUNDS, Panel

FORGED = 10
"""How many resets are forged: one is late if another segment goes out meanwhile."""
STEADY = 3.0
"""Seconds after which a session counts as the one that stays."""
SHOWN = ("ip", "-json", "route", "show", "table", "all")


class BirdRouter(RouterProcesses):
    """A switch with BIRD, in the foreground."""

    expected = None
    """What all of them are to hold."""
    learns = True

    def begin(self):
        self.daemons.mkdir()
        self.namespace.run("sh", str(self.files / "load.sh"))
        command = ["bird", "-f", "-c", str(self.files / "bird.conf")]
        command += ["-s", str(self.daemons / "bird.ctl"), "-P", str(self.daemons / "bird.pid")]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.namespace.spawn(command, stdin=subprocess.DEVNULL, **quiet)

    def ready(self, dead):
        return bool(dead) or not self.differences()

    def differences(self):
        """What the kernel holds otherwise than the build."""
        texts = [(self.namespace.run(*SHOWN), "kernel")]
        return self.expected.compare(self.vertex, texts).differences

    def set_interface(self, name, up):
        self.namespace.run("ip", "link", "set", name, "up" if up else "down")


def router(space, build, vertex, *more):
    """A switch with its own system."""
    kinds = {**ROUTER_KINDS, "bird": BirdRouter}
    return kinds[build.systems[vertex] if build.systems else "bird"](space, build, vertex, *more)


def sessions(space, near, far):
    """The ports at `far` and `near` of TCP sessions between the two addresses, as the kernel of
    `far` has them.
    """
    words = "-Htn", "state", "established", "src", far, "dst", near
    lines = (line.split() for line in space.run("ss", *words).splitlines())
    return {(local.rpartition(":")[2], peer.rpartition(":")[2]) for _, _, local, peer in lines}


def steady(here, there, near, far):
    """The session between two addresses as the far end has it, once both ends have the same single
    one, and it has not changed for `STEADY` seconds. An end that has not heard of a reset keeps its
    half until its next keepalive, and both may open a new one, of which one is closed.
    """
    limit = time.monotonic() + 60
    kept, since = set(), time.monotonic()
    while len(kept) != 1 or time.monotonic() - since < STEADY:
        assert time.monotonic() < limit, kept
        time.sleep(0.5)  # a session between two looks that went again has other ports
        now = sessions(there, near, far)
        is_whole = now == {ends[::-1] for ends in sessions(here, far, near)}
        if now != kept or not is_whole:
            kept, since = now if is_whole else set(), time.monotonic()
    return kept


def forged(fabric, plan, u, v):
    """Whether v keeps its session with u after forged resets, by their TTL.

    u sends them with its own address: as a router further away would, and as only u can.
    """
    w, kept = plan.build.wiring, {}
    (port,) = (port for port, far, _ in w.links_of(u) if far == v)
    (ends,) = (e for (_, far, _), e in zip(w.links_of(u), plan.at(u), strict=True) if far == v)
    near, far = ends.ipv4.partition("/")[0], ends.gateway4
    here, there = fabric.switches[u], fabric.switches[v]
    for ttl in (254, 255):
        before = steady(here, there, near, far)
        words = w.port_name(u, port), near, far
        for hops in (ttl,) * FORGED + (0,):  # and then another keepalive
            with entered(here.pid):
                forge(*words, hops)
            kept[str(ttl)] = sessions(there, near, far) == before
            if not kept[str(ttl)]:
                break
    fabric.settle()
    return {"event": "forge", "kept": kept}


def main(build, out, control, events, daemons):
    build = agreed(build, control)
    system = system_target(build) if build.systems else target("bird")
    named, chosen = system.check(build)
    BirdRouter.expected = ExpectedRoutes.of(system, named, chosen)
    ROUTER_KINDS["bird"] = router
    fabric = Panel(build, out, "bird", HostSample.of(build, 1), daemons)
    run("ip", "-batch", "-", text="\n".join(fabric._cables()))
    fabric.panel.run("ip", "-batch", "-", text="\n".join(fabric.inside))
    fabric._cables = list
    fabric.start()
    fabric.converse(FLOWS, PERIOD)
    fabric.converged(time.monotonic(), ROUNDS)
    seen = []
    for how, *where in events:
        if how == "forge":
            continue
        since = time.monotonic()
        getattr(fabric, how)(*where)
        lost = fabric.converged(since, ROUNDS)
        getattr(fabric, BACK[how])(*where)
        fabric.settle()
        fabric.converged(time.monotonic(), ROUNDS)
        seen.append({"event": how, "lost": lost})
    fabric.probe.close()  # sessions, not packets, tell of forged resets
    for how, *where in events:
        if how == "forge":
            seen.append(forged(fabric, LinkPlan.of(named, chosen), *where))
    return {"flows": len(fabric.probe.flows), "seen": seen}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # FRR's daemons have a user of their own
        build, out, control, events = sys.argv[1:]
        told = main(
            load(Path(build)), Path(out), json.loads(control), json.loads(events), Path(folder)
        )
    print(json.dumps(told))
