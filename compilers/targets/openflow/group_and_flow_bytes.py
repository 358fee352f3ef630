"""The bytes of groups and flows: each kind of message, laid out once for the whole fabric.

Every function gives one structured array with one message per element, wrapped for the bundle.
Columns that differ from switch to switch hold 0 until `message_parts.filled` fills them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow import protocol
from compilers.targets.openflow.bundled_blocks import heads
from compilers.targets.openflow.class_groups import GroupRole, group_numbers
from compilers.targets.openflow.flow_tables import (
    GROUP_SPACE,
    INGRESS_BIT,
    MARKED_BIT,
    ND_ANSWER_FLAGS,
    ClassPriority,
    FlowPriority,
    RowKind,
    SpreadRow,
    Table,
    class_metadata,
    cookie,
)
from compilers.targets.openflow.message_parts import Block, Column, Parts
from compilers.targets.openflow.protocol import BUNDLED, IN_PORT, Bundle, GroupType, MessageType

ARP, IPV4, IPV6, ICMPV6 = 0x0806, 0x0800, 0x86DD, 58
LLDP, NEAREST_BRIDGE = 0x88CC, 0x0180C200000E
REQUEST, REPLY = 1, 2
SOLICITATION, ADVERTISEMENT = 135, 136
TARGET_LINK_LAYER = 2
IPV6_MASK = (1 << 64) - 1 << 64
BUNDLE = 0x5046
ROLE_SHIFT = 16
"""Where in an xid the role of a group or row of table 2 stands, above its class."""

IPV6_NUMBER = KEPT_NUMBER = 1 << 23
"""Messages of IPv6's routes have numbers from here, as have rows by which marks are kept."""
XID_BITS = 24
MARKED_NUMBER = 2
"""Dispatch messages of marked packets have numbers from here, behind those of IPv4 and IPv6."""
MOST_NUMBER = (1 << XID_BITS) - 1
"""An xid is the kind of a message and, in its lower 24 bits, which of them."""

ALL_METADATA = (1 << 64) - 1

Records = NDArray[np.void]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """The prefixes of one address family, by their numbers.

    ethertype: of the family. networks: uint32[P], of IPv6 the upper halves as uint64[P]. lengths:
    uint8[P], descending.
    """

    ethertype: int
    networks: NDArray[Any]
    lengths: NDArray[np.uint8]

    @property
    def first(self) -> int:
        """The number of the first route message."""
        return IPV6_NUMBER if self.ethertype == IPV6 else 0

    def match(self, numbers: Numbers, length: int) -> tuple[Parts, ...]:
        """The fields of a match on destinations in these prefixes, all of one length."""
        network, bits, field, size = self.networks[numbers], 32, "ipv4_dst", 4
        if self.ethertype == IPV6:
            network, bits = np.stack((network, np.zeros_like(network)), axis=1), 128
            field, size = "ipv6_dst", 8
        column = parts.column("network", network, size)
        mask = (1 << bits) - (1 << bits - length)
        return parts.oxm("eth_type", self.ethertype), parts.oxm(field, column, mask)


def xid(kind: int, number: int = 0) -> int:
    """The xid of a message: its kind in the upper 8 bits, which of them in the lower 24."""
    return kind << XID_BITS | number


def kind_of(block: Block) -> RowKind:
    """What the messages of a block are about, by the xid of the first."""
    return RowKind(int(_xids_of(block[:1])[0]) >> XID_BITS)


def xid_numbers(block: Block) -> NDArray[np.int64]:
    """int64[n]: which of its kind each message of a block is, by its xid."""
    numbers: NDArray[np.int64] = _xids_of(block).astype(np.int64) & MOST_NUMBER
    return numbers


def opening() -> bytes:
    """The bundle's start."""
    return parts.bundle(Bundle.OPEN, BUNDLE, xid(RowKind.OPEN))


def barrier(number: int) -> bytes:
    """The barrier of this number."""
    return protocol.message(MessageType.BARRIER_REQUEST, xid(RowKind.BARRIER, number))


def commit() -> bytes:
    """The bundle's commit."""
    return parts.bundle(Bundle.COMMIT, BUNDLE, xid(RowKind.COMMIT))


