"""Host VRF: packets that enter the fabric told from transit by the VRF of their port.

Host ports stand in a VRF of their own, fabric ports in the default one. The host VRF has a route to
every prefix by all ports that share the entering traffic of its class; next hops are in the default
VRF, each an interface and an address (some chips cannot chain look-ups: FRR issue 18320). Transit
meets the default VRF alone, whose routes are minimal, as `Classes` of the intermediate form wants
it. A VRF does not fall through to another, so it needs all prefixes. The way back is a route per
host in the default VRF, with the host itself as next hop: not every system takes a route to an
interface alone on Ethernet (Cisco, Nexus 9000 unicast routing guide, static routing), and FRR takes
a host route through the host itself, but before 10.6 not the whole block through one of its own
addresses (zebra_nhg.c, commits 4dcc227611 and d09fc634e7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from compilers.tables.build import Build
from compilers.targets.routed.static_routes import Numbers, RoutedFabric
from inventory.problems import Problem

Way: TypeAlias = tuple[str, str]
"""A gateway and the interface that it is behind."""
SharedRoute: TypeAlias = tuple[str, tuple[Way, ...]]
"""A prefix and the ways that share what enters the fabric for it."""


def shared_routes(
    routed: RoutedFabric,
    vertex: int,
    family: int,
    ways: Mapping[int, Way],
    alone: Mapping[int, Way] = MappingProxyType({}),
) -> list[SharedRoute]:
    """The routes of packets from hosts; none where no class of the switch shares its traffic.

    Args:
        routed: the fabric.
        vertex: of the switch.
        family: 0 for IPv4, 1 for IPv6.
        ways: by port.
        alone: by prefix, of classes that share nothing; else that of the minimal port.
    """
    shared = {s.egress: tuple(ways[p] for p in s.port) for s in routed.shares(vertex)}
    if not shared:
        return []
    minimal = routed.build.tables.classes.port[vertex].tolist()
    texts = routed.prefixes[family]
    columns = (column.tolist() for column in routed.routes(vertex))
    return [
        (texts[prefix], shared.get(egress) or (alone.get(prefix) or ways[minimal[egress]],))
        for prefix, egress in zip(*columns, strict=True)
    ]


def beyond_tables(build: Build, target: str, found: bool = False) -> Iterator[Problem]:
    """Limits of node types that routes in two VRFs and their ECMP groups do not fit, with numbers.

    Each VRF has a route to every other prefix and to every host of the switch. A class that shares
    its traffic takes an ECMP group per address family: its members have the family's addresses.

    Args:
        build: whose node types.
        target: its name.
        found: whether BGP finds the next hops, by a route to every other switch.
    """
    if build.hardware is None or not build.tables.classes.alternate.shape[2]:
        return
    w, c = build.wiring, build.tables.classes
    families = 2 if build.addressing.ipv6 else 1
    hosts = np.count_nonzero(w.host_port, axis=1)
    ports: Numbers = np.concatenate((c.port[..., None], c.alternate), axis=2)
    members: Numbers = np.count_nonzero(c.weight * (ports > 0), axis=2)
    others = build.tables.routes.rows() - 1
    needed = {
        "lpm_rows": ("routes in two VRFs", ((others + hosts) * 2 + others * found) * families),
        "groups": ("ECMP groups", (members > 1).sum(axis=1) * families),
        "ecmp_width": ("members per ECMP group", members.max(axis=1, initial=0)),
    }
    for t, node_type in enumerate(build.hardware.types):
        here = (w.node_type == t) & (hosts > 0)
        for word, limit in node_type.limits.items():
            what, count = needed[word]
            over = here & (count > limit)
            if over.any():
                most = int((over * count).argmax())
                yield Problem(
                    key=f"node_types.{node_type.name}.tables.{word}",
                    required=f"at least {count[most]:,} {what} for alternates on target {target}",
                    given=f"{limit:,}, too few at {np.count_nonzero(over):,} "
                    f"nodes; {w.names[most]} needs most",
                    todo="choose another type, a smaller fabric or balance: minimal",
                )
