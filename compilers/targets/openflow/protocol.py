"""OpenFlow 1.3: its numbers, and every structure that we write or read, as numpy dtypes.

Structures are big-endian and without gaps. Of one that goes on with a list (fields of a match,
instructions, buckets, a packet) the dtype is what stands before the list. An `ofp_match` is the
last member of its structure, so its type and length are in the dtype, and its fields follow.

Sources: OpenFlow Switch Specification 1.3.5, §7 and §A; bundles, ONF extension 230 for OpenFlow
1.3; moves, registers and ND fields, Open vSwitch's ovs-fields(7) and ovs-actions(7).
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 4
ALL_TABLES = 0xFF
ANY = 0xFFFFFFFF
"""Any port, any group; as the buffer of a packet: none."""
IN_PORT, TABLES, CONTROLLER, LOCAL = 0xFFFFFFF8, 0xFFFFFFF9, 0xFFFFFFFD, 0xFFFFFFFE
"""Reserved ports (`ofp_port_no`, §7.2.1); TABLES: through the tables, from the first."""
ALL_GROUPS = 0xFFFFFFFC
WHOLE_PACKET = 0xFFFF
"""The most bytes of a packet-in: all of them (`OFPCML_NO_BUFFER`)."""
ONF, NICIRA = 0x4F4E4600, 0x00002320
"""Experimenters: the Open Networking Foundation, Open vSwitch's first maker."""
ORDERED_ATOMIC = 3
"""Flags of a bundle: its messages in their order, and all of them or none."""
OXM_MATCH = 1
"""`ofp_match_type`: fields in the extensible form (§7.2.3)."""
PORT_DOWN = 1
"""Bit 0 of a port's config, taken down, and of its state, no link (§7.2.1)."""
PORT_DELETED, PORT_MODIFIED = 1, 2
"""`ofp_port_reason`: the port is gone, or has changed (§7.4.3)."""
MORE_PARTS = 1
"""Flag of a multipart reply: another part follows (§7.3.5)."""

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
    "nw_ttl": (0x0001, 29, 1),
    "nd_reserved": (0x1000, 1, 4),
    "nd_options_type": (0x1000, 2, 1),
}
"""Class, number and bytes of the fields of a packet. Class 0x8000 is OpenFlow basic (§7.2.3.7),
1 Nicira's registers and the TTL of both versions of IP, 0x1000 Ericsson's ND."""
EXPERIMENTER_CLASS = 0xFFFF
"""The class of fields whose experimenter is told before their value."""
MOVABLE = {
    "eth_dst": (0, 1),
    "eth_src": (0, 2),
    "arp_spa": (0, 16),
    "arp_tpa": (0, 17),
    "reg0": (1, 0),
    "nw_ttl": (1, 29),
    "arp_sha": (1, 17),
    "arp_tha": (1, 18),
    "ipv6_src": (1, 19),
    "ipv6_dst": (1, 20),
    "nd_target": (1, 23),
}
"""Class and number of fields in a move: Open vSwitch reports Nicira's, whatever it was sent."""


class MessageType(IntEnum):
    """`ofp_type` (§7.1), as far as it is used here."""

    HELLO = 0
    ERROR = 1
    ECHO_REQUEST = 2
    ECHO_REPLY = 3
    EXPERIMENTER = 4
    FEATURES_REQUEST = 5
    FEATURES_REPLY = 6
    SET_CONFIG = 9
    PACKET_IN = 10
    FLOW_REMOVED = 11
    PORT_STATUS = 12
    PACKET_OUT = 13
    FLOW_MOD = 14
    GROUP_MOD = 15
    PORT_MOD = 16
    MULTIPART_REQUEST = 18
    MULTIPART_REPLY = 19
    BARRIER_REQUEST = 20
    BARRIER_REPLY = 21
    ROLE_REQUEST = 24
    ROLE_REPLY = 25


class FlowCommand(IntEnum):
    """`ofp_flow_mod_command` (§7.3.4.1), as far as it is used here."""

    ADD = 0
    DELETE = 3
    DELETE_STRICT = 4