def discard(xid: int) -> bytes:
    """Dropping the bundle that is not committed."""
    return parts.bundle(Bundle.DISCARD, BUNDLE, xid)


def marker(cookie: int) -> Block:
    """The marker, which matches what nothing else matched, with this cookie."""
    row = parts.flow_add(Table.DISPATCH, FlowPriority.MARKER, cookie, ())
    return parts.block(parts.bundled(row, BUNDLE, xid(RowKind.MARKER)).tobytes())


def discovery() -> Block:
    """LLDP frames (IEEE 802.1AB, §7) go to the controller; in programs only while it asks for them.

    Whatever port they come in on: a cable may be in a port that should have none.
    """
    match = parts.oxm("eth_dst", NEAREST_BRIDGE), parts.oxm("eth_type", LLDP)
    actions = parts.apply_actions(parts.to_controller())
    row = parts.flow_add(
        Table.DISPATCH, FlowPriority.OWN, cookie(RowKind.DISCOVERY), match, actions
    )
    return parts.block(parts.bundled(row, BUNDLE, xid(RowKind.DISCOVERY)).tobytes())


def bundled_add(kind: int, body: bytes, xid: int) -> bytes:
    """One message of this type, without its header, as an add to the bundle."""
    message = parts.Message(MessageType(kind), (body,))
    return parts.bundled(message, BUNDLE, xid).tobytes()


def forward(gateway: int, ipv6: bool) -> Block:
    """Dispatch: what is sent to the gateway's MAC address loses one of its TTL and is routed."""
    instructions = parts.apply_actions(parts.dec_ttl()), parts.goto_table(Table.ROUTES)
    rows = [
        _row(
            (Table.DISPATCH, FlowPriority.FORWARD, RowKind.FORWARD),
            number,
            (parts.oxm("eth_dst", gateway), parts.oxm("eth_type", ethertype)),
            *instructions,
        ).tobytes()
        for number, ethertype in enumerate((IPV4, IPV6) if ipv6 else (IPV4,))
    ]
    return np.concatenate([parts.block(row) for row in rows])


def forward_marked(marked: int, gateway: int, ipv6: bool) -> Block:
    """The same for what is sent to the MAC address of marked packets; metadata keeps the mark."""
    actions = parts.dec_ttl(), parts.set_field("eth_dst", gateway)
    rows = [
        _row(
            (Table.DISPATCH, FlowPriority.FORWARD, RowKind.FORWARD),
            MARKED_NUMBER + number,
            (parts.oxm("eth_dst", marked), parts.oxm("eth_type", ethertype)),
            parts.apply_actions(*actions),
            parts.write_metadata(MARKED_BIT, MARKED_BIT),
            parts.goto_table(Table.ROUTES),
        ).tobytes()
        for number, ethertype in enumerate((IPV4, IPV6) if ipv6 else (IPV4,))
    ]
    return np.concatenate([parts.block(row) for row in rows])


def spread(spread: SpreadRow, basis: int, marked: int) -> Block:
    """A row for marked packets that came in on a port and go to no neighbour.

    basis: of the hash. marked: the MAC address of marked packets, set where they stay marked.
    """
    mark = (parts.set_field("eth_dst", marked),) * spread.keeps
    came = parts.oxm("in_port", spread.in_port)
    row = _row(
        (Table.CLASSES, ClassPriority.MARKED, RowKind.SPREAD),
        spread.in_port | KEPT_NUMBER * spread.keeps,
        (came, parts.oxm("metadata", spread.metadata, spread.mask)),
        parts.apply_actions(*mark, parts.bundle_ports(spread.ports, basis)),
    )
    return parts.block(row.tobytes())


def enter(gateway: int, hosts: int, ethertype: int) -> Records:
    """The same for what comes from a host, by its `port` (column), and metadata says so."""
    first = 1 + (ethertype == IPV6) << 16
    fields = (
        parts.oxm("in_port", _port_column(hosts)),
        parts.oxm("eth_dst", gateway),
        parts.oxm("eth_type", ethertype),
    )
    return _row(
        (Table.DISPATCH, FlowPriority.ENTER, RowKind.FORWARD),
        first + np.arange(hosts),
        fields,
        parts.apply_actions(parts.dec_ttl()),
        parts.write_metadata(INGRESS_BIT, INGRESS_BIT),
        parts.goto_table(Table.ROUTES),
    )


