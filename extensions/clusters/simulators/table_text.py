"""The tables of a plane as a plain file for programs: next switches in the place of ports.

Numbers of switches are vertices; a class is a number of its own on each switch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import Forwarding, Towards
from compilers.routing.intermediates import require_direct
from compilers.routing.marked_spread import require_short_marks, require_unmarked
from extensions.clusters.simulators.rated_links import LATENCY, RatedLinks

DESTINATIONS_AT_ONCE = 256
HEAD = """\
# Fabric {name}, build {identity}: links, hosts, and what its switches do with packets.
# switches N
# link A B GBIT_S SECONDS           between two switches
# host NAME SWITCH GBIT_S ADDRESS   hosts have the latency of links
# class S K NEXT BACK [WAY WEIGHT]  on switch S a packet of class K goes to switch NEXT, or to BACK
#   if it came from there; one from a host of S takes a WAY by its flow, as often as WEIGHT says
# route D K ...                     the class of packets to switch D on each switch, -1: none
switches {switches}
"""


def table_text(fabric: RatedLinks) -> Iterator[str]:
    """The lines that the head of the file explains."""
    build = fabric.build
    require_short_marks(build, "an export for a simulator")
    require_unmarked(build, "an export for ns3 or booksim", "export it for simgrid, or simulate it")
    require_direct(build, "an export for a simulator")
    forwarding = Forwarding.of(build)
    yield HEAD.format(
        name=build.name,
        identity=build.identity or "not saved",
        switches=forwarding.switches,
    )
    yield from (f"link {u} {v} {rate} {LATENCY}\n" for u, v, rate in fabric.links())
    for name, v, rate, address in fabric.hosts():
        yield f"host {name} {v} {rate} {address}\n"
    yield from _classes(forwarding, np.asarray(build.tables.classes.weight))
    for first in range(0, forwarding.switches, DESTINATIONS_AT_ONCE):
        last = min(first + DESTINATIONS_AT_ONCE, forwarding.switches)
        for number, row in enumerate(_routes(forwarding, np.arange(first, last)).tolist(), first):
            yield f"route {number} {' '.join(map(str, row))}\n"


def _classes(f: Forwarding, weight: NDArray[np.uint16]) -> Iterator[str]:
    width = f.classes + 2
    ahead = np.append(f.end, -1) // f.slots  # of NOWHERE: -1
    for row in np.flatnonzero(f.order[0] >= 0).tolist():
        switch, number = divmod(row, width)
        minimal = int(f.order[0, row])
        aside = f.bounce[:, row][(f.bounce[:, row] >= 0) & (f.bounce[:, row] != minimal)]
        back = int(aside[0]) if len(aside) else minimal
        ways = zip(ahead[f.weighted[:, row]], weight[switch, number], strict=True)
        shares = "".join(f" {way} {share}" for way, share in ways if way >= 0)
        yield f"class {switch} {number} {ahead[minimal]} {ahead[back]}{shares}\n"


def _routes(f: Forwarding, destinations: NDArray[np.int64]) -> NDArray[np.int32]:
    """int32[D, S]: the class of packets to each destination on each switch, -1: none."""
    width = f.classes + 2
    rows = Towards.of(f, destinations).rows.reshape(f.switches, -1).T
    numbers = rows - np.arange(f.switches, dtype=np.int32) * width
    return np.where(numbers < f.classes, numbers, -1)
