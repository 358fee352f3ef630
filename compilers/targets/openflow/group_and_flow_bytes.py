"""The messages that add groups and flows (*rows*), each kind laid out once for the fabric.

A message that differs between switches is a `Template`, with a named column for each part that
differs; `Template.filled` makes the messages of one switch. A message that is the same on all
switches is a `Block`. All are wrapped in adds to one bundle (ONF extension 230). `Encoder` makes
programs of them; `flow_tables` describes the tables, `class_groups` the egress classes and the
roles of their groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow import protocol
from compilers.targets.openflow.bundled_blocks import fields_at
from compilers.targets.openflow.class_groups import GroupRole, group_numbers
from compilers.targets.openflow.flow_tables import (
    GROUP_SPACE,
    INGRESS_BIT,
    MARKED_BIT,
    SPREAD_MASK,
    ClassPriority,
    FlowPriority,
    RowKind,
    Table,
    class_metadata,
    cookie,
)
from compilers.targets.openflow.message_parts import Block, Parts, Template
from compilers.targets.openflow.pipeline import SpreadRow
from compilers.targets.openflow.protocol import HEADER, Bundle, GroupType, MessageType
from compilers.wiring.mac_addresses import CARRIED_BITS

IPV4 = 0x0800
"""The EtherType of IPv4."""
IPV6 = 0x86DD
"""The EtherType of IPv6."""
LLDP = 0x88CC
"""The EtherType of LLDP."""
NEAREST_BRIDGE = 0x0180C200000E
"""The MAC address to which LLDP frames are sent (IEEE 802.1AB, §7.1)."""
IPV6_MASK = (1 << 64) - 1 << 64
"""The mask of the network of a switch's hosts, a /64."""
BUNDLE = 0x5046
"""The number of the bundle that all messages are added to."""
CARRIED_MASK = (1 << 48) - (1 << CARRIED_BITS)
"""The bits of a MAC address that are the same for all intermediates."""
ALL_METADATA = (1 << 64) - 1
"""The mask of all bits of metadata."""

# The xid of a message has its kind in the upper 8 bits, and in the lower 24 a number that tells it
# from other messages of this kind. The number of a group, or of a row for a class, is the class
# with the role above it. Dispatch rows of the kind FORWARD are numbered in these ranges, one number
# for each address family, or one for each host of each family:
#
#   0, 1                        to the gateway, by family
#   MARKED_NUMBER               marked packets, by family
#   CARRIED_NUMBER              packets that carry an intermediate, by family
#   FROM_HOSTS_NUMBER           packets from hosts, by family and host
#   SAME_SWITCH_NUMBER          to any host of the same switch, by family
#   DRAWING_NUMBER              packets from hosts that draw an intermediate, by family and host
#   SAME_SWITCH_HOSTS_NUMBER    from one host to hosts of the same switch, by family and host
XID_BITS = 24
"""The bits of an xid for the number of the message."""
MOST_NUMBER = (1 << XID_BITS) - 1
"""The highest number of a message of one kind."""
ROLE_SHIFT = 16
"""The bits of a number below the role of a group or of a row for a class: those of the class."""
IPV6_NUMBER = 1 << 23
"""The first number of messages about IPv6 routes; those about IPv4 routes have smaller numbers."""
FAMILY_NUMBERS = 1 << 16
"""How many numbers the rows for hosts have in one address family: one for each host a switch may
have. The numbers of IPv6 rows follow those of IPv4 rows."""
MARKED_NUMBER = 2
"""The first number of dispatch rows for marked packets."""
CARRIED_NUMBER = 4
"""The first number of dispatch rows for packets that carry an intermediate."""
FROM_HOSTS_NUMBER = FAMILY_NUMBERS
"""The first number of dispatch rows for packets from hosts."""
SAME_SWITCH_NUMBER = 1 << 20
"""The first number of dispatch rows for packets from any host to hosts of the same switch, which
get no intermediate."""
DRAWING_NUMBER = SAME_SWITCH_NUMBER + FAMILY_NUMBERS
"""The first number of dispatch rows by which packets from hosts draw an intermediate."""
SAME_SWITCH_HOSTS_NUMBER = DRAWING_NUMBER + 2 * FAMILY_NUMBERS
"""The first number of dispatch rows for packets from one host to hosts of the same switch."""