def arp_answer(gateway: int, length: int) -> Records:
    """The answer to every ARP request for an address of the switch's `block` (column): the gateway.

    Hosts of one switch share a subnet and ask for each other; they too are reached by routing.
    """
    block = parts.column("block", _zeros(1), 4)
    mask = (1 << 32) - (1 << 32 - length)
    actions = parts.apply_actions(
        parts.move("arp_tpa", "reg0"),
        parts.move("arp_spa", "arp_tpa"),
        parts.move("reg0", "arp_spa"),
        parts.move("arp_sha", "arp_tha"),
        parts.set_field("arp_sha", gateway),
        parts.set_field("arp_op", REPLY),
        *_send_back(gateway),
    )
    return _row(
        (Table.DISPATCH, FlowPriority.ANSWER, RowKind.ANSWER),
        0,
        (*_arp_request(), parts.oxm("arp_tpa", block, mask)),
        actions,
    )


def arp_reply(gateway: int, rows: int) -> Records:
    """The answer to a host's ARP request for one address, all of it in constants.

    Columns: `port`, `mac` and `own` (its address) of the host that asks, `target` and `answered`,
    both the address that it asks for.
    """
    in_port, mac = _port_column(rows), Column("mac", np.zeros((rows, 6), np.uint8))
    actions = parts.apply_actions(
        parts.set_field("eth_dst", mac),
        parts.set_field("eth_src", gateway),
        parts.set_field("arp_op", REPLY),
        parts.set_field("arp_sha", gateway),
        parts.set_field("arp_spa", parts.column("answered", _zeros(rows), 4)),
        parts.set_field("arp_tha", replace(mac, name="told mac")),
        parts.set_field("arp_tpa", parts.column("own", _zeros(rows), 4)),
        parts.output(IN_PORT),
    )
    target = parts.oxm("arp_tpa", parts.column("target", _zeros(rows), 4))
    place = Table.DISPATCH, FlowPriority.ANSWER, RowKind.ANSWER
    fields = parts.oxm("in_port", in_port), *_arp_request(), target
    return _row(place, np.arange(rows), fields, actions)


def nd_answer() -> Records:
    """The same for neighbour solicitations (RFC 4861, §4.3): they become advertisements.

    `block` (column) is [1, 2], the address in two halves. The link-layer address can only be set in
    what is an advertisement already, so that happens in the next table (`nd_finish`).
    """
    block = parts.column("block", _zeros(1, 2), 8)
    actions = parts.apply_actions(
        parts.move("ipv6_src", "ipv6_dst"),
        parts.move("nd_target", "ipv6_src"),
        parts.set_field("icmpv6_type", ADVERTISEMENT),
        parts.set_field("nd_options_type", TARGET_LINK_LAYER),
        parts.set_field("nd_reserved", ND_ANSWER_FLAGS),
    )
    return _row(
        (Table.DISPATCH, FlowPriority.ANSWER, RowKind.ANSWER),
        1,
        (*_icmpv6(SOLICITATION), parts.oxm("nd_target", block, IPV6_MASK)),
        actions,
        parts.goto_table(Table.ND),
    )


def nd_finish(gateway: int) -> Block:
    """The advertisement's link-layer address, and its way back."""
    actions = parts.apply_actions(parts.set_field("nd_tll", gateway), *_send_back(gateway))
    place = Table.ND, FlowPriority.ANSWER, RowKind.ANSWER
    return parts.block(_row(place, 2, _icmpv6(ADVERTISEMENT), actions).tobytes())


def own_arp(hosts: int) -> Records:
    """Silence when a host asks for its own `address` (RFC 5227); a row per host number."""
    columns = _port_column(hosts), parts.column("address", _zeros(hosts), 4)
    return _own(columns, _arp_request(), "arp_tpa", 0)


