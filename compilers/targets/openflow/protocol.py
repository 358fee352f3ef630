"""OpenFlow 1.3 messages as bytes, many of a kind at once.

A message is a tuple of parts: constant bytes, and columns that differ from message to message.
`records` lays them out as one structured array, big-endian and without gaps, a message an element;
its columns can then be filled again for every switch.

Sources: OpenFlow Switch Specification 1.3.5, §7; bundles, ONF extension 230 for OpenFlow 1.3;
move, registers and ND fields, Open vSwitch's ovs-fields(7) and ovs-actions(7).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 4
ANY = 0xFFFFFFFF
IN_PORT = 0xFFFFFFF8
ONF, NICIRA = 0x4F4E4600, 0x00002320
ORDERED_ATOMIC = 3

# name: class, number, bytes. 0x8000 is OpenFlow basic, 1 Nicira's registers, 0x1000 Ericsson's ND.
FIELDS = {
    "in_port": (0x8000, 0, 4),
    "metadata": (0x8000, 2, 8),
    "eth_dst": (0x8000, 3, 6),
    "eth_src": (0x8000, 4, 6),
    "eth_type": (0x8000, 5, 2),
    "ip_proto": (0x8000, 10, 1),
    "ipv4_dst": (0x8000, 12, 4),
    "arp_op": (0x8000, 21, 2),
    "arp_spa": (0x8000, 22, 4),
    "arp_tpa": (0x8000, 23, 4),
    "arp_sha": (0x8000, 24, 6),
    "arp_tha": (0x8000, 25, 6),
    "ipv6_src": (0x8000, 26, 16),
    "ipv6_dst": (0x8000, 27, 16),
    "icmpv6_type": (0x8000, 29, 1),
    "nd_target": (0x8000, 31, 16),
    "nd_tll": (0x8000, 33, 6),
    "reg0": (0x0001, 0, 4),
    "nd_reserved": (0x1000, 1, 4),
    "nd_options_type": (0x1000, 2, 1),
}


MOVABLE = {
    "eth_dst": (0, 1),
    "eth_src": (0, 2),
    "arp_spa": (0, 16),
    "arp_tpa": (0, 17),
    "reg0": (1, 0),
    "arp_sha": (1, 17),
    "arp_tha": (1, 18),
    "ipv6_src": (1, 19),
    "ipv6_dst": (1, 20),
    "nd_target": (1, 23),
}
"""Class and number of fields in a move: Open vSwitch reports Nicira's, whatever it was sent."""


class MessageType(IntEnum):
    """`ofp_type`, as far as it is used here."""

    EXPERIMENTER = 4
    FLOW_MOD = 14
    GROUP_MOD = 15
    BARRIER_REQUEST = 20


class GroupType(IntEnum):
    """`ofp_group_type`: by weight, the only bucket, the first one that is up (§5.6.1)."""

    SELECT = 1
    INDIRECT = 2
    FAST_FAILOVER = 3


class Bundle(IntEnum):
    """`onf_bundle_ctrl_type`: the requests; a reply is one more."""

    OPEN = 0
    COMMIT = 4


@dataclass(frozen=True, slots=True)
class Column:
    """A part that differs from message to message: big-endian values[n] or [n, k], and a name."""

    name: str
    values: NDArray[Any]

    def __len__(self) -> int:
        """Its bytes in each message."""
        return self.values[:1].nbytes


Part = bytes | Column
Parts = tuple[Part, ...]


def column(name: str, values: NDArray[Any], size: int) -> Column:
    """A column of unsigned numbers of 2, 4 or 8 bytes each."""
    return Column(name, np.asarray(values).astype(f">u{size}"))


def mac_bytes(values: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """uint8[n, 6]: MAC addresses as they stand on the wire."""
    return np.asarray(values).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]


def size(parts: Parts) -> int:
    """Bytes of one message."""
    return sum(map(len, parts))


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


Block = NDArray[np.uint8]
"""uint8[n, L]: n messages of L bytes each."""


def filled(table: NDArray[np.void], rows: Any, **columns: Any) -> Block:
    """The messages `rows` (an index array) of `table`, with these columns filled."""
    # Whole messages are copied, as opaque bytes: numpy copies fields one by one, ten times slower.
    whole: NDArray[np.void] = table.view(f"V{table.itemsize}")[rows]
    fields = whole.view(table.dtype)
    for name, values in columns.items():
        fields[name] = values
    return whole.view(np.uint8).reshape(len(whole), table.itemsize)


