"""Checks across sections of fabric.yaml, and of fabric.yaml against the inventory's nodes.

Each looks at the well-formed parts only, so that a mistake in one hides none in another. Where the
topology is wrong, what depends on its size is checked for the one that was likely meant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from compilers.spec.address_blocks import block_count, ipv4_block_length
from compilers.spec.balances import Balance, balance_named, own_balances_with
from compilers.spec.fabric_spec import (
    AddressingSpec,
    BaseSpec,
    FabricSpec,
    RoutingSpec,
    TopologySpec,
)
from compilers.spec.policy import (
    EQUAL_COST,
    EVERY_HOP,
    LARGEST_SEARCH,
    share,
)
from compilers.spec.target_names import SHIPPED_SYSTEMS, system_names
from compilers.spec.value_checks import OF_FABRIC, OF_INVENTORY, Values, findings
from compilers.topology.families import check_topology, likely
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters
from inventory.document_errors import M, sound
from inventory.problems import Finding, KeyPath, did_you_mean, shown

if TYPE_CHECKING:  # most fabrics name no inventory
    from inventory.inventory_file import Examined
    from inventory.model import Inventory, NodeType, PortBlock

Data = Mapping[str, Any]
MOST_HOSTS, MOST_PLANES = 1024, 16
STEP = re.compile(r"\{port(?:\*([0-9]+))?\}")


def check_spec(data: Data, spec: FabricSpec | None) -> Iterator[Finding]:
    """Mistakes in how the sections of fabric.yaml fit each other; spec: None where one is wrong."""

    def section(word: str, kind: type[M]) -> M | None:
        return getattr(spec, word) if spec else sound(kind, data.get(word, {}))

    routing = section("routing", RoutingSpec) or RoutingSpec()
    yield from _fitted(routing)
    balance = balance_named(routing.balance)
    yield from _at_every_hop(routing, balance)
    yield from balance.problems(routing)
    yield from findings(_values(data), OF_FABRIC)
    topology = section("topology", TopologySpec)
    if topology is None:
        return
    for wrong in check_topology(topology.family, topology.parameters()):
        if wrong.file:  # a mistake in the file that `topology.file` names
            continue
        yield Finding(("topology", wrong.key), wrong.required, shown(wrong.given), wrong.todo)
    meant = likely(topology.family, topology.parameters())
    if meant is None:
        return
    family, parameters = meant
    addressing = section("addressing", AddressingSpec) or AddressingSpec()
    yield from _routing(routing, family, parameters)
    yield from balance.unfit(routing, family, parameters)
    shape = family.order(parameters), family.hierarchy(parameters)
    hosts, planes = _sizes(data)
    yield from _small_pools(addressing, shape, hosts, planes)


def check_nodes(data: Data, hardware: Examined) -> Iterator[Finding]:
    """Mistakes in how the inventory's nodes fit the sizes that fabric.yaml says."""
    hosts, planes = _sizes(data)
    types = hardware.inventory.node_types if hardware.inventory else {}
    values = replace(_values(data), nodes=hardware.nodes, node_types=types)
    yield from findings(values, OF_INVENTORY)
    for i, node in hardware.nodes:
        if len(node.hosts) > hosts:
            required, todo = f"at most {hosts} a node (hosts_per_node)", "raise hosts_per_node"
            given = str(len(node.hosts))
            yield Finding(("nodes", i, "hosts"), required, given, f"{todo} or remove hosts")
        if (node.plane or 1) > planes:
            required = f"a plane from 1 to {planes} (planes)"
            yield Finding(("nodes", i, "plane"), required, str(node.plane))
        if (node.host_count or 0) > hosts:
            yield _too_many(("nodes", i, "host_count"), hosts, node.host_count)
    if hardware.inventory is not None:
        for name, node_type in hardware.inventory.node_types.items():
            if (node_type.host_count or 0) > hosts:
                yield _too_many(("node_types", name, "host_count"), hosts, node_type.host_count)
        yield from _host_groups(hardware.inventory, hosts)
        if planes > 1:
            yield from _one_plane(hardware.inventory)
        yield from _systems(hardware.inventory)
        for name, node_type in hardware.inventory.node_types.items():
            yield from _lane_numbers(("node_types", name), node_type)
        yield from _beyond_gateway(data, hardware.inventory)
        yield from _between_planes(hardware.inventory)
        yield from _vertices(data, hardware, planes)