def is_number_of_other_macs(number: int) -> bool:
    """Whether a dispatch row with this number takes packets to another MAC than the gateway's.

    These are the rows for marked packets, and those for packets that carry an intermediate.
    """
    return MARKED_NUMBER <= number < FROM_HOSTS_NUMBER


def is_number_of_intermediate_choice(number: int) -> bool:
    """Whether a dispatch row with this number chooses whether a packet gets an intermediate.

    Some of these rows give a host's packet an intermediate, others exempt packets from that.
    """
    return number >= SAME_SWITCH_NUMBER


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """The P prefixes of one address family, by their numbers."""

    ethertype: int
    """`IPV4` or `IPV6`."""
    networks: NDArray[Any]
    """The addresses: uint32[P] of IPv4, uint64[P] of IPv6, where it is the upper half."""
    lengths: NDArray[np.uint8]
    """uint8[P], descending."""

    @property
    def numbers(self) -> NDArray[np.int64]:
        """int64[P]: the numbers of the route messages in their xids."""
        return (IPV6_NUMBER if self.ethertype == IPV6 else 0) + np.arange(len(self.lengths))

    @property
    def match(self) -> tuple[Parts, ...]:
        """The fields of a match on destinations in a prefix, with the columns network and mask."""
        field = "ipv6_dst" if self.ethertype == IPV6 else "ipv4_dst"
        return parts.oxm("eth_type", self.ethertype), parts.oxm(field, "network", "mask")

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The values of the columns network and mask of `match`."""
        bits = 64 if self.ethertype == IPV6 else 32
        masks = [prefix_mask(bits, length) for length in self.lengths.tolist()]
        columns = {"network": self.networks, "mask": np.array(masks, np.uint64)}
        if self.ethertype == IPV6:
            # An IPv6 address is two numbers; prefixes of switches are in the upper one.
            return {
                name: np.stack((upper, np.zeros_like(upper)), axis=1)
                for name, upper in columns.items()
            }
        return columns


def xid(kind: int, number: int = 0) -> int:
    """The xid of a message: its kind in the upper 8 bits, its number in the lower 24."""
    return kind << XID_BITS | number


def kind_of(block: Block) -> RowKind:
    """The kind of the messages of a block, by the xid of the first."""
    return RowKind(int(_xids_of(block[:1])[0]) >> XID_BITS)


def xid_numbers(block: Block) -> NDArray[np.int64]:
    """int64[n]: the number of each message of a block among those of its kind, by its xid."""
    numbers: NDArray[np.int64] = _xids_of(block).astype(np.int64) & MOST_NUMBER
    return numbers


def opening() -> bytes:
    """The message that opens the bundle."""
    return parts.bundle_control(Bundle.OPEN, BUNDLE, xid(RowKind.OPEN))


def barrier(number: int) -> bytes:
    """A barrier request; the number tells its reply from replies to other requests."""
    return protocol.message(MessageType.BARRIER_REQUEST, xid(RowKind.BARRIER, number))


def commit() -> bytes:
    """The message that commits the bundle."""
    return parts.bundle_control(Bundle.COMMIT, BUNDLE, xid(RowKind.COMMIT))


def discard(xid: int) -> bytes:
    """The message that discards the bundle before it is committed."""
    return parts.bundle_control(Bundle.DISCARD, BUNDLE, xid)


def marker(cookie: int) -> Block:
    """The row whose cookie names the build; it matches packets that no other row matches."""
    row = parts.flow_add(Table.DISPATCH, FlowPriority.MARKER, cookie, ())
    return parts.bundled(row, BUNDLE, xid(RowKind.MARKER)).block


@cache
def discovery() -> Block:
    """The row that sends LLDP frames (IEEE 802.1AB, §7) to the controller.

    Programs have it only while the controller discovers cables. It matches every ingress port, as a
    cable may be in a port that should have none.
    """
    match = parts.oxm("eth_dst", NEAREST_BRIDGE), parts.oxm("eth_type", LLDP)
    actions = parts.apply_actions(parts.to_controller())
    return flow_rows(
        RowPlace(Table.DISPATCH, FlowPriority.OWN, RowKind.DISCOVERY), 0, match, actions
    ).block


def bundled_add(message_type: int, body: bytes, xid: int) -> bytes:
    """A message of an OpenFlow type as an add to the bundle, from all that follows its header."""
    message = parts.Message(MessageType(message_type), (body,))
    return parts.bundled(message, BUNDLE, xid).block.tobytes()


def gateway_rows(gateway: int, ipv6: bool) -> Block:
    """The rows that route packets to the gateway's MAC address, after one step of their TTL."""
    instructions = parts.apply_actions(parts.dec_ttl()), parts.goto_table(Table.ROUTES)
    return _forwarding_rows(gateway, 0, ipv6, *instructions)


