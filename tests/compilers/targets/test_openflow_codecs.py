"""What we write and read of OpenFlow, by the codecs of Ryu, os-ken and c65of.

What a controller sends is decoded by each, and encoded again to the same bytes. What it reads are
bytes in which each member has another value: each codec finds in them what we find.
"""

from functools import cache
from importlib import import_module

import numpy as np
import pytest

from compilers.tables.folders.build_folder import with_identity
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow import protocol
from compilers.targets.openflow.bundled_blocks import (
    entries,
    flow_deletions,
    group_changes,
    group_deletions,
)
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.profiles import PROFILES
from compilers.targets.openflow.protocol import (
    HEADER,
    MULTIPART,
    WRAPPER_BYTES,
    ControllerRole,
    MessageType,
    Multipart,
    header,
    message,
)
from controller.cluster import roles
from controller.openflow import multipart
from controller.openflow.messages import packets_out
from mininet_scenarios.ovs.management_socket import WHOLE_PACKETS
from tests.compilers.build_digests import Case

POLARFLY = {"family": "polarfly", "q": 3}
ADDRESSED = {"hosts_per_node": 2, "addressing": {"ipv6": "fd00::/48"}}
POLICIES = (
    ("spread", "link"),
    ("compact-valiant", "node"),
    ("minimal", "none"),
    ("valiant", "link"),
)
PORT = (
    "port=port_no mac=hw_addr name config state current=curr advertised supported peer "
    "current_speed=curr_speed most_speed=max_speed"
)
SINCE = "seconds=duration_sec nanoseconds=duration_nsec"
COUNTED = "packets=packet_count bytes=byte_count"
MATCH = "match_type=match.type match_length=match.length"
READ = {
    "FEATURES": (
        MessageType.FEATURES_REPLY,
        "datapath_id buffers=n_buffers tables=n_tables auxiliary=auxiliary_id capabilities",
    ),
    "ROLE": (MessageType.ROLE_REPLY, "role generation=generation_id"),
    "ERROR": (MessageType.ERROR, "type code"),
    "EXPERIMENTER_ERROR": (MessageType.ERROR, "type code=exp_type experimenter"),
    "PORT_STATUS": (MessageType.PORT_STATUS, f"reason {PORT}"),
    "PACKET_IN": (
        MessageType.PACKET_IN,
        f"buffer=buffer_id packet_length=total_len reason table=table_id cookie {MATCH}",
    ),
    "DESCRIPTION": (
        Multipart.DESC,
        "maker=mfr_desc hardware=hw_desc software=sw_desc serial=serial_num datapath=dp_desc",
    ),
    "FLOW_STATS": (
        Multipart.FLOW,
        f"length table=table_id {SINCE} priority idle_timeout hard_timeout flags cookie {COUNTED} "
        + MATCH,
    ),
    "PORT_STATS": (
        Multipart.PORT_STATS,
        "port=port_no received_packets=rx_packets sent_packets=tx_packets "
        "received_bytes=rx_bytes sent_bytes=tx_bytes received_dropped=rx_dropped "
        "sent_dropped=tx_dropped receive_errors=rx_errors send_errors=tx_errors "
        "frame_errors=rx_frame_err overrun_errors=rx_over_err crc_errors=rx_crc_err collisions "
        + SINCE,
    ),
    "GROUP_STATS": (
        Multipart.GROUP,
        f"length group=group_id references=ref_count {COUNTED} {SINCE}",
    ),
    "BUCKET_COUNTER": (Multipart.GROUP, COUNTED),
    "GROUP_DESC": (Multipart.GROUP_DESC, "length type group=group_id"),
    "GROUP_FEATURES": (
        Multipart.GROUP_FEATURES,
        "types capabilities most_all=max_groups.0 most_select=max_groups.1 "
        "most_indirect=max_groups.2 most_fast_failover=max_groups.3 actions_all=actions.0 "
        "actions_select=actions.1 actions_indirect=actions.2 actions_fast_failover=actions.3",
    ),
    "TABLE_FEATURES": (
        Multipart.TABLE_FEATURES,
        "length table=table_id name metadata_match metadata_write config most_entries=max_entries",
    ),
    "PORT": (Multipart.PORT_DESC, PORT),
}
"""Layouts by the message or multipart reply that they are in; what codecs call their members."""