def block(message: bytes) -> Block:
    """One message."""
    return np.frombuffer(message, np.uint8)[None, :]


# Matches and instructions


def _oxm_header(field: str, masked: bool = False) -> bytes:
    group, number, width = FIELDS[field]
    return struct.pack(">HBB", group, number << 1 | masked, width << masked)


def oxm(field: str, value: int | Column, mask: int | None = None) -> Parts:
    """One field of a match or a set-field action."""
    width = FIELDS[field][2]
    part = value.to_bytes(width, "big") if isinstance(value, int) else value
    header = _oxm_header(field, mask is not None)
    return (header, part) if mask is None else (header, part, mask.to_bytes(width, "big"))


def _padded(parts: Parts) -> Parts:
    return (*parts, bytes(-size(parts) % 8))


def match(*fields: Parts) -> Parts:
    """`ofp_match` of OXM fields, prerequisites first (§7.2.3)."""
    body = sum(fields, ())
    return _padded((struct.pack(">HH", 1, 4 + size(body)), *body))


def goto_table(table: int) -> Parts:
    """Instruction: go on in `table`."""
    return (struct.pack(">HHB3x", 1, 8, table),)


def write_metadata(value: int | Column, mask: int) -> Parts:
    """Instruction: metadata = value, 8 bytes, under `mask`."""
    part = value.to_bytes(8, "big") if isinstance(value, int) else value
    return (struct.pack(">HHxxxx", 2, 24), part, mask.to_bytes(8, "big"))


def apply_actions(*actions: Parts) -> Parts:
    """Instruction: do these actions, in order, now."""
    body = sum(actions, ())
    return (struct.pack(">HHxxxx", 4, 8 + size(body)), *body)


# Actions


DEC_TTL: Parts = (struct.pack(">HHxxxx", 24, 8),)


def output(port: int | Column) -> Parts:
    """Action: out of a port (4 bytes)."""
    part = port.to_bytes(4, "big") if isinstance(port, int) else port
    return (struct.pack(">HH", 0, 16), part, bytes(8))


def to_controller() -> Parts:
    """Action: the whole packet to the controller (OFPP_CONTROLLER, OFPCML_NO_BUFFER; §7.2.5)."""
    return (struct.pack(">HHLH6x", 0, 16, 0xFFFFFFFD, 0xFFFF),)


def group(number: Column) -> Parts:
    """Action: through a group (4 bytes)."""
    return (struct.pack(">HH", 22, 8), number)