def marked_gateway_rows(marked_mac: int, gateway: int, ipv6: bool) -> Block:
    """The rows that route packets to the MAC address of marked packets, with a mark in metadata."""
    return _forwarding_rows(
        marked_mac,
        MARKED_NUMBER,
        ipv6,
        parts.apply_actions(parts.dec_ttl(), parts.set_field("eth_dst", gateway)),
        parts.write_metadata(MARKED_BIT, MARKED_BIT),
        parts.goto_table(Table.ROUTES),
    )


def intermediate_rows(first_mac: int, ipv6: bool) -> Block:
    """The rows that route packets to the MAC address of any intermediate.

    Args:
        first_mac: the MAC address of the first intermediate.
        ipv6: whether there is a row for IPv6.
    """
    instructions = parts.apply_actions(parts.dec_ttl()), parts.goto_table(Table.ROUTES)
    return _forwarding_rows(first_mac, CARRIED_NUMBER, ipv6, *instructions, mask=CARRIED_MASK)


def _forwarding_rows(
    mac: int, first: int, ipv6: bool, *instructions: Parts, mask: int | None = None
) -> Block:
    """A dispatch row for each address family for packets to a MAC address.

    Args:
        mac: the MAC address.
        first: the number of the row for IPv4; that for IPv6 has the next one.
        ipv6: whether there is a row for IPv6.
        instructions: what the rows do.
        mask: the bits of the MAC address that have to match; None for all.
    """
    families = (IPV4, IPV6) if ipv6 else (IPV4,)
    place = RowPlace(Table.DISPATCH, FlowPriority.FORWARD, RowKind.FORWARD)
    fields = parts.oxm("eth_dst", mac, mask), parts.oxm("eth_type", "family")
    return flow_rows(
        place, first + np.arange(len(families)), fields, *instructions, family=families
    ).block


def spread_rows(rows: Sequence[SpreadRow], basis: int) -> list[Block]:
    """The rows that spread marked packets from a port over other links, except those to neighbours.

    Args:
        rows: the rows as numbers.
        basis: the seed of the hash.

    Returns:
        The rows in this order; those in a block have the same number of ports.
    """
    blocks = []
    for count, rows_of_count in groupby(rows, lambda row: len(row.ports)):
        alike = list(rows_of_count)
        in_port = np.array([row.in_port for row in alike], np.int64)
        columns = {
            "xid": xid(RowKind.SPREAD) + in_port,
            "in_port": in_port,
            "metadata": np.array([row.metadata for row in alike], np.int64),
            "ports": np.array([row.ports for row in alike]).reshape(len(alike), count),
        }
        blocks.append(_spread_row(count).filled(np.zeros(len(alike), int), basis=basis, **columns))
    return blocks


@cache
def _spread_row(count: int) -> Template:
    """The template of a row that spreads marked packets over `count` ports."""
    fields = parts.oxm("in_port", "in_port"), parts.oxm("metadata", "metadata", SPREAD_MASK)
    return flow_rows(
        RowPlace(Table.CLASSES, ClassPriority.MARKED, RowKind.SPREAD),
        0,
        fields,
        parts.apply_actions(parts.bundle_ports(parts.port_column("ports", count), "basis")),
    )