class GroupCommand(IntEnum):
    """`ofp_group_mod_command` (§7.3.4.2)."""

    ADD = 0
    MODIFY = 1
    DELETE = 2


class GroupType(IntEnum):
    """`ofp_group_type`: by weight, the only bucket, the first one that is up (§5.6.1)."""

    SELECT = 1
    INDIRECT = 2
    FAST_FAILOVER = 3


class Multipart(IntEnum):
    """`ofp_multipart_type` (§7.3.5), as far as it is used here."""

    DESC = 0
    FLOW = 1
    PORT_STATS = 4
    GROUP = 6
    GROUP_DESC = 7
    GROUP_FEATURES = 8
    TABLE_FEATURES = 12
    PORT_DESC = 13


class TableProperty(IntEnum):
    """`ofp_table_feature_prop_type` (§7.3.5.5.2), as far as it is used here."""

    INSTRUCTIONS = 0
    MATCH = 8


class ControllerRole(IntEnum):
    """`ofp_controller_role` (§7.3.9), as far as it is used here."""

    MASTER = 2
    SLAVE = 3


class ErrorType(IntEnum):
    """`ofp_error_type` (§7.5.4), as far as it is used here."""

    BAD_REQUEST = 1
    BAD_ACTION = 2
    BAD_INSTRUCTION = 3
    BAD_MATCH = 4
    FLOW_MOD = 5
    GROUP_MOD = 6
    EXPERIMENTER = 0xFFFF


IS_SLAVE = 10
"""Code of a bad request: a slave may not ask for that."""


class OnfMessage(IntEnum):
    """The messages of ONF extension 230; its error codes begin with 2300, too (§3.5)."""

    BUNDLE_CONTROL = 2300
    BUNDLE_ADD = 2301


class Bundle(IntEnum):
    """`onf_bundle_ctrl_type`, as far as it is used here."""

    OPEN = 0
    COMMIT = 4
    COMMIT_REPLY = 5
    DISCARD = 6


class Instruction(IntEnum):
    """`ofp_instruction_type` (§7.2.4), as far as it is used here."""

    GOTO_TABLE = 1
    WRITE_METADATA = 2
    APPLY_ACTIONS = 4


class Action(IntEnum):
    """`ofp_action_type` (§7.2.5), as far as it is used here."""

    OUTPUT = 0
    GROUP = 22
    DEC_TTL = 24
    SET_FIELD = 25
    EXPERIMENTER = 0xFFFF


REG_MOVE_SUBTYPE, REG_LOAD_SUBTYPE, BUNDLE_SUBTYPE = 6, 7, 12
"""Nicira's actions NXAST_REG_MOVE, NXAST_REG_LOAD and NXAST_BUNDLE."""

Layout = np.dtype[np.void]


def _layout(*members: Any, pad: int = 0) -> Layout:
    """A structure of these members; `pad` bytes of 0 at its end."""
    return np.dtype([*members, *([("end", f"V{pad}")] if pad else [])])


HEADER = _layout(("version", "u1"), ("type", "u1"), ("length", ">u2"), ("xid", ">u4"))
"""`ofp_header` (§7.1.1)."""

# Parts of messages

