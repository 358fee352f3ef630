"""Builds OpenFlow messages from parts: matches, instructions, actions, buckets, bundle-adds.

A part is constant bytes, or a *column*: bytes at one offset that differ from message to message,
such as the port of a host. A `Template` has the bytes of many messages of one kind, and fills their
columns for each switch. `group_and_flow_bytes` calls these functions for the messages of a program,
the controller for messages of its own.

"Bundle" has two meanings on the wire. A *bundle of messages* takes effect in a switch as a whole
(`bundled`, `bundle_control`). A *bundle action* of Open vSwitch chooses one of several ports
(`bundle_ports`, `bundle_load`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow import protocol
from compilers.targets.openflow.protocol import (
    ANY,
    Action,
    Bundle,
    GroupType,
    Instruction,
    MessageType,
    OnfMessage,
    WireLayout,
)

FIRST_UP = 0
"""NX_BD_ALG_ACTIVE_BACKUP: an NXAST_BUNDLE action takes the first port that is up."""
HIGHEST_WEIGHT = 1
"""NX_BD_ALG_HRW: an NXAST_BUNDLE action takes a port by its hash, by highest random weight."""
SYMMETRIC_L3L4_UDP = 3
"""NX_HASH_FIELDS_SYMMETRIC_L3L4_UDP: addresses and ports of both directions hash alike."""
OFPORT = 0x00000002
"""The header of NXM_OF_IN_PORT: the members of a bundle action are port numbers."""
SAME_IN_PORT = 0xFFF8
"""OFPP_IN_PORT of OpenFlow 1.0: the packet keeps the port that it came in on."""
COLUMN_FORMATS = {1: "u1", 2: ">u2", 4: ">u4", 6: "6u1", 8: ">u8", 16: "2>u8"}
"""The numpy format of a column by its number of bytes: MAC addresses have 6, IPv6 addresses 16."""
PORT_TYPE = np.dtype(COLUMN_FORMATS[2])
"""The type of a column of port numbers in Open vSwitch's own actions."""


@dataclass(frozen=True, slots=True)
class Column:
    """A part that differs from message to message."""

    name: str
    """The name by which `Template.filled` takes its values."""
    type: np.dtype[Any]
    """The type of its values."""

    def __len__(self) -> int:
        """How many bytes it has in each message."""
        return self.type.itemsize


Part = bytes | Column
Parts = tuple[Part, ...]
"""The parts of a message or of a structure in it, in the order of the wire."""
Value = int | str
"""A number, or the name of a column of numbers."""
Block = NDArray[np.uint8]
"""uint8[n, L]: n messages of L bytes each."""


class Template:
    """n messages of one kind and length, with columns to fill.

    Args:
        parts: the parts of each message. Columns of one name are filled with the same values.
        count: the number of messages n.
        columns: the values of columns that are the same for every switch.
    """

    def __init__(self, parts: Parts, count: int, **columns: Any) -> None:
        # One message, with zeros in its columns.
        message = b"".join(part if isinstance(part, bytes) else bytes(len(part)) for part in parts)
        names, formats, offsets = list[str](), list[np.dtype[Any]](), list[int]()
        self._fields: dict[str, list[str]] = {}
        """The fields of a message that a column fills, by the column's name."""
        offset = 0
        for part in parts:
            if isinstance(part, Column):
                field = f"{part.name} {offset}"  # one for each place of the column
                self._fields.setdefault(part.name, []).append(field)
                names.append(field)
                formats.append(part.type)
                offsets.append(offset)
            offset += len(part)
        self._dtype = np.dtype(
            {"names": names, "formats": formats, "offsets": offsets, "itemsize": len(message)}
        )
        self.block: Block = np.repeat(block(message), count, axis=0)
        """The messages, with zeros in columns that are not filled."""
        self._fill(self.block, columns)

    def filled(self, rows: Any, **columns: Any) -> Block:
        """Copies of some messages, with values in their columns.

        Args:
            rows: int[m], which of the n messages.
            columns: for each column by name, one value or m values.
        """
        # Messages are copied as bytes: numpy would copy fields one by one, ten times slower.
        copies: Block = self.block.take(rows, axis=0)
        self._fill(copies, columns)
        return copies

    def _fill(self, block: Block, columns: dict[str, Any]) -> None:
        """Write the values of columns into all messages of a block."""
        messages = np.ndarray(len(block), self._dtype, block)
        for name, values in columns.items():
            for field in self._fields[name]:
                messages[field] = values


def mac_bytes(values: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """uint8[n, 6]: MAC addresses as they are on the wire."""
    return np.asarray(values).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]


def size(parts: Parts) -> int:
    """How many bytes some parts have in each message."""
    return sum(map(len, parts))


