"""Checks across sections of fabric.yaml, and of fabric.yaml against the inventory's nodes.

`fabric_file` calls `check_spec` and `check_nodes` while it loads a fabric, and a compile calls
`check_blocks` when it knows where blocks of addresses begin. All yield a `Finding` for each
mistake.

Each check looks at well-formed sections only, so that a mistake in one section does not hide one in
another. If the topology is wrong, sizes are checked for the topology that was likely meant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from compilers.spec.address_blocks import Blocks, block_count, ipv4_block_length
from compilers.spec.balances import Balance, balance_named, own_balances_with
from compilers.spec.fabric_spec import (
    AddressingSpec,
    BaseSpec,
    FabricSpec,
    RoutingSpec,
    TopologySpec,
)
from compilers.spec.node_systems import missing_system_findings
from compilers.spec.policy import (
    EQUAL_COST,
    EVERY_HOP,
    LARGEST_SEARCH,
    share_value,
)
from compilers.spec.target_names import SHIPPED_SYSTEMS, meant_target, system_names
from compilers.spec.value_checks import OF_BLOCKS, OF_FABRIC, OF_INVENTORY, Values, findings
from compilers.topology.families import check_topology, likely_family
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters
from inventory.document_errors import M, well_formed
from inventory.problems import Finding, KeyPath, did_you_mean, shown

if TYPE_CHECKING:  # most fabrics name no inventory
    from inventory.inventory_file import ExaminedInventory
    from inventory.model import Inventory, NodeType, PortBlock

Data = Mapping[str, Any]
"""The content of fabric.yaml."""
MOST_HOSTS = 1024
"""The largest `hosts_per_node`."""
MOST_PLANES = 16
"""The largest `planes`."""
STEP = re.compile(r"\{port(?:\*([0-9]+))?\}")
"""The number of a port in a pattern of names, perhaps with a factor: `{port}`, `{port*4}`."""


def check_spec(data: Data, spec: FabricSpec | None) -> Iterator[Finding]:
    """Yield findings about sections of fabric.yaml that do not fit each other.

    Args:
        data: the content of fabric.yaml.
        spec: the same as a value; None if a section is wrong in itself.
    """

    def section(key: str, model: type[M]) -> M | None:
        """Return a section as a value; None where it is wrong."""
        return getattr(spec, key) if spec else well_formed(model, data.get(key, {}))

    routing = section("routing", RoutingSpec) or RoutingSpec()
    yield from _fitted_share_findings(routing)
    balance = balance_named(routing.balance)
    yield from _transit_findings(routing, balance)
    yield from balance.problems(routing)
    yield from findings(_values(data), OF_FABRIC)
    topology = section("topology", TopologySpec)
    if topology is None:
        return
    for problem in check_topology(topology.family, topology.parameters()):
        if problem.file:  # in the file that `topology.file` names, which reports it itself
            continue
        path = ("topology", problem.key)
        yield Finding(path, problem.required, shown(problem.given), problem.todo)
    likely_member = likely_family(topology.family, topology.parameters())
    if likely_member is None:
        return
    family, parameters = likely_member
    addressing = section("addressing", AddressingSpec) or AddressingSpec()
    yield from _policy_findings(routing, family, parameters)
    yield from balance.unfit(routing, family, parameters)
    switches, supernode_size = family.order(parameters), family.hierarchy(parameters)
    hosts, planes = _hosts_and_planes(data)
    yield from _pool_findings(addressing, switches, supernode_size, hosts, planes)


def check_nodes(data: Data, examined: ExaminedInventory) -> Iterator[Finding]:
    """Yield findings about nodes of the inventory that do not fit the sizes in fabric.yaml.

    Args:
        data: the content of fabric.yaml.
        examined: the inventory, with the parts of it that are well formed.
    """
    hosts, planes = _hosts_and_planes(data)
    types = examined.inventory.node_types if examined.inventory else {}
    values = replace(_values(data), nodes=examined.nodes, node_types=types)
    yield from findings(values, OF_INVENTORY)
    for i, node in examined.nodes:
        if len(node.hosts) > hosts:
            required, todo = f"at most {hosts} a node (hosts_per_node)", "raise hosts_per_node"
            given = str(len(node.hosts))
            yield Finding(("nodes", i, "hosts"), required, given, f"{todo} or remove hosts")
        if (node.plane or 1) > planes:
            required = f"a plane from 1 to {planes} (planes)"
            yield Finding(("nodes", i, "plane"), required, str(node.plane))
        if (node.host_count or 0) > hosts:
            yield _too_many_hosts(("nodes", i, "host_count"), hosts, node.host_count)
    if examined.inventory is not None:
        for name, node_type in examined.inventory.node_types.items():
            if (node_type.host_count or 0) > hosts:
                path: KeyPath = ("node_types", name, "host_count")
                yield _too_many_hosts(path, hosts, node_type.host_count)
        yield from _host_count_findings(examined.inventory, hosts)
        if planes > 1:
            yield from _plane_host_findings(examined.inventory)
        yield from _system_findings(examined.inventory)
        yield from missing_system_findings(data.get("system"), examined.inventory)
        for name, node_type in examined.inventory.node_types.items():
            yield from _lane_findings(("node_types", name), node_type)
        yield from _management_findings(data, examined.inventory)
        yield from _plane_link_findings(examined.inventory)
        yield from _vertex_findings(data, examined, planes)


def check_blocks(
    data: Data, inventory: Inventory | None, blocks: Sequence[Blocks]
) -> Iterator[Finding]:
    """Yield findings about addresses in both files that are in a block of hosts.

    Args:
        data: the content of fabric.yaml.
        inventory: the inventory; None without one.
        blocks: the blocks of all planes.
    """
    nodes = tuple(enumerate(inventory.nodes)) if inventory else ()
    yield from findings(replace(_values(data), nodes=nodes, blocks=blocks), OF_BLOCKS)


def _values(data: Data) -> Values:
    """Return the well-formed values of fabric.yaml, with defaults in place of wrong ones."""
    topology = well_formed(TopologySpec, data.get("topology"))
    likely_member = likely_family(topology.family, topology.parameters()) if topology else None
    vertex_count = 0
    if likely_member:
        family, parameters = likely_member
        vertex_count = family.order(parameters)
    section = data.get("routing", {})
    routing = well_formed(RoutingSpec, section) or RoutingSpec()
    if (
        "balance" not in routing.model_fields_set
        and isinstance(section, dict)
        and "balance" in section
    ):
        # The balance is wrong. Which other values have an effect depends on it.
        routing = RoutingSpec()
    _, planes = _hosts_and_planes(data)
    return Values(
        routing=routing,
        base=well_formed(BaseSpec, data.get("base", {})) or BaseSpec(),
        vertex_count=vertex_count,
        planes=planes,
    )


def _host_count_findings(inventory: Inventory, hosts: int) -> Iterator[Finding]:
    """Yield findings about groups and about the file of hosts with too many hosts at a node."""
    for name, values in inventory.groups.items():
        count = values.get("host_count")
        if type(count) is int and count > hosts:
            yield _too_many_hosts(("groups", name, "host_count"), hosts, count)
    hosts_at = Counter(row.switch for row in inventory.hosts)
    if not hosts_at:
        return
    switch, most = hosts_at.most_common(1)[0]
    if most > hosts:
        required = f"at most {hosts} hosts at a switch (hosts_per_node of fabric.yaml)"
        todo = f"write hosts_per_node: {most}"
        yield Finding(("hosts",), required, f"{most} at {switch}", todo)


def _too_many_hosts(path: KeyPath, hosts: int, given: int | None) -> Finding:
    """Return the finding that a `host_count` is above `hosts_per_node`.

    Args:
        path: the key of the `host_count`.
        hosts: `hosts_per_node`.
        given: the `host_count`.
    """
    required = f"at most {hosts} (hosts_per_node of fabric.yaml)"
    return Finding(path, required, str(given), "raise hosts_per_node or lower host_count")


def _plane_host_findings(inventory: Inventory) -> Iterator[Finding]:
    """Yield findings about hosts that only one of several planes would have.

    All planes have the same hosts.
    """
    value_of_key: list[tuple[KeyPath, object]] = [
        *((("nodes", i, "host_count"), n.host_count) for i, n in enumerate(inventory.nodes)),
        *((("node_types", n, "host_count"), t.host_count) for n, t in inventory.node_types.items()),
        *((("groups", n, "host_count"), v.get("host_count")) for n, v in inventory.groups.items()),
        (("hosts",), "a file" if inventory.hosts else None),
    ]
    for path, given in value_of_key:
        if given is not None:
            yield Finding(path, "a fabric of one plane", f"{given} in one of several", "remove it")
    if inventory.host_names:
        given = shown(inventory.host_names)
        yield Finding(
            ("host_names",), "a fabric of one plane", given, "list the hosts of each node"
        )


def _system_findings(inventory: Inventory) -> Iterator[Finding]:
    """Yield findings about systems that do not exist, of nodes or in patterns of port names."""
    system_of_key: list[tuple[KeyPath, str | None]] = [
        *((("node_types", n, "system"), t.system) for n, t in inventory.node_types.items()),
        *((("nodes", i, "system"), node.system) for i, node in enumerate(inventory.nodes)),
    ]
    for path, system in system_of_key:
        if system and not _is_system(system):
            meant = meant_target(system, system_names())
            todo = f"did you mean {meant}?" if meant else ""
            yield Finding(path, f"one of {', '.join(system_names())}", shown(system), todo)
    for name, node_type in inventory.node_types.items():
        type_path: KeyPath = ("node_types", name)
        patterns = {type_path: node_type.names} | {
            (*type_path, "ports", b): block.names for b, block in enumerate(node_type.ports)
        }
        for path, names in patterns.items():
            for system in names:
                if not _is_system(system):
                    todo = did_you_mean(system, system_names())
                    required = f"one of {', '.join(system_names())}"
                    yield Finding((*path, "names", system), required, shown(system), todo)


def _is_system(name: str) -> bool:
    """Whether a name is that of an installed system; packages are listed only if it must be."""
    return name in SHIPPED_SYSTEMS or name in system_names()


def _lane_findings(path: KeyPath, node_type: NodeType) -> Iterator[Finding]:
    """Yield findings about port names that count lanes.

    `{serdes}` in a name counts lanes, so all blocks need `lanes`. SONiC's names count lanes, so
    numbers in them must step by the lanes of a port, unless a platform file gives the names.
    """
    with_names: tuple[NodeType | PortBlock, ...] = (node_type, *node_type.ports)
    counts_lanes = any("{serdes" in word for part in with_names for word in part.names.values())
    # By the path of the pattern, which several blocks may share: it gets one finding.
    of_sonic: dict[KeyPath, Finding] = {}
    for b, block in enumerate(node_type.ports):
        block_path = (*path, "ports", b)
        if counts_lanes and block.lanes is None:
            todo = "say how many lanes a port has: `lanes: …`"
            yield Finding(block_path, "the key lanes, for {serdes} in names", "nothing", todo)
        pattern = block.names.get("sonic") or node_type.names.get("sonic", "")
        step = STEP.search(pattern)
        if step and block.lanes and int(step[1] or 1) != block.lanes and not node_type.platform:
            key = (*(block_path if "sonic" in block.names else path), "names", "sonic")
            required = f"numbers that follow the lanes, {block.lanes} a port"
            todo = "write Ethernet{serdes}, or name the switch's `platform` file"
            of_sonic.setdefault(key, Finding(key, required, pattern, todo))
    yield from of_sonic.values()


def _management_findings(data: Data, inventory: Inventory) -> Iterator[Finding]:
    """Yield findings about management addresses that are not in the network of `base.management`.

    The network has the address and the gateway; the address may be too short for its length.
    """
    base = well_formed(BaseSpec, data.get("base", {}))
    management = base.management if base else None
    if management is None:
        return
    for i, node in enumerate(inventory.nodes):
        address = node.management
        if address is None:
            continue
        gateway = f" and {management.gateway}" if management.gateway else ""
        fits = management.length <= address.max_prefixlen
        network = ip_network(f"{address}/{management.length}", strict=False) if fits else ()
        if not fits or (management.gateway and management.gateway not in network):
            required = (
                f"an address in one network with /{management.length}{gateway} (base.management)"
            )
            yield Finding(("nodes", i, "management"), required, str(address))


def _hosts_and_planes(data: Data) -> tuple[int, int]:
    """Return `hosts_per_node` and `planes` of fabric.yaml; 1 in place of a wrong value."""
    hosts, planes = data.get("hosts_per_node", 1), data.get("planes", 1)
    return (
        hosts if type(hosts) is int and 0 <= hosts <= MOST_HOSTS else 1,
        planes if type(planes) is int and 1 <= planes <= MOST_PLANES else 1,
    )


def _fitted_share_findings(routing: RoutingSpec) -> Iterator[Finding]:
    """Yield findings about a share that contradicts `demand`, or a limit without a demand."""
    if routing.demand and routing.minimal_share != EQUAL_COST:
        todo = "remove `minimal_share`: the demand says all shares"
        required = f"{EQUAL_COST} with `demand`"
        yield Finding(("routing", "minimal_share"), required, routing.minimal_share, todo)
    if routing.largest_share != "1" and not routing.demand:
        todo = "name a `demand`, or remove it"
        required = "a demand that shares are fitted to"
        yield Finding(("routing", "largest_share"), required, "none", todo)


def _transit_findings(routing: RoutingSpec, balance: Balance) -> Iterator[Finding]:
    """Yield a finding if packets shall be shared at every hop by a balance that cannot do it."""
    if routing.transit == EVERY_HOP and balance.forwarding.alternates != "shortest":
        required = f"minimal with `balance: {routing.balance}`"
        names = own_balances_with(lambda forwarding: forwarding.alternates == "shortest")
        todo = f"write `balance: {' or '.join(names)}`, or remove `transit`"
        yield Finding(("routing", "transit"), required, EVERY_HOP, todo)


def _policy_findings(
    routing: RoutingSpec, family: Family, parameters: Parameters
) -> Iterator[Finding]:
    """Yield findings about a policy in a member of a family: its shares, and searches."""
    yield from _share_findings(routing, int(parameters.get("q", 0)))
    yield from _search_findings(routing, family, parameters)


def _share_findings(routing: RoutingSpec, q: int) -> Iterator[Finding]:
    """Yield findings about shares that have no value at this q."""
    for key in ("minimal_share", "largest_share"):
        text = getattr(routing, key)
        if (key, text) == ("minimal_share", EQUAL_COST):
            continue
        try:
            share_value(text, q)
        except ValueError:
            required = f"an expression from 0 to 1 at q={q}, of numbers, q and + - * / ( )"
            yield Finding(("routing", key), required, text, "such as 1/q" if q else "such as 1/4")


def _search_findings(
    routing: RoutingSpec, family: Family, parameters: Parameters
) -> Iterator[Finding]:
    """Yield findings about policies that a large fabric cannot have.

    A family constructs its routes, or alternates and repairs are searched for, which takes too long
    in a fabric of more than `LARGEST_SEARCH` switches.
    """
    switches = family.order(parameters)
    if switches <= LARGEST_SEARCH:
        return
    # Families that the papers compare with have no larger fabrics, and neither have families whose
    # only member a file or a growth describes.
    never_large = family.compared or family.described
    if family.constructed:
        if never_large:
            yield _too_large(family, switches)
        return
    has_alternates = balance_named(routing.balance).forwarding.has_alternates
    by_supernodes = family.constructed_classes(parameters)
    if routing.adjacent == "bounce":
        required = f"minimal in a {family.name} of more than {LARGEST_SEARCH:,} switches"
        todo = "remove it: bounced paths are searched for; in PolarFly they are constructed"
        yield Finding(("routing", "adjacent"), required, "bounce", todo)
    if by_supernodes and routing.disjoint == "edge" and has_alternates:
        yield Finding(
            ("routing", "disjoint"),
            f"auto or none for a PolarStar of more than {LARGEST_SEARCH:,} switches",
            "edge",
            "its classes serve whole supernodes, of which some switch shares a link",
        )
    if never_large:
        yield _too_large(family, switches)
    elif not by_supernodes and (has_alternates or routing.protect != "none"):
        yield Finding(
            ("routing",),
            f"minimal routes without protection for more than {LARGEST_SEARCH:,} switches",
            f"{routing.balance} and {routing.protect} for {switches:,}",
            "their alternates and repairs are searched for; in PolarFly and PolarStar they are "
            "constructed",
        )


def _too_large(family: Family, order: int) -> Finding:
    """Return the finding that a fabric is too large for a search of its routes."""
    required = f"at most {LARGEST_SEARCH:,} switches in a {family.name}, which is searched"
    return Finding(("topology",), required, f"{order:,}")


def _pool_findings(
    addressing: AddressingSpec, switches: int, supernode_size: int, hosts: int, planes: int
) -> Iterator[Finding]:
    """Yield findings about pools that have no block for every vertex.

    Args:
        addressing: the pools.
        switches: the number of vertices.
        supernode_size: the vertices of a supernode.
        hosts: the hosts of a node.
        planes: the number of planes.
    """
    block, count = ipv4_block_length(hosts), block_count(switches, supernode_size)
    # The bits of an address that number the planes, and the blocks of a plane.
    bits = (count - 1).bit_length() + (planes - 1).bit_length()
    longest = block - bits  # the prefix length of the smallest pool with room
    details = ""
    if supernode_size > 1:
        details += f", {supernode_size} a supernode in {count * supernode_size // switches} blocks"
    if planes > 1:
        details += f", in {planes} planes"
    if longest < 0:
        todo = "lower hosts_per_node or the topology's size: no pool is large enough"
        given = f"{count:,} blocks of /{block}, more than IPv4 has"
        yield Finding(("hosts_per_node",), "hosts that IPv4 can number", given, todo)
    for key, pool, length, longest_prefix in (
        ("ipv4", addressing.ipv4, block, longest),
        ("ipv6", addressing.ipv6, 64, 64 - bits),
    ):
        if pool is not None and longest_prefix >= 0 and pool.prefixlen > longest_prefix:
            yield Finding(
                ("addressing", key),
                f"a pool of /{longest_prefix} or larger: "
                f"{switches:,} vertices with a /{length} each{details}",
                str(pool),
                f"write an address with /{longest_prefix}",
            )


def _plane_link_findings(inventory: Inventory) -> Iterator[Finding]:
    """Yield findings about cables and dead links between nodes of two planes."""
    plane = {node.name: node.plane or 1 for node in inventory.nodes}
    for key in ("cables", "dead_links"):
        for i, link in enumerate(getattr(inventory, key)):
            if link.a in plane and link.b in plane and plane[link.a] != plane[link.b]:
                ends = f"{link.a} in plane {plane[link.a]}, {link.b} in plane {plane[link.b]}"
                yield Finding((key, i), "both ends in one plane", ends)


def _vertex_findings(data: Data, examined: ExaminedInventory, planes: int) -> Iterator[Finding]:
    """Yield findings about planes with too few nodes, and nodes at vertices that do not exist."""
    topology = well_formed(TopologySpec, data.get("topology"))
    if topology is None or check_topology(topology.family, topology.parameters()):
        return
    family, parameters = likely_family(topology.family, topology.parameters()) or (None, {})
    vertices = family.order(parameters) if family else 0
    path: KeyPath = ("nodes",)
    for plane in range(1, planes + 1) if examined.nodes else ():
        where = f" (plane {plane})" if planes > 1 else ""
        nodes = [(i, node) for i, node in examined.nodes if (node.plane or 1) == plane]
        if missing := max(vertices - len(nodes), 0):
            noun = "node" if missing == 1 else "nodes"
            todo = f"add {missing:,} {noun} or choose a smaller fabric"
            yield Finding(path, f"{vertices:,} nodes, one a vertex", f"{len(nodes):,}{where}", todo)
        for i, node in nodes:
            if (node.vertex or 0) >= vertices:
                required = f"a vertex from 0 to {vertices - 1}"
                todo = "correct it, or leave it out for a spare node"
                yield Finding(("nodes", i, "vertex"), required, f"{node.vertex}{where}", todo)