def set_field(field: str, value: int | Column) -> Parts:
    """Action: field = value."""
    body = oxm(field, value)
    whole = -(-(4 + size(body)) // 8) * 8
    return _padded((struct.pack(">HH", 25, whole), *body))


def move(source: str, target: str) -> Parts:
    """Action: copy one whole field into another (Nicira extension NXAST_REG_MOVE)."""
    width = FIELDS[target][2]
    head = struct.pack(">HHLHHHH", 0xFFFF, 24, NICIRA, 6, width * 8, 0, 0)
    fields = (MOVABLE[field] for field in (source, target))
    ends = (struct.pack(">HBB", group, number << 1, width) for group, number in fields)
    return (b"".join((head, *ends)),)


# Buckets

BUCKET = np.dtype(
    [
        ("length", ">u2"),
        ("weight", ">u2"),
        ("watch port", ">u4"),
        ("watch group", ">u4"),
        ("padding", "V4"),
        ("action", "V4"),
        ("port", ">u4"),
        ("end", "V8"),
    ]
)
"""`ofp_bucket` with one action: output."""


def buckets(
    port: NDArray[Any], output: NDArray[Any], weight: NDArray[Any] | int, watched: bool
) -> NDArray[np.void]:
    """BUCKET[n, B]: to `output`, int[n, B]; with `watched` only while `port`, int[n, B], is up."""
    result = np.zeros(port.shape, BUCKET)
    result["length"], result["weight"] = BUCKET.itemsize, weight
    result["watch port"], result["watch group"] = port if watched else ANY, ANY
    result["action"], result["port"] = np.void(struct.pack(">HH", 0, 16)), output
    return result


def through(number: Column) -> Parts:
    """A bucket that leads through another group (4 bytes), while a bucket of that is alive."""
    watch = replace(number, name=f"watched {number.name}")
    return (struct.pack(">HHL", 24, 0, ANY), watch, bytes(4), *group(number))


# Messages


@dataclass(frozen=True, slots=True)
class Message:
    """A message without its header."""

    type: MessageType
    body: Parts


def flow_add(table: int, priority: int, cookie: int, match: Parts, *instructions: Parts) -> Message:
    """Flow-mod that adds a row, without timeouts (§7.3.4.1)."""
    head = struct.pack(">QQBBHHHLLLHxx", cookie, 0, table, 0, 0, 0, priority, ANY, ANY, ANY, 0)
    return Message(MessageType.FLOW_MOD, (head, *match, *sum(instructions, ())))


def group_add(number: Column, kind: GroupType, *buckets: Part) -> Message:
    """Group-mod that adds a group of these buckets (§7.3.4.2)."""
    return Message(MessageType.GROUP_MOD, (struct.pack(">HBx", 0, kind), number, *buckets))


# Bundled messages that add something, turned into such that change or remove it

_LENGTHS, _GROUP_COMMAND, _GROUP_BUCKETS = (2, 26), 32, 40
_FLOW_COMMAND, _FLOW_MATCH = 49, 72
_DELETE_STRICT, _GROUP_MODIFY, _GROUP_DELETE = 4, 1, 2


def group_changes(block: Block) -> Block:
    """The same groups with these buckets, where they are already."""
    changed = block.copy()
    changed[:, _GROUP_COMMAND + 1] = _GROUP_MODIFY
    return changed


def group_deletions(block: Block) -> Block:
    """The deletion of the groups that a block adds; no error where there is none."""
    deletions = _cut(block, _GROUP_BUCKETS)
    deletions[:, _GROUP_COMMAND + 1] = _GROUP_DELETE
    return deletions


def flow_deletions(block: Block) -> Block:
    """The deletion of just the rows that a block adds, whatever they do."""
    if not len(block):
        return block
    deletions = _cut(block, _instructions(block))
    deletions[:, _FLOW_COMMAND] = _DELETE_STRICT
    return deletions


def with_instructions(block: Block, other: Block) -> Block:
    """The rows that a block adds, but doing what those of another block of its layout do."""
    start = _instructions(block)
    return np.concatenate((block[:, :start], other[:, start:]), axis=1)


def _instructions(block: Block) -> int:
    """Where the instructions of bundled flow-mods begin."""
    length = int.from_bytes(block[0, _FLOW_MATCH + 2 : _FLOW_MATCH + 4].tobytes(), "big")
    return _FLOW_MATCH + -(-length // 8) * 8


def _cut(block: Block, size: int) -> Block:
    """The first bytes of each bundled message, with its lengths put right."""
    short = block[:, :size].copy()
    for place in _LENGTHS:
        short[:, place : place + 2] = list((size - (place > 2) * 24).to_bytes(2, "big"))
    return short


def plain(message: Message, xid: int) -> bytes:
    """One message of constant parts, with its header."""
    return records(_with_header(message, xid.to_bytes(4, "big"))).tobytes()


def barrier(xid: int) -> bytes:
    """A barrier request."""
    return plain(Message(MessageType.BARRIER_REQUEST, ()), xid)


def bundle(request: Bundle, number: int, xid: int) -> bytes:
    """Open or commit bundle `number`: all of its messages in their order, or none (ext. 230)."""
    body = struct.pack(">LLLHH", ONF, 2300, number, request, ORDERED_ATOMIC)
    return plain(Message(MessageType.EXPERIMENTER, (body,)), xid)


def bundled(message: Message, number: int, xid: int | Column) -> NDArray[np.void]:
    """The messages, each wrapped in an add to bundle `number`; wrapper and message share the xid.

    An xid column stands in the fields `xid` and `inner xid`.
    """
    outer = xid.to_bytes(4, "big") if isinstance(xid, int) else xid
    inner = outer if isinstance(outer, bytes) else replace(outer, name=f"inner {outer.name}")
    wrapper = struct.pack(">LLLHH", ONF, 2301, number, 0, ORDERED_ATOMIC)
    whole = (wrapper, *_with_header(message, inner))
    return records(_with_header(Message(MessageType.EXPERIMENTER, whole), outer))


def _with_header(message: Message, xid: Part) -> Parts:
    length = 8 + size(message.body)
    return (struct.pack(">BBH", VERSION, message.type, length), xid, *message.body)
