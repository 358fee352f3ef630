"""OpenFlow 1.3: its numbers, and every structure that polarfab writes or reads, declared once.

The encoder and the controller write messages by these layouts, and read them.
Sources: OpenFlow Switch Specification 1.3.5, §7 and §A; bundles, ONF extension 230 for OpenFlow
1.3; moves, registers and ND fields, Open vSwitch's ovs-fields(7) and ovs-actions(7).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from enum import IntEnum
from functools import cached_property
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

VERSION = 4
"""The number of OpenFlow 1.3 in headers."""
ALL_TABLES = 0xFF
"""`OFPTT_ALL`, in the place of a table."""
ANY = 0xFFFFFFFF
"""Any port, any group; as the buffer of a packet: none."""
IN_PORT, TABLES, CONTROLLER, LOCAL = 0xFFFFFFF8, 0xFFFFFFF9, 0xFFFFFFFD, 0xFFFFFFFE
"""Reserved ports (`ofp_port_no`, §7.2.1): the ingress port, the first flow table, the controller,
the switch itself."""
ALL_GROUPS = 0xFFFFFFFC
"""`OFPG_ALL`, in the place of a group."""
WHOLE_PACKET = 0xFFFF
"""The most bytes of a packet-in: all of them (`OFPCML_NO_BUFFER`)."""
ONF, NICIRA = 0x4F4E4600, 0x00002320
"""Experimenters: the Open Networking Foundation, Open vSwitch's first maker."""
ORDERED_ATOMIC = 3
"""Flags of a bundle: its messages in their order, and all of them or none."""
OXM_MATCH = 1
"""`ofp_match_type`: fields in the extensible form (§7.2.3)."""
PORT_DOWN = 1
"""Bit of a port (§7.2.1). In its config: it was taken down. In its state: it has no link."""
PORT_BLOCKED = 2
"""Bit of the state of a port: another protocol, such as spanning tree, blocks it."""
PORT_NO_RECEIVE = 4
"""Bit of the config of a port: it drops what it receives."""
PORT_NO_FORWARD = 32
"""Bit of the config of a port: it drops what it should send."""
PORT_DELETED, PORT_MODIFIED = 1, 2
"""`ofp_port_reason`: the port was removed, or has changed (§7.4.3)."""
MORE_PARTS = 1
"""Flag of a multipart reply: another part follows (§7.3.5)."""


class PacketField(NamedTuple):
    """A field of a packet, as matches name it (§7.2.3.2)."""

    space: int
    """Its class: 0x8000 is OpenFlow basic (§7.2.3.7), 0 and 1 are Nicira's: the port of OpenFlow
    1.0, and registers; 0x1000 is Ericsson's ND."""
    number: int
    """Its number in the class."""
    size: int
    """Its bytes."""


