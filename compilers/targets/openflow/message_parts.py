"""Messages from parts, many of a kind at once: matches, instructions, actions, buckets, wrappers.

A message is a tuple of parts: constant bytes, and columns that differ from message to message.
`records` lays them out as one structured array, a message per element; its columns can then be
filled again for every switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod
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
    Layout,
    MessageType,
    OnfMessage,
    packed,
)

HIGHEST_WEIGHT, SYMMETRIC_L3L4_UDP, OFPORT = 1, 3, 0x00000002
"""Of NXAST_BUNDLE: NX_BD_ALG_HRW; NX_HASH_FIELDS_SYMMETRIC_L3L4_UDP; NXM_OF_IN_PORT's header."""


@dataclass(frozen=True, slots=True)
class Column:
    """A part that differs from message to message: big-endian values[n] or [n, k], and a name."""

    name: str
    values: NDArray[Any]

    def __len__(self) -> int:
        """Its bytes in each message."""
        return self.values.dtype.itemsize * prod(self.values.shape[1:])


Part = bytes | Column
Parts = tuple[Part, ...]
Block = NDArray[np.uint8]
"""uint8[n, L]: n messages of L bytes each."""


def column(name: str, values: NDArray[Any], size: int) -> Column:
    """A column of unsigned numbers of 2, 4 or 8 bytes each."""
    return Column(name, np.asarray(values).astype(f">u{size}"))


def mac_bytes(values: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """uint8[n, 6]: MAC addresses as they stand on the wire."""
    return np.asarray(values).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]


def size(parts: Parts) -> int:
    """Bytes of one message."""
    return sum(map(len, parts))


def structure(layout: Layout, **members: Any) -> Parts:
    """A structure with these members, some of them columns; the others are 0."""
    whole = packed(layout, **{k: v for k, v in members.items() if not isinstance(v, Column)})
    fields: Mapping[str, Any] = layout.fields or {}
    parts: list[Part] = []
    start = 0
    for name in layout.names or ():
        if isinstance(part := members.get(name), Column):
            place = int(fields[name][1])
            parts += [whole[start:place], part]
            start = place + len(part)
    return tuple(part for part in (*parts, whole[start:]) if len(part))


def records(parts: Parts) -> NDArray[np.void]:
    """The messages as a structured array [n] whose fields are the columns, by name.

    n is the length of the columns, 1 when there is none; tobytes() gives what goes on the wire.
    """
    fields: list[Any] = []
    for place, part in enumerate(parts):
        if isinstance(part, bytes):
            fields.append((f"bytes {place}", f"V{len(part)}"))
        else:
            fields.append((part.name, part.values.dtype, part.values.shape[1:]))
    rows = next((len(part.values) for part in parts if isinstance(part, Column)), 1)
    table = np.zeros(rows, np.dtype(fields))
    for (name, *_), part in zip(fields, parts, strict=True):
        table[name] = np.void(part) if isinstance(part, bytes) else part.values
    return table


def filled(table: NDArray[np.void], rows: Any, **columns: Any) -> Block:
    """The messages `rows` (an index array) of `table`, with these columns filled."""
    # Whole messages are copied, as bytes: numpy copies fields one by one, ten times slower.
    whole: Block = np.ndarray((len(table), table.itemsize), np.uint8, table).take(rows, axis=0)
    fields = np.ndarray(len(whole), table.dtype, whole)
    for name, values in columns.items():
        fields[name] = values
    return whole


def block(message: bytes) -> Block:
    """One message."""
    return np.frombuffer(message, np.uint8)[None, :]


# Fields of matches, and instructions


def oxm(field: str, value: int | Column, mask: int | None = None) -> Parts:
    """One field of a match or a set-field action."""
    space, number, width = protocol.FIELDS[field]
    masked = mask is not None
    members = {"class": space, "field": number << 1 | masked, "length": width << masked}
    part = value.to_bytes(width, "big") if isinstance(value, int) else value
    head = packed(protocol.OXM, **members)
    return (head, part) if mask is None else (head, part, mask.to_bytes(width, "big"))


def goto_table(table: int) -> Parts:
    """Instruction: go on in `table`."""
    return _sized(protocol.GOTO_TABLE, Instruction.GOTO_TABLE, table=table)


def write_metadata(value: int | Column, mask: int) -> Parts:
    """Instruction: metadata = value, 8 bytes, under `mask`."""
    return _sized(protocol.WRITE_METADATA, Instruction.WRITE_METADATA, metadata=value, mask=mask)