@lru_cache(1 << 12)
def structure(layout: WireLayout, **members: Value) -> Parts:
    """The parts of a structure with these members, some of them columns; the others are 0.

    Results are cached, as the controller sends many messages with the same structures.
    """
    constants = {name: value for name, value in members.items() if not isinstance(value, str)}
    packed = layout.pack(**constants)
    parts: list[Part] = []
    start = 0
    for name, (dtype, offset, *_) in (layout.dtype.fields or {}).items():
        column = members.get(name)
        if isinstance(column, str):
            parts += [packed[start:offset], Column(column, dtype)]
            start = offset + dtype.itemsize
    return tuple(part for part in (*parts, packed[start:]) if len(part))


def block(message: bytes) -> Block:
    """A block of one message."""
    return np.frombuffer(message, np.uint8)[None, :]


# Fields of matches, and instructions


def oxm(field: str, value: Value, mask: Value | None = None) -> Parts:
    """A field of a match or a set-field action: its header, its value and, if given, its mask."""
    space, number, width = protocol.FIELDS[field]
    has_mask = mask is not None
    header = protocol.OXM.pack(
        space=space,
        field=2 * number + int(has_mask),  # the lowest bit is the flag for a mask
        length=2 * width if has_mask else width,
    )
    dtype = np.dtype(COLUMN_FORMATS[width])
    return header, *(
        Column(part, dtype) if isinstance(part, str) else part.to_bytes(width, "big")
        for part in (value, mask)
        if part is not None
    )


def goto_table(table: int) -> Parts:
    """Instruction: match the packet in another table next."""
    return _sized(protocol.GOTO_TABLE, Instruction.GOTO_TABLE, table=table)


def write_metadata(value: Value, mask: int) -> Parts:
    """Instruction: set the bits of metadata that a mask has to those of a value."""
    return _sized(protocol.WRITE_METADATA, Instruction.WRITE_METADATA, metadata=value, mask=mask)


def apply_actions(*actions: Parts) -> Parts:
    """Instruction: apply these actions at once, in this order."""
    return _sized(protocol.INSTRUCTION, Instruction.APPLY_ACTIONS, *sum(actions, ()))


# Actions


def dec_ttl() -> Parts:
    """Action: decrement the TTL of IPv4, or the hop limit of IPv6."""
    return _sized(protocol.ACTION, Action.DEC_TTL)


def output(port: Value) -> Parts:
    """Action: send the packet out of a port."""
    return _sized(protocol.OUTPUT, Action.OUTPUT, port=port)


def to_controller() -> Parts:
    """Action: send the whole packet to the controller, without a buffer at the switch (§7.2.5)."""
    target = {"port": protocol.CONTROLLER, "most_bytes": protocol.WHOLE_PACKET}
    return _sized(protocol.OUTPUT, Action.OUTPUT, **target)


def group(number: Value) -> Parts:
    """Action: process the packet through a group."""
    return _sized(protocol.GROUP, Action.GROUP, group=number)


def set_field(field: str, value: Value) -> Parts:
    """Action: set a field to a value."""
    body = oxm(field, value)
    padding = _padding(protocol.SET_FIELD.size + size(body))
    return _sized(protocol.SET_FIELD, Action.SET_FIELD, *body, padding)


def reg_move(source: str, target: str) -> Parts:
    """Action: copy one field into another (NXAST_REG_MOVE)."""
    return _nicira(
        protocol.REG_MOVE,
        protocol.REG_MOVE_SUBTYPE,
        bits=protocol.FIELDS[target].size * 8,
        source=_field_header(source),
        target=_field_header(target),
    )


def clear(field: str, first: int, bits: int) -> Parts:
    """Action: set `bits` bits of a field to 0, from bit `first` on (NXAST_REG_LOAD)."""
    return _nicira(protocol.REG_LOAD, protocol.REG_LOAD_SUBTYPE, **_bit_range(field, first, bits))


def multipath(field: str, bits: int, count: int, basis: Value) -> Parts:
    """Action: write a number from 0 to count - 1 into the low bits of a field (NXAST_MULTIPATH).

    The number is a hash of addresses and ports modulo the count (algorithm NX_MP_ALG_MODULO_N, 0).

    Args:
        field: the field.
        bits: how many of its bits are written.
        count: how many numbers there are.
        basis: the seed of the hash.
    """
    return _nicira(
        protocol.MULTIPATH,
        protocol.MULTIPATH_SUBTYPE,
        fields=SYMMETRIC_L3L4_UDP,
        basis=basis,
        most=count - 1,
        **_bit_range(field, 0, bits),
    )


def resubmit(table: int) -> Parts:
    """Action: look the packet up in a table, with its present fields (NXAST_RESUBMIT_TABLE)."""
    members = {"in_port": SAME_IN_PORT, "table": table}
    return _nicira(protocol.RESUBMIT, protocol.RESUBMIT_SUBTYPE, **members)


