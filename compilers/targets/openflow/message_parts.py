"""Messages from parts, many of a kind at once: matches, instructions, actions, buckets, wrappers.

A message is a tuple of parts: constant bytes, and columns, which differ from message to message. A
`Template` has them as bytes; its columns are filled for every switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
"""NX_BD_ALG_ACTIVE_BACKUP, of NXAST_BUNDLE as the next three."""
HIGHEST_WEIGHT = 1
"""NX_BD_ALG_HRW."""
SYMMETRIC_L3L4_UDP = 3
"""NX_HASH_FIELDS_SYMMETRIC_L3L4_UDP."""
OFPORT = 0x00000002
"""The header of NXM_OF_IN_PORT."""
SAME_IN_PORT = 0xFFF8
"""OFPP_IN_PORT of OpenFlow 1.0: the packet keeps the port that it came in on."""
WIDE = {1: "u1", 2: ">u2", 4: ">u4", 6: "6u1", 8: ">u8", 16: "2>u8"}
"""What fills columns of so many bytes."""
U2 = np.dtype(WIDE[2])


@dataclass(frozen=True, slots=True)
class Column:
    """A part that differs from message to message: its name, and the type of its values."""

    name: str
    type: np.dtype[Any]

    def __len__(self) -> int:
        """Its bytes in each message."""
        return self.type.itemsize


Part = bytes | Column
Parts = tuple[Part, ...]
Value = int | str
"""A number, or the name of a column of them."""
Block = NDArray[np.uint8]
"""uint8[n, L]: n messages of L bytes each."""


class Template:
    """n messages of one length, and where their columns are; several may have one name.

    block: the messages, with 0 in columns that are not filled.
    """

    def __init__(self, parts: Parts, count: int, **columns: Any) -> None:
        whole = b"".join(part if isinstance(part, bytes) else bytes(len(part)) for part in parts)
        names, formats, offsets = list[str](), list[np.dtype[Any]](), list[int]()
        self._fields: dict[str, list[str]] = {}
        """By the name of a column, the fields of a message that it fills."""
        offset = 0
        for part in parts:
            if isinstance(part, Column):
                field = f"{part.name} {offset}"
                self._fields.setdefault(part.name, []).append(field)
                names.append(field)
                formats.append(part.type)
                offsets.append(offset)
            offset += len(part)
        self._dtype = np.dtype(
            {"names": names, "formats": formats, "offsets": offsets, "itemsize": len(whole)}
        )
        self.block: Block = np.repeat(block(whole), count, axis=0)
        self._fill(self.block, columns)

    def filled(self, rows: Any, **columns: Any) -> Block:
        """The messages `rows`, an index array, with these columns filled."""
        # Whole messages are copied, as bytes: numpy copies fields one by one, ten times slower.
        whole: Block = self.block.take(rows, axis=0)
        self._fill(whole, columns)
        return whole

    def _fill(self, whole: Block, columns: dict[str, Any]) -> None:
        messages = np.ndarray(len(whole), self._dtype, whole)
        for name, values in columns.items():
            for field in self._fields[name]:
                messages[field] = values


def mac_bytes(values: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """uint8[n, 6]: MAC addresses as they are on the wire."""
    return np.asarray(values).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]


def size(parts: Parts) -> int:
    """Bytes of one message."""
    return sum(map(len, parts))


def structure(layout: WireLayout, **members: Value) -> Parts:
    """A structure with these members, some of them columns; the others are 0."""
    whole = layout.pack(**{k: v for k, v in members.items() if not isinstance(v, str)})
    parts: list[Part] = []
    start = 0
    for name, (kind, place, *_) in (layout.dtype.fields or {}).items():
        if isinstance(column := members.get(name), str):
            parts += [whole[start:place], Column(column, kind)]
            start = place + kind.itemsize
    return tuple(part for part in (*parts, whole[start:]) if len(part))


def block(message: bytes) -> Block:
    """One message."""
    return np.frombuffer(message, np.uint8)[None, :]


# Fields of matches, and instructions


def oxm(field: str, value: Value, mask: Value | None = None) -> Parts:
    """One field of a match or a set-field action."""
    space, number, width = protocol.FIELDS[field]
    masked = mask is not None
    head = protocol.OXM.pack(space=space, field=number << 1 | masked, length=width << masked)
    kind = np.dtype(WIDE[width])
    return head, *(
        Column(part, kind) if isinstance(part, str) else part.to_bytes(width, "big")
        for part in (value, mask)
        if part is not None
    )


def goto_table(table: int) -> Parts:
    """Instruction: go on in `table`."""
    return _sized(protocol.GOTO_TABLE, Instruction.GOTO_TABLE, table=table)


def write_metadata(value: Value, mask: int) -> Parts:
    """Instruction: metadata = value under `mask`."""
    return _sized(protocol.WRITE_METADATA, Instruction.WRITE_METADATA, metadata=value, mask=mask)


def apply_actions(*actions: Parts) -> Parts:
    """Instruction: do these actions, in order, now."""
    return _sized(protocol.INSTRUCTION, Instruction.APPLY_ACTIONS, *sum(actions, ()))


# Actions


def dec_ttl() -> Parts:
    """Action: one less to live."""
    return _sized(protocol.ACTION, Action.DEC_TTL)


def output(port: Value) -> Parts:
    """Action: out of a port."""
    return _sized(protocol.OUTPUT, Action.OUTPUT, port=port)


def to_controller() -> Parts:
    """Action: the whole packet to the controller, not kept at the switch (§7.2.5)."""
    target = {"port": protocol.CONTROLLER, "most_bytes": protocol.WHOLE_PACKET}
    return _sized(protocol.OUTPUT, Action.OUTPUT, **target)


def group(number: Value) -> Parts:
    """Action: through a group."""
    return _sized(protocol.GROUP, Action.GROUP, group=number)


def set_field(field: str, value: Value) -> Parts:
    """Action: field = value."""
    body = oxm(field, value)
    rest = bytes(-(protocol.SET_FIELD.size + size(body)) % 8)
    return _sized(protocol.SET_FIELD, Action.SET_FIELD, *body, rest)


def move(source: str, target: str) -> Parts:
    """Action: copy one field into another (NXAST_REG_MOVE)."""
    return _nicira(
        protocol.REG_MOVE,
        protocol.REG_MOVE_SUBTYPE,
        bits=protocol.FIELDS[target].size * 8,
        source=_moved(source),
        target=_moved(target),
    )


def clear(field: str, first: int, bits: int) -> Parts:
    """Action: so many bits of a field from the `first` on become 0 (NXAST_REG_LOAD)."""
    return _nicira(protocol.REG_LOAD, protocol.REG_LOAD_SUBTYPE, **_bits(field, first, bits))


def draw(field: str, bits: int, count: int, basis: Value) -> Parts:
    """Action: a number from 0 to count - 1 into the low bits of a field (NXAST_MULTIPATH).

    It is a hash of addresses and ports, modulo the count: the algorithm of number 0.
    """
    return _nicira(
        protocol.MULTIPATH,
        protocol.MULTIPATH_SUBTYPE,
        fields=SYMMETRIC_L3L4_UDP,
        basis=basis,
        most=count - 1,
        **_bits(field, 0, bits),
    )


def look_up_again(table: int) -> Parts:
    """Action: through a table, as what the packet is by now (NXAST_RESUBMIT_TABLE)."""
    members = {"in_port": SAME_IN_PORT, "table": table}
    return _nicira(protocol.RESUBMIT, protocol.RESUBMIT_SUBTYPE, **members)


def port_if_up(port: Value, field: str, bits: int) -> Parts:
    """Action: a port into the low bits of a field, all ones while it is down (NXAST_BUNDLE_LOAD).

    port: a number, or a column of them.
    """
    rest = bytes(6)
    number = (port.to_bytes(2, "big"),) if isinstance(port, int) else (Column(port, U2),)
    return _nicira(
        protocol.BUNDLE_ACTION,
        protocol.BUNDLE_LOAD_SUBTYPE,
        *number,
        rest,
        algorithm=FIRST_UP,
        fields=SYMMETRIC_L3L4_UDP,
        members=OFPORT,
        member_count=1,
        **_bits(field, 0, bits),
    )


def bundle_ports(ports: NDArray[Any], basis: int) -> Parts:
    """Action: to one of the ports that are up, by a hash of addresses and ports (NXAST_BUNDLE).

    Each gets the same part, and the flows of one that goes down are dealt to the others (highest
    random weight: Thaler and Ravishankar, 1998).

    Args:
        ports: int[n], of one message.
        basis: of the hash, 16 bits.
    """
    numbers = np.asarray(ports).astype(">u2").tobytes()
    return _nicira(
        protocol.BUNDLE_ACTION,
        protocol.BUNDLE_SUBTYPE,
        numbers + bytes(-len(numbers) % 8),
        algorithm=HIGHEST_WEIGHT,
        fields=SYMMETRIC_L3L4_UDP,
        basis=basis,
        members=OFPORT,
        member_count=len(ports),
    )


def _moved(field: str) -> int:
    """The header of a field without a mask, as one number."""
    space, number = protocol.MOVABLE[field]
    return space << 16 | number << 9 | protocol.FIELDS[field].size


def _bits(field: str, first: int, bits: int) -> dict[str, int]:
    """The members that name bits of a field which an action writes."""
    return {"place": first << 6 | bits - 1, "target": _moved(field)}


def _nicira(layout: WireLayout, subtype: int, *rest: Part, **members: Value) -> Parts:
    """An action of Open vSwitch's own."""
    head = {"experimenter": protocol.NICIRA, "subtype": subtype}
    return _sized(layout, Action.EXPERIMENTER, *rest, **head, **members)


