"""A network for BookSim 2, and the tables, which it cannot take.

Source: BookSim 2's `src/networks/anynet.cpp`. A network file has no routes: BookSim finds its own
by Dijkstra's algorithm, where of routers as near the one with the lowest number comes first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.spec.policy import EVERY_HOP
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.topology.distance import BEYOND, distances, table_of
from extensions.clusters.simulators import each_plane
from extensions.clusters.simulators.ns3_program import table_text
from extensions.clusters.simulators.rated_links import RatedLinks
from inventory.problems import InputError

CONFIGURATION = """\
// Fabric {name}, build {identity}.
// BookSim finds shortest routes of its own: {alike:,} of {pairs:,} next routers are those of
// the minimal routes in tables.txt. It takes no weights and no alternates.
// Every link carries a flit a cycle. Packets take any channel, so past saturation it may deadlock.
topology = anynet;
network_file = network.anynet;
routing_function = min;
traffic = uniform;
injection_rate_uses_flits = 1;
injection_rate = 0.1;
packet_size = 4;

// Routers as in `polarfab simulate`, from the PolarFly paper's authors.
num_vcs = 4;
vc_buf_size = 32;
internal_speedup = 2.0;
credit_delay = 2;
routing_delay = 1;
vc_alloc_delay = 1;
sw_alloc_delay = 1;
vc_allocator = separable_input_first;
sw_allocator = separable_input_first;
wait_for_tail_credit = 0;
warmup_periods = 3;
sample_period = 500;
"""


def files(build: Build) -> Iterator[tuple[str, str]]:
    """`network.anynet`, `booksim.config` and `tables.txt`.

    Raises:
        InputError: the fabric has no hosts, too many switches, or some without links; or packets
            go by intermediates, are marked, or are shared at every hop.
    """
    fabric, far = RatedLinks.of(build), build.wiring.far
    for there, key, word in (
        (build.carries, "balance", build.balance),
        (build.marks, "balance", build.balance),
        (build.every_hop, "transit", EVERY_HOP),
    ):
        if there:
            required = "one next router, as BookSim finds one shortest path of its own in `anynet`"
            todo = "export it for ns3 or simgrid, or simulate it"
            raise InputError.of(required, word, todo, key=f"routing.{key}")
    depth = distances(table_of(far), np.arange(len(far))).astype(np.int16)
    if (depth == BEYOND).any():
        raise InputError.of("a fabric in which all switches reach each other", "a damaged one")
    fib = Fib.of(build.tables, build.wiring.cables())
    minimal = fib.next_switch(np.arange(len(far)))
    pairs = build.topology.endpoints & (depth > 0)
    alike = pairs & (minimal == _next_routers(far, depth))
    yield "network.anynet", "".join(_network(fabric, len(far)))
    yield (
        "booksim.config",
        CONFIGURATION.format(
            name=build.name,
            identity=build.identity or "not saved",
            alike=np.count_nonzero(alike),
            pairs=np.count_nonzero(pairs),
        ),
    )
    yield "tables.txt", "".join(table_text(fabric))


def _network(fabric: RatedLinks, switches: int) -> Iterator[str]:
    """A line for each router: its hosts, and the links to routers of larger numbers."""
    words: list[list[str]] = [[f"router {v}"] for v in range(switches)]
    for number, v in enumerate(fabric.vertex.tolist()):
        words[v].append(f"node {number}")
    for u, v, _ in fabric.links():
        words[u].append(f"router {v}")
    return (f"{' '.join(line)}\n" for line in words)


def _next_routers(far: NDArray[np.int32], depth: NDArray[np.int16]) -> NDArray[np.int64]:
    """int64[S, S]: the router that BookSim sends to first, from one to another; -1 to itself."""
    order = np.arange(len(far))
    before = np.full(depth.shape, -1)
    for near in far.T[::-1]:  # neighbours ascend, and the lowest is kept
        nearer = (near >= 0) & (depth[:, near] == depth - 1)
        before = np.where(nearer, near, before)
    found = np.where(depth == 1, order, -1)
    for _ in range(1, int(depth.max())):
        found = np.where(found < 0, np.take_along_axis(found, np.maximum(before, 0), 1), found)
    return np.where(depth > 0, found, -1)


of_planes = each_plane(files)