FIELDS = {
    "in_port": PacketField(0x8000, 0, 4),
    "metadata": PacketField(0x8000, 2, 8),
    "eth_dst": PacketField(0x8000, 3, 6),
    "eth_src": PacketField(0x8000, 4, 6),
    "eth_type": PacketField(0x8000, 5, 2),
    "ip_proto": PacketField(0x8000, 10, 1),
    "ipv4_src": PacketField(0x8000, 11, 4),
    "ipv4_dst": PacketField(0x8000, 12, 4),
    "arp_op": PacketField(0x8000, 21, 2),
    "arp_spa": PacketField(0x8000, 22, 4),
    "arp_tpa": PacketField(0x8000, 23, 4),
    "arp_sha": PacketField(0x8000, 24, 6),
    "arp_tha": PacketField(0x8000, 25, 6),
    "ipv6_src": PacketField(0x8000, 26, 16),
    "ipv6_dst": PacketField(0x8000, 27, 16),
    "icmpv6_type": PacketField(0x8000, 29, 1),
    "nd_target": PacketField(0x8000, 31, 16),
    "nd_tll": PacketField(0x8000, 33, 6),
    "in_port_16": PacketField(0x0000, 0, 2),
    "reg0": PacketField(0x0001, 0, 4),
    "nd_reserved": PacketField(0x1000, 1, 4),
    "nd_options_type": PacketField(0x1000, 2, 1),
}
"""The fields of a packet by the names that Open vSwitch has for them."""
MOVABLE = {
    "in_port_16": (0, 0),
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
"""Nicira's class and number of the fields that a move copies. Open vSwitch reports a move by these
numbers even if it was sent other ones."""


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
    """`ofp_group_type` (§5.6.1), as far as it is used here."""

    SELECT = 1
    """A bucket by a hash, in proportion to weights."""
    INDIRECT = 2
    """The only bucket."""
    FAST_FAILOVER = 3
    """The first bucket that is live."""


class Multipart(IntEnum):
    """`ofp_multipart_type` (§7.3.5), as far as it is used here."""

    DESC = 0
    FLOW = 1
    AGGREGATE = 2
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


class BadRequest(IntEnum):
    """`ofp_bad_request_code` (§7.5.4), as far as it is used here."""

    BAD_TYPE = 1
    BAD_EXPERIMENTER = 3
    BAD_EXPERIMENTER_TYPE = 4
    IS_SLAVE = 10
    """A slave may not ask for that."""


class BadInstruction(IntEnum):
    """`ofp_bad_instruction_code` (§7.5.4), as far as it is used here."""

    UNSUPPORTED_METADATA = 3
    UNSUPPORTED_METADATA_MASK = 4


class FlowModFailed(IntEnum):
    """`ofp_flow_mod_failed_code` (§7.5.4), as far as it is used here."""

    TABLE_FULL = 1
    BAD_TABLE_ID = 2


class GroupModFailed(IntEnum):
    """`ofp_group_mod_failed_code` (§7.5.4), as far as it is used here."""

    OUT_OF_GROUPS = 3
    OUT_OF_BUCKETS = 4
    CHAINING_UNSUPPORTED = 5
    WATCH_UNSUPPORTED = 6
    BAD_TYPE = 10
    BAD_WATCH = 13


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
    WRITE_ACTIONS = 3
    APPLY_ACTIONS = 4


class Action(IntEnum):
    """`ofp_action_type` (§7.2.5), as far as it is used here."""

    OUTPUT = 0
    GROUP = 22
    DEC_TTL = 24
    SET_FIELD = 25
    EXPERIMENTER = 0xFFFF


REG_MOVE_SUBTYPE = 6
"""NXAST_REG_MOVE, an action of Nicira: copy a field."""
REG_LOAD_SUBTYPE = 7
"""NXAST_REG_LOAD: write a number into a field."""
MULTIPATH_SUBTYPE = 10
"""NXAST_MULTIPATH: write a hash into a field."""
BUNDLE_SUBTYPE = 12
"""NXAST_BUNDLE: send the packet to one of several ports."""
BUNDLE_LOAD_SUBTYPE = 13
"""NXAST_BUNDLE_LOAD: write one of several ports into a field."""
RESUBMIT_SUBTYPE = 14
"""NXAST_RESUBMIT_TABLE: look the packet up again."""


class WireLayout:
    """A structure: its members in their order, each with its format, of `struct`; big-endian.

    `dtype` has many of them as an array, `pack` and `read` write and read one. A structure may end
    with a list (fields of a match, instructions, buckets, a packet). Then the layout is what comes
    before the list.
    """

    text: str
    """The members as `name format, …`; padding has no name."""
    formats: dict[str, str]
    """The format of each member, by its name."""
    size: int
    """The bytes of the structure."""

    def __init__(self, *declared: str | WireLayout) -> None:
        """Declare a structure.

        Args:
            declared: members as `name format, …`, or other layouts whose members come here.
        """
        self.text = ", ".join(
            part.text if isinstance(part, WireLayout) else part for part in declared
        )
        self._members = [member.rpartition(" ")[::2] for member in self.text.split(", ")]
        self.formats = {name: format for name, format in self._members if name}
        self.struct = Struct(">" + "".join(format for _, format in self._members))
        self.size = self.struct.size
        self._blank = {
            name: b"" if format.endswith("s") else 0 for name, format in self.formats.items()
        }

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The numpy type of the structure.

        Padding has names too, as numpy copies only named members.
        """
        return np.dtype(
            [
                (name or f"pad {place}", _numpy_format(format))
                for place, (name, format) in enumerate(self._members)
            ]
        )

    @cached_property
    def _tuple(self) -> Callable[..., Any]:
        """The named tuple of the members, which `read` returns."""
        return namedtuple("_tuple", self.formats)

    def pack(self, **members: Any) -> bytes:
        """One structure with these members; the others are 0."""
        return self.struct.pack(*(self._blank | members).values())

    def read(self, data: bytes | bytearray | memoryview, place: int = 0) -> Any:
        """The structure that starts at byte `place`, as a named tuple.

        Raises:
            Malformed: the structure is cut off.
        """
        if len(data) < place + self.size:
            from compilers.readers.openflow.rows import Malformed  # compile reads no rows

            raise Malformed(f"{len(data)} bytes, where {place + self.size} are the least")
        return self._tuple(*self.struct.unpack_from(data, place))

    def only(self, *names: str) -> WireLayout:
        """A structure of some of the members."""
        return WireLayout(", ".join(f"{name} {self.formats[name]}" for name in names))


def _numpy_format(format: str) -> str:
    """A format of `struct` as numpy writes it: a number, or bytes or padding of a length."""
    numbers = {"B": "u1", "H": ">u2", "L": ">u4", "Q": ">u8"}
    if format in numbers:
        return numbers[format]
    length, letter = format[:-1], format[-1]
    return {"s": "S", "x": "V"}[letter] + length


HEADER = WireLayout("version B, type B, length H, xid L")
"""`ofp_header` (§7.1.1)."""

# Parts of messages

MATCH = WireLayout("match_type H, match_length H")
"""`ofp_match` (§7.2.3): the length counts these four bytes and the fields, not the padding."""
OXM = WireLayout("space H, field B, length B")
"""The header of a field (§7.2.3.2): its class; twice its number, plus 1 where it has a mask."""
TYPED = WireLayout("type H, length H")
"""What instructions, actions and properties of tables begin with; the length is of the whole."""
GOTO_TABLE = WireLayout(TYPED, "table B, 3x")
"""`ofp_instruction_goto_table` (§7.2.4)."""
WRITE_METADATA = WireLayout(TYPED, "4x, metadata Q, mask Q")
"""`ofp_instruction_write_metadata` (§7.2.4)."""
INSTRUCTION = WireLayout(TYPED, "4x")
"""`ofp_instruction_actions`: actions follow."""
ACTION = WireLayout(TYPED, "4x")
"""`ofp_action_header`, of an action without a value."""
OUTPUT = WireLayout(TYPED, "port L, most_bytes H, 6x")
"""`ofp_action_output` (§7.2.5): `most_bytes` of the packet go to the controller, if it is sent
there."""
GROUP = WireLayout(TYPED, "group L")
"""`ofp_action_group` (§7.2.5)."""
SET_FIELD = TYPED
"""`ofp_action_set_field` (§7.2.5): a field, as in a match, follows."""
NICIRA_ACTION = WireLayout(TYPED, "experimenter L, subtype H")
"""`nx_action_header` (nicira-ext.h): what all actions of Nicira begin with."""
REG_MOVE = WireLayout(NICIRA_ACTION, "bits H, source_offset H, target_offset H, source L, target L")
"""`nx_action_reg_move` (nicira-ext.h): source and target are `oxm_header`s."""
REG_LOAD = WireLayout(NICIRA_ACTION, "place H, target L, value Q")
"""`nx_action_reg_load` (nicira-ext.h): `place` is the bits that are written, as the first bit times
64, plus the number of bits less one. So 15 is the lowest 16 bits."""
BUNDLE_ACTION = WireLayout(
    NICIRA_ACTION,
    "algorithm H, fields H, basis H, members L, member_count H, place H, target L, 4x",
)
"""`nx_action_bundle` (nicira-ext.h): the ports follow, of 2 bytes each, then zeros. Place and
target, as in `REG_LOAD`, are those of a bundle_load."""
MULTIPATH = WireLayout(
    NICIRA_ACTION,
    "fields H, basis H, 2x, algorithm H, most H, argument L, 2x, place H, target L",
)
"""`nx_action_multipath` (nicira-ext.h): the result is from 0 to `most`."""
RESUBMIT = WireLayout(NICIRA_ACTION, "in_port H, table B, 3x")
"""`nx_action_resubmit` (nicira-ext.h)."""
BUCKET = WireLayout("length H, weight H, watch_port L, watch_group L, 4x")
"""`ofp_bucket` (§7.3.4.2): actions follow."""

# Messages, without their header

FLOW_MOD = WireLayout(
    "cookie Q, cookie_mask Q, table B, command B, idle_timeout H, hard_timeout H, priority H",
    "buffer L, out_port L, out_group L, flags H, 2x",
    MATCH,
)
"""`ofp_flow_mod` (§7.3.4.1): fields of the match and instructions follow."""
GROUP_MOD = WireLayout("command H, type B, 1x, group L")
"""`ofp_group_mod` (§7.3.4.2): buckets follow."""
FEATURES = WireLayout("datapath_id Q, buffers L, tables B, auxiliary B, 2x, capabilities L, 4x")
"""`ofp_switch_features` (§7.3.1)."""
SET_CONFIG = WireLayout("flags H, most_bytes H")
"""`ofp_switch_config` (§7.3.2): the most bytes of a packet that misses, in its packet-in."""
ROLE = WireLayout("role L, 4x, generation Q")
"""`ofp_role_request`, and its reply (§7.3.9)."""
ERROR = WireLayout("type H, code H")
"""`ofp_error_msg` (§7.5.4): the failed request, or its beginning, follows."""
EXPERIMENTER_ERROR = WireLayout(ERROR, "experimenter L")
"""The same with the type `ErrorType.EXPERIMENTER`."""
BUNDLE_CONTROL = WireLayout("experimenter L, kind L, bundle L, request H, flags H")
"""`onf_bundle_ctrl_msg` (ext. 230)."""
BUNDLE_ADD = WireLayout("experimenter L, kind L, bundle L, 2x, flags H")
"""`onf_bundle_add_msg` (ext. 230): the whole message that is added follows."""
WRAPPER_BYTES = HEADER.size + BUNDLE_ADD.size
"""Bytes of a bundle-add before the message in it."""
BUNDLED = WRAPPER_BYTES + HEADER.size
"""Where the body of the message in a bundle-add starts."""
PACKET_IN = WireLayout("buffer L, packet_length H, reason B, table B, cookie Q", MATCH)
"""`ofp_packet_in` (§7.4.1): fields of the match, `PACKET_PAD` and the packet follow."""
PACKET_PAD = 2
"""The bytes of padding before the packet."""
PACKET_OUT = WireLayout("buffer L, in_port L, actions_length H, 6x")
"""`ofp_packet_out` (§7.3.7): actions and the packet follow."""
PORT = WireLayout(
    "port L, 4x, mac 6s, 2x, name 16s, config L, state L, current L, advertised L, supported L",
    "peer L, current_speed L, most_speed L",
)
"""`ofp_port` (§7.2.1); speeds are in kb/s."""
PORT_LIVE = 4
"""Bit of the state of a port: groups of fast failover may use the port (§7.2.1)."""
PORT_STATUS = WireLayout("reason B, 7x", PORT)
"""`ofp_port_status` (§7.4.3)."""

# Multipart requests and entries of replies (§7.3.5)

MULTIPART = WireLayout("kind H, flags H, 4x")
"""`ofp_multipart_request`, and its reply."""
FLOW_REQUEST = WireLayout(
    "table B, 3x, out_port L, out_group L, 4x, cookie Q, cookie_mask Q", MATCH, "4x"
)
"""`ofp_flow_stats_request`, with a match without fields; an aggregate request is the same."""
AGGREGATE_STATS = WireLayout("packets Q, bytes Q, flows L, 4x")
"""`ofp_aggregate_stats_reply` (§7.3.5.3)."""
FLOW_STATS = WireLayout(
    "length H, table B, 1x, seconds L, nanoseconds L, priority H, idle_timeout H, hard_timeout H",
    "flags H, 4x, cookie Q, packets Q, bytes Q",
    MATCH,
)
"""`ofp_flow_stats`: fields of the match and instructions follow."""
GROUP_DESC = WireLayout("length H, type B, 1x, group L")
"""`ofp_group_desc`: buckets follow."""
GROUP_REQUEST = WireLayout("group L, 4x")
"""`ofp_group_stats_request`."""
GROUP_STATS = WireLayout(
    "length H, 2x, group L, references L, 4x, packets Q, bytes Q, seconds L, nanoseconds L"
)
"""`ofp_group_stats`: a `BUCKET_COUNTER` for each bucket follows."""
BUCKET_COUNTER = WireLayout("packets Q, bytes Q")
"""`ofp_bucket_counter` (§7.3.5.6)."""
DESCRIPTION = WireLayout("maker 256s, hardware 256s, software 256s, serial 32s, datapath 256s")
"""`ofp_desc` (§7.3.5.1)."""
SELECT_LIVENESS = 2
"""Bit of the capabilities of groups: select groups pass dead buckets over (§7.3.5.10)."""
GROUP_FEATURES = WireLayout(
    "types L, capabilities L, most_all L, most_select L, most_indirect L, most_fast_failover L",
    "actions_all L, actions_select L, actions_indirect L, actions_fast_failover L",
)
"""`ofp_group_features`: a bit per type of group, the most groups of each."""
TABLE_FEATURES = WireLayout(
    "length H, table B, 5x, name 32s, metadata_match Q, metadata_write Q, config L, most_entries L"
)
"""`ofp_table_features`: properties follow, each a multiple of 8 bytes long with its padding."""
PROPERTY = TYPED
"""`ofp_table_feature_prop_header`; the length leaves the padding out."""
PORT_REQUEST = WireLayout("port L, 4x")
"""`ofp_port_stats_request`."""
PORT_STATS = WireLayout(
    "port L, 4x, received_packets Q, sent_packets Q, received_bytes Q, sent_bytes Q",
    "received_dropped Q, sent_dropped Q, receive_errors Q, send_errors Q, frame_errors Q",
    "overrun_errors Q, crc_errors Q, collisions Q, seconds L, nanoseconds L",
)
"""`ofp_port_stats`."""


def padded(size: int) -> int:
    """The next multiple of 8 bytes, to which matches and actions are padded."""
    return -(-size // 8) * 8


def header(message: bytes | bytearray | memoryview, place: int = 0) -> tuple[int, int, int]:
    """Type, length in bytes and xid of the message that starts at `place`.

    The result is a plain tuple for speed, as every received message is read here.
    """
    _, kind, length, xid = HEADER.struct.unpack_from(message, place)
    return kind, length, xid


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    """A message with its header."""
    return HEADER.struct.pack(VERSION, kind, HEADER.size + len(body), xid) + body
