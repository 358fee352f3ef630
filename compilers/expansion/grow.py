"""The larger fabric that a number of clusters makes of a build (PolarFly paper, §VI)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of, hardware_of
from compilers.expansion.base_fabric import BaseFabric
from compilers.expansion.grown_racks import grown_hardware
from compilers.expansion.grown_wiring import grown_wiring
from compilers.expansion.spare_ports import (
    Spare,
    SpareNodes,
    hosts_of_spares,
    needed,
    require_room,
    room,
    spares_taken,
)
from compilers.expansion.table_changes import changes, moved
from compilers.routing.choose import choices
from compilers.routing.minimal_routes import LARGEST_SHORTEST, links_taken, routes
from compilers.spec.address_blocks import block_count
from compilers.spec.balances import balance_named
from compilers.spec.fabric_spec import RoutingSpec
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes, Tables
from compilers.topology.families import family_before
from compilers.topology.labelled_graph import Topology
from compilers.topology.random_growth import swapped
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.addressing import Addressing, default_host_macs, parse_mac
from compilers.wiring.hardware import Hardware, port_facts
from compilers.wiring.wiring import GENERATED, Wiring, generated_type
from inventory.problems import InputError, Problem

FITTED = ("demand", "largest_share")
"""Words of a policy that tables with new classes do not follow: shares are equal there."""


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A larger fabric, compared with the installed one.

    build: of the larger fabric. cables: all of its cables. added: int64[A], the new ones among
    them. moved: the number of old cables with a different end or port in the larger fabric. spare:
    int64[N'], ports for links that stay unused. taken: spare nodes, by their vertices. fits: the
    number of clusters of the kind that the old fabric's ports allow. changes: for each old switch,
    int64[S] each, the table changes: the words of `SwitchChange`. before: all cables of the old
    fabric. removed: int64[R], those among them that are taken away.
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
    before: Cables
    removed: NDArray[np.int64]


def grow(
    build: Build, method: str, count: int, planes: Sequence[Build] = (), seed: int = 0
) -> Grown:
    """The build grown by `count` clusters on unused ports, with new tables.

    A random graph grows by switches, whose links take the place of others (`random_growth`).

    Rows stay as they are wherever they still lead along a shortest path. New nodes have the type of
    those that they copy: the inventory's spares where they are, then nodes that are made up and
    fill the inventory's racks that have room, then racks of their own.
    Made-up hardware gets the ports that it needs. An expanded fabric grows further by clusters of
    the same kind only. `planes` are other planes, whose places in racks are taken; `seed` that
    of the links that random graphs swap.

    Raises:
        InputError: the topology cannot grow by these clusters or is damaged, or it lacks ports or
            addresses, packets are marked, or the larger fabric has more than `LARGEST_SHORTEST`
            switches.
    """
    topology = build.topology
    swaps = family_before(topology).grows_by_switches
    base = SwappedFabric(topology, seed) if swaps else BaseFabric.of(topology)
    base.require(method, count)
    _require_unmarked(build)
    expansion = base.grown(method, count)
    old, order = build.topology.graph.order, expansion.topology.graph.order
    if order > LARGEST_SHORTEST:
        raise InputError.of(f"at most {LARGEST_SHORTEST:,} switches", f"{order:,}", key="clusters")
    wired, known = with_ports(build.wiring, hardware_of(build), expansion)
    build = replace(build, wiring=wired)
    spare = Spare.of(build.wiring, known.types)
    fits = base.most(method, spare, build.wiring)
    require_room(spare, expansion, build.wiring, fits)
    taken = spares_taken(known, build.wiring, expansion)
    addressing = _addressing(build.addressing, order, known.plane, taken)
    before = cables_of(build.wiring, known)
    wiring = grown_wiring(build.wiring, expansion, spare, known, taken)
    tables = _tables(build, expansion, wiring)
    others = [(other.wiring, hardware_of(other)) for other in planes]
    hardware = grown_hardware(expansion, wiring, known, before, taken, others)
    larger = replace(
        build,
        policy={word: said for word, said in build.policy.items() if word not in FITTED},
        inputs={role: digest for role, digest in build.inputs.items() if role not in FITTED},
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
        changes=changes(build, larger),
        before=before,
        removed=_among(before, expansion),
    )


def _require_unmarked(build: Build) -> None:
    """Refuse marks: copies have neighbours in common, and the rule of marks wants one at most."""
    if build.marks:
        raise InputError.of(
            key="routing.balance",
            required="another balance, as where clusters are copied marked packets come back to "
            "the switch that spreads them, or it has no link to spread them over",
            given=build.balance,
            todo="compile it with balance: compact-valiant, move to that with `polarfab apply`, "
            "and expand that build",
        )


def _among(cables: Cables, expansion: Expansion) -> NDArray[np.int64]:
    """int64[R]: the cables of links that are taken away."""
    keys, gone = (
        np.sort(ends.astype(np.int64), axis=1) @ [len(expansion.origin), 1]
        for ends in (cables.ends, expansion.removed)
    )
    return np.flatnonzero(np.isin(keys, gone))


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


def _tables(build: Build, expansion: Expansion, wiring: Wiring) -> Tables:
    topology, stays = expansion.topology, expansion.stays(build.wiring.far)
    place = np.where(stays, np.cumsum(stays, axis=1) - 1, -1)
    taken = links_taken(build.tables, build.wiring.port)
    kept = np.where(taken < 0, -1, np.take_along_axis(place, np.maximum(taken, 0), axis=1))
    tables = Tables(routes=routes(topology, kept), classes=Classes.minimal(wiring.port.copy()))
    asked = {word: build.policy[word] for word in RoutingSpec.model_fields if word in build.policy}
    spec = RoutingSpec.model_validate({"balance": build.balance, "protect": build.protect, **asked})
    q = topology.parameters.get("q")
    policy = spec.policy(int(q) if q else None, topology.family)
    tables = choices(tables, topology, wiring, policy)
    made: Tables = balance_named(build.balance).chosen(tables, topology, wiring)
    return made


def with_ports(wiring: Wiring, known: Hardware, expansion: Expansion) -> tuple[Wiring, Hardware]:
    """The wiring and the hardware, where it is made up, with ports for an expansion.

    They come behind those that there are, so that no plug is moved.
    """
    if wiring.type_names != (GENERATED,):
        return wiring, known
    spare = Spare.of(wiring, known.types)
    more = int((needed(expansion) - room(spare, expansion, wiring)).max(initial=0))
    if more == 0:
        return wiring, known
    roles = known.types[0].role
    hosts = roles.count("host")
    links = roles.index("host") if hosts else len(roles)
    behind = len(roles) - links - hosts
    facts = port_facts(GENERATED, generated_type(links, hosts, behind + more))
    names = (tuple(sockets[0] for sockets in facts.sockets),)
    return replace(wiring, port_names=names), replace(known, types=(facts,))


METHOD = "switch"


@dataclass(frozen=True, slots=True)
class SwappedFabric:
    """A random graph that grows by switches; `seed` is that of the links that are split."""

    topology: Topology
    seed: int

    def require(self, method: str, count: int) -> None:
        """Refuse switches that cannot be added.

        Raises:
            InputError: another kind of cluster, none, or a fabric that is not whole.
        """
        problems = []
        if method != METHOD:
            required = f"{METHOD}:N, by which a {self.topology.family} grows"
            problems.append(Problem(required, method, key="clusters"))
        elif count < 1:
            problems.append(Problem("at least 1 switch", str(count), key="clusters"))
        if missing := int((~self.topology.present).sum()):
            todo = "install them first, or plan from the build of the whole fabric"
            problems.append(Problem("a whole fabric", f"{missing:,} switches missing", todo))
        if problems:
            raise InputError(problems)

    def most(self, method: str, spare: Spare, wiring: Wiring) -> int:  # noqa: ARG002
        """As many as routes are found for: no switch that exists needs a port more."""
        return LARGEST_SHORTEST - self.topology.graph.order

    def grown(self, method: str, count: int) -> Expansion:  # noqa: ARG002
        """The fabric with `count` switches more."""
        return swapped(self.topology, count, self.seed)
