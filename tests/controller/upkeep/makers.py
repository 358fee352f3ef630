"""What several test modules of this folder and of others use."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

import numpy as np

from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.targets.openflow.encoder import Encoder
from controller.settings import Damping, Duties
from controller.switches.session import LiveFabric
from controller.upkeep.background import at_once
from controller.upkeep.repair_keeper import Keeper
from tests.compilers.routed import routed
from tests.compilers.wiring.makers import missing
from tests.controller.makers import loaded
from tests.controller.reported import holds
from tests.controller.switches.conforming_fabric import OPEN_VSWITCH, InMemory
from tests.controller.switches.session_talk import names

BUILD = replace(routed(q=3, spread=True, protect="link"), identity="0123456789abcdef")

CALM = Damping(suppress=1e6)


def unconnected(duties=None, build=BUILD, start=at_once, shape=OPEN_VSWITCH):
    """Switches without sockets, the sessions of a controller, and its keeper."""
    now, duties = [100.0], duties or Duties(damping=CALM)
    fabric = LiveFabric(loaded(build), names, clock=lambda: now[0])
    keeper = Keeper(fabric, duties, start)
    return InMemory(build, fabric, now, shape), keeper


def network(duties=None, build=BUILD, start=at_once):
    """The same, where all switches hold their program."""
    net, keeper = unconnected(duties, build, start)
    net.connect()
    assert net.sessions.complete
    return net, keeper


def links_of(build=BUILD):
    far = build.wiring.far
    return [(u, k) for u, k in np.argwhere(far >= 0).tolist() if far[u, k] > u]


def tables_for(*links, build=BUILD):
    return repair_tables(IntactBuild.of(build), missing(build.wiring, [], list(links)).links).tables


def hold(net, tables, only=None):
    """The switches that do not hold just these tables."""
    encoder = Encoder(replace(net.build, tables=tables))
    return [
        v
        for v, switch in enumerate(net.switches)
        if (only is None or v in only) and not holds(switch, encoder.program(v))
    ]


def told(net):
    return [event.kind for event in net.sessions.take_events()]


def mods(net):
    """How many messages changed switches since the last call."""
    count = sum(len(switch.mods) for switch in net.switches)
    for switch in net.switches:
        switch.mods.clear()
    return count


class Beside:
    """Computations that wait until the test has them done."""

    def __init__(self):
        self.waiting = []

    def start(self, work):
        self.waiting.append((work, future := Future()))
        return future

    def finish(self):
        for work, future in self.waiting:
            future.set_result(work())
        self.waiting.clear()

    def fail(self, error):
        ((_, future),) = self.waiting
        self.waiting.clear()
        future.set_exception(error)