def _values(data: Data) -> Values:
    """The well-formed values of fabric.yaml."""
    topology = sound(TopologySpec, data.get("topology"))
    meant = topology and likely(topology.family, topology.parameters())
    order, members = (meant[0].order(meant[1]), meant[0].hierarchy(meant[1])) if meant else (0, 1)
    said = data.get("routing", {})
    routing = sound(RoutingSpec, said) or RoutingSpec()
    if "balance" not in routing.model_fields_set and isinstance(said, dict) and "balance" in said:
        routing = RoutingSpec()  # what has an effect depends on a word that is wrong
    return Values(
        routing,
        sound(AddressingSpec, data.get("addressing", {})) or AddressingSpec(),
        sound(BaseSpec, data.get("base", {})) or BaseSpec(),
        order,
        members,
        *_sizes(data),
    )


def _host_groups(inventory: Inventory, hosts: int) -> Iterator[Finding]:
    """More hosts than a node takes, of a group or at a switch of the file of hosts."""
    for name, values in inventory.groups.items():
        count = values.get("host_count")
        if type(count) is int and count > hosts:
            yield _too_many(("groups", name, "host_count"), hosts, count)
    at = Counter(row.switch for row in inventory.hosts)
    if at and (most := at.most_common(1)[0])[1] > hosts:
        required = f"at most {hosts} hosts at a switch (hosts_per_node of fabric.yaml)"
        todo = f"write hosts_per_node: {most[1]}"
        yield Finding(("hosts",), required, f"{most[1]} at {most[0]}", todo)


def _too_many(path: KeyPath, hosts: int, given: int | None) -> Finding:
    required = f"at most {hosts} (hosts_per_node of fabric.yaml)"
    return Finding(path, required, str(given), "raise hosts_per_node or lower host_count")


def _one_plane(inventory: Inventory) -> Iterator[Finding]:
    """Values that could make the hosts of two planes differ: planes have the same hosts."""
    places: list[tuple[KeyPath, object]] = [
        *((("nodes", i, "host_count"), n.host_count) for i, n in enumerate(inventory.nodes)),
        *((("node_types", n, "host_count"), t.host_count) for n, t in inventory.node_types.items()),
        *((("groups", n, "host_count"), v.get("host_count")) for n, v in inventory.groups.items()),
        (("hosts",), "a file" if inventory.hosts else None),
    ]
    for path, given in places:
        if given is not None:
            yield Finding(path, "a fabric of one plane", f"{given} in one of several", "remove it")
    if inventory.host_names:
        given = shown(inventory.host_names)
        yield Finding(
            ("host_names",), "a fabric of one plane", given, "list the hosts of each node"
        )


def _systems(inventory: Inventory) -> Iterator[Finding]:
    """Port names for systems that there are not."""
    for name, node_type in inventory.node_types.items():
        path: KeyPath = ("node_types", name)
        said = {path: node_type.names} | {
            (*path, "ports", b): block.names for b, block in enumerate(node_type.ports)
        }
        for place, names in said.items():
            for system in names:
                if system not in SHIPPED_SYSTEMS and system not in (known := system_names()):
                    todo = did_you_mean(system, known)
                    required = f"one of {', '.join(known)}"
                    yield Finding((*place, "names", system), required, shown(system), todo)