MATCH = _layout(("type", ">u2"), ("length", ">u2"))
"""`ofp_match` (§7.2.3): the length counts these four bytes and the fields, not the padding."""
OXM = _layout(("class", ">u2"), ("field", "u1"), ("length", "u1"))
"""The header of a field (§7.2.3.2): `field` is twice its number, plus 1 where it has a mask."""
GOTO_TABLE = _layout(("type", ">u2"), ("length", ">u2"), ("table", "u1"), pad=3)
WRITE_METADATA = _layout(
    ("type", ">u2"), ("length", ">u2"), ("pad", "V4"), ("metadata", ">u8"), ("mask", ">u8")
)
INSTRUCTION = _layout(("type", ">u2"), ("length", ">u2"), pad=4)
"""`ofp_instruction_actions`: actions follow."""
ACTION = _layout(("type", ">u2"), ("length", ">u2"), pad=4)
"""`ofp_action_header`, of an action without a value."""
OUTPUT = _layout(("type", ">u2"), ("length", ">u2"), ("port", ">u4"), ("most_bytes", ">u2"), pad=6)
GROUP = _layout(("type", ">u2"), ("length", ">u2"), ("group", ">u4"))
SET_FIELD = _layout(("type", ">u2"), ("length", ">u2"))
"""A field, as in a match, follows."""
REG_MOVE = _layout(
    ("type", ">u2"),
    ("length", ">u2"),
    ("experimenter", ">u4"),
    ("subtype", ">u2"),
    ("bits", ">u2"),
    ("source_offset", ">u2"),
    ("target_offset", ">u2"),
    ("source", OXM),
    ("target", OXM),
)
REG_LOAD = _layout(*REG_MOVE.descr[:4], ("place", ">u2"), ("target", OXM), ("value", ">u8"))
"""`place` is the first bit times 64, plus the number of bits less one."""
_HASHED = {"algorithm": 2, "fields": 2, "basis": 2, "members": 4, "count": 2}.items()
BUNDLE_ACTION = _layout(*REG_MOVE.descr[:4], *((n, f">u{b}") for n, b in _HASHED), pad=10)
"""`nx_action_bundle` (nicira-ext.h): the ports follow, of 2 bytes each, then zeros."""
_WATCHED = ("watch_port", ">u4"), ("watch_group", ">u4")
BUCKET = _layout(("length", ">u2"), ("weight", ">u2"), *_WATCHED, pad=4)
"""`ofp_bucket` (§7.3.4.2): actions follow."""

# Messages, without their header

FLOW_MOD = _layout(
    ("cookie", ">u8"),
    ("cookie_mask", ">u8"),
    ("table", "u1"),
    ("command", "u1"),
    ("idle_timeout", ">u2"),
    ("hard_timeout", ">u2"),
    ("priority", ">u2"),
    ("buffer", ">u4"),
    ("out_port", ">u4"),
    ("out_group", ">u4"),
    ("flags", ">u2"),
    ("pad", "V2"),
    ("match", MATCH),
)
"""`ofp_flow_mod` (§7.3.4.1): fields of the match and instructions follow."""
GROUP_MOD = _layout(("command", ">u2"), ("type", "u1"), ("pad", "V1"), ("group", ">u4"))
"""`ofp_group_mod` (§7.3.4.2): buckets follow."""
FEATURES = _layout(
    ("datapath_id", ">u8"),
    ("buffers", ">u4"),
    ("tables", "u1"),
    ("auxiliary", "u1"),
    ("pad", "V2"),
    ("capabilities", ">u4"),
    ("reserved", ">u4"),
)
"""`ofp_switch_features` (§7.3.1)."""
SET_CONFIG = _layout(("flags", ">u2"), ("most_bytes", ">u2"))
"""`ofp_switch_config` (§7.3.2): the most bytes of a packet that misses, in its packet-in."""
ROLE = _layout(("role", ">u4"), ("pad", "V4"), ("generation", ">u8"))
"""`ofp_role_request`, and its reply (§7.3.9)."""
ERROR = _layout(("type", ">u2"), ("code", ">u2"))
"""`ofp_error_msg` (§7.5.4): the failed request, or its beginning, follows."""
EXPERIMENTER_ERROR = _layout(*ERROR.descr, ("experimenter", ">u4"))
"""The same with the type `ErrorType.EXPERIMENTER`."""
BUNDLE_CONTROL = _layout(
    ("experimenter", ">u4"),
    ("kind", ">u4"),
    ("bundle", ">u4"),
    ("request", ">u2"),
    ("flags", ">u2"),
)
"""`onf_bundle_ctrl_msg` (ext. 230)."""
BUNDLE_ADD = _layout(
    ("experimenter", ">u4"), ("kind", ">u4"), ("bundle", ">u4"), ("pad", "V2"), ("flags", ">u2")
)
"""`onf_bundle_add_msg` (ext. 230): the whole message that is added follows."""
PACKET_IN = _layout(
    ("buffer", ">u4"),
    ("packet_length", ">u2"),
    ("reason", "u1"),
    ("table", "u1"),
    ("cookie", ">u8"),
    ("match", MATCH),
)
"""`ofp_packet_in` (§7.4.1): fields of the match, `PACKET_PAD` and the packet follow."""
PACKET_PAD = 2
PACKET_OUT = _layout(("buffer", ">u4"), ("in_port", ">u4"), ("actions_length", ">u2"), pad=6)
"""`ofp_packet_out` (§7.3.7): actions and the packet follow."""
PORT = _layout(
    ("port", ">u4"),
    ("pad", "V4"),
    ("mac", "u1", 6),
    ("pad2", "V2"),
    ("name", "S16"),
    ("config", ">u4"),
    ("state", ">u4"),
    ("current", ">u4"),
    ("advertised", ">u4"),
    ("supported", ">u4"),
    ("peer", ">u4"),
    ("current_speed", ">u4"),
    ("most_speed", ">u4"),
)
"""`ofp_port` (§7.2.1); speeds are in kb/s."""
PORT_STATUS = _layout(("reason", "u1"), ("pad", "V7"), ("port", PORT))
"""`ofp_port_status` (§7.4.3)."""

