"""A platform for SimGrid: hosts, links with their rates, and the tables' paths as explicit routes.

Source: SimGrid 3.32's manual, "Platform Description" (XML format 4.1). SimGrid knows one route from
a host to another. Every pair of hosts takes one of the paths of its switches, by a hash of the two,
as often as the shares of the paths say. Each host is a zone with a router.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compilers.forwarding.host_paths import TabulatedHops
from compilers.forwarding.walks import Walks
from extensions.simulation.rated_links import LINK_LATENCY, RatedLinks

HEAD = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
 <config>
  <prop id="network/model" value="CM02"/>
  <prop id="network/crosstraffic" value="no"/>
  <prop id="network/TCP-gamma" value="0"/>
 </config>
 <zone id="/" routing="Full">
"""
INSIDE = '  <link id="/inside" bandwidth="1000000Gbps" latency="0s" sharing_policy="FATPIPE"/>\n'
LINK = '<link id="{}" bandwidth="{}Gbps" latency="{}s" sharing_policy="SPLITDUPLEX"/>\n'
STEP = '<link_ctn id="{}" direction="{}"/>'


def platform_files(build, latency=LINK_LATENCY):
    """`platform.xml`, and `hostfile`, all hosts switch by switch: names and texts."""
    fabric = RatedLinks.of(build)
    return {
        "platform.xml": "".join(platform(fabric, latency)),
        "hostfile": "".join(f"{name}\n" for name in fabric.names),
    }


def platform(fabric: RatedLinks, latency: float) -> Iterator[str]:
    yield HEAD
    for name, rate in zip(fabric.names, fabric.host_rate.tolist(), strict=True):
        yield f'  <zone id="{name}/" routing="Floyd">\n   <router id="{name}/0"/>\n'
        yield f'   <host id="{name}" speed="100Gf"/>\n'
        yield "   " + LINK.format(f"{name}/up", rate, latency)
        step = STEP.format(f"{name}/up", "UP")
        yield f'   <route src="{name}" dst="{name}/0">{step}</route>\n  </zone>\n'
    yield INSIDE
    for u, v, rate in fabric.links():
        yield "  " + LINK.format(f"{u}/{v}", rate, latency)
    yield from routes(fabric)
    yield " </zone>\n</platform>\n"


def routes(fabric: RatedLinks) -> Iterator[str]:
    """A route for each ordered pair of hosts."""
    far = fabric.build.wiring.far
    degree = far.shape[1]
    names = fabric.names
    for source, paths in enumerate(host_pair_paths(fabric)):
        for destination, arcs in enumerate(paths):
            if source == destination:
                continue
            steps = []
            for arc in arcs:
                u, v = arc // degree, int(far[arc // degree, arc % degree])
                steps.append(STEP.format(f"{min(u, v)}/{max(u, v)}", "UP" if u < v else "DOWN"))
            text = "".join(steps) or STEP.format("/inside", "NONE")
            one, other = names[source], names[destination]
            yield (
                f'  <zoneRoute src="{one}/" dst="{other}/" gw_src="{one}/0" gw_dst="{other}/0" '
                f'symmetrical="NO">{text}</zoneRoute>\n'
            )


def host_pair_paths(fabric: RatedLinks) -> Iterator[list[list[int]]]:
    """Of each host the arcs, s·K + k for link k of switch s, of its path to each host."""
    walks = Walks.of(fabric.build)
    hops = TabulatedHops.of(walks, walks.program, np.zeros(0, np.int64))
    switches, count = np.unique(fabric.host_switch, return_counts=True)
    most = int(count.max())
    slots = fabric.host_number.tolist()
    for source, switch in enumerate(fabric.host_switch.tolist()):
        paths = hops.paths(np.full(len(switches), switch), switches)
        assert (paths.links_or_fault >= 0).all(), "some packets do not arrive"
        row = []
        for goal, slot in zip(fabric.host_switch.tolist(), slots, strict=True):
            if goal == switch:
                row.append([])
                continue
            taken = np.flatnonzero(paths.pair == np.searchsorted(switches, goal))
            ends = np.cumsum(paths.share[taken])
            place = (slots[source] * most + slot + 0.5) / most**2
            path = np.searchsorted(ends, place * ends[-1], side="right")
            arcs = paths.arcs[:, taken[path]].tolist()
            row.append([arc for arc in arcs if arc >= 0])
        yield row
