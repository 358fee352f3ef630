"""Export a build as a network file and a configuration for the simulator BookSim 2.

`polarfab export booksim` calls `of_planes`, and writes the files that it yields.

A network file has no routes: BookSim finds its own by Dijkstra's algorithm, which prefers the
router with the lowest number among equally near ones (`src/networks/anynet.cpp`). So the tables of
the build are exported beside it, as text that explains itself, for other simulators; and the
configuration says how many of BookSim's routes are those of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.many_packets import LINK, next_links_of_packets
from compilers.forwarding.program import egress_classes, program_of
from compilers.forwarding.rule import PLAIN, Array, Program
from compilers.spec.policy import EVERY_HOP
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.topology.distance import BEYOND, distances, table_of
from extensions.simulation.rated_links import LINK_LATENCY, RatedLinks
from inventory.problems import InputError

DESTINATIONS_AT_ONCE = 256
"""The destinations whose classes are looked up at once."""
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
"""The text of `booksim.config`."""
TABLES_HEAD = """\
# Fabric {name}, build {identity}: links, hosts, and what its switches do with packets.
# switches N
# link A B GBIT_S SECONDS           between two switches
# host NAME SWITCH GBIT_S ADDRESS   hosts have the latency of links
# class S K NEXT BACK [HOP WEIGHT]  on switch S a packet of class K goes to switch NEXT, or to BACK
#   if it came from there; one from a host of S takes a HOP by its flow, as often as WEIGHT says
# route D K ...                     the class of packets to switch D on each switch, -1: none
switches {switches}
"""
"""The first lines of `tables.txt`."""


def of_planes(builds: Sequence[Build]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file. Of several planes, each has a folder."""
    for build in builds:
        folder = f"{build.name}/" if len(builds) > 1 else ""
        for name, text in files(build):
            yield folder + name, text


