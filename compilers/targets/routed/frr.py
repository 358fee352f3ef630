"""The frr target: an integrated frr.conf, static routes or eBGP (docs/frr.md).

Static routes do all that target linux does: the order of ports as routes of rising distance, and
tables of their own for what depends on where a packet came in (`linux_tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.features import AGGREGATES, INGRESS, REPAIR, SHARES, WEIGHTS
from compilers.targets.options import Chosen, Options, choice, choose
from compilers.targets.rendering import Renderer, Written
from compilers.targets.routed.frr_bgp import BgpSessions
from compilers.targets.routed.linux_tables import (
    ENTER,
    MAIN,
    PROTOCOL,
    RULE,
    in_order,
    require_weights,
    rules,
)
from compilers.targets.routed.static_routes import Numbers, Routed, Share
from compilers.targets.template_check import known
from inventory.problems import InputError, Problem

FILES = ("frr.conf", "links.batch", "rules.batch", "sysctl.conf")
VARIABLES = known(
    FILES,
    "switch identity unreachable ipv4_routes ipv6_routes ipv4_pool ipv6_pool rules "
    "rule_preference protocol bgp bfd",
)
OPTIONS: Options = MappingProxyType(
    {
        "version": choice("The oldest FRR that is to take it.", "8.4", "10.7"),
        "routing": choice("How routes come about.", "static", "bgp"),
        "bfd": choice("Whether BFD watches every link.", "off", "on"),
    }
)
FEATURES = frozenset({WEIGHTS, INGRESS, REPAIR, AGGREGATES})
CAPABILITIES = Capabilities("frr with version=8.4", FEATURES)
NEW_CAPABILITIES = Capabilities("frr", FEATURES | {SHARES})
BGP_CAPABILITIES = Capabilities("frr with routing=bgp", frozenset({AGGREGATES}))
UNREACHABLE = 254
"""The distance of the route that refuses addresses without another: the last that is usable."""
Route = tuple[str, str, str, str]
"""Prefix, gateway, interface, and what else belongs to the line. A fabric has millions."""


def render(
    build: Build,
    out: Path,
    templates: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    options: Chosen | None = None,
    only: Collection[int] | None = None,
) -> Written:
    """Write the files of every switch; see `compilers.targets.Target.render`."""
    chosen = choose("frr", OPTIONS, options)
    require(build, chosen)
    renderer = Renderer("frr", templates, VARIABLES, only)
    routed = Routed.of(build)
    sessions = BgpSessions.of(routed) if chosen["routing"] == "bgp" else None

    def write(vertex: int, name: str) -> None:
        renderer.write(out / name, FILES, variables(routed, vertex, chosen, sessions))

    renderer.each(build, write, progress)
    return renderer.written


def require(build: Build, chosen: Chosen) -> None:
    """Pass when this FRR can do what is asked; see `compilers.targets.Target.require`."""
    bgp, old = chosen["routing"] == "bgp", chosen["version"] == "8.4"
    (BGP_CAPABILITIES if bgp else CAPABILITIES if old else NEW_CAPABILITIES).require(build)
    require_weights(build, "frr")
    if old and not bgp and chosen["bfd"] == "on":
        raise InputError(
            Problem(
                key="--set bfd",
                required="off: static routes of FRR 8.4 do not follow BFD",
                given="on",
                todo="add --set version=10.7 or --set routing=bgp",
            )
        )


def variables(
    routed: Routed, vertex: int, chosen: Chosen, sessions: BgpSessions | None = None
) -> dict[str, Any]:
    """The variables of a switch's templates (docs/frr.md lists them)."""
    switch = routed.switch(vertex)
    orders = {} if sessions else dict(in_order(routed, vertex))
    shares = [] if sessions or not switch.hosts else list(routed.shares(vertex))
    routes = [_routes(routed, vertex, family, orders, shares, chosen) for family in (0, 1)]
    pools = routed.pools()
    return {
        "switch": switch,
        "identity": routed.build.identity,
        "unreachable": UNREACHABLE,
        "ipv4_routes": routes[0],
        "ipv6_routes": routes[1] if switch.ipv6 else [],
        "ipv4_pool": pools[0],
        "ipv6_pool": pools[1] if switch.ipv6 else "",
        "rules": rules(switch, {*orders, *([ENTER] if shares else [])}),
        "rule_preference": RULE,
        "protocol": PROTOCOL,
        "bgp": sessions.at(vertex) if sessions else None,
        "bfd": chosen["bfd"] == "on",
    }


def _routes(
    routed: Routed,
    vertex: int,
    family: int,
    orders: Mapping[int, Numbers],
    shares: Sequence[Share],
    chosen: Chosen,
) -> Iterator[Route]:
    """The static routes of a family, table by table, then the shares of classes."""
    links = routed.switch(vertex).links
    # FRR 10.4 and later take an IPv6 next hop for an IPv4 route.
    onlink = family == 0 and chosen["version"] == "8.4"
    ways = {link.port: (link.ipv4 if onlink else link.ipv6, link.interface) for link in links}
    last = " onlink" * onlink + " bfd" * (chosen["bfd"] == "on")
    prefix, egress = routed.routes(vertex)
    texts = routed.prefixes[family]
    for table, by_class in orders.items():
        port = by_class[egress]
        row, place = np.nonzero(port)
        where = f" table {table}" * (table != MAIN)
        words = [f" {m}" * (m > 1) + where + last for m in range(1, port.shape[1] + 1)]
        columns = (column.tolist() for column in (prefix[row], port[row, place], place))
        for number, through, m in zip(*columns, strict=True):
            yield texts[number], *ways[through], words[m]
    for share in shares:
        equal = len(set(share.weight)) == 1
        members = [
            (*ways[port], f" table {ENTER}" + f" weight {weight}" * (not equal) + last)
            for port, weight in zip(share.port, share.weight, strict=True)
        ]
        for number in prefix[egress == share.egress].tolist():
            for member in members:
                yield texts[number], *member