class Codec:
    """One of the three, which have the same names."""

    def __init__(self, name):
        self.name = name
        if name == "c65of":
            self.parser, self.datapath = import_module("c65of.ofproto.parser"), None
            self.decode = self.parser.msg
        else:
            self.parser = import_module(f"{name}.ofproto.ofproto_v1_3_parser")
            known = import_module(f"{name}.ofproto.ofproto_protocol")
            self.datapath = known.ProtocolDesc(version=4)
            self.decode = self.parser.msg_parser

    def read(self, data):
        kind, length, xid = header(data)
        found = self.decode(self.datapath, protocol.VERSION, kind, length, xid, data)
        assert found is not None
        return found

    def written(self, name, xid, *values):
        made = getattr(self.parser, name)(self.datapath, *values)
        made.xid = xid
        made.serialize()
        return bytes(made.buf)

    def again(self, data):
        """A flow-mod or a group-mod, decoded and encoded."""
        kind, _, xid = header(data)
        if kind == MessageType.FLOW_MOD:
            made = self.parser.OFPFlowMod.parser(self.datapath, 4, kind, len(data), xid, data)
            made.serialize()
            return bytes(made.buf)
        said, buckets = protocol.GROUP_MOD.read(data, HEADER.size), []
        place = HEADER.size + protocol.GROUP_MOD.size
        while place < len(data):
            buckets.append(self.parser.OFPBucket.parser(data, place))
            place += buckets[-1].len
        return self.written("OFPGroupMod", xid, said.command, said.type, said.group, buckets)


@pytest.fixture(scope="module", params=["ryu", "os_ken", "c65of"])
def codec(request):
    return Codec(request.param)


def programs():
    """Those of two switches of builds of each kind, for every profile that can do what they do."""
    for balance, protect in POLICIES:
        routing = {"balance": balance, "protect": protect}
        build = with_identity(Case("", POLARFLY, routing, None, ADDRESSED).compiled())
        for profile in list(PROFILES.values())[: 1 if balance in ("spread", "valiant") else None]:
            encoder = Encoder(build, [profile] * build.tables.switches)
            yield encoder.program(0)
            yield encoder.program(5, 1)


@cache
def sent():
    """Messages that add, change and remove rows and groups, without their bundle."""
    blocks = [rows.discovery()]
    for program in programs():
        for block in filter(len, program.flows):
            blocks += [block, flow_deletions(block)]
        for block in filter(len, program.groups):
            blocks += [block, group_changes(block), group_deletions(block)]
    whole = (message for block in blocks for message in entries(block[:, WRAPPER_BYTES:]))
    return list({each[HEADER.size :]: each for each in whole}.values())


def test_rows_and_groups_are_what_each_codec_writes_again(codec):
    messages = sent()
    assert len(messages) > 1000
    unknown = [each for each in messages if codec.again(each) != each]
    raw = [parts.oxm(name, 0)[0] for name in ("nd_reserved", "nd_options_type")]
    assert all(any(field in each for field in raw) for each in unknown)


def test_a_row_is_what_each_codec_writes_from_its_values(codec):
    p = codec.parser
    fields = {"in_port": 5, "metadata": (0x1234, 0xFFFF), "eth_type": 0x0800}
    fields["ipv4_dst"] = 0x0A010200, 0xFFFFFF00
    done = [
        p.OFPActionDecNwTtl(),
        p.OFPActionSetField(eth_dst="02:50:46:00:00:01"),
        p.OFPActionGroup(9),
        p.OFPActionOutput(4, 0),
    ]
    actions = parts.dec_ttl(), parts.set_field("eth_dst", 0x025046000001), parts.group(9)
    if codec.name != "c65of":  # which has no such actions
        done += [
            p.NXActionRegMove("arp_sha_nxm", "arp_tha_nxm", 48),
            p.NXActionRegLoad(31, "reg0", 0),
            p.NXActionBundle(1, 3, 77, 2, 3, 0, "", [6, 7, 8]),
        ]
        moved = parts.reg_move("arp_sha", "arp_tha"), parts.clear("reg0", 0, 32)
        more = *moved, parts.bundle_ports(np.array([6, 7, 8]), 77)
    else:
        more = ()
    ours = parts.flow_add(
        3,
        7,
        0x1122334455667788,
        tuple(
            parts.oxm(name, *value) if isinstance(value, tuple) else parts.oxm(name, value)
            for name, value in fields.items()
        ),
        parts.apply_actions(*actions, parts.output(4), *more),
        parts.write_metadata(0x10002, 0x3FFFF),
        parts.goto_table(6),
    )
    instructions = [
        p.OFPInstructionActions(protocol.Instruction.APPLY_ACTIONS, done),
        p.OFPInstructionWriteMetadata(0x10002, 0x3FFFF),
        p.OFPInstructionGotoTable(6),
    ]
    fields["ipv4_dst"] = "10.1.2.0", "255.255.255.0"
    none = protocol.ANY
    head = 0x1122334455667788, 0, 3, 0, 0, 0, 7, none, none, none, 0
    theirs = codec.written("OFPFlowMod", 9, *head, p.OFPMatch(**fields), instructions)
    assert parts.unbundled(ours, 9, 1).block.tobytes() == theirs