def _sized(layout: WireLayout, kind: int, *rest: Part, **members: Value) -> Parts:
    """An instruction or action of this type, with `rest` behind it, and the length of it all."""
    length = layout.size + size(rest)
    return (*structure(layout, type=kind, length=length, **members), *rest)


# Buckets


def bucket(*actions: Parts) -> Template:
    """A bucket with an output and, before it, these actions. Columns: weight, watched, output.

    watched: the port that has to be up; any, if that is not filled.
    """
    done = (*sum(actions, ()), *output("output"))
    length = protocol.BUCKET.size + size(done)
    head = structure(
        protocol.BUCKET, length=length, weight="weight", watch_port="watched", watch_group=ANY
    )
    return Template((*head, *done), 1, watched=ANY)


PLAIN_BUCKET = bucket()


def bucket_runs(
    marks: Sequence[bool], marking: Template = PLAIN_BUCKET
) -> Iterator[tuple[str, Template, slice]]:
    """The buckets of a group in runs of one form, each with the name of its column.

    Args:
        marks: which of the buckets mark packets.
        marking: the form of those.
    """
    start = 0
    for marked, run in groupby(marks):
        end = start + len(list(run))
        yield f"buckets {start}", marking if marked else PLAIN_BUCKET, slice(start, end)
        start = end


