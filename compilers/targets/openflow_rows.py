"""Each kind of OpenFlow message of a program, laid out once for the whole fabric.

Every function gives one structured array, a message an element, wrapped for the bundle. Columns
that differ from switch to switch hold 0 until `wire.filled` fills them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets import wire
from compilers.targets.openflow_groups import Role, group_numbers
from compilers.targets.openflow_pipeline import (
    CLASS_MASK,
    GROUP_SPACE,
    INGRESS_BIT,
    ND_ANSWER_FLAGS,
    ClassPriority,
    Kind,
    Priority,
    Table,
    class_metadata,
    cookie,
)

ARP, IPV4, IPV6, ICMPV6 = 0x0806, 0x0800, 0x86DD, 58
LLDP, NEAREST_BRIDGE = 0x88CC, 0x0180C200000E
REQUEST, REPLY = 1, 2
SOLICITATION, ADVERTISEMENT = 135, 136
TARGET_LINK_LAYER = 2
IPV6_MASK = (1 << 64) - 1 << 64
BUNDLE = 0x5046
ROLE_SHIFT = 16
"""Where in an xid the role of a group or row of table 2 stands, above its class."""

Records = NDArray[np.void]


def xid(kind: Kind, number: int = 0) -> int:
    """The xid of a message: its kind in the upper 8 bits, which of them in the lower 24."""
    return kind << 24 | number


def opening() -> bytes:
    """The bundle's start."""
    return wire.bundle(wire.Bundle.OPEN, BUNDLE, xid(Kind.OPEN))


def barrier(number: int) -> bytes:
    """The barrier of this number."""
    return wire.barrier(xid(Kind.BARRIER, number))


def commit() -> bytes:
    """The bundle's commit."""
    return wire.bundle(wire.Bundle.COMMIT, BUNDLE, xid(Kind.COMMIT))


def marker(cookie: int) -> wire.Block:
    """The marker, which matches what nothing else matched, with this cookie."""
    row = wire.flow_add(Table.DISPATCH, Priority.MARKER, cookie, wire.match())
    return wire.block(wire.bundled(row, BUNDLE, xid(Kind.MARKER)).tobytes())


def discovery() -> wire.Block:
    """LLDP frames (IEEE 802.1AB, §7) go to the controller; in programs only while it asks for them.

    Whatever port they come in on: a cable may be in a port that should have none.
    """
    match = wire.match(wire.oxm("eth_dst", NEAREST_BRIDGE), wire.oxm("eth_type", LLDP))
    actions = wire.apply_actions(wire.to_controller())
    row = wire.flow_add(Table.DISPATCH, Priority.OWN, cookie(Kind.DISCOVERY), match, actions)
    return wire.block(wire.bundled(row, BUNDLE, xid(Kind.DISCOVERY)).tobytes())


def bundled_add(kind: int, body: bytes, xid: int) -> bytes:
    """One message of this type, without its header, as an add to the bundle."""
    message = wire.Message(wire.MessageType(kind), (body,))
    return wire.bundled(message, BUNDLE, xid).tobytes()


def forward(gateway: int, ipv6: bool) -> wire.Block:
    """Dispatch: what is sent to the gateway's MAC address loses one of its TTL and is routed."""
    instructions = wire.apply_actions(wire.DEC_TTL), wire.goto_table(Table.ROUTES)
    rows = [
        _row(
            (Table.DISPATCH, Priority.FORWARD, Kind.FORWARD),
            number,
            (wire.oxm("eth_dst", gateway), wire.oxm("eth_type", ethertype)),
            *instructions,
        ).tobytes()
        for number, ethertype in enumerate((IPV4, IPV6) if ipv6 else (IPV4,))
    ]
    return np.concatenate([wire.block(row) for row in rows])


def enter(gateway: int, hosts: int, ethertype: int) -> Records:
    """The same for what comes from a host, by its `port` (column), and metadata says so."""
    first = 1 + (ethertype == IPV6) << 16
    fields = (
        wire.oxm("in_port", _port_column(hosts)),
        wire.oxm("eth_dst", gateway),
        wire.oxm("eth_type", ethertype),
    )
    return _row(
        (Table.DISPATCH, Priority.ENTER, Kind.FORWARD),
        first + np.arange(hosts),
        fields,
        wire.apply_actions(wire.DEC_TTL),
        wire.write_metadata(INGRESS_BIT, INGRESS_BIT),
        wire.goto_table(Table.ROUTES),
    )