def test_what_a_session_sends_is_what_each_codec_writes(codec):
    p, written = codec.parser, codec.written
    none = protocol.ANY
    asked = {
        Multipart.DESC: ("Desc", b"", ()),
        Multipart.FLOW: (
            "Flow",
            multipart.flows_body(),
            (protocol.ALL_TABLES, none, none, 0, 0, p.OFPMatch()),
        ),
        Multipart.AGGREGATE: (
            "Aggregate",
            multipart.flows_body(),
            (protocol.ALL_TABLES, none, none, 0, 0, p.OFPMatch()),
        ),
        Multipart.PORT_STATS: ("Port", multipart.ports_body(), (none,)),
        Multipart.GROUP: ("Group", multipart.groups_body(), (protocol.ALL_GROUPS,)),
        Multipart.GROUP_DESC: ("GroupDesc", b"", ()),
        Multipart.GROUP_FEATURES: ("GroupFeatures", b"", ()),
        Multipart.TABLE_FEATURES: ("TableFeatures", b"", ([],)),
        Multipart.PORT_DESC: ("PortDesc", b"", ()),
    }
    assert set(asked) == set(Multipart)
    for kind, (name, body, values) in asked.items():
        assert multipart.request(kind, 9, body) == written(f"OFP{name}StatsRequest", 9, 0, *values)
    role = roles.role_request(ControllerRole.MASTER, 1 << 40)
    assert role == written("OFPRoleRequest", header(role)[2], ControllerRole.MASTER, 1 << 40)
    barrier = rows.barrier(3)
    assert barrier == written("OFPBarrierRequest", header(barrier)[2])
    assert written("OFPSetConfig", 0, 0, protocol.WHOLE_PACKET) == WHOLE_PACKETS
    frame = np.arange(60, dtype=np.uint8)
    out = packets_out(np.array([7]), frame[None])
    action = p.OFPActionOutput(7, 0)
    to = protocol.ANY, protocol.CONTROLLER, [action], frame.tobytes()
    assert out == written("OFPPacketOut", header(out)[2], *to)


def test_bundles_are_what_each_codec_writes(codec):
    """c65of has them as messages of an experimenter."""
    added = sent()[0]
    add = rows.bundled_add(header(added)[0], added[HEADER.size :], header(added)[2])
    controls = rows.opening(), rows.commit(), rows.discard(5)
    if codec.name == "c65of":
        for each in (*controls, add):
            found = codec.read(each)
            kind = protocol.OnfMessage(found.exp_type)
            assert (found.experimenter, kind) == (protocol.ONF, 2301 if each is add else 2300)
            found.serialize()
            assert found.buf == each
        return
    kinds = protocol.Bundle.OPEN, protocol.Bundle.COMMIT, protocol.Bundle.DISCARD
    for each, kind in zip(controls, kinds, strict=True):
        values = rows.BUNDLE, kind, protocol.ORDERED_ATOMIC, []
        assert each == codec.written("ONFBundleCtrlMsg", header(each)[2], *values)
    inner = codec.read(added)
    values = rows.BUNDLE, protocol.ORDERED_ATOMIC, inner, []
    assert add == codec.written("ONFBundleAddMsg", header(added)[2], *values)


def drawn(layout):
    """A structure of which every byte has another value, but for types and lengths."""
    known = {"match_type": protocol.OXM_MATCH, "match_length": protocol.MATCH.size}
    known["length"] = layout.size
    if layout is protocol.EXPERIMENTER_ERROR:
        known["type"] = protocol.ErrorType.EXPERIMENTER
    if "match_type" in layout.formats:
        known["length"] += 4  # the padding of a match without fields
    said = layout.read(bytes(1 + place % 100 for place in range(layout.size)))._asdict()
    return layout.pack(**said | {name: known[name] for name in known.keys() & said.keys()})


def plain(value):
    """A member as all have it: text, addresses and numbers."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0")
    if isinstance(value, str):
        return bytes.fromhex(value.replace(":", "")) if ":" in value else value.encode()
    return value


def member(found, path):
    for name in path.split("."):
        found = found[int(name)] if name.isdigit() else getattr(found, name)
    return found


@pytest.mark.parametrize("name", READ)
def test_each_codec_finds_in_bytes_what_we_find(name, codec):
    layout, (kind, known) = getattr(protocol, name), READ[name]
    data = drawn(layout)
    said = layout.read(data)._asdict()
    names = {text.partition("=")[0]: text.rpartition("=")[2] for text in known.split()}
    if within := {"BUCKET_COUNTER": protocol.GROUP_STATS}.get(name):
        data = within.pack(length=within.size + layout.size) + data
    data += bytes(6) if "match_type" in layout.formats else b""
    if isinstance(kind, Multipart):
        data = MULTIPART.pack(kind=kind) + data[: len(data) // 8 * 8]
        found = codec.read(message(MessageType.MULTIPART_REPLY, 1, data)).body
        found = found[0] if isinstance(found, list) else found
    else:
        found = codec.read(message(kind, 1, data))
    nested = {"BUCKET_COUNTER": "bucket_stats.0", "PORT_STATUS": "desc"}.get(name)
    for ours, value in said.items():
        path = names.pop(ours)
        at = member(found, nested) if nested and ours != "reason" else found
        assert plain(member(at, path)) == plain(value), ours
    assert not names