def guard_rows(hosts: int) -> Template:
    """For each host a row that drops those packets from its port that no other row takes.

    These packets have another source address, a mark, or an intermediate. The column `port` is the
    port of the host.
    """
    place = RowPlace(Table.DISPATCH, FlowPriority.GUARD, RowKind.GUARD)
    return flow_rows(place, np.arange(hosts), (parts.oxm("in_port", "port"),))


def rows_from_hosts(
    gateway: int, hosts: int, ethertype: int, in_metadata: bool, checked: bool
) -> Template:
    """For each host a row that routes its packets to the gateway.

    The column `port` is the host's port. The column `address` is its address, where source
    addresses are checked.

    Args:
        gateway: the MAC address of the gateway.
        hosts: how many hosts a switch may have.
        ethertype: `IPV4` or `IPV6`.
        in_metadata: whether the row writes into metadata that the packets come from a host.
        checked: whether their source address has to be the host's.
    """
    first = _family_number(FROM_HOSTS_NUMBER, ethertype)
    from_host = [parts.write_metadata(INGRESS_BIT, INGRESS_BIT)] if in_metadata else []
    return flow_rows(
        RowPlace(Table.DISPATCH, FlowPriority.ENTER, RowKind.FORWARD),
        first + np.arange(hosts),
        _from_host(gateway, ethertype, checked),
        parts.apply_actions(parts.dec_ttl()),
        *from_host,
        parts.goto_table(Table.ROUTES),
    )


def rows_to_same_switch(
    gateway: int, hosts: int, ethertype: int, length: int, checked: bool
) -> Template:
    """The rows for packets from a host to hosts of its switch, which get no intermediate.

    The column `block` is the network of the switch's hosts. Where source addresses are checked,
    there is a row for each host, with the columns of `rows_from_hosts`; else one row for all.

    Args:
        gateway: the MAC address of the gateway.
        hosts: how many hosts a switch may have.
        ethertype: `IPV4` or `IPV6`.
        length: the prefix length of the IPv4 network of a switch's hosts.
        checked: whether the source address has to be the host's.
    """
    is_ipv6 = ethertype == IPV6
    mask = IPV6_MASK if is_ipv6 else prefix_mask(32, length)
    block = parts.oxm("ipv6_dst" if is_ipv6 else "ipv4_dst", "block", mask)
    number: int | NDArray[np.int64] = SAME_SWITCH_NUMBER + (1 if is_ipv6 else 0)
    fields: tuple[Parts, ...] = parts.oxm("eth_dst", gateway), parts.oxm("eth_type", ethertype)
    if checked:
        number = _family_number(SAME_SWITCH_HOSTS_NUMBER, ethertype) + np.arange(hosts)
        fields = _from_host(gateway, ethertype, checked)
    return flow_rows(
        RowPlace(Table.DISPATCH, FlowPriority.SAME_SWITCH, RowKind.FORWARD),
        number,
        (*fields, block),
        parts.apply_actions(parts.dec_ttl()),
        parts.goto_table(Table.ROUTES),
    )


def drawing_rows(
    gateway: int, first_mac: int, hosts: int, ethertype: int, count: int, checked: bool
) -> Template:
    """For each host a row that gives its packets an intermediate, by a hash.

    The columns are those of `rows_from_hosts`, and `basis`, the seed of the hash.

    Args:
        gateway: the MAC address of the gateway.
        first_mac: the MAC address of the first intermediate.
        hosts: how many hosts a switch may have.
        ethertype: `IPV4` or `IPV6`.
        count: the number of intermediates.
        checked: whether the source address has to be the host's.
    """
    first = _family_number(DRAWING_NUMBER, ethertype)
    fields = _from_host(gateway, ethertype, checked)
    actions = parts.apply_actions(
        parts.dec_ttl(),
        parts.set_field("eth_dst", first_mac),
        parts.multipath("eth_dst", CARRIED_BITS, count, "basis"),
    )
    place = RowPlace(Table.DISPATCH, FlowPriority.ENTER, RowKind.FORWARD)
    return flow_rows(
        place, first + np.arange(hosts), fields, actions, parts.goto_table(Table.ROUTES)
    )