def files(build: Build) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of `network.anynet`, `booksim.config` and `tables.txt`.

    Raises:
        InputError: the fabric has no hosts, too many switches, or some without links; or packets
            go by intermediates, are marked, or are shared at every hop.
    """
    fabric, far = RatedLinks.of(build), build.wiring.far
    _require_single_paths(build)
    depth = distances(table_of(far), np.arange(len(far))).astype(np.int16)  # [S, S], in links
    if (depth == BEYOND).any():
        raise InputError.of("a fabric in which all switches reach each other", "a damaged one")
    fib = Fib.of(build.tables, build.wiring.far_by_port())
    minimal = fib.next_switch(np.arange(len(far)))
    pairs = build.topology.endpoints & (depth > 0)
    agreeing = pairs & (minimal == _next_routers(far, depth))
    yield "network.anynet", "".join(_network(fabric, len(far)))
    yield (
        "booksim.config",
        CONFIGURATION.format(
            name=build.name,
            identity=build.identity or "not saved",
            alike=np.count_nonzero(agreeing),
            pairs=np.count_nonzero(pairs),
        ),
    )
    yield "tables.txt", "".join(_table_text(fabric))


def _require_single_paths(build: Build) -> None:
    """Require that packets in transit have a single next switch each.

    Raises:
        InputError: packets go by intermediates, are marked, or are shared at every hop.
    """
    forwarding = build.forwarding
    if forwarding.intermediates or forwarding.marks:
        key, given = "routing.balance", build.balance
    elif forwarding.every_hop:
        key, given = "routing.transit", EVERY_HOP
    else:
        return
    required = "one next router, as BookSim finds one shortest path of its own in `anynet`"
    raise InputError.of(required, given, "simulate it", key=key)


def _network(fabric: RatedLinks, switches: int) -> Iterator[str]:
    """Yield a line for each router: its hosts, and its links to routers with larger numbers."""
    lines = [[f"router {switch}"] for switch in range(switches)]
    for host, switch in enumerate(fabric.host_switch.tolist()):
        lines[switch].append(f"node {host}")
    for link in fabric.links():
        lines[link.switch].append(f"router {link.far_switch}")
    return (f"{' '.join(line)}\n" for line in lines)


def _next_routers(far: NDArray[np.int32], depth: NDArray[np.int16]) -> NDArray[np.int64]:
    """The first router on BookSim's path, int64[S, S] by source and destination; -1 to itself.

    BookSim's path comes to its destination over the neighbour with the lowest number among those
    that are nearer to the source. It comes to that neighbour in the same way, and so on.

    Args:
        far: int32[S, K], the neighbours of each router, ascending.
        depth: int16[S, S], the distances.
    """
    switches = np.arange(len(far))
    # [S, S], by source and destination the router before the destination on the path.
    before = np.full(depth.shape, -1)
    for neighbour in far.T[::-1]:  # the lowest neighbour comes last, and overwrites the others
        is_nearer = (neighbour >= 0) & (depth[:, neighbour] == depth - 1)
        before = np.where(is_nearer, neighbour, before)
    # The first router to a destination is that to the router before it: first those at a distance
    # of 1 are known, then those of 2, and so on.
    first = np.where(depth == 1, switches, -1)
    for _ in range(1, int(depth.max())):
        first = np.where(first < 0, np.take_along_axis(first, np.maximum(before, 0), 1), first)
    return np.where(depth > 0, first, -1)


def _table_text(fabric: RatedLinks) -> Iterator[str]:
    """Yield the lines that `TABLES_HEAD` explains.

    They name next switches in place of ports. The number of a switch is its vertex. A class is
    numbered on each switch by itself.
    """
    build, program = fabric.build, program_of(fabric.build)
    identity = build.identity or "not saved"
    yield TABLES_HEAD.format(name=build.name, identity=identity, switches=len(program.far))
    for switch, far_switch, rate in fabric.links():
        yield f"link {switch} {far_switch} {rate} {LINK_LATENCY}\n"
    for name, switch, rate, address in fabric.hosts():
        yield f"host {name} {switch} {rate} {address}\n"
    yield from _class_lines(program, np.asarray(build.tables.classes.weight))
    for first in range(0, len(program.far), DESTINATIONS_AT_ONCE):
        block = np.arange(first, min(first + DESTINATIONS_AT_ONCE, len(program.far)))
        rows = np.maximum(egress_classes(build, block), -1)  # -1 for all that is no class
        for destination, row in zip(block.tolist(), rows.tolist(), strict=True):
            yield f"route {destination} {' '.join(map(str, row))}\n"


def _class_lines(program: Program, weight: Array) -> Iterator[str]:
    """Yield a line for each egress class of each switch.

    Args:
        program: the tables.
        weight: int[S, C, n], the weights of the shares of each class.
    """
    # The first link of the order of a class is its minimal link; a class without one is left out.
    switch, class_number = np.nonzero(program.order[..., 0] >= 0)
    minimal = program.order[switch, class_number, 0]
    next_switch = program.far[switch, minimal]
    turned = _next_switch_after_turn(program, switch, class_number, minimal)
    shares, weights = program.shares[switch, class_number], weight[switch, class_number]
    hops = np.where(shares >= 0, program.far[switch[:, None], shares], -1)
    arrays = (switch, class_number, next_switch, turned, hops, weights)
    for s, c, minimal_next, turned_next, class_hops, class_weights in zip(
        *(array.tolist() for array in arrays), strict=True
    ):
        weighted_hops = zip(class_hops, class_weights, strict=True)
        text = "".join(f" {hop} {weight}" for hop, weight in weighted_hops if hop >= 0)
        yield f"class {s} {c} {minimal_next} {turned_next}{text}\n"


def _next_switch_after_turn(
    program: Program, switch: Array, class_number: Array, minimal: Array
) -> Array:
    """The next switch of packets that came in by the minimal link of their class, int64[n].

    Args:
        program: what switches hold.
        switch: int64[n], the switch of each class.
        class_number: int64[n], its number.
        minimal: int64[n], its minimal link.
    """
    packets = np.stack((switch, minimal, np.full_like(switch, PLAIN), class_number), axis=1)
    nothing_down = np.zeros((len(switch), 0), np.int64)
    # `for_packets` compiles the loop where there are enough packets for that. It lists the links
    # that each packet may take, one packet after the other.
    links_of_packets = for_packets(len(switch), next_links_of_packets)
    count, next_hops = links_of_packets(program, packets.astype(np.int64), nothing_down)
    first_of_packet = np.cumsum(count) - count
    link = next_hops[first_of_packet, LINK]
    after: Array = np.where(link >= 0, program.far[switch, link], -1)
    return after
