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


def table_limit_problems(build: Build, target: str, has_bgp: bool = False) -> Iterator[Problem]:
    """The limits of node types that the routes and ECMP groups of several VRFs exceed.

    Where every hop shares packets, all packets use one table, which `compile` has counted.

    Args:
        build: the fabric, with its node types.
        target: the name of the target, for messages.
        has_bgp: whether BGP resolves next hops, by a route to every other switch.
    """
    has_alternates = build.tables.classes.alternate.shape[2] > 0
    if build.hardware is None or build.forwarding.every_hop or not has_alternates:
        return
    wiring = build.wiring
    needs = _table_needs(build, has_bgp)
    for type_number, node_type in enumerate(build.hardware.types):
        is_of_type = (wiring.node_type == type_number) & needs.has_vrfs
        for key, limit in node_type.limits.items():
            count = needs.entries[key]
            is_over = is_of_type & (count > limit)
            if is_over.any():
                fullest = int(np.where(is_over, count, 0).argmax())
                required = f"at least {count[fullest]:,} {needs.titles[key]}"
                yield Problem(
                    key=f"node_types.{node_type.name}.tables.{key}",
                    required=f"{required} for alternates on target {target}",
                    given=f"{limit:,}, too few at {np.count_nonzero(is_over):,} "
                    f"nodes; {wiring.names[fullest]} needs most",
                    todo="choose another type, a smaller fabric or balance: minimal",
                )


@dataclass(frozen=True, slots=True)
class _TableNeeds:
    """How many entries the tables of each of S switches have to hold."""

    has_vrfs: NDArray[np.bool_]
    """bool[S]: the switches that have more than one VRF."""
    entries: Mapping[str, Numbers]
    """By the key of a limit in the inventory, such as `groups`: int[S], how many entries each
    switch needs."""
    titles: Mapping[str, str]
    """By the same keys, the name of the entries in messages."""


def _table_needs(build: Build, has_bgp: bool) -> _TableNeeds:
    """Count the routes and ECMP groups of all VRFs of each switch.

    All is counted for each address family:

    - The default VRF, and on a switch with hosts that of hosts, has a route to every other prefix
      and to every host of the switch.
    - With BGP the default VRF also has a route to the announced next hop of every other switch.
    - An egress class that shares packets takes an ECMP group.
    - Where packets are marked, each link has one VRF more: with a route and a group that spread
      marked packets, and a route to every neighbour and host.
    """
    wiring, classes = build.wiring, build.tables.classes
    families = 2 if build.addressing.ipv6 else 1
    # int[S, C, 1 + A] and int[S, C]: the ports of each egress class, the minimal one first, and
    # how many of them share packets.
    ports: Numbers = np.concatenate((classes.port[..., None], classes.alternate), axis=2)
    members: Numbers = np.count_nonzero(np.where(ports > 0, classes.weight, 0), axis=2)
    # All others are int[S], a number for each switch.
    hosts = np.count_nonzero(wiring.host_port, axis=1)
    has_hosts = hosts > 0
    prefixes = build.tables.routes.rows() - 1  # without the switch's own
    neighbours = np.count_nonzero((wiring.far >= 0) & build.topology.endpoints[wiring.far], axis=1)
    links = np.count_nonzero(wiring.far >= 0, axis=1)
    marked_vrfs = links if build.forwarding.marks else np.zeros_like(links)
    # Routes to a prefix and its switch: in the default VRF, to the next hop, in the VRF of hosts.
    routes_a_prefix = 1 + int(has_bgp) + has_hosts.astype(np.int64)
    routes = prefixes * routes_a_prefix
    routes += 2 * hosts  # in the default VRF and in that of hosts
    routes += marked_vrfs * (1 + neighbours + hosts)
    groups = np.where(has_hosts, (members > 1).sum(axis=1), 0) + marked_vrfs
    widest = np.where(has_hosts, members.max(axis=1, initial=0), 0)
    vrfs = "all" if build.forwarding.marks else "two"
    return _TableNeeds(
        has_vrfs=has_hosts | (marked_vrfs > 0),
        entries={
            "lpm_rows": routes * families,
            "groups": groups * families,
            # A group that spreads marked packets has all links but the one that brought them.
            "ecmp_width": np.maximum(widest, marked_vrfs - 1),
        },
        titles={
            "lpm_rows": f"routes in {vrfs} VRFs",
            "groups": "ECMP groups",
            "ecmp_width": "members per ECMP group",
        },
    )