def bundle_load(port: Value, field: str, bits: int) -> Parts:
    """Action: write a port, or all ones while it is down, into a field (NXAST_BUNDLE_LOAD).

    Args:
        port: the port.
        field: the field.
        bits: how many of its low bits are written.
    """
    number = port.to_bytes(2, "big") if isinstance(port, int) else Column(port, PORT_TYPE)
    return _nicira(
        protocol.BUNDLE_ACTION,
        protocol.BUNDLE_LOAD_SUBTYPE,
        number,
        _padding(PORT_TYPE.itemsize),
        algorithm=FIRST_UP,
        fields=SYMMETRIC_L3L4_UDP,
        members=OFPORT,
        member_count=1,
        **_bit_range(field, 0, bits),
    )


def port_column(name: str, count: int) -> Column:
    """A column of so many port numbers in each message."""
    return Column(name, np.dtype((PORT_TYPE, (count,))))


def bundle_ports(ports: NDArray[Any] | Column, basis: Value) -> Parts:
    """Action: send the packet to one of the ports that are up, by a hash (NXAST_BUNDLE).

    Every port gets the same share. When a port goes down, its flows are spread over the others, and
    no other flow moves (highest random weight: Thaler and Ravishankar, 1998).

    Args:
        ports: int[n], the ports, or a column of them (`port_column`).
        basis: the seed of the hash, of 16 bits.
    """
    numbers = ports if isinstance(ports, Column) else _port_bytes(ports)
    return _nicira(
        protocol.BUNDLE_ACTION,
        protocol.BUNDLE_SUBTYPE,
        numbers,
        _padding(len(numbers)),
        algorithm=HIGHEST_WEIGHT,
        fields=SYMMETRIC_L3L4_UDP,
        basis=basis,
        members=OFPORT,
        member_count=len(numbers) // PORT_TYPE.itemsize,
    )


def _port_bytes(ports: NDArray[Any]) -> bytes:
    """The numbers of ports, as they are on the wire."""
    return np.asarray(ports).astype(PORT_TYPE).tobytes()


def _field_header(field: str) -> int:
    """The header of a field without a mask, as Open vSwitch's own actions name the field."""
    space, number = protocol.MOVABLE[field]
    # As in OXM: class, field, a bit for a mask, which is 0, and the length in bytes.
    return space << 16 | number << 9 | protocol.FIELDS[field].size


def _bit_range(field: str, first: int, bits: int) -> dict[str, int]:
    """The members of an action that say which bits of a field it writes (`protocol.REG_LOAD`)."""
    return {"place": first << 6 | bits - 1, "target": _field_header(field)}


def _padding(size: int) -> bytes:
    """The zeros behind so many bytes that make them a multiple of 8."""
    return bytes(protocol.padded(size) - size)


def _nicira(layout: WireLayout, subtype: int, *rest: Part, **members: Value) -> Parts:
    """An action of Open vSwitch's own, with `rest` behind its structure."""
    experimenter = {"experimenter": protocol.NICIRA, "subtype": subtype}
    return _sized(layout, Action.EXPERIMENTER, *rest, **experimenter, **members)


def _sized(layout: WireLayout, kind: int, *rest: Part, **members: Value) -> Parts:
    """An instruction or action with `rest` behind its structure; its length counts both."""
    length = layout.size + size(rest)
    return (*structure(layout, type=kind, length=length, **members), *rest)


# Buckets


def bucket(*actions: Parts) -> Template:
    """A bucket that applies these actions and sends the packet to a port.

    Its columns are `weight`, `output`, the port, and `watched`, the port that has to be up; where
    that is not filled, the bucket watches no port.
    """
    all_actions = (*sum(actions, ()), *output("output"))
    length = protocol.BUCKET.size + size(all_actions)
    head = structure(
        protocol.BUCKET, length=length, weight="weight", watch_port="watched", watch_group=ANY
    )
    return Template((*head, *all_actions), 1, watched=ANY)


PLAIN_BUCKET = bucket()
"""A bucket that only sends packets to a port."""


def bucket_runs(
    marks: Sequence[bool], marking: Template = PLAIN_BUCKET
) -> Iterator[tuple[str, Template, slice]]:
    """The buckets of a group, in runs of equal templates: numpy fills each run as one column.

    Args:
        marks: for each bucket whether it marks packets.
        marking: the template of buckets that do.

    Yields:
        The name of the column, the template of its buckets, and which buckets are in the run. With
        marks (False, True, True) these are `buckets 0` with bucket 0, and `buckets 1` with 1 and 2.
    """
    start = 0
    for marked, run in groupby(marks):
        end = start + len(list(run))
        yield f"buckets {start}", marking if marked else PLAIN_BUCKET, slice(start, end)
        start = end