def route_rows(prefixes: Prefixes, mask: int) -> Template:
    """For each prefix a row that writes its egress class, a column, into metadata."""
    return flow_rows(
        RowPlace(Table.ROUTES, prefixes.lengths, RowKind.ROUTE),
        prefixes.numbers,
        prefixes.match,
        parts.write_metadata("metadata", mask),
        parts.goto_table(Table.CLASSES),
        **prefixes.columns,
    )


def prefix_rows(prefixes: Prefixes, gateway: int, by_port: bool) -> Template:
    """For each prefix a row that leads to a group, in the only table of a switch.

    The column `group` is the number of the group.

    Args:
        prefixes: the prefixes.
        gateway: the MAC address of the gateway.
        by_port: whether the row is only for packets from an ingress port, the column `port`. Such a
            row has a higher priority than that for packets from any port.
    """
    ingress = [parts.oxm("in_port", "port")] if by_port else []
    above = 1 if by_port else 0
    priority = [single_priority(length) + above for length in prefixes.lengths.tolist()]
    return flow_rows(
        RowPlace(Table.DISPATCH, priority, RowKind.ROUTE),
        prefixes.numbers,
        (*ingress, parts.oxm("eth_dst", gateway), *prefixes.match),
        parts.apply_actions(parts.dec_ttl(), parts.group("group")),
        **prefixes.columns,
    )


def host_rows(gateway: int, hosts: int, ethertype: int, single: bool) -> Template:
    """For each host a row that delivers packets to it.

    The columns are the host's `address`, `mac` and `port`.

    Args:
        gateway: the MAC address of the gateway.
        hosts: how many hosts a switch may have.
        ethertype: `IPV4` or `IPV6`.
        single: whether it is for a switch of one table, where no row has checked the MAC address
            and decremented the TTL before.
    """
    field, bits = ("ipv6_dst", 128) if ethertype == IPV6 else ("ipv4_dst", 32)
    first = _family_number(0, ethertype)
    fields: tuple[Parts, ...] = parts.oxm("eth_type", ethertype), parts.oxm(field, "address")
    place = RowPlace(Table.ROUTES, bits, RowKind.HOST)
    if single:
        fields = parts.oxm("eth_dst", gateway), *fields
        place = RowPlace(Table.DISPATCH, single_priority(bits), RowKind.HOST)
    actions = parts.apply_actions(
        *([parts.dec_ttl()] if single else []),
        parts.set_field("eth_src", gateway),
        parts.set_field("eth_dst", "mac"),
        parts.output("port"),
    )
    return flow_rows(place, first + np.arange(hosts), fields, actions)


def class_rows(count: int, role: int, generation: int, masks: bool, first_direct: int) -> Template:
    """For each egress class a row that leads to its group of a role.

    Rows for packets from hosts match them by metadata where masks allow it. All other rows, except
    those for packets in transit, match the ingress port, the column `in_port`.

    Args:
        count: the number of classes.
        role: the role of the groups.
        generation: which numbers classes and groups have.
        masks: whether switches match single bits of metadata.
        first_direct: see `flow_tables.class_numbers`.
    """
    numbers = np.arange(count)
    to_group = parts.apply_actions(parts.group("group"))
    from_hosts = masks and role in (GroupRole.ENTER, GroupRole.FALLBACK)
    value, mask = class_metadata(numbers, from_hosts, generation, first_direct)
    fields: tuple[Parts, ...] = (parts.oxm("metadata", "metadata", mask if masks else None),)
    place = RowPlace(Table.CLASSES, ClassPriority.ONE_INGRESS, RowKind.CLASS)
    if role == GroupRole.TRANSIT:
        place = RowPlace(Table.CLASSES, ClassPriority.ANY_PORT, RowKind.CLASS)
    elif not from_hosts:
        fields = parts.oxm("in_port", "in_port"), *fields
    columns = {"metadata": value, "group": _groups(role, count, generation)}
    return flow_rows(place, numbers + (role << ROLE_SHIFT), fields, to_group, **columns)