def apply_actions(*actions: Parts) -> Parts:
    """Instruction: do these actions, in order, now."""
    return _sized(protocol.INSTRUCTION, Instruction.APPLY_ACTIONS, *sum(actions, ()))


# Actions


def dec_ttl() -> Parts:
    """Action: one less to live."""
    return _sized(protocol.ACTION, Action.DEC_TTL)


def output(port: int | Column) -> Parts:
    """Action: out of a port (4 bytes)."""
    return _sized(protocol.OUTPUT, Action.OUTPUT, port=port)


def to_controller() -> Parts:
    """Action: the whole packet to the controller, not kept at the switch (§7.2.5)."""
    target = {"port": protocol.CONTROLLER, "most_bytes": protocol.WHOLE_PACKET}
    return _sized(protocol.OUTPUT, Action.OUTPUT, **target)


def group(number: Column) -> Parts:
    """Action: through a group (4 bytes)."""
    return _sized(protocol.GROUP, Action.GROUP, group=number)


def set_field(field: str, value: int | Column) -> Parts:
    """Action: field = value."""
    body = oxm(field, value)
    rest = bytes(-(protocol.SET_FIELD.itemsize + size(body)) % 8)
    return _sized(protocol.SET_FIELD, Action.SET_FIELD, *body, rest)


def move(source: str, target: str, skipped: int = 0) -> Parts:
    """Action: copy one field into another, shifted down by so many bits (NXAST_REG_MOVE)."""
    return _sized(
        protocol.REG_MOVE,
        Action.EXPERIMENTER,
        experimenter=protocol.NICIRA,
        subtype=protocol.REG_MOVE_SUBTYPE,
        bits=protocol.FIELDS[target][2] * 8 - skipped,
        source_offset=skipped,
        source=_moved(source),
        target=_moved(target),
    )