def _lane_numbers(path: KeyPath, node_type: NodeType) -> Iterator[Finding]:
    """Port names that count lanes which are not said, and SONiC's that do not count them."""
    every: tuple[NodeType | PortBlock, ...] = (node_type, *node_type.ports)
    counted = any("{serdes" in word for part in every for word in part.names.values())
    wrong: dict[KeyPath, Finding] = {}
    for b, block in enumerate(node_type.ports):
        place = (*path, "ports", b)
        if counted and block.lanes is None:
            todo = "say how many lanes a port has: `lanes: …`"
            yield Finding(place, "the key lanes, for {serdes} in names", "nothing", todo)
        own = "sonic" in block.names
        pattern = block.names.get("sonic") or node_type.names.get("sonic", "")
        step = STEP.search(pattern)
        if step and block.lanes and int(step[1] or 1) != block.lanes and not node_type.platform:
            key = (*(place if own else path), "names", "sonic")
            required = f"numbers that follow the lanes, {block.lanes} a port"
            todo = "write Ethernet{serdes}, or name the switch's `platform` file"
            wrong.setdefault(key, Finding(key, required, pattern, todo))
    yield from wrong.values()


def _beyond_gateway(data: Data, inventory: Inventory) -> Iterator[Finding]:
    """Management addresses whose network, by `base`, has no such length or lacks the gateway."""
    base = sound(BaseSpec, data.get("base", {}))
    said = base.management if base else None
    for i, node in enumerate(inventory.nodes if said else ()):
        if said is None or node.management is None:
            continue
        own = node.management
        gateway = f" and {said.gateway}" if said.gateway else ""
        fits = said.length <= own.max_prefixlen
        network = ip_network(f"{own}/{said.length}", strict=False) if fits else ()
        if not fits or (said.gateway and said.gateway not in network):
            required = f"an address in one network with /{said.length}{gateway} (base.management)"
            yield Finding(("nodes", i, "management"), required, str(own))


def _sizes(data: Data) -> tuple[int, int]:
    """Hosts per node and planes, 1 where they are wrong: it takes least."""
    hosts, planes = data.get("hosts_per_node", 1), data.get("planes", 1)
    return (
        hosts if type(hosts) is int and 0 <= hosts <= MOST_HOSTS else 1,
        planes if type(planes) is int and 1 <= planes <= MOST_PLANES else 1,
    )


def _fitted(routing: RoutingSpec) -> Iterator[Finding]:
    """Shares said twice, or fitted to nothing."""
    if routing.demand and routing.minimal_share != EQUAL_COST:
        todo = "remove `minimal_share`: the demand says all shares"
        required = f"{EQUAL_COST} with `demand`"
        yield Finding(("routing", "minimal_share"), required, routing.minimal_share, todo)
    if routing.largest_share != "1" and not routing.demand:
        todo = "name a `demand`, or remove it"
        required = "a demand that shares are fitted to"
        yield Finding(("routing", "largest_share"), required, "none", todo)


def _at_every_hop(routing: RoutingSpec, balance: Balance) -> Iterator[Finding]:
    """Paths at every hop of a balance that has longer ones, or none."""
    if routing.transit == EVERY_HOP and balance.forwarding.alternates != "shortest":
        required = f"minimal with `balance: {routing.balance}`"
        able = " or ".join(
            own_balances_with(lambda forwarding: forwarding.alternates == "shortest")
        )
        todo = f"write `balance: {able}`, or remove `transit`"
        yield Finding(("routing", "transit"), required, EVERY_HOP, todo)


def _routing(routing: RoutingSpec, family: Family, parameters: Parameters) -> Iterator[Finding]:
    """Shares that have no value at this q, and fabrics too large to search."""
    q = int(parameters.get("q", 0))
    for word in ("minimal_share", "largest_share"):
        text = getattr(routing, word)
        if (word, text) == ("minimal_share", EQUAL_COST):
            continue
        try:
            share(text, q)
        except ValueError:
            required = f"an expression from 0 to 1 at q={q}, of numbers, q and + - * / ( )"
            yield Finding(("routing", word), required, text, "such as 1/q" if q else "such as 1/4")
    order, policy = family.order(parameters), (routing.balance, routing.protect)
    plain = (
        not balance_named(routing.balance).forwarding.has_alternates and routing.protect == "none"
    )
    constructed = family.constructed or order <= LARGEST_SEARCH
    if routing.adjacent == "bounce" and not constructed:
        required = f"minimal in a {family.name} of more than {LARGEST_SEARCH:,} switches"
        todo = "remove it: bounced paths are searched for; in PolarFly they are constructed"
        yield Finding(("routing", "adjacent"), required, "bounce", todo)
    star = order > LARGEST_SEARCH and not family.constructed
    star = star and family.constructed_classes(parameters)
    if (
        star
        and routing.disjoint == "edge"
        and balance_named(routing.balance).forwarding.has_alternates
    ):
        yield Finding(
            ("routing", "disjoint"),
            f"auto or none for a PolarStar of more than {LARGEST_SEARCH:,} switches",
            "edge",
            "its classes serve whole supernodes, of which some switch shares a link",
        )
    searched = not star and not family.constructed and not plain
    if order > LARGEST_SEARCH and (family.compared or family.described):
        required = f"at most {LARGEST_SEARCH:,} switches in a {family.name}, which is searched"
        yield Finding(("topology",), required, f"{order:,}")
    elif order > LARGEST_SEARCH and searched:
        yield Finding(
            ("routing",),
            f"minimal routes without protection for more than {LARGEST_SEARCH:,} switches",
            f"{policy[0]} and {policy[1]} for {order:,}",
            "their alternates and repairs are searched for; in PolarFly and PolarStar they are "
            "constructed",
        )