# Multipart requests and entries of replies (§7.3.5)

MULTIPART = _layout(("kind", ">u2"), ("flags", ">u2"), pad=4)
"""`ofp_multipart_request`, and its reply."""
ENTRY = _layout(("length", ">u2"))
"""What each entry of a list of flows or groups begins with."""
FLOW_REQUEST = _layout(
    ("table", "u1"),
    ("pad", "V3"),
    ("out_port", ">u4"),
    ("out_group", ">u4"),
    ("pad2", "V4"),
    ("cookie", ">u8"),
    ("cookie_mask", ">u8"),
    ("match", MATCH),
    pad=4,
)
"""`ofp_flow_stats_request`, with a match without fields."""
FLOW_STATS = _layout(
    ("length", ">u2"),
    ("table", "u1"),
    ("pad", "V1"),
    ("seconds", ">u4"),
    ("nanoseconds", ">u4"),
    ("priority", ">u2"),
    ("idle_timeout", ">u2"),
    ("hard_timeout", ">u2"),
    ("flags", ">u2"),
    ("pad2", "V4"),
    ("cookie", ">u8"),
    ("packets", ">u8"),
    ("bytes", ">u8"),
    ("match", MATCH),
)
"""`ofp_flow_stats`: fields of the match and instructions follow."""
GROUP_DESC = _layout(("length", ">u2"), ("type", "u1"), ("pad", "V1"), ("group", ">u4"))
"""`ofp_group_desc`: buckets follow."""
GROUP_REQUEST = _layout(("group", ">u4"), pad=4)
"""`ofp_group_stats_request`."""
GROUP_STATS = _layout(
    ("length", ">u2"),
    ("pad", "V2"),
    ("group", ">u4"),
    ("references", ">u4"),
    ("pad2", "V4"),
    ("packets", ">u8"),
    ("bytes", ">u8"),
    ("seconds", ">u4"),
    ("nanoseconds", ">u4"),
)
"""`ofp_group_stats`: a `BUCKET_COUNTER` for each bucket follows."""
BUCKET_COUNTER = _layout(("packets", ">u8"), ("bytes", ">u8"))
DESCRIPTION = _layout(
    ("maker", "S256"),
    ("hardware", "S256"),
    ("software", "S256"),
    ("serial", "S32"),
    ("datapath", "S256"),
)
"""`ofp_desc` (§7.3.5.1)."""
SELECT_LIVENESS = 2
"""Bit of the capabilities of groups: select groups pass dead buckets over (§7.3.5.10)."""
GROUP_FEATURES = _layout(
    ("types", ">u4"), ("capabilities", ">u4"), ("most", ">u4", 4), ("actions", ">u4", 4)
)
"""`ofp_group_features`: a bit per type of group, the most groups of each."""
TABLE_FEATURES = _layout(
    ("length", ">u2"),
    ("table", "u1"),
    ("pad", "V5"),
    ("name", "S32"),
    ("metadata_match", ">u8"),
    ("metadata_write", ">u8"),
    ("config", ">u4"),
    ("most_entries", ">u4"),
)
"""`ofp_table_features`: properties follow, each a multiple of 8 bytes long with its padding."""
PROPERTY = _layout(("type", ">u2"), ("length", ">u2"))
"""`ofp_table_feature_prop_header`; the length leaves the padding out."""
PORT_REQUEST = _layout(("port", ">u4"), pad=4)
"""`ofp_port_stats_request`."""
PORT_STATS = _layout(
    ("port", ">u4"),
    ("pad", "V4"),
    ("received_packets", ">u8"),
    ("sent_packets", ">u8"),
    ("received_bytes", ">u8"),
    ("sent_bytes", ">u8"),
    ("received_dropped", ">u8"),
    ("sent_dropped", ">u8"),
    ("errors", ">u8", 6),
    ("seconds", ">u4"),
    ("nanoseconds", ">u4"),
)
"""`ofp_port_stats`; errors: received, sent, then frame, overrun, CRC and collisions."""


