"""A platform for SimGrid: hosts, links with their rates, and the tables' paths as explicit routes.

Source: SimGrid 3.32's manual, "Platform Description" (XML format 4.1). A group of hosts is a zone
with a router; a zone route leads from group to group, one for both directions where the path
back is the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compilers.tables.build import Build
from extensions.clusters.simulators import each_plane
from extensions.clusters.simulators.host_pair_paths import HostPairPaths
from extensions.clusters.simulators.rated_links import LATENCY, RatedLinks

HEAD = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<!-- Fabric {name}, build {identity}. Rates in both directions of each link; no TCP windows, and
     data in one direction takes nothing of the other. Options of the command line go first. -->
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
SPEED_OF_HOSTS = "100Gf"


def files(build: Build) -> Iterator[tuple[str, str]]:
    """`platform.xml`, and `hostfile`, all hosts switch by switch.

    Raises:
        InputError: the fabric has no hosts, or too many.
    """
    fabric = RatedLinks.of(build)
    yield "platform.xml", "".join(_platform(fabric))
    yield "hostfile", "".join(f"{name}\n" for name in fabric.names)


def _platform(fabric: RatedLinks) -> Iterator[str]:
    paths = HostPairPaths.of(fabric)
    yield HEAD.format(name=fabric.build.name, identity=fabric.build.identity or "not saved")
    members: list[list[tuple[str, int]]] = [[] for _ in paths.switch]
    for group, host in zip(
        paths.group.tolist(), zip(fabric.names, fabric.host_rate.tolist(), strict=True), strict=True
    ):
        members[group].append(host)
    for group, hosts in enumerate(members):
        yield from _zone(group, hosts)
    yield INSIDE
    for u, v, rate in fabric.links():
        yield "  " + LINK.format(f"{u}/{v}", rate, LATENCY)
    yield from _routes(fabric, paths)
    yield " </zone>\n</platform>\n"


def _zone(group: int, hosts: list[tuple[str, int]]) -> Iterator[str]:
    """A group of hosts around a router."""
    yield f'  <zone id="{group}/" routing="Floyd">\n   <router id="{group}/0"/>\n'
    yield from (f'   <host id="{host}" speed="{SPEED_OF_HOSTS}"/>\n' for host, _ in hosts)
    yield from ("   " + LINK.format(f"{host}/", rate, LATENCY) for host, rate in hosts)
    for host, _ in hosts:
        step = STEP.format(f"{host}/", "UP")
        yield f'   <route src="{host}" dst="{group}/0">{step}</route>\n'
    yield "  </zone>\n"


def _routes(fabric: RatedLinks, paths: HostPairPaths) -> Iterator[str]:
    """A zone route for each pair of groups, or for both directions of it."""
    p, names = paths.program, [f"{u}/{v}" for u, v in fabric.ends.tolist()]
    forth = p.far > np.arange(len(p.far))[:, None]
    steps = [
        STEP.format(names[link], "UP" if up else "DOWN") if link >= 0 else ""
        for link, up in zip(p.cable.ravel().tolist(), forth.ravel().tolist(), strict=True)
    ]
    returning = paths.returning()
    inside = STEP.format("/inside", "NONE")
    for a, row in enumerate(paths.arcs):
        for b, arcs in enumerate(row.tolist()):
            both = bool(returning[a, b])
            if a == b or (both and a > b):
                continue
            symmetrical = "YES" if both else "NO"
            text = "".join([steps[arc] for arc in arcs if arc >= 0]) or inside
            yield (
                f'  <zoneRoute src="{a}/" dst="{b}/" gw_src="{a}/0" gw_dst="{b}/0" '
                f'symmetrical="{symmetrical}">{text}</zoneRoute>\n'
            )


of_planes = each_plane(files)