def own_nd(hosts: int) -> Records:
    """Silence when a host checks that its own `address` is free (RFC 4862, §5.4)."""
    columns = _port_column(hosts), parts.column("address", _zeros(hosts, 2), 8)
    return _own(columns, _icmpv6(SOLICITATION), "nd_target", 1 << 16)


def routes(prefixes: Prefixes, mask: int) -> Records:
    """A row per prefix: its egress class into `metadata` (column), the bits under the mask."""

    def row(length: int, numbers: Numbers, match: tuple[Parts, ...]) -> Records:
        metadata = parts.column("metadata", _zeros(len(numbers)), 8)
        written = parts.write_metadata(metadata, mask)
        place = Table.ROUTES, length, RowKind.ROUTE
        return _row(place, numbers, match, written, parts.goto_table(Table.CLASSES))

    return _by_length(prefixes, row)


def prefix_rows(prefixes: Prefixes, gateway: int, told: bool) -> Records:
    """A row per prefix for switches of one table: through `group` (column).

    told: only for packets that come in on `in_port` (column), before the row for all others.
    """

    def row(length: int, numbers: Numbers, match: tuple[Parts, ...]) -> Records:
        through = parts.column("group", _zeros(len(numbers)), 4)
        came = [parts.oxm("in_port", _port_column(len(numbers)))] * told
        return _row(
            (Table.DISPATCH, single_priority(length) + told, RowKind.ROUTE),
            numbers,
            (*came, parts.oxm("eth_dst", gateway), *match),
            parts.apply_actions(parts.dec_ttl(), parts.group(through)),
        )

    return _by_length(prefixes, row)


def ipv4_hosts(gateway: int, hosts: int, single: bool) -> Records:
    """A row per host number: `address`, `mac` and `port` are its columns.

    single: in the only table, where a packet has not been dispatched before.
    """
    address = parts.oxm("ipv4_dst", parts.column("address", _zeros(hosts), 4))
    fields = parts.oxm("eth_type", IPV4), address
    return _hosts(fields, gateway, hosts, (32, 0), single)


def ipv6_hosts(gateway: int, hosts: int, single: bool) -> Records:
    """The same for IPv6; `address` is [n, 2]."""
    address = parts.oxm("ipv6_dst", parts.column("address", _zeros(hosts, 2), 8))
    fields = parts.oxm("eth_type", IPV6), address
    return _hosts(fields, gateway, hosts, (128, 1 << 16), single)


def classes(count: int, role: int, generation: int, masks: bool, direct: int) -> Records:
    """A row an egress class, through its group of this role; `in_port` is a column of some.

    masks: metadata says of packets from hosts that they are; without, their `in_port` does. direct:
    see `flow_tables.class_numbers`.
    """
    numbers = np.arange(count)
    through = parts.apply_actions(parts.group(_group_column("group", role, count, generation)))
    entering = masks and role in (GroupRole.ENTER, GroupRole.FALLBACK)
    value, mask = class_metadata(numbers, entering, generation, direct)
    metadata = parts.oxm("metadata", parts.column("metadata", value, 8), mask if masks else None)
    if role == GroupRole.TRANSIT:
        return _row(
            (Table.CLASSES, ClassPriority.ANY, RowKind.CLASS), numbers, (metadata,), through
        )
    in_port = parts.oxm("in_port", parts.column("in_port", _zeros(count), 4))
    fields = (metadata,) if entering else (in_port, metadata)
    place = Table.CLASSES, ClassPriority.SOME, RowKind.CLASS
    return _row(place, numbers + (role << ROLE_SHIFT), fields, through)


def groups(
    count: int,
    role: int,
    kind: GroupType,
    kinds: tuple[int, ...],
    generation: int,
    marking: parts.BucketForm,
) -> Records:
    """The groups of a role, one an egress class; the columns of buckets are `parts.bucket_runs`."""
    made: Parts = tuple(
        Column(name, np.zeros((count, run.stop - run.start), form.opaque))
        for name, form, run in parts.bucket_runs(kinds, marking)
    )
    if role == GroupRole.FALLBACK:
        enter = _group_column("enter", GroupRole.ENTER, count, generation)
        made = (*parts.group_bucket(enter), *made)
    group = parts.group_add(_group_column("group", role, count, generation), kind, *made)
    apart = _xids(RowKind.GROUP, np.arange(count) + (role << ROLE_SHIFT))
    return parts.bundled(group, BUNDLE, apart)