# A message in the bundle that carries it

BUNDLED = _layout(("header", HEADER), ("add", BUNDLE_ADD), ("message", HEADER))
"""A bundle-add up to the body of the message in it."""
BUNDLED_FLOW_MOD = _layout(*BUNDLED.descr, *FLOW_MOD.descr)
BUNDLED_GROUP_MOD = _layout(*BUNDLED.descr, *GROUP_MOD.descr)
WRAPPER_BYTES = HEADER.itemsize + BUNDLE_ADD.itemsize
"""Bytes of a bundle-add before the message in it."""


def padded(size: int) -> int:
    """Bytes with the padding that makes them a multiple of 8, as those of matches and actions."""
    return -(-size // 8) * 8


def packed(layout: Layout, **members: Any) -> bytes:
    """One structure with these members; the others are 0."""
    whole: NDArray[np.void] = np.zeros((), layout)
    for name, value in members.items():
        whole[name] = value
    return whole.tobytes()


_CODES = {1: "B", 2: "H", 4: "L"}


def _members(layout: Layout, *names: str, before: int = 0) -> Struct:
    """A reader of neighbouring members of one structure; numpy takes ten times as long."""
    known = layout.names or ()
    skipped = before + sum(layout[name].itemsize for name in known[: known.index(names[0])])
    return Struct(f">{skipped}x" + "".join(_CODES[layout[name].itemsize] for name in names))


_ONE_HEADER = _members(HEADER, *(HEADER.names or ()))
_ROW_COMMAND = _members(FLOW_MOD, "table", "command", before=HEADER.itemsize)
_GROUP_COMMAND = _members(GROUP_MOD, "command", before=HEADER.itemsize)


def header(message: bytes | bytearray | memoryview, place: int = 0) -> tuple[int, int, int]:
    """Type, length in bytes and xid of the message that starts at `place`."""
    _, kind, length, xid = _ONE_HEADER.unpack_from(message, place)
    return kind, length, xid


def row_command(message: bytes) -> tuple[int, int]:
    """Table and `FlowCommand` of a message that changes a row."""
    table, command = _ROW_COMMAND.unpack_from(message)
    return table, command


def group_command(message: bytes) -> int:
    """`GroupCommand` of a message that changes a group."""
    (command,) = _GROUP_COMMAND.unpack_from(message)
    return int(command)


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    """A message with its header."""
    return _ONE_HEADER.pack(VERSION, kind, HEADER.itemsize + len(body), xid) + body