def buckets(
    template: Template,
    port: NDArray[Any],
    output: NDArray[Any],
    weight: NDArray[Any],
    watched: bool,
) -> NDArray[np.void]:
    """The B buckets of each of n groups, as one value of a column.

    Args:
        template: the template of a bucket.
        port: int[n, B], the port that each bucket watches.
        output: int[n, B], the port to which it sends.
        weight: int[n, B], its weight.
        watched: whether a bucket is used only while its port is up.
    """
    watched_ports = {"watched": port.ravel()} if watched else {}
    only_row = np.zeros(port.size, np.int64)  # the template has one bucket
    filled = template.filled(
        only_row, output=output.ravel(), weight=weight.ravel(), **watched_ports
    )
    dtype = bucket_column("", template, port.shape[1]).type
    return filled.reshape(len(port), dtype.itemsize).view(dtype)[:, 0]


def bucket_column(name: str, template: Template, count: int) -> Column:
    """A column of several buckets in a row, as bytes that numpy copies at once."""
    return Column(name, np.dtype(f"V{template.block.size * count}"))


def group_bucket(number: str) -> Parts:
    """A bucket that processes packets through another group while one of its buckets is live."""
    action = group(number)
    length = protocol.BUCKET.size + size(action)
    head = structure(protocol.BUCKET, length=length, watch_port=ANY, watch_group=number)
    return (*head, *action)


# Messages


@dataclass(frozen=True, slots=True)
class Message:
    """A message without its header."""

    type: MessageType
    """The type in the header."""
    body: Parts
    """All that follows the header."""


def flow_add(
    table: int, priority: Value, cookie: int, fields: tuple[Parts, ...], *instructions: Parts
) -> Message:
    """Flow-mod that adds a row without timeouts; fields follow their prerequisites."""
    match = sum(fields, ())
    length = protocol.MATCH.size + size(match)
    head = structure(
        protocol.FLOW_MOD,
        cookie=cookie,
        table=table,
        priority=priority,
        buffer=ANY,
        out_port=ANY,
        out_group=ANY,
        match_type=protocol.OXM_MATCH,
        match_length=length,
    )
    padding = _padding(length)
    return Message(MessageType.FLOW_MOD, (*head, *match, padding, *sum(instructions, ())))


def group_add(number: Value, group_type: GroupType, *all_buckets: Part) -> Message:
    """Group-mod that adds a group of these buckets."""
    head = structure(protocol.GROUP_MOD, type=group_type, group=number)
    return Message(MessageType.GROUP_MOD, (*head, *all_buckets))


def packet_out(in_port: int, port: Value, packet: Parts) -> Message:
    """Packet-out of a packet that leaves by `port` as if it had come in on `in_port`."""
    action = output(port)
    head = structure(protocol.PACKET_OUT, buffer=ANY, in_port=in_port, actions_length=size(action))
    return Message(MessageType.PACKET_OUT, (*head, *action, *packet))


def unbundled(message: Message, xid: int, count: int, **columns: Any) -> Template:
    """`count` messages with their headers, all with one xid, outside of any bundle."""
    return Template(_with_header(message, xid), count, **columns)


def bundled(message: Message, bundle_number: int, xid: Any, **columns: Any) -> Template:
    """Messages, each wrapped in a bundle-add; wrapper and message have the same xid.

    Args:
        message: the message.
        bundle_number: the number of the bundle.
        xid: the xid of each message, int[n], or of the only one.
        columns: the values of columns that are the same for every switch.
    """
    add = protocol.BUNDLE_ADD.pack(**_bundle_members(OnfMessage.BUNDLE_ADD, bundle_number))
    wrapper = Message(MessageType.EXPERIMENTER, (add, *_with_header(message, "xid")))
    return Template(_with_header(wrapper, "xid"), np.size(xid), xid=xid, **columns)


def bundle_control(request: Bundle, bundle_number: int, xid: int) -> bytes:
    """The message that opens, commits or discards a bundle (ONF extension 230)."""
    members = _bundle_members(OnfMessage.BUNDLE_CONTROL, bundle_number)
    body = protocol.BUNDLE_CONTROL.pack(request=request, **members)
    return protocol.message(MessageType.EXPERIMENTER, xid, body)


def _bundle_members(kind: OnfMessage, bundle_number: int) -> dict[str, int]:
    """The members of a message about a bundle whose messages take effect in order, all or none."""
    flags = protocol.ORDERED_ATOMIC
    return {"experimenter": protocol.ONF, "kind": kind, "bundle": bundle_number, "flags": flags}


def _with_header(message: Message, xid: Value) -> Parts:
    """The parts of a message with its header."""
    length = protocol.HEADER.size + size(message.body)
    head = {"version": protocol.VERSION, "type": message.type, "length": length, "xid": xid}
    return (*structure(protocol.HEADER, **head), *message.body)