def buckets(
    form: Template, port: NDArray[Any], output: NDArray[Any], weight: NDArray[Any], watched: bool
) -> NDArray[np.void]:
    """The B buckets of each of n groups, as one value.

    Args:
        form: the template of a bucket.
        port: int[n, B], the port that each bucket watches.
        output: int[n, B], the port to which it sends.
        weight: int[n, B], its weight.
        watched: whether a bucket is used only while its port is up.
    """
    watch = {"watched": port.ravel()} if watched else {}
    rows = np.zeros(port.size, np.int64)
    buckets = form.filled(rows, output=output.ravel(), weight=weight.ravel(), **watch)
    kind = bucket_column("", form, port.shape[1]).type
    return buckets.reshape(len(port), kind.itemsize).view(kind)[:, 0]


def bucket_column(name: str, form: Template, count: int) -> Column:
    """The place of so many buckets, without their members: numpy copies them as one."""
    return Column(name, np.dtype(f"V{form.block.size * count}"))


def group_bucket(number: str) -> Parts:
    """A bucket that leads through another group, while a bucket of that is alive."""
    action = group(number)
    length = protocol.BUCKET.size + size(action)
    head = structure(protocol.BUCKET, length=length, watch_port=ANY, watch_group=number)
    return (*head, *action)


# Messages


@dataclass(frozen=True, slots=True)
class Message:
    """A message without its header."""

    type: MessageType
    body: Parts


def flow_add(
    table: int, priority: Value, cookie: int, fields: tuple[Parts, ...], *instructions: Parts
) -> Message:
    """Flow-mod that adds a row, without timeouts; fields of its match, prerequisites first."""
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
    rest = bytes(-length % 8)
    return Message(MessageType.FLOW_MOD, (*head, *match, rest, *sum(instructions, ())))


def group_add(number: Value, kind: GroupType, *buckets: Part) -> Message:
    """Group-mod that adds a group of these buckets."""
    head = structure(protocol.GROUP_MOD, type=kind, group=number)
    return Message(MessageType.GROUP_MOD, (*head, *buckets))


def packet_out(in_port: int, port: Value, packet: Parts) -> Message:
    """Packet-out of a packet that leaves by `port` as if it had come in on `in_port`."""
    action = output(port)
    head = structure(protocol.PACKET_OUT, buffer=ANY, in_port=in_port, actions_length=size(action))
    return Message(MessageType.PACKET_OUT, (*head, *action, *packet))


def unbundled(message: Message, xid: int, count: int, **columns: Any) -> Template:
    """The messages with their headers, all of one xid."""
    return Template(_with_header(message, xid), count, **columns)


def bundled(message: Message, number: int, xid: Any, **columns: Any) -> Template:
    """The messages, each wrapped in an add to bundle `number`; wrapper and message share the xid.

    xid: of each, int[n], or of the only one.
    """
    add = protocol.BUNDLE_ADD.pack(**_of_bundle(OnfMessage.BUNDLE_ADD, number))
    whole = Message(MessageType.EXPERIMENTER, (add, *_with_header(message, "xid")))
    return Template(_with_header(whole, "xid"), np.size(xid), xid=xid, **columns)


def bundle(request: Bundle, number: int, xid: int) -> bytes:
    """Open, commit or drop bundle `number`: its messages in their order, or none (ext. 230)."""
    control = _of_bundle(OnfMessage.BUNDLE_CONTROL, number)
    body = protocol.BUNDLE_CONTROL.pack(request=request, **control)
    return protocol.message(MessageType.EXPERIMENTER, xid, body)


def _of_bundle(kind: OnfMessage, number: int) -> dict[str, int]:
    flags = protocol.ORDERED_ATOMIC
    return {"experimenter": protocol.ONF, "kind": kind, "bundle": number, "flags": flags}


def _with_header(message: Message, xid: Value) -> Parts:
    length = protocol.HEADER.size + size(message.body)
    head = {"version": protocol.VERSION, "type": message.type, "length": length, "xid": xid}
    return (*structure(protocol.HEADER, **head), *message.body)