def clear_first_bit(field: str) -> Parts:
    """Action: take the highest bit away from a field (NXAST_REG_LOAD)."""
    return _sized(
        protocol.REG_LOAD,
        Action.EXPERIMENTER,
        experimenter=protocol.NICIRA,
        subtype=protocol.REG_LOAD_SUBTYPE,
        place=protocol.FIELDS[field][2] * 8 - 1 << 6,
        target=_moved(field),
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
    return _sized(
        protocol.BUNDLE_ACTION,
        Action.EXPERIMENTER,
        numbers + bytes(-len(numbers) % 8),
        experimenter=protocol.NICIRA,
        subtype=protocol.BUNDLE_SUBTYPE,
        algorithm=HIGHEST_WEIGHT,
        fields=SYMMETRIC_L3L4_UDP,
        basis=basis,
        members=OFPORT,
        count=len(ports),
    )


def halve_ttl() -> Parts:
    """Actions: half of the TTL of IPv4, of the hop limit of IPv6; they are the same field."""
    return *move("nw_ttl", "nw_ttl", skipped=1), *clear_first_bit("nw_ttl")


def _moved(field: str) -> tuple[int, int, int]:
    space, number = protocol.MOVABLE[field]
    return space, number << 1, protocol.FIELDS[field][2]


def _sized(layout: Layout, kind: int, *rest: Part, **members: Any) -> Parts:
    """An instruction or action of this type, with `rest` behind it, and the length of it all."""
    length = layout.itemsize + size(rest)
    return (*structure(layout, type=kind, length=length, **members), *rest)


# Buckets


@dataclass(frozen=True, slots=True, eq=False)
class BucketForm:
    """A bucket with an output and, before it, actions that are the same in all."""

    layout: Layout
    blank: np.void

    @classmethod
    def after(cls, *actions: Parts) -> BucketForm:
        """The form with these actions."""
        before = b"".join(part for part in sum(actions, ()) if isinstance(part, bytes))
        members = [("before", f"V{len(before)}")] * bool(before)
        layout = np.dtype([*protocol.BUCKET.descr, *members, ("action", protocol.OUTPUT)])
        made = packed(
            layout,
            length=layout.itemsize,
            watch_port=ANY,
            watch_group=ANY,
            action=(Action.OUTPUT, protocol.OUTPUT.itemsize, 0, 0, b""),
            **{"before": np.void(before)} if before else {},
        )
        return cls(layout, np.void(made))

    @property
    def opaque(self) -> np.dtype[np.void]:
        """The bucket without its members: numpy copies it as one, ten times faster."""
        return self.blank.dtype

    def made(
        self, port: NDArray[Any], output: NDArray[Any], weight: NDArray[Any], watched: bool
    ) -> NDArray[np.void]:
        """Buckets [n, B]: to `output`, int[n, B]; if watched, while `port`, int[n, B], is up."""
        result: NDArray[np.void] = np.full(port.shape, self.blank)
        bucket = result.view(self.layout)
        bucket["weight"], bucket["action"]["port"] = weight, output
        if watched:
            bucket["watch_port"] = port
        return result


PLAIN_BUCKET, HALVING_BUCKET = BucketForm.after(), BucketForm.after(halve_ttl())


def bucket_runs(
    kinds: Sequence[int], marking: BucketForm = PLAIN_BUCKET
) -> Iterator[tuple[str, BucketForm, slice]]:
    """The buckets of a group in runs of one form, each with the name of its column.

    Args:
        kinds: of the buckets, of `class_groups.BucketKind`.
        marking: the form of those that mark packets.
    """
    start, forms = 0, (PLAIN_BUCKET, HALVING_BUCKET, marking)
    for kind, run in groupby(kinds):
        end = start + len(list(run))
        yield f"buckets {start}", forms[kind], slice(start, end)
        start = end


def group_bucket(number: Column) -> Parts:
    """A bucket that leads through another group (4 bytes), while a bucket of that is alive."""
    watch, action = replace(number, name=f"watched {number.name}"), group(number)
    length = protocol.BUCKET.itemsize + size(action)
    head = structure(protocol.BUCKET, length=length, watch_port=ANY, watch_group=watch)
    return (*head, *action)


# Messages


@dataclass(frozen=True, slots=True)
class Message:
    """A message without its header."""

    type: MessageType
    body: Parts


def flow_add(
    table: int, priority: int, cookie: int, fields: tuple[Parts, ...], *instructions: Parts
) -> Message:
    """Flow-mod that adds a row, without timeouts; fields of its match, prerequisites first."""
    match = sum(fields, ())
    length = protocol.MATCH.itemsize + size(match)
    head = structure(
        protocol.FLOW_MOD,
        cookie=cookie,
        table=table,
        priority=priority,
        buffer=ANY,
        out_port=ANY,
        out_group=ANY,
        match=(protocol.OXM_MATCH, length),
    )
    rest = bytes(-length % 8)
    return Message(MessageType.FLOW_MOD, (*head, *match, rest, *sum(instructions, ())))


def group_add(number: Column, kind: GroupType, *buckets: Part) -> Message:
    """Group-mod that adds a group of these buckets."""
    head = structure(protocol.GROUP_MOD, type=kind, group=number)
    return Message(MessageType.GROUP_MOD, (*head, *buckets))


def packet_out(in_port: int, port: Column, packet: Parts) -> Message:
    """Packet-out of a packet that leaves by `port` as if it had come in on `in_port`."""
    action = output(port)
    head = structure(protocol.PACKET_OUT, buffer=ANY, in_port=in_port, actions_length=size(action))
    return Message(MessageType.PACKET_OUT, (*head, *action, *packet))


def unbundled(message: Message, xid: int) -> NDArray[np.void]:
    """The messages with their headers, all of one xid."""
    return records(_with_header(message, xid))


def bundle(request: Bundle, number: int, xid: int) -> bytes:
    """Open, commit or drop bundle `number`: its messages in their order, or none (ext. 230)."""
    control = _of_bundle(OnfMessage.BUNDLE_CONTROL, number)
    body = packed(protocol.BUNDLE_CONTROL, request=request, **control)
    return protocol.message(MessageType.EXPERIMENTER, xid, body)


def bundled(message: Message, number: int, xid: int | Column) -> NDArray[np.void]:
    """The messages, each wrapped in an add to bundle `number`; wrapper and message share the xid.

    An xid column stands in the fields `xid` and `inner xid`.
    """
    inner = replace(xid, name=f"inner {xid.name}") if isinstance(xid, Column) else xid
    add = packed(protocol.BUNDLE_ADD, **_of_bundle(OnfMessage.BUNDLE_ADD, number))
    whole = (add, *_with_header(message, inner))
    return records(_with_header(Message(MessageType.EXPERIMENTER, whole), xid))


def _of_bundle(kind: OnfMessage, number: int) -> dict[str, int]:
    return {
        "experimenter": protocol.ONF,
        "kind": kind,
        "bundle": number,
        "flags": protocol.ORDERED_ATOMIC,
    }


def _with_header(message: Message, xid: int | Column) -> Parts:
    length = protocol.HEADER.itemsize + size(message.body)
    head = {"version": protocol.VERSION, "type": message.type, "length": length, "xid": xid}
    return (*structure(protocol.HEADER, **head), *message.body)