def arp_answer(gateway: int, length: int) -> Records:
    """The answer to every ARP request for an address of the switch's `block` (column): the gateway.

    Hosts of one switch share a subnet and ask for each other; they too are reached by routing.
    """
    block = wire.column("block", _zeros(1), 4)
    mask = (1 << 32) - (1 << 32 - length)
    actions = wire.apply_actions(
        wire.move("arp_tpa", "reg0"),
        wire.move("arp_spa", "arp_tpa"),
        wire.move("reg0", "arp_spa"),
        wire.move("arp_sha", "arp_tha"),
        wire.set_field("arp_sha", gateway),
        wire.set_field("arp_op", REPLY),
        *_send_back(gateway),
    )
    return _row(
        (Table.DISPATCH, Priority.ANSWER, Kind.ANSWER),
        0,
        (*_arp_request(), wire.oxm("arp_tpa", block, mask)),
        actions,
    )


def nd_answer() -> Records:
    """The same for neighbour solicitations (RFC 4861, §4.3): they become advertisements.

    `block` (column) is [1, 2], the address in two halves. The link-layer address can only be set in
    what is an advertisement already, so that happens in the next table (`nd_finish`).
    """
    block = wire.column("block", _zeros(1, 2), 8)
    actions = wire.apply_actions(
        wire.move("ipv6_src", "ipv6_dst"),
        wire.move("nd_target", "ipv6_src"),
        wire.set_field("icmpv6_type", ADVERTISEMENT),
        wire.set_field("nd_options_type", TARGET_LINK_LAYER),
        wire.set_field("nd_reserved", ND_ANSWER_FLAGS),
    )
    return _row(
        (Table.DISPATCH, Priority.ANSWER, Kind.ANSWER),
        1,
        (*_icmpv6(SOLICITATION), wire.oxm("nd_target", block, IPV6_MASK)),
        actions,
        wire.goto_table(Table.ND),
    )


def nd_finish(gateway: int) -> wire.Block:
    """The advertisement's link-layer address, and its way back."""
    actions = wire.apply_actions(wire.set_field("nd_tll", gateway), *_send_back(gateway))
    place = Table.ND, Priority.ANSWER, Kind.ANSWER
    return wire.block(_row(place, 2, _icmpv6(ADVERTISEMENT), actions).tobytes())


def own_arp(hosts: int) -> Records:
    """Silence when a host asks for its own `address` (RFC 5227); a row a host number."""
    columns = _port_column(hosts), wire.column("address", _zeros(hosts), 4)
    return _own(columns, _arp_request(), "arp_tpa", 0)


def own_nd(hosts: int) -> Records:
    """Silence when a host checks that its own `address` is free (RFC 4862, §5.4)."""
    columns = _port_column(hosts), wire.column("address", _zeros(hosts, 2), 8)
    return _own(columns, _icmpv6(SOLICITATION), "nd_target", 1 << 16)


def ipv4_routes(networks: NDArray[np.uint32], lengths: NDArray[np.uint8]) -> Records:
    """A row a prefix: its egress class into `metadata` (column)."""

    def match(network: NDArray[np.uint32], length: int) -> tuple[wire.Parts, ...]:
        mask = (1 << 32) - (1 << 32 - length)
        column = wire.column("network", network, 4)
        return wire.oxm("eth_type", IPV4), wire.oxm("ipv4_dst", column, mask)

    return _routes(match, networks, lengths, 0)


def ipv6_routes(networks: NDArray[np.uint64], lengths: NDArray[np.uint8]) -> Records:
    """The same for IPv6; `networks` holds the upper halves."""

    def match(network: NDArray[np.uint64], length: int) -> tuple[wire.Parts, ...]:
        mask = (1 << 128) - (1 << 128 - length)
        halves = np.stack((network, np.zeros_like(network)), axis=1)
        column = wire.column("network", halves, 8)
        return wire.oxm("eth_type", IPV6), wire.oxm("ipv6_dst", column, mask)

    return _routes(match, networks, lengths, 1 << 23)


def ipv4_hosts(gateway: int, hosts: int) -> Records:
    """A row a host number: `address`, `mac` and `port` are its columns."""
    address = wire.oxm("ipv4_dst", wire.column("address", _zeros(hosts), 4))
    return _hosts((wire.oxm("eth_type", IPV4), address), gateway, hosts, 32, 0)


def ipv6_hosts(gateway: int, hosts: int) -> Records:
    """The same for IPv6; `address` is [n, 2]."""
    address = wire.oxm("ipv6_dst", wire.column("address", _zeros(hosts, 2), 8))
    return _hosts((wire.oxm("eth_type", IPV6), address), gateway, hosts, 128, 1 << 16)


