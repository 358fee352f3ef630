"""The larger fabric that a number of clusters makes of a build (PolarFly paper, §VI)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of, hardware_of
from compilers.expansion.base_fabric import BaseFabric
from compilers.expansion.generated_ports import with_ports
from compilers.expansion.grown_racks import grown_hardware
from compilers.expansion.grown_wiring import grown_wiring
from compilers.expansion.spare_nodes import SpareNodes, hosts_of_spares, spares_taken
from compilers.expansion.spare_ports import Spare, needed, require_room, room
from compilers.expansion.table_changes import changes, moved
from compilers.routing.policy_passes import choices
from compilers.routing.shortest_paths import LARGEST_SHORTEST, links_taken, routes
from compilers.spec.address_blocks import block_count
from compilers.spec.fabric_spec import RoutingSpec
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes, Tables
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.addressing import Addressing, default_host_macs, parse_mac
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A larger fabric, compared with the installed one.

    build: of the larger fabric. cables: all of its cables. added: int64[A], the new ones among
    them. moved: the number of old cables with a different end or port in the larger fabric. spare:
    int64[N'], ports for links that stay unused. taken: spare nodes, by their vertices. fits: the
    number of clusters of the kind that the old fabric's ports allow. changes: for each old
    switch, int64[S] each, the table changes: rows_added, rows_changed, classes_added,
    classes_changed.
    """

    build: Build
    expansion: Expansion
    cables: Cables
    added: NDArray[np.int64]
    moved: int
    spare: NDArray[np.int64]
    taken: SpareNodes
    fits: int
    changes: Mapping[str, NDArray[np.int64]]


def grow(build: Build, method: str, count: int) -> Grown:
    """The build grown by `count` clusters on unused ports, with new tables.

    Rows stay as they are wherever they still lead along a shortest path. New nodes have the type of
    those that they copy: the inventory's spares where they stand, then nodes that are made up and
    fill the inventory's racks that have room, then racks of their own.
    Made-up hardware gets the ports that it needs. An expanded fabric grows further by clusters of
    the same kind only.

    Raises:
        InputError: the topology cannot grow by these clusters or is damaged, or it lacks ports or
            addresses, or the larger fabric has more than `LARGEST_SHORTEST` switches.
    """
    base = BaseFabric.of(build.topology)
    base.require(method, count)
    expansion = base.grown(method, count)
    old, order = build.topology.graph.order, expansion.topology.graph.order
    if order > LARGEST_SHORTEST:
        raise InputError.of(f"at most {LARGEST_SHORTEST:,} switches", f"{order:,}", key="clusters")
    wired, known = with_ports(build.wiring, hardware_of(build), expansion)
    build = replace(build, wiring=wired)
    spare = Spare.of(build.wiring, known.types)
    fits = _fits(base, method, spare, build.wiring)
    require_room(spare, expansion, build.wiring, fits)
    taken = spares_taken(known, build.wiring, expansion)
    addressing = _addressing(build.addressing, order, known.plane, taken)
    before = cables_of(build.wiring, known)
    wiring = grown_wiring(build.wiring, expansion, spare, known, taken)
    tables = _tables(build, expansion.topology, wiring)
    hardware = grown_hardware(expansion, wiring, known, before, taken)
    larger = replace(
        build,
        topology=expansion.topology,
        wiring=wiring,
        addressing=addressing,
        tables=tables,
        hardware=hardware,
        identity="",
    )
    cables = cables_of(wiring, hardware)
    return Grown(
        build=larger,
        expansion=expansion,
        cables=cables,
        added=np.flatnonzero(cables.ends.max(axis=1) >= old),
        moved=moved(build.wiring, wiring),
        spare=Spare.of(wiring, known.types).counts(),
        taken=taken,
        fits=fits,
        changes=changes(build.tables, tables),
    )


def _fits(base: BaseFabric, method: str, spare: Spare, wiring: Wiring) -> int:
    """The most clusters for which no node runs out of ports; every one needs more of them."""
    count = 0
    while not base.problems(method, count + 1):
        larger = base.grown(method, count + 1)
        if (needed(larger) > room(spare, larger, wiring)).any():
            break
        count += 1
    return count


def _addressing(old: Addressing, order: int, plane: int, taken: SpareNodes) -> Addressing:
    bits = (block_count(order, 1) - 1).bit_length()
    for pool, length in ((old.ipv4, old.ipv4_length), (old.ipv6, 64)):
        if pool is not None and pool.prefixlen > length - bits:
            required = f"a pool of /{length - bits} or larger for {order:,} vertices"
            todo = "a larger pool with the same first address keeps all addresses"
            raise InputError.of(required, str(pool), todo, key="addressing")
    macs = default_host_macs(order, old.host_mac.shape[1], plane)
    macs[: len(old.host_mac)] = old.host_mac
    for where, host in hosts_of_spares(taken, macs.shape[1]):
        macs[where] = parse_mac(host.mac) if host.mac else macs[where]
    return replace(old, host_mac=macs)


def _tables(build: Build, topology: Topology, wiring: Wiring) -> Tables:
    kept = links_taken(build.tables, build.wiring.port)
    tables = Tables(routes=routes(topology, kept), classes=Classes.minimal(wiring.port.copy()))
    asked = {word: build.policy[word] for word in RoutingSpec.model_fields if word in build.policy}
    spec = RoutingSpec.model_validate({"balance": build.balance, "protect": build.protect, **asked})
    policy = spec.policy(int(topology.parameters["q"]), topology.family)
    return choices(tables, topology, wiring, policy)