def shared_class_row(egress: int, ports: NDArray[np.integer], basis: int, generation: int) -> Block:
    """The row of a class that balances all packets over its next hops, also those in transit.

    Args:
        egress: the class.
        ports: the ports of the next hops.
        basis: the seed of the hash.
        generation: which number the class has.
    """
    value, mask = class_metadata(np.array([egress]), from_hosts=False, generation=generation)
    return flow_rows(
        RowPlace(Table.CLASSES, ClassPriority.ANY_PORT, RowKind.CLASS),
        egress + (GroupRole.TRANSIT << ROLE_SHIFT),
        (parts.oxm("metadata", int(value[0]), mask),),
        parts.apply_actions(parts.bundle_ports(ports, basis)),
    ).block


def class_groups_of_role(
    count: int,
    role: int,
    group_type: GroupType,
    marks: tuple[bool, ...],
    generation: int,
    marking: Template,
) -> Template:
    """The groups of a role, one for each egress class; `parts.bucket_runs` names their columns.

    Args:
        count: the number of classes.
        role: the role.
        group_type: the OpenFlow type of the groups.
        marks: for each bucket whether it marks packets.
        generation: which numbers the groups have.
        marking: the template of buckets that mark packets.
    """
    buckets: Parts = tuple(
        parts.bucket_column(name, template, run.stop - run.start)
        for name, template, run in parts.bucket_runs(marks, marking)
    )
    columns = {"group": _groups(role, count, generation)}
    if role == GroupRole.FALLBACK:
        buckets = (*parts.group_bucket("enter"), *buckets)
        columns["enter"] = _groups(GroupRole.ENTER, count, generation)
    xids = xid(RowKind.GROUP) + np.arange(count) + (role << ROLE_SHIFT)
    return parts.bundled(parts.group_add("group", group_type, *buckets), BUNDLE, xids, **columns)


def _groups(role: int, count: int, generation: int) -> NDArray[np.int64]:
    """int64[count]: the number of the group of each egress class, for one role."""
    return generation * GROUP_SPACE + group_numbers(role, np.arange(count), count)


class RowPlace(NamedTuple):
    """Where rows are in a switch, and of which kind they are."""

    table: Table
    """Their table."""
    priority: Any
    """Their priority, or int[n], that of each of n rows."""
    kind: RowKind
    """Their kind."""


def flow_rows(
    place: RowPlace,
    number: int | NDArray[np.int64],
    fields: tuple[Parts, ...],
    *instructions: Parts,
    **columns: Any,
) -> Template:
    """Rows of one kind, which differ in their numbers and columns.

    Args:
        place: the table, priorities and kind of the rows.
        number: int64[n], the number of each row among those of its kind, or that of the only row.
        fields: the fields of the match.
        instructions: what the rows do.
        columns: the values of columns in fields and instructions.
    """
    message = parts.flow_add(place.table, "priority", cookie(place.kind), fields, *instructions)
    xids = xid(place.kind) + np.asarray(number)
    return parts.bundled(message, BUNDLE, xids, priority=place.priority, **columns)


def single_priority(length: int) -> int:
    """The priority of a prefix in the only table of a switch.

    Priorities are even, as a row of the prefix that also matches the ingress port is one above.
    """
    return 2 * length


def _family_number(first: int, ethertype: int) -> int:
    """The first number of the rows of an address family: those of IPv6 follow those of IPv4."""
    return first + (FAMILY_NUMBERS if ethertype == IPV6 else 0)


def prefix_mask(bits: int, length: int) -> int:
    """The mask of a prefix length, in an address of so many bits.

    >>> f"{prefix_mask(32, 24):x}"
    'ffffff00'
    """
    return (1 << bits) - (1 << bits - length)


def _from_host(gateway: int, ethertype: int, checked: bool) -> tuple[Parts, ...]:
    """The fields of a match on a host's packets to the gateway; see `rows_from_hosts`."""
    source = "ipv6_src" if ethertype == IPV6 else "ipv4_src"
    return (
        parts.oxm("in_port", "port"),
        parts.oxm("eth_dst", gateway),
        parts.oxm("eth_type", ethertype),
        *([parts.oxm(source, "address")] if checked else []),
    )


def _xids_of(block: Block) -> NDArray[np.uint32]:
    """uint32[n]: the xids of the messages of a block."""
    xids: NDArray[np.uint32] = fields_at(block, HEADER)["xid"]
    return xids