def _group_column(name: str, role: int, count: int, generation: int) -> Column:
    first = generation * GROUP_SPACE
    return parts.column(name, first + group_numbers(role, np.arange(count), count), 4)


def _row(
    place: tuple[Table, int, RowKind],
    number: int | NDArray[np.int64],
    fields: tuple[Parts, ...],
    *instructions: Parts,
) -> Records:
    """Rows in the place (table, priority, kind); `number` tells rows of a kind apart."""
    table, priority, kind = place
    message = parts.flow_add(table, priority, cookie(kind), fields, *instructions)
    apart = xid(kind, number) if isinstance(number, int) else _xids(kind, number)
    return parts.bundled(message, BUNDLE, apart)


def _by_length(
    prefixes: Prefixes, row: Callable[[int, Numbers, tuple[Parts, ...]], Records]
) -> Records:
    """Rows of the prefixes in their order, which is by descending length.

    Args:
        prefixes: of one family.
        row: makes those of one length, of that, the numbers of their messages and their match.
    """
    rows = []
    for length in np.unique(prefixes.lengths)[::-1].tolist():
        numbers = np.flatnonzero(prefixes.lengths == length)
        rows.append(row(length, prefixes.first + numbers, prefixes.match(numbers, length)))
    # As opaque bytes: numpy would bring the columns of joined records into this machine's order.
    whole = np.concatenate([row.view(f"V{row.itemsize}") for row in rows])
    return whole.view(rows[0].dtype)


def single_priority(length: int) -> int:
    """The priority of a prefix in the only table; one more where packets come in on some port."""
    return 2 * length


def _hosts(
    fields: tuple[Parts, ...], gateway: int, hosts: int, numbers: tuple[int, int], single: bool
) -> Records:
    """numbers: the length of an address, and the first of the messages."""
    mac = Column("mac", np.zeros((hosts, 6), np.uint8))
    priority, first = numbers
    place = Table.ROUTES, priority, RowKind.HOST
    if single:
        fields = parts.oxm("eth_dst", gateway), *fields
        place = Table.DISPATCH, single_priority(priority), RowKind.HOST
    actions = parts.apply_actions(
        *[parts.dec_ttl()] * single,
        parts.set_field("eth_src", gateway),
        parts.set_field("eth_dst", mac),
        parts.output(_port_column(hosts)),
    )
    return _row(place, first + np.arange(hosts), fields, actions)


def _own(
    columns: tuple[Column, Column],
    question: tuple[Parts, ...],
    field: str,
    first: int,
) -> Records:
    port, address = columns
    fields = (parts.oxm("in_port", port), *question, parts.oxm(field, address))
    place = Table.DISPATCH, FlowPriority.OWN, RowKind.OWN
    return _row(place, first + np.arange(len(port.values)), fields)


def _arp_request() -> tuple[Parts, ...]:
    return parts.oxm("eth_type", ARP), parts.oxm("arp_op", REQUEST)


def _icmpv6(kind: int) -> tuple[Parts, ...]:
    return (
        parts.oxm("eth_type", IPV6),
        parts.oxm("ip_proto", ICMPV6),
        parts.oxm("icmpv6_type", kind),
    )


def _send_back(gateway: int) -> tuple[Parts, ...]:
    return (
        parts.move("eth_src", "eth_dst"),
        parts.set_field("eth_src", gateway),
        parts.output(IN_PORT),
    )


def _port_column(rows: int) -> Column:
    return parts.column("port", _zeros(rows), 4)


def _xids(kind: RowKind, numbers: NDArray[np.int64]) -> Column:
    return parts.column("xid", xid(kind) + numbers, 4)


def _xids_of(block: Block) -> NDArray[np.uint32]:
    xids: NDArray[np.uint32] = heads(block, BUNDLED)["header"]["xid"]
    return xids


def _zeros(*shape: int) -> NDArray[Any]:
    return np.zeros(shape, np.int64)
