"""A fabric for ns-3: its tables as a plain file, and a program whose switches forward by them.

The file has next switches in the place of ports. Numbers of switches are vertices; a class is a
number of its own on each switch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from compilers.forwarding.many_packets import LOOPS
from compilers.forwarding.program import egress_classes, program_of
from compilers.forwarding.rule import PLAIN, Array, Program, spreads
from compilers.routing.intermediates import intermediates
from compilers.routing.marked_spread import ONE_SIDE
from compilers.tables.build import Build
from extensions.clusters.simulators import each_plane
from extensions.clusters.simulators.rated_links import LATENCY, RatedLinks
from templates import TEMPLATES

DESTINATIONS_AT_ONCE = 256
HEAD = """\
# Fabric {name}, build {identity}: links, hosts, and what its switches do with packets.
# switches N
# link A B GBIT_S SECONDS           between two switches
# host NAME SWITCH GBIT_S ADDRESS   hosts have the latency of links
# class S K NEXT BACK [HOP WEIGHT]  on switch S a packet of class K goes to switch NEXT, or to BACK
#   if it came from there; one from a host of S takes a HOP by its flow, as often as WEIGHT says
# route D K ...                     the class of packets to switch D on each switch, -1: none
{more}switches {switches}
"""
SHARED = """\
# shared                            packets from other switches take a HOP, too
# back S K FROM NEXT                but one that came from switch FROM goes to NEXT
"""
OVER = """\
# via D ...                         a packet from a host goes to one of these first, by its flow;
#   there it is one from a host that goes to its end
"""
MARKS = """\
# marks                             a packet that takes another WAY than NEXT is marked
# unmarked K ...                    marked packets of these classes go as others
# side B ...                        of each switch, -1: there is one side. Else all HOPs mark
# spread S FROM NEXT ...            others that came from FROM take a NEXT by their flow; the mark
#   stays where S is on the side of their end, else it ends
"""


def files(build: Build) -> Iterator[tuple[str, str]]:
    """`fabric.txt` and `fabric.cc`, which is the same for every fabric.

    Raises:
        InputError: the fabric has no hosts, or too many switches.
    """
    yield "fabric.txt", "".join(table_text(RatedLinks.of(build)))
    yield "fabric.cc", (TEMPLATES / "ns3" / "fabric.cc").read_text()


def table_text(fabric: RatedLinks) -> Iterator[str]:
    """The lines that the head of the file explains."""
    build, p = fabric.build, program_of(fabric.build)
    words = ((build.every_hop, SHARED), (build.carries, OVER), (build.marks, MARKS))
    yield HEAD.format(
        name=build.name,
        identity=build.identity or "not saved",
        switches=len(p.far),
        more="".join(text for there, text in words if there),
    )
    yield from (f"link {u} {v} {rate} {LATENCY}\n" for u, v, rate in fabric.links())
    for name, v, rate, address in fabric.hosts():
        yield f"host {name} {v} {rate} {address}\n"
    yield from _classes(p, np.asarray(build.tables.classes.weight))
    if build.every_hop:
        yield "shared\n"
        yield from _back(p)
    if build.carries:
        yield _line("via", intermediates(build).tolist())
    if build.marks:
        yield from _marks(p)
    for first in range(0, len(p.far), DESTINATIONS_AT_ONCE):
        ends = np.arange(first, min(first + DESTINATIONS_AT_ONCE, len(p.far)))
        rows = np.maximum(egress_classes(build, ends), -1)
        for number, row in zip(ends.tolist(), rows.tolist(), strict=True):
            yield _line(f"route {number}", row)


def _line(word: str, numbers: Iterable[int]) -> str:
    return f"{word} {' '.join(map(str, numbers))}\n"


def _classes(p: Program, weight: Array) -> Iterator[str]:
    switch, number = np.nonzero(p.order[..., 0] >= 0)
    minimal = p.order[switch, number, 0]
    ahead, back = p.far[switch, minimal], _after(p, switch, number, minimal)
    shares, weights = p.shares[switch, number], weight[switch, number]
    ports = np.where(shares >= 0, p.far[switch[:, None], shares], -1)
    columns = (part.tolist() for part in (switch, number, ahead, back, ports, weights))
    for s, k, there, turned, some, parts in zip(*columns, strict=True):
        pairs = zip(some, parts, strict=True)
        text = "".join(f" {port} {share}" for port, share in pairs if port >= 0)
        yield f"class {s} {k} {there} {turned}{text}\n"


def _back(p: Program) -> Iterator[str]:
    """Where packets go that came by a link which their class shares."""
    switch, number, place = np.nonzero(p.shares >= 0)
    came = p.shares[switch, number, place]
    other = came != p.order[switch, number, 0]
    switch, number, came = switch[other], number[other], came[other]
    columns = switch, number, p.far[switch, came], _after(p, switch, number, came)
    yield from (_line("back", each) for each in np.column_stack(columns).tolist())


def _after(p: Program, switch: Array, number: Array, came: Array) -> Array:
    """int32[n]: the switch that packets of a class in transit go to, by their ingress link."""
    packets = np.zeros((len(switch), 5), np.int64)
    packets[:, 0], packets[:, 1], packets[:, 2], packets[:, 3] = switch, came, PLAIN, number
    none = np.zeros((len(switch), 0), np.int64)
    count, found = LOOPS.kernels(len(switch)).next_of_packets(p, packets, none)
    link = found[np.cumsum(count) - count, 0]
    after: Array = np.where(link >= 0, p.far[switch, link], -1)
    return after


def _marks(p: Program) -> Iterator[str]:
    yield "marks\n"
    yield _line("unmarked", (c for c in range(p.order.shape[1]) if not spreads(p, c)))
    yield _line("side", p.side.tolist() if p.side[0] != ONE_SIDE else [ONE_SIDE] * len(p.far))
    for s, came in np.argwhere(p.onward.any(axis=2)).tolist():
        yield _line(f"spread {s} {p.far[s, came]}", p.far[s, p.onward[s, came]].tolist())


of_planes = each_plane(files)
