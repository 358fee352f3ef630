"""The frr target: an integrated frr.conf with static routes for FRR 8.4 and later (docs/frr.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from compilers.build import Build
from compilers.targets.capabilities import AGGREGATES, Capabilities
from compilers.targets.options import NONE, Chosen, choose
from compilers.targets.rendering import Renderer, Written, nodes
from compilers.targets.routed import Routed

FILES = ("frr.conf", "links.batch", "sysctl.conf")
OPTIONS = NONE
CAPABILITIES = Capabilities("frr", frozenset({AGGREGATES}))
UNREACHABLE = 254
"""The distance of the route that refuses addresses without another: the last that is usable."""


def render(
    build: Build,
    out: Path,
    templates: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    options: Chosen | None = None,
) -> Written:
    """Write the files of every switch; see `compilers.targets.Target.render`."""
    choose("frr", OPTIONS, options)
    CAPABILITIES.require(build)
    renderer = Renderer("frr", templates)
    routed = Routed.of(build)
    for vertex, name in nodes(build, progress):
        renderer.write(out / name, FILES, variables(routed, vertex))
    return renderer.written


def variables(routed: Routed, vertex: int) -> dict[str, Any]:
    """The variables of a switch's templates (docs/frr.md lists them)."""
    switch = routed.switch(vertex)
    ways = {
        link.port: ((link.ipv4, link.interface), (link.ipv6, link.interface))
        for link in switch.links
    }
    ports = routed.build.tables.classes.port[vertex].tolist()
    prefix, egress = (column.tolist() for column in routed.routes(vertex))
    families = [
        [(texts[p], *ways[ports[k]][family]) for p, k in zip(prefix, egress, strict=True)]
        for family, texts in enumerate(routed.prefixes)
    ]
    pools = routed.pools()
    return {
        "switch": switch,
        "identity": routed.build.identity,
        "unreachable": UNREACHABLE,
        "ipv4_routes": families[0],
        "ipv6_routes": families[1] if switch.ipv6 else [],
        "ipv4_pool": pools[0],
        "ipv6_pool": pools[1] if switch.ipv6 else "",
    }
