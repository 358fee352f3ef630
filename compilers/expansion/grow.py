"""Grow the build of a PolarFly by clusters, so that no installed cable moves (paper, §VI).

`grow` copies clusters, wires the copies on unused ports, places their nodes, and computes tables in
which old rows stay wherever they still lead along a shortest path. `growth_report` prints what
comes of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of, hardware_of
from compilers.cabling.fabric_numbers import LINK_POOLS, WholeFabric, allocate, links_in, numbers_in
from compilers.expansion.grown_racks import grown_hardware
from compilers.expansion.spare_ports import (
    HostNeed,
    Spare,
    SpareNodes,
    far_ports,
    grown_ports,
    host_needs,
    hosts_of_spares,
    needed,
    require_room,
    require_room_for_hosts,
    room,
    spares_taken,
)
from compilers.routing.balanced_tables import balanced
from compilers.routing.choose import choices
from compilers.routing.minimal_routes import LARGEST_SHORTEST, routes
from compilers.spec.allocations import HOST
from compilers.spec.fabric_spec import RoutingSpec
from compilers.spec.forwarding import Forwarding
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes, Tables
from compilers.topology.families import family_before
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import Expansion, added_clusters, check, expand
from compilers.update.compare import compare
from compilers.wiring.addressing import Addressing, default_host_macs, parse_mac
from compilers.wiring.hardware import Hardware, port_facts
from compilers.wiring.host_names import host_names_at
from compilers.wiring.wiring import (
    GENERATED,
    Wiring,
    generated_type,
    links_by_port,
)
from inventory.problems import InputError, Problem

FITTED = ("demand", "largest_share")
"""Words of a policy that the larger fabric does not keep: its shares are equal, not fitted."""


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """A larger fabric, compared with the installed one."""

    build: Build
    """The build of the larger fabric."""
    expansion: Expansion
    """The larger topology, and what is added to it."""
    cables: Cables
    """All cables of the larger fabric."""
    added: NDArray[np.int64]
    """int64[A], the places of the new cables among these."""
    moved: int
    """The number of old cables with a different end or port in the larger fabric."""
    spare: NDArray[np.int64]
    """int64[S'], how many ports for links stay unused at each switch."""
    taken: SpareNodes
    """The spare nodes of the inventory that are used, by their vertices."""
    fits: int
    """The number of clusters of the kind that the old fabric's ports allow."""
    changes: Mapping[str, NDArray[np.int64]]
    """The table changes of each old switch: by field of `SwitchChange` int64[S]."""


def grow(build: Build, method: str, count: int, planes: Sequence[Build] = ()) -> Grown:
    """Grow a build by clusters on unused ports, with new tables.

    Rows stay as they are wherever they still lead along a shortest path. A new node has the type of
    the node that it copies. New nodes are the inventory's spares first. Others are generated, and
    placed in racks with room, then in racks of their own. Generated node types get the ports that
    they need.

    Args:
        build: the installed fabric. One that was expanded grows further by clusters of the same
            kind only.
        method: the kind of clusters: `quadric`, `fan` or `nucleus`.
        count: how many clusters are added.
        planes: the builds of other planes, whose places in racks are taken.

    Raises:
        InputError: the topology cannot grow by these clusters or is damaged, or it lacks ports or
            addresses, packets are marked, or the larger fabric has more than `LARGEST_SHORTEST`
            switches.
    """
    base = BaseFabric.of(build.topology)
    base.require(method, count)
    _require_unmarked(build)
    expansion = base.grown(method, count)
    old, order = build.topology.graph.order, expansion.topology.graph.order
    if order > LARGEST_SHORTEST:
        raise InputError.of(f"at most {LARGEST_SHORTEST:,} switches", f"{order:,}", key="clusters")
    numbers = numbers_in(build)  # before its nodes get ports
    wired, old_hardware = with_ports(build.wiring, hardware_of(build), expansion)
    build = replace(build, wiring=wired)
    spare = Spare.of(build.wiring, old_hardware.types, build.disabled_ports)
    fits = base.most(method, spare, build, old_hardware)
    require_room(spare, expansion, build.wiring, fits)
    taken = spares_taken(old_hardware, build.wiring, expansion)
    addressing = _addressing(build.addressing, expansion.topology, old_hardware.plane, taken)
    _require_outside(addressing, {**_addresses_of(build, old_hardware), **_nodes_of(planes)})
    hosts = _host_needs(build, expansion, spare, old_hardware)
    require_room_for_hosts(hosts, old_hardware.types, fits)
    wiring = grown_wiring(build.wiring, expansion, spare, old_hardware, taken, hosts)
    tables, forwarding = _tables(build, expansion, wiring)
    others = [(other.wiring, hardware_of(other)) for other in planes]
    unlabelled = grown_hardware(expansion, wiring, old_hardware, taken, others)
    host_numbers = dict(numbers.of(HOST).used) | {
        f"{vertex}/{host.name}": number
        for (vertex, number), host in hosts_of_spares(taken, addressing.host_mac.shape[1])
        if host.name
    }
    pools = (ip_network(build.control[word]) for word in LINK_POOLS if word in build.control)
    links = links_in(pools, build.forwarding.marks)
    whole = WholeFabric(wiring, unlabelled, addressing, host_numbers, links)
    hardware, allocations = allocate(whole, numbers)
    larger = replace(
        build,
        forwarding=forwarding,
        policy={word: value for word, value in build.policy.items() if word not in FITTED},
        inputs={role: digest for role, digest in build.inputs.items() if role not in FITTED},
        topology=expansion.topology,
        wiring=wiring,
        addressing=addressing,
        tables=tables,
        hardware=hardware,
        allocations=allocations,
        systems=_systems(build, wiring, expansion.origin),
        identity="",
    )
    cables = cables_of(wiring, hardware_of(larger))
    return Grown(
        build=larger,
        expansion=expansion,
        cables=cables,
        added=np.flatnonzero(cables.ends.max(axis=1) >= old),
        moved=moved(build.wiring, wiring),
        spare=Spare.of(wiring, old_hardware.types, build.disabled_ports).counts(),
        taken=taken,
        fits=fits,
        changes=changes(build, larger),
    )


def _systems(build: Build, wiring: Wiring, origin: NDArray[np.int32]) -> tuple[str, ...]:
    """The system of each switch; a copy has that of its original, if they are of one type.

    Else it has that of most switches of its type.

    Args:
        build: the smaller build.
        wiring: of the larger one.
        origin: int32[N'], the vertex that each vertex of the larger one is a copy of.
    """
    if not build.systems:
        return ()
    of_type: dict[int, Counter[str]] = {}
    for node_type, system in zip(build.wiring.node_type.tolist(), build.systems, strict=True):
        of_type.setdefault(node_type, Counter())[system] += 1
    all_types = Counter(build.systems)
    old, types = len(build.systems), wiring.node_type.tolist()
    new = (
        build.systems[original]
        if types[original] == node_type
        else of_type.get(node_type, all_types).most_common(1)[0][0]
        for node_type, original in zip(types[old:], origin[old:].tolist(), strict=True)
    )
    return (*build.systems, *new)


def _host_needs(
    build: Build, expansion: Expansion, spare: Spare, hardware: Hardware
) -> list[HostNeed]:
    """What new nodes need for their hosts."""
    taken = spares_taken(hardware, build.wiring, expansion)
    hosts = _hosts_of_new(build, expansion, taken)
    return host_needs(spare, expansion, build.wiring, hardware.types, hosts)


def _hosts_of_new(build: Build, expansion: Expansion, taken: SpareNodes) -> list[int]:
    """The number of hosts of each new switch: that of most switches of its type.

    If the inventory names every host of the fabric, new switches have only the hosts that it names
    at spares.
    """
    wiring, most = build.wiring, build.wiring.host_port.shape[1]
    counts = (wiring.host_port > 0).sum(axis=1)
    is_named = int(counts.sum()) <= len(build.allocations.of(HOST).used)
    of_type: dict[int, Counter[int]] = {}
    for node_type, count in zip(wiring.node_type.tolist(), counts.tolist(), strict=True):
        of_type.setdefault(node_type, Counter())[count] += 1
    new = range(len(wiring.names), len(expansion.origin))
    usual = (
        max(of_type[t].items(), key=lambda item: (item[1], item[0]))[0]
        for t in wiring.node_type[expansion.origin[new.start :]].tolist()
    )
    listed = (min(len(taken[v].hosts), most) if v in taken else 0 for v in new)
    return [max(pair) if not is_named else pair[0] for pair in zip(listed, usual, strict=True)]


def _require_unmarked(build: Build) -> None:
    """Pass if the build marks no packets.

    Copies of a switch have several neighbours in common, and marks need at most one.

    Raises:
        InputError: the build marks packets.
    """
    if build.forwarding.marks:
        raise InputError.of(
            key="routing.balance",
            required="another balance, as where clusters are copied marked packets come back to "
            "the switch that spreads them, or it has no link to spread them over",
            given=build.balance,
            todo="compile it with balance: compact-valiant, move to that with `polarfab apply`, "
            "and expand that build",
        )


def _addressing(old: Addressing, larger: Topology, plane: int, taken: SpareNodes) -> Addressing:
    """The addresses of a larger fabric; old ones stay, and spares keep their hosts' addresses.

    Raises:
        InputError: a pool of addresses is too small.
    """
    order = larger.graph.order
    firsts = old.first_addresses()
    for pool, length in ((old.ipv4, old.ipv4_length), (old.ipv6, 64)):
        if pool is None:
            continue
        first = firsts[f"ipv{pool.version}"]
        last = first + (order << (pool.max_prefixlen - length)) - 1
        if last > int(pool.broadcast_address):
            fits = pool.max_prefixlen - (first ^ last).bit_length()
            required = f"a pool of /{fits} or larger for {order:,} vertices"
            todo = "a larger pool that contains this one keeps all addresses"
            if plane:  # whose part of a larger pool stays, too
                todo = f"compile fabric.yaml with `{_in_words(larger)}` and all its nodes instead; "
                todo += "this renumbers all planes but the first"
            raise InputError.of(required, str(pool), todo, key="addressing")
    macs = default_host_macs(order, old.host_mac.shape[1], plane)
    macs[: len(old.host_mac)] = old.host_mac
    for place, host in hosts_of_spares(taken, macs.shape[1]):
        if host.mac:
            macs[place] = parse_mac(host.mac)
    return replace(old, host_mac=macs)


def _addresses_of(build: Build, hardware: Hardware) -> dict[str, str]:
    """The addresses of management and servers that a build names, each with what it is."""
    management = build.base.get("management") or {}
    return {
        **dict.fromkeys(build.base.get("ntp", ()), "a time server (base.ntp)"),
        **dict.fromkeys(build.base.get("syslog", ()), "a server of logs (base.syslog)"),
        **{management.get("gateway") or "": "the gateway of management (base.management)"},
        **_nodes_of((build,)),
        **{spare.management: f"the management of {spare.name}" for spare in hardware.spares},
    }


def _nodes_of(builds: Sequence[Build]) -> dict[str, str]:
    """The management addresses of the nodes of builds, each with what it is."""
    return {
        address: f"the management of {name}"
        for build in builds
        for name, address in zip(build.wiring.names, build.wiring.management, strict=True)
    }


def _require_outside(larger: Addressing, addresses: Mapping[str, str]) -> None:
    """Pass if the blocks of a larger fabric hold no address of management or of a server.

    Args:
        larger: the blocks.
        addresses: each address and what it is; "" is none.

    Raises:
        InputError: a block holds one.
    """
    for text, what in addresses.items():
        for blocks in larger.blocks() if text else ():
            if block := blocks.around(ip_address(text)):
                raise InputError.of(
                    key="addressing",
                    required=f"blocks of new switches without {what}",
                    given=f"{text} in {block}",
                    todo="give it another address, compile, and expand that build",
                )


def _in_words(topology: Topology) -> str:
    """The key `topology` of fabric.yaml for a topology."""
    values = ", ".join(f"{word}: {value}" for word, value in topology.parameters.items())
    return f"topology: {{family: {topology.family}, {values}}}"


def _tables(build: Build, expansion: Expansion, wiring: Wiring) -> tuple[Tables, Forwarding]:
    """The tables of the larger fabric by the policy of the build, and what they mean."""
    topology, stays = expansion.topology, build.wiring.far >= 0
    place = np.where(stays, np.cumsum(stays, axis=1) - 1, -1)
    taken = _links_taken(build)
    kept = np.where(taken < 0, -1, np.take_along_axis(place, np.maximum(taken, 0), axis=1))
    tables = Tables(routes=routes(topology, kept), classes=Classes.minimal(wiring.port.copy()))
    words = {word: build.policy[word] for word in RoutingSpec.model_fields if word in build.policy}
    routing = RoutingSpec.model_validate(
        {"balance": build.balance, "protect": build.forwarding.protect, **words}
    )
    q = topology.parameters.get("q")
    forwarding = routing.forwarding(int(q) if q else None, topology.family)
    tables = choices(tables, topology, wiring, forwarding)
    return balanced(build.balance, tables, forwarding, topology, wiring)


def _links_taken(build: Build) -> NDArray[np.int64]:
    """The link that each row of exact tables leads to, int64[S, S] by switch and destination.

    A link is its place in `Wiring.port`; -1: none.
    """
    egress, port = build.tables.routes.egress, build.tables.classes.port
    link_at = links_by_port(build.wiring.far, build.wiring.port)
    minimal = link_at[np.arange(len(port))[:, None], port].astype(np.int64)
    # One more class without a link, for rows that lead to no class.
    of_class = np.pad(minimal, ((0, 0), (0, 1)), constant_values=-1)
    return np.take_along_axis(of_class, np.minimum(egress, port.shape[1]).astype(np.int64), axis=1)


def with_ports(wiring: Wiring, hardware: Hardware, expansion: Expansion) -> tuple[Wiring, Hardware]:
    """The wiring and the hardware with ports for an expansion, if the node type is generated.

    The new ports come after the existing ones, so that no plug is moved.
    """
    if wiring.type_names != (GENERATED,):
        return wiring, hardware
    spare = Spare.of(wiring, hardware.types)
    more = int((needed(expansion) - room(spare, expansion, wiring)).max(initial=0))
    if more == 0:
        return wiring, hardware
    roles = hardware.types[0].role
    hosts = roles.count("host")
    links = roles.index("host") if hosts else len(roles)
    after_hosts = len(roles) - links - hosts
    facts = port_facts(GENERATED, generated_type(links, hosts, after_hosts + more))
    names = (tuple(sockets[0] for sockets in facts.sockets),)
    return replace(wiring, port_names=names), replace(hardware, types=(facts,))


@dataclass(frozen=True, slots=True)
class BaseFabric:
    """A fabric that may have grown by clusters before."""

    topology: Topology
    """The fabric as it is."""
    first: Topology
    """The fabric before any cluster was added."""
    method: str
    """The kind of the clusters that were added; "" if there are none."""
    count: int
    """How many clusters were added."""

    @classmethod
    def of(cls, topology: Topology) -> BaseFabric:
        """The first fabric of a topology, by its parameters, and the clusters added since."""
        family = family_before(topology)
        if not family.grows_by_clusters:
            return cls(topology, topology, "", 0)
        first = family.build({"q": int(topology.parameters["q"])})
        return cls(topology, first, *added_clusters(topology))

    def problems(self, method: str, count: int) -> list[Problem]:
        """Why `count` more clusters of a kind cannot be added; [] if they can."""
        if self.method not in ("", method):
            given = f"{method}, where {self.count} by {self.method} were added"
            return [Problem(f"more clusters by {self.method}", given, "", key="clusters")]
        if count < 1 or self.method == "":
            return check(self.first, method, count)
        return [
            replace(problem, given=f"{self.count} installed and {count} more")
            for problem in check(self.first, method, self.count + count)
        ]

    def require(self, method: str, count: int) -> None:
        """Pass if `count` more clusters of a kind can be added.

        Raises:
            InputError: the fabric cannot grow by these clusters, or is damaged.
        """
        if problems := self.problems(method, count):
            raise InputError(problems)
        order = self.topology.graph.order
        edges = expand(self.first, method, self.count + count).topology.graph.edges()
        complete = edges[edges.max(axis=1) < order]
        if not np.array_equal(complete, self.topology.graph.edges()):
            lacking = len(complete) - self.topology.graph.size
            todo = "install or repair them first, or plan from the build of the whole fabric"
            raise InputError.of("a whole fabric", f"{lacking:,} links missing", todo)

    def most(self, method: str, spare: Spare, build: Build, hardware: Hardware) -> int:
        """The most clusters of a kind that can be added before a node runs out of ports.

        Links need ports at old and new nodes, and hosts at new ones.
        """
        count, wiring = 0, build.wiring
        while not self.problems(method, count + 1):
            larger = self.grown(method, count + 1)
            if (needed(larger) > room(spare, larger, wiring)).any():
                break
            if any(need.lacks_ports for need in _host_needs(build, larger, spare, hardware)):
                break
            count += 1
        return count

    def grown(self, method: str, count: int) -> Expansion:
        """The fabric with `count` more clusters; `added` has the edges that are not there yet."""
        larger = expand(self.first, method, self.count + count)
        new = larger.added[larger.added.max(axis=1) >= self.topology.graph.order]
        return replace(larger, added=new)


def grown_wiring(
    wiring: Wiring,
    expansion: Expansion,
    spare: Spare,
    hardware: Hardware,
    taken: SpareNodes,
    hosts: Sequence[HostNeed],
) -> Wiring:
    """The wiring of the larger fabric: old nodes as they are, then new nodes.

    Args:
        wiring: the wiring of the old nodes.
        expansion: the larger topology.
        spare: the unused ports of the old nodes.
        hardware: the node types and the spares.
        taken: the spares that are used; they keep the names and numbers of the inventory.
        hosts: the hosts of each new node.
    """
    old, graph = len(wiring.names), expansion.topology.graph
    port = grown_ports(spare, expansion, wiring)
    node_type = wiring.node_type[expansion.origin]
    new, most = range(old, graph.order), wiring.host_port.shape[1]
    names = _names(wiring, expansion, hardware, taken)
    first = max(int(wiring.datapath_id.max()), old, *(s.datapath_id for s in hardware.spares)) + 1
    numbers = np.arange(first, first + len(new), dtype=np.uint64)
    for v, node in taken.items():
        numbers[v - old] = node.datapath_id or numbers[v - old]
    of_spares = {v: [host.name for host in node.hosts] for v, node in taken.items()}
    host_names = (name for v in new for name in host_names_at(v, of_spares.get(v, ()), most))
    return Wiring(
        names=(*wiring.names, *names),
        management=(*wiring.management, *(taken[v].management if v in taken else "" for v in new)),
        host_names=(*wiring.host_names, *host_names),
        datapath_id=np.concatenate((wiring.datapath_id, numbers)),
        port=port,
        far=graph.padded(),
        far_port=far_ports(port, graph),
        host_port=_host_ports(wiring, hosts),
        node_type=node_type,
        type_names=wiring.type_names,
        port_names=wiring.port_names,
    )


def _names(
    wiring: Wiring, expansion: Expansion, hardware: Hardware, taken: SpareNodes
) -> list[str]:
    """The names of new nodes.

    A spare keeps its name. If all nodes are named by their vertices, so are new ones. Otherwise a
    new node is named by the node that it copies and the number of the copy. If the name is taken,
    an `x` is appended.
    """
    old = len(wiring.names)
    by_vertex = list(wiring.names) == [str(v) for v in range(old)]
    copies = expansion.topology.coordinates[old:, -1].tolist()
    used = {*wiring.names, *wiring.host_names, *(s.name for s in hardware.spares)}
    used |= {host.name for spare in hardware.spares for host in spare.hosts}
    names = []
    for v, (origin, copy) in enumerate(
        zip(expansion.origin[old:].tolist(), copies, strict=True), old
    ):
        name = str(v) if by_vertex else f"{wiring.names[origin]}-{copy}"
        while name in used:
            name += "x"
        names.append(taken[v].name if v in taken else name)
        used.add(names[-1])
    return names


def _host_ports(wiring: Wiring, of_new: Sequence[HostNeed]) -> NDArray[np.int32]:
    """The ports of hosts, int32[S', H]; those of old nodes stay."""
    old, most = wiring.host_port.shape
    ports = np.zeros((old + len(of_new), most), np.int32)
    ports[:old] = wiring.host_port
    for v, need in enumerate(of_new, old):
        ports[v, : need.hosts] = need.ports[: need.hosts]
    return ports


def moved(before: Wiring, after: Wiring) -> int:
    """How many old cables do not join the same two ports, by name, in the new fabric."""
    number_of: dict[str, int] = {}
    old, new = _ends(before, number_of), _ends(after, number_of)
    stayed = len(old) + len(new) - len(np.unique(np.concatenate((old, new)), axis=0))
    return len(old) - stayed


def _ends(wiring: Wiring, number_of: dict[str, int]) -> NDArray[np.int64]:
    """Both ends of each cable, int64[E, 4]: vertex, port, vertex, port; the lower vertex first.

    Args:
        wiring: the cables.
        number_of: a number for each name of a port, to which new names are added.
    """
    numbers = wiring.port_name_numbers(number_of)
    vertex, link = wiring.links()
    far = wiring.far[vertex, link]
    port = numbers[wiring.node_type[vertex], wiring.port[vertex, link]]
    far_port = numbers[wiring.node_type[far], wiring.far_port[vertex, link]]
    return np.column_stack((vertex, port, far, far_port)).astype(np.int64)


def changes(before: Build, after: Build) -> dict[str, NDArray[np.int64]]:
    """The table changes of each old switch: by field of `SwitchChange` int64[S]."""
    of_switches = [switch.counts() for switch in compare(before, after).switches]
    return {word: np.array([counts[word] for counts in of_switches]) for word in of_switches[0]}
