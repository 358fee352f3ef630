"""Checks between values of fabric.yaml and inventory.yaml, in three lists at the end of the file.

`cross_checks` runs the lists with the `Values` of both files, and gets a `Finding` for each
mistake. A check looks at well-formed values only, and has a line in the reference page of keys.

To add a check, write a function and an entry in a list:

- in `FABRIC_CHECKS`, if it looks at fabric.yaml only;
- in `INVENTORY_CHECKS`, if it looks at nodes or their types;
- in `BLOCK_CHECKS`, if it needs to know where blocks of addresses begin. Only `compile` runs these,
  as the blocks may begin where an earlier build says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TYPE_CHECKING

from compilers.spec.balances import balance_named
from compilers.spec.policy import EQUAL_COST
from inventory.asn_range import LAST_AS, why_unusable
from inventory.problems import Finding, KeyPath, shown

if TYPE_CHECKING:  # most fabrics name no inventory
    from compilers.spec.address_blocks import Blocks
    from compilers.spec.fabric_spec import BaseSpec, RoutingSpec
    from inventory.model import Nodes, NodeType

Address = IPv4Address | IPv6Address
"""An address of either family."""
SERVERS = ("ntp", "syslog")
"""The keys of `base` with addresses of servers."""
Findings = Iterator[Finding]
"""The mistakes that a check yields."""


@dataclass(frozen=True, slots=True)
class Values:
    """The well-formed values of both files."""

    routing: RoutingSpec
    """The routing policy; the default one where it is wrong."""
    base: BaseSpec
    """What switches need besides forwarding."""
    vertex_count: int
    """The number of switches, one at each vertex; 0 where the topology is wrong."""
    planes: int
    """`planes` of fabric.yaml."""
    nodes: Nodes = ()
    """The nodes of the inventory, each with its index in the list `nodes`."""
    node_types: Mapping[str, NodeType] = field(default_factory=dict)
    """The node types of the inventory, by name."""
    blocks: Sequence[Blocks] = ()
    """The blocks of addresses of all planes; () as long as it is not known where they begin."""


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """A check between values."""

    line: str
    """Its line in the reference page of keys."""
    findings: Callable[[Values], Findings]
    """Yields the mistakes."""


def findings_of(checks: tuple[ValueCheck, ...], values: Values) -> Findings:
    """Yield the mistakes that checks find in these values."""
    for check in checks:
        yield from check.findings(values)


def _minimal_share_findings(values: Values) -> Findings:
    """Yield a finding for a minimal share without alternates."""
    routing = values.routing
    if (
        not balance_named(routing.balance).forwarding.several_paths
        and routing.minimal_share != EQUAL_COST
    ):
        required = f"{EQUAL_COST} with minimal routes, which have no alternates"
        todo = "remove it, or write `balance: compact-valiant`"
        yield Finding(("routing", "minimal_share"), required, routing.minimal_share, todo)


def _disjoint_findings(values: Values) -> Findings:
    """Yield a finding for `disjoint` without alternates and protection."""
    routing = values.routing
    if (
        not balance_named(routing.balance).forwarding.several_paths
        and routing.protect == "none"
        and routing.disjoint != "auto"
    ):
        required = "auto with minimal routes that are not protected: there are no alternates"
        yield Finding(("routing", "disjoint"), required, routing.disjoint, "remove it")


def _server_findings(values: Values) -> Findings:
    """Yield findings about servers listed twice."""
    for key in SERVERS:
        addresses = getattr(values.base, key)
        for i, address in enumerate(addresses):
            if address in addresses[:i]:
                yield Finding(("base", key, i), "each server once", str(address), "remove it")


def _gateway_findings(values: Values) -> Findings:
    """Yield findings about the gateway of the management network, and about its length."""
    management = values.base.management
    if management is None or management.gateway is None:
        return
    gateway = management.gateway
    if management.length > gateway.max_prefixlen:
        required = f"a length of at most {gateway.max_prefixlen}"
        yield Finding(("base", "management", "length"), required, str(management.length))
    elif reason := _why_no_interface_address(gateway, management.length):
        path = ("base", "management", "gateway")
        yield Finding(path, "an address of its network", f"{gateway}, {reason}")


def _as_number_findings(values: Values) -> Findings:
    """Yield a finding if AS numbers that are counted from `base.asn` are too large or reserved."""
    first, count = values.base.asn, values.vertex_count
    if first is None or not count:
        return
    if reason := why_unusable(first, count):
        required = f"the first of {count:,} AS numbers, none above {LAST_AS:,} or reserved"
        todo = "choose another, such as 4200000000"
        yield Finding(("base", "asn"), required, f"{first:,}, {reason}", todo)


def _why_no_interface_address(address: Address, length: int) -> str:
    """Return in words why no interface may have an address of a network; "" if one may.

    Only IPv4 has broadcast addresses.
    """
    if length >= address.max_prefixlen - 1:  # in /31 and /32 every address may be an interface's
        return ""
    network: IPv4Network | IPv6Network = ip_network(f"{address}/{length}", strict=False)
    if address == network.network_address:
        return "that of the network itself"
    return "its broadcast address" if address == network[-1] and address.version == 4 else ""


def _management_findings(values: Values) -> Findings:
    """Yield findings about the management addresses of nodes."""
    management = values.base.management
    for i, node in values.nodes:
        address, path = node.management, ("nodes", i, "management")
        if address is None or management is None:
            continue
        if address == management.gateway:
            required = "an address other than the gateway's (base.management)"
            yield Finding(path, required, str(address), "change one of them")
        if management.length > address.max_prefixlen:  # `node_checks` refuses this
            continue
        if reason := _why_no_interface_address(address, management.length):
            required = "an address that an interface may have (base.management)"
            given = f"{address}, {reason} of /{management.length}"
            yield Finding(path, required, given, "change it")


def _block_findings(values: Values) -> Findings:
    """Yield findings about addresses of management and servers that are in a block of hosts."""
    management = values.base.management
    gateway = management.gateway if management else None
    addresses: list[tuple[KeyPath, str, Address | None]] = [
        *(
            (("base", key, i), "a server", address)
            for key in SERVERS
            for i, address in enumerate(getattr(values.base, key))
        ),
        (("base", "management", "gateway"), "a gateway", gateway),
        *(
            (("nodes", i, "management"), "a management address", node.management)
            for i, node in values.nodes
        ),
    ]
    for path, role, address in addresses:
        for blocks in values.blocks:
            if address and (block := blocks.block_of(address)):
                required = f"{role} outside the addresses of hosts ({block}, addressing)"
                todo = "take one of the management network, or change the pool"
                yield Finding(path, required, str(address), todo)


def _numeric_name_findings(values: Values) -> Findings:
    """Yield findings about nodes with a number as name that are at another vertex.

    Commands take the name or the vertex of a node, so a node called 7 must be at vertex 7. Nodes
    without `vertex` get the vertices that no node states, in the order of the file.
    """
    for plane in range(1, values.planes + 1):
        nodes = [(i, node) for i, node in values.nodes if (node.plane or 1) == plane]
        stated_vertices = {node.vertex for _, node in nodes}
        unstated_vertices = (v for v in range(values.vertex_count) if v not in stated_vertices)
        for i, node in nodes:
            vertex = next(unstated_vertices, None) if node.vertex is None else node.vertex
            number = int(node.name) if node.name.isascii() and node.name.isdigit() else None
            if number is not None and number < values.vertex_count and number != vertex:
                required = f"a name that is not the number of another vertex, {number}"
                given = f"{shown(node.name)} at vertex {vertex}"
                yield Finding(("nodes", i, "name"), required, given, "put a letter before it")


def _buffer_findings(values: Values) -> Findings:
    """Yield findings about cells and ECN thresholds that are larger than the packet buffer."""
    for name, node_type in values.node_types.items():
        buffer = node_type.buffer
        if buffer is None:
            continue
        for key in ("cell", "ecn_min", "ecn_max"):
            size = getattr(buffer, key)
            if size > buffer.size:
                path: KeyPath = ("node_types", name, "buffer", key)
                required = f"at most size, {buffer.size:,}"
                yield Finding(path, required, f"{size:,}", "correct one of them")


FABRIC_CHECKS: tuple[ValueCheck, ...] = (
    ValueCheck(
        "`routing.minimal_share` only with `compact-valiant` and `spread`", _minimal_share_findings
    ),
    ValueCheck(
        "`routing.disjoint` only where there are alternates or protection, and `edge` only with "
        "`compact-valiant` and `minimal`",
        _disjoint_findings,
    ),
    ValueCheck("each server of `base.ntp` and of `base.syslog` once", _server_findings),
    ValueCheck(
        "`base.management.gateway` neither its network's own address nor its broadcast address, "
        "and `length` no longer than its kind of address",
        _gateway_findings,
    ),
    ValueCheck(
        "`base.asn` and those counted from it at most 4294967294, none reserved",
        _as_number_findings,
    ),
)
INVENTORY_CHECKS: tuple[ValueCheck, ...] = (
    ValueCheck(
        "`nodes[].management` not the gateway of `base.management`, and neither the network's own "
        "address nor its broadcast address",
        _management_findings,
    ),
    ValueCheck(
        "a node whose name is the number of a vertex is at that vertex", _numeric_name_findings
    ),
    ValueCheck("`buffer.cell`, `ecn_min` and `ecn_max` at most `buffer.size`", _buffer_findings),
)
BLOCK_CHECKS: tuple[ValueCheck, ...] = (
    ValueCheck(
        "`base.ntp`, `base.syslog`, `base.management.gateway` and `nodes[].management` outside the "
        "blocks of hosts (checked by `compile`, as an earlier build may say where these begin)",
        _block_findings,
    ),
)
