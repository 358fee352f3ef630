"""Checks across sections of fabric.yaml, and of fabric.yaml against the inventory's nodes.

`fabric_file` calls `check_spec` and `check_nodes` while it loads a fabric, and a compile calls
`check_blocks` when it knows where blocks of addresses begin. All yield a `Finding` for each
mistake. Most rules are in other modules: `value_checks` (values that have no effect or are given
twice), `policy_checks` (the `routing:` section), `node_checks` (the inventory) and the balances.
Here they are run in order, and pools of addresses are checked.

Each check looks at well-formed sections only, so that a mistake in one section does not hide one in
another. If the topology is wrong, sizes are checked for the topology that was likely meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from compilers.spec.address_blocks import (
    IPV6_BLOCK_LENGTH,
    Blocks,
    block_count,
    ipv4_block_length,
)
from compilers.spec.balances import balance_named
from compilers.spec.fabric_spec import (
    AddressingSpec,
    BaseSpec,
    FabricSpec,
    RoutingSpec,
    TopologySpec,
)
from compilers.spec.node_checks import (
    host_count_findings,
    lane_findings,
    management_findings,
    node_findings,
    plane_host_findings,
    plane_link_findings,
    system_findings,
    vertex_findings,
)
from compilers.spec.node_systems import missing_system_findings
from compilers.spec.policy_checks import (
    fitted_share_findings,
    policy_findings,
    transit_findings,
)
from compilers.spec.value_checks import (
    BLOCK_CHECKS,
    FABRIC_CHECKS,
    INVENTORY_CHECKS,
    Values,
    findings_of,
)
from compilers.topology.families import check_topology, likely_family
from inventory.document_errors import M, well_formed
from inventory.problems import Finding, shown

if TYPE_CHECKING:  # most fabrics name no inventory
    from inventory.inventory_file import ExaminedInventory
    from inventory.model import Inventory

Data = Mapping[str, Any]
"""The content of fabric.yaml."""
MOST_HOSTS = 1024
"""The largest `hosts_per_node`, as in `FabricSpec`."""
MOST_PLANES = 16
"""The largest `planes`, as in `FabricSpec`."""


def check_spec(data: Data, spec: FabricSpec | None) -> Iterator[Finding]:
    """Yield findings about sections of fabric.yaml that do not fit each other.

    Args:
        data: the content of fabric.yaml.
        spec: the same as a value; None if a section is wrong in itself.
    """

    def section(key: str, model: type[M]) -> M | None:
        """Return a section as a value; None where it is wrong in itself."""
        return getattr(spec, key) if spec else well_formed(model, data.get(key, {}))

    routing = section("routing", RoutingSpec) or RoutingSpec()
    yield from fitted_share_findings(routing)
    balance = balance_named(routing.balance)
    yield from transit_findings(routing, balance)
    yield from balance.problems(routing)
    yield from findings_of(FABRIC_CHECKS, _values(data))
    topology = section("topology", TopologySpec)
    if topology is None:
        return
    for problem in check_topology(topology.family, topology.parameters()):
        if problem.file:  # a mistake in the graph's own file, which `fabric_file` reports
            continue
        path = ("topology", problem.key)
        yield Finding(path, problem.required, shown(problem.given), problem.todo)
    likely_member = likely_family(topology.family, topology.parameters())
    if likely_member is None:
        return
    family, parameters = likely_member
    addressing = section("addressing", AddressingSpec) or AddressingSpec()
    yield from policy_findings(routing, family, parameters)
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
    yield from findings_of(INVENTORY_CHECKS, values)
    yield from node_findings(examined, hosts, planes)
    inventory = examined.inventory
    if inventory is None:
        return
    yield from host_count_findings(inventory, hosts)
    if planes > 1:
        yield from plane_host_findings(inventory)
    yield from system_findings(inventory)
    yield from missing_system_findings(data.get("system"), inventory)
    for name, node_type in inventory.node_types.items():
        yield from lane_findings(("node_types", name), node_type)
    yield from management_findings(data, inventory)
    yield from plane_link_findings(inventory)
    yield from vertex_findings(data, examined, planes)


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
    yield from findings_of(BLOCK_CHECKS, replace(_values(data), nodes=nodes, blocks=blocks))


def _values(data: Data) -> Values:
    """Return the well-formed values of fabric.yaml, with defaults in place of wrong ones."""
    topology = well_formed(TopologySpec, data.get("topology"))
    likely_member = likely_family(topology.family, topology.parameters()) if topology else None
    vertex_count = 0
    if likely_member:
        family, parameters = likely_member
        vertex_count = family.order(parameters)
    _, planes = _hosts_and_planes(data)
    return Values(
        routing=_routing(data.get("routing", {})),
        base=well_formed(BaseSpec, data.get("base", {})) or BaseSpec(),
        vertex_count=vertex_count,
        planes=planes,
    )


def _routing(section: Any) -> RoutingSpec:
    """Return the section `routing` with defaults in place of wrong values.

    If the balance is wrong, all values are defaults. Which other keys have an effect depends on the
    balance, so with defaults none of them is reported as having no effect.
    """
    routing = well_formed(RoutingSpec, section) or RoutingSpec()
    states_balance = isinstance(section, dict) and "balance" in section
    is_balance_wrong = states_balance and "balance" not in routing.model_fields_set
    return RoutingSpec() if is_balance_wrong else routing


def _hosts_and_planes(data: Data) -> tuple[int, int]:
    """Return `hosts_per_node` and `planes` of fabric.yaml; 1 in place of a wrong value."""
    hosts, planes = data.get("hosts_per_node", 1), data.get("planes", 1)
    return (
        hosts if type(hosts) is int and 0 <= hosts <= MOST_HOSTS else 1,
        planes if type(planes) is int and 1 <= planes <= MOST_PLANES else 1,
    )


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
    count = block_count(switches, supernode_size)
    # The bits of an address that number the planes, and the blocks of a plane.
    block_number_bits = (planes - 1).bit_length() + (count - 1).bit_length()
    # Prefix lengths of a block, and of the smallest pool with room for all blocks.
    ipv4_block = ipv4_block_length(hosts)
    ipv4_pool = ipv4_block - block_number_bits
    ipv6_pool = IPV6_BLOCK_LENGTH - block_number_bits
    details = ""
    if supernode_size > 1:
        details += f", {supernode_size} a supernode in {count * supernode_size // switches} blocks"
    if planes > 1:
        details += f", in {planes} planes"
    if ipv4_pool < 0:
        todo = "lower hosts_per_node or the topology's size: no pool is large enough"
        given = f"{count:,} blocks of /{ipv4_block}, more than IPv4 has"
        yield Finding(("hosts_per_node",), "hosts that IPv4 can number", given, todo)
    for key, pool, block_length, pool_length in (
        ("ipv4", addressing.ipv4, ipv4_block, ipv4_pool),
        ("ipv6", addressing.ipv6, IPV6_BLOCK_LENGTH, ipv6_pool),
    ):
        if pool is not None and pool_length >= 0 and pool.prefixlen > pool_length:
            yield Finding(
                ("addressing", key),
                f"a pool of /{pool_length} or larger: "
                f"{switches:,} vertices with a /{block_length} each{details}",
                str(pool),
                f"write an address with /{pool_length}",
            )
