"""What we write and read of OpenFlow, by the codecs of Ryu, os-ken and c65of.

What a controller sends is decoded by each, and encoded again to the same bytes. What it reads are
bytes in which each member has another value: each codec finds in them what we find.
"""

from functools import cache
from importlib import import_module

import numpy as np
import pytest

from compilers.tables.folders.build_folder import identified
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
from controller.openflow.packet_io import packets_out
from mininet_scenarios.ovs.management_socket import WHOLE_PACKETS
from tests.compilers.build_digests import Case

POLARFLY = {"family": "polarfly", "q": 3}
ADDRESSED = {"hosts_per_node": 2, "addressing": {"ipv6": "fd00::/48"}}
POLICIES = ("spread", "link"), ("compact-valiant", "node"), ("minimal", "none")
PORT = (
    *("port_no", "hw_addr", "name", "config", "state", "curr", "advertised", "supported", "peer"),
    *("curr_speed", "max_speed"),
)
READ = {
    "FEATURES": (
        MessageType.FEATURES_REPLY,
        "datapath_id n_buffers n_tables auxiliary_id capabilities",
    ),
    "ROLE": (MessageType.ROLE_REPLY, "role generation_id"),
    "ERROR": (MessageType.ERROR, "type code"),
    "EXPERIMENTER_ERROR": (MessageType.ERROR, "type exp_type experimenter"),
    "PORT_STATUS": (MessageType.PORT_STATUS, " desc.".join(("reason", *PORT))),
    "PACKET_IN": (
        MessageType.PACKET_IN,
        "buffer_id total_len reason table_id cookie match.type match.length",
    ),
    "DESCRIPTION": (Multipart.DESC, "mfr_desc hw_desc sw_desc serial_num dp_desc"),
    "FLOW_STATS": (
        Multipart.FLOW,
        "length table_id duration_sec duration_nsec priority idle_timeout hard_timeout flags "
        "cookie packet_count byte_count match.type match.length",
    ),
    "PORT_STATS": (
        Multipart.PORT_STATS,
        "port_no rx_packets tx_packets rx_bytes tx_bytes rx_dropped tx_dropped rx_errors "
        "tx_errors rx_frame_err rx_over_err rx_crc_err collisions duration_sec duration_nsec",
    ),
    "GROUP_STATS": (
        Multipart.GROUP,
        "length group_id ref_count packet_count byte_count duration_sec duration_nsec",
    ),
    "BUCKET_COUNTER": (
        Multipart.GROUP,
        "bucket_stats.0.packet_count bucket_stats.0.byte_count",
    ),
    "GROUP_DESC": (Multipart.GROUP_DESC, "length type group_id"),
    "GROUP_FEATURES": (
        Multipart.GROUP_FEATURES,
        "types capabilities max_groups.0 max_groups.1 max_groups.2 max_groups.3 "
        "actions.0 actions.1 actions.2 actions.3",
    ),
    "TABLE_FEATURES": (
        Multipart.TABLE_FEATURES,
        "length table_id name metadata_match metadata_write config max_entries",
    ),
    "PORT": (Multipart.PORT_DESC, " ".join(PORT)),
}
"""Layouts by the message or the multipart reply, and the names that the codecs have for members."""


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
        build = identified(Case("", POLARFLY, routing, None, ADDRESSED).compiled())
        for profile in list(PROFILES.values())[: 1 if balance == "spread" else None]:
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


def test_what_a_session_sends_is_what_each_codec_writes(codec):
    p, written = codec.parser, codec.written
    none = protocol.ANY
    asked = {
        Multipart.DESC: ("Desc", b"", ()),
        Multipart.FLOW: (
            "Flow",
            multipart.flows_wanted(),
            (protocol.ALL_TABLES, none, none, 0, 0, p.OFPMatch()),
        ),
        Multipart.PORT_STATS: ("Port", multipart.ports_wanted(), (none,)),
        Multipart.GROUP: ("Group", multipart.groups_wanted(), (protocol.ALL_GROUPS,)),
        Multipart.GROUP_DESC: ("GroupDesc", b"", ()),
        Multipart.GROUP_FEATURES: ("GroupFeatures", b"", ()),
        Multipart.TABLE_FEATURES: ("TableFeatures", b"", ([],)),
        Multipart.PORT_DESC: ("PortDesc", b"", ()),
    }
    assert set(asked) == set(Multipart)
    for kind, (name, body, values) in asked.items():
        assert multipart.request(kind, 9, body) == written(f"OFP{name}StatsRequest", 9, 0, *values)
    role = roles.request(ControllerRole.MASTER, 1 << 40)
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
    layout, (kind, paths) = getattr(protocol, name), READ[name]
    data = drawn(layout)
    said = layout.read(data)
    if name == "BUCKET_COUNTER":
        length = protocol.GROUP_STATS.size + layout.size
        data = protocol.GROUP_STATS.pack(length=length) + data
    data += bytes(6) if "match_type" in layout.formats else b""
    if isinstance(kind, Multipart):
        data = MULTIPART.pack(kind=kind) + data[: len(data) // 8 * 8]
        found = codec.read(message(MessageType.MULTIPART_REPLY, 1, data)).body
        found = found[0] if isinstance(found, list) else found
    else:
        found = codec.read(message(kind, 1, data))
    theirs = [plain(member(found, path)) for path in paths.split()]
    assert theirs == [plain(value) for value in said]