def _small_pools(
    addressing: AddressingSpec, shape: tuple[int, int], hosts: int, planes: int
) -> Iterator[Finding]:
    """Pools that cannot give every vertex its block; `shape` is (order, hierarchy)."""
    block = ipv4_block_length(hosts)
    order, count = shape[0], block_count(*shape)
    bits = (count - 1).bit_length() + (planes - 1).bit_length()
    longest = block - bits
    spare = ""
    if shape[1] > 1:
        spare += f", {shape[1]} a supernode in {count * shape[1] // order} blocks"
    if planes > 1:
        spare += f", in {planes} planes"
    if longest < 0:
        todo = "lower hosts_per_node or the topology's size: no pool is large enough"
        given = f"{count:,} blocks of /{block}, more than IPv4 has"
        yield Finding(("hosts_per_node",), "hosts that IPv4 can number", given, todo)
    for word, pool, length, most in (
        ("ipv4", addressing.ipv4, block, longest),
        ("ipv6", addressing.ipv6, 64, 64 - bits),
    ):
        if pool is not None and most >= 0 and pool.prefixlen > most:
            yield Finding(
                ("addressing", word),
                f"a pool of /{most} or larger: {order:,} vertices with a /{length} each{spare}",
                str(pool),
                f"write an address with /{most}",
            )


def _between_planes(inventory: Inventory) -> Iterator[Finding]:
    plane = {node.name: node.plane or 1 for node in inventory.nodes}
    for word in ("cables", "dead_links"):
        for i, link in enumerate(getattr(inventory, word)):
            if link.a in plane and link.b in plane and plane[link.a] != plane[link.b]:
                ends = f"{link.a} in plane {plane[link.a]}, {link.b} in plane {plane[link.b]}"
                yield Finding((word, i), "both ends in one plane", ends)


def _vertices(data: Data, hardware: Examined, planes: int) -> Iterator[Finding]:
    """Every plane has a node per vertex, and none at a vertex that is not there."""
    topology = sound(TopologySpec, data.get("topology"))
    if topology is None or check_topology(topology.family, topology.parameters()):
        return
    family, parameters = likely(topology.family, topology.parameters()) or (None, {})
    order = family.order(parameters) if family else 0
    listed: KeyPath = ("nodes",)
    for plane in range(1, planes + 1) if hardware.nodes else ():
        where = f" (plane {plane})" if planes > 1 else ""
        own = [(i, node) for i, node in hardware.nodes if (node.plane or 1) == plane]
        if missing := max(order - len(own), 0):
            nodes = "node" if missing == 1 else "nodes"
            todo = f"add {missing:,} {nodes} or choose a smaller fabric"
            yield Finding(listed, f"{order:,} nodes, one a vertex", f"{len(own):,}{where}", todo)
        for i, node in own:
            if (node.vertex or 0) >= order:
                required = f"a vertex from 0 to {order - 1}"
                todo = "correct it, or leave it out for a spare node"
                yield Finding(("nodes", i, "vertex"), required, f"{node.vertex}{where}", todo)