def classes(count: int, role: int, generation: int) -> Records:
    """A row an egress class, through its group of this role; `in_port` is a column of some."""
    numbers = np.arange(count)
    through = wire.apply_actions(wire.group(_group_column("group", role, count, generation)))
    entering = role in (Role.ENTER, Role.FALLBACK)
    value, mask = class_metadata(numbers, entering, generation)
    metadata = wire.oxm("metadata", wire.column("metadata", value, 8), mask)
    if role == Role.TRANSIT:
        return _row((Table.CLASSES, ClassPriority.ANY, Kind.CLASS), numbers, (metadata,), through)
    in_port = wire.oxm("in_port", wire.column("in_port", _zeros(count), 4))
    fields = (metadata,) if entering else (in_port, metadata)
    place = Table.CLASSES, ClassPriority.SOME, Kind.CLASS
    return _row(place, numbers + (role << ROLE_SHIFT), fields, through)


def groups(count: int, role: int, kind: wire.GroupType, buckets: int, generation: int) -> Records:
    """The groups of a role, one an egress class, with so many `buckets` (column)."""
    parts: wire.Parts = (wire.Column("buckets", np.zeros((count, buckets), wire.BUCKET)),)
    if role == Role.FALLBACK:
        parts = (*wire.through(_group_column("enter", Role.ENTER, count, generation)), *parts)
    group = wire.group_add(_group_column("group", role, count, generation), kind, *parts)
    apart = _xids(Kind.GROUP, np.arange(count) + (role << ROLE_SHIFT))
    return wire.bundled(group, BUNDLE, apart)


def _group_column(name: str, role: int, count: int, generation: int) -> wire.Column:
    first = generation * GROUP_SPACE
    return wire.column(name, first + group_numbers(role, np.arange(count), count), 4)


def _row(
    place: tuple[Table, int, Kind],
    number: int | NDArray[np.int64],
    fields: tuple[wire.Parts, ...],
    *instructions: wire.Parts,
) -> Records:
    """Rows in the place (table, priority, kind); `number` tells rows of a kind apart."""
    table, priority, kind = place
    message = wire.flow_add(table, priority, cookie(kind), wire.match(*fields), *instructions)
    apart = xid(kind, number) if isinstance(number, int) else _xids(kind, number)
    return wire.bundled(message, BUNDLE, apart)


def _routes(
    match: Callable[[NDArray[Any], int], tuple[wire.Parts, ...]],
    networks: NDArray[Any],
    lengths: NDArray[np.uint8],
    first: int,
) -> Records:
    """Rows of the prefixes in their order, which is by descending length; it is the priority."""
    rows = []
    for length in np.unique(lengths)[::-1].tolist():
        numbers = np.flatnonzero(lengths == length)
        metadata = wire.column("metadata", _zeros(len(numbers)), 8)
        instructions = wire.write_metadata(metadata, CLASS_MASK), wire.goto_table(Table.CLASSES)
        place = Table.ROUTES, length, Kind.ROUTE
        rows.append(_row(place, first + numbers, match(networks[numbers], length), *instructions))
    # As opaque bytes: numpy would bring the columns of joined records into this machine's order.
    whole = np.concatenate([row.view(f"V{row.itemsize}") for row in rows])
    return whole.view(rows[0].dtype)


def _hosts(
    fields: tuple[wire.Parts, ...], gateway: int, hosts: int, priority: int, first: int
) -> Records:
    mac = wire.Column("mac", np.zeros((hosts, 6), np.uint8))
    actions = wire.apply_actions(
        wire.set_field("eth_src", gateway),
        wire.set_field("eth_dst", mac),
        wire.output(_port_column(hosts)),
    )
    return _row((Table.ROUTES, priority, Kind.HOST), first + np.arange(hosts), fields, actions)


def _own(
    columns: tuple[wire.Column, wire.Column],
    question: tuple[wire.Parts, ...],
    field: str,
    first: int,
) -> Records:
    port, address = columns
    fields = (wire.oxm("in_port", port), *question, wire.oxm(field, address))
    place = Table.DISPATCH, Priority.OWN, Kind.OWN
    return _row(place, first + np.arange(len(port.values)), fields)


def _arp_request() -> tuple[wire.Parts, ...]:
    return wire.oxm("eth_type", ARP), wire.oxm("arp_op", REQUEST)


def _icmpv6(kind: int) -> tuple[wire.Parts, ...]:
    return wire.oxm("eth_type", IPV6), wire.oxm("ip_proto", ICMPV6), wire.oxm("icmpv6_type", kind)


def _send_back(gateway: int) -> tuple[wire.Parts, ...]:
    return (
        wire.move("eth_src", "eth_dst"),
        wire.set_field("eth_src", gateway),
        wire.output(wire.IN_PORT),
    )


def _port_column(rows: int) -> wire.Column:
    return wire.column("port", _zeros(rows), 4)


def _xids(kind: Kind, numbers: NDArray[np.int64]) -> wire.Column:
    return wire.column("xid", xid(kind) + numbers, 4)


def _zeros(*shape: int) -> NDArray[Any]:
    return np.zeros(shape, np.int64)
