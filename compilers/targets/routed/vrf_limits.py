"""Counts the routes and ECMP groups of all VRFs of a router, against the limits of its node type.

`P2pTarget.require` refuses a fabric whose routers need more than the inventory says that they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.routed.static_routes import Numbers
from inventory.problems import Problem


def beyond_tables(build: Build, target: str, by_bgp: bool = False) -> Iterator[Problem]:
    """Limits of node types that the routes and ECMP groups of several VRFs exceed.

    Where every hop shares packets, all use one table, which is counted when it is compiled.

    Args:
        build: the fabric, with its node types.
        target: its name, for messages.
        by_bgp: whether BGP resolves next hops, by a route to every other switch.
    """
    alternates = build.tables.classes.alternate.shape[2]
    if build.hardware is None or build.forwarding.every_hop or not alternates:
        return
    w = build.wiring
    needs = _table_needs(build, by_bgp)
    for t, node_type in enumerate(build.hardware.types):
        of_type = (w.node_type == t) & needs.used
        for word, limit in node_type.limits.items():
            what, count = needs.by_limit[word]
            over = of_type & (count > limit)
            if over.any():
                most = int(np.where(over, count, 0).argmax())
                yield Problem(
                    key=f"node_types.{node_type.name}.tables.{word}",
                    required=f"at least {count[most]:,} {what} for alternates on target {target}",
                    given=f"{limit:,}, too few at {np.count_nonzero(over):,} "
                    f"nodes; {w.names[most]} needs most",
                    todo="choose another type, a smaller fabric or balance: minimal",
                )


@dataclass(frozen=True, slots=True)
class _TableNeeds:
    """What the tables of each switch have to hold. S is the number of switches."""

    used: NDArray[np.bool_]
    """bool[S]: the switches that have more than one VRF."""
    by_limit: Mapping[str, tuple[str, Numbers]]
    """By the name of a limit, its name in messages and int[S], how much each switch needs."""


def _table_needs(build: Build, by_bgp: bool) -> _TableNeeds:
    """Count the routes and ECMP groups of all VRFs of each switch.

    Each VRF has a route to every other prefix and to every host of the switch. A class that shares
    packets takes an ECMP group for each address family. The VRF of a link's marked packets has a
    route and a group that spread them, and a route to every neighbour and host.
    """
    w, c = build.wiring, build.tables.classes
    families = 2 if build.addressing.ipv6 else 1
    hosts = np.count_nonzero(w.host_port, axis=1)
    ports: Numbers = np.concatenate((c.port[..., None], c.alternate), axis=2)
    members: Numbers = np.count_nonzero(np.where(ports > 0, c.weight, 0), axis=2)
    others = build.tables.routes.rows() - 1
    neighbours = np.count_nonzero((w.far >= 0) & build.topology.endpoints[w.far], axis=1)
    has_hosts = hosts > 0
    links = np.count_nonzero(w.far >= 0, axis=1)
    stages = links if build.forwarding.marks else np.zeros_like(links)
    vrfs_with_all = 1 + int(by_bgp) + has_hosts.astype(np.int64)
    rows = others * vrfs_with_all + 2 * hosts + stages * (1 + neighbours + hosts)
    groups = np.where(has_hosts, (members > 1).sum(axis=1), 0) + stages
    widest = np.where(has_hosts, members.max(axis=1, initial=0), 0)
    vrfs = "all" if build.forwarding.marks else "two"
    return _TableNeeds(
        used=has_hosts | (stages > 0),
        by_limit={
            "lpm_rows": (f"routes in {vrfs} VRFs", rows * families),
            "groups": ("ECMP groups", groups * families),
            "ecmp_width": ("members per ECMP group", np.maximum(widest, stages - 1)),
        },
    )
