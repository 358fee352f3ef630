"""What a switch of our own says in a session, for tests of the fabric's sessions."""

from ryu.ofproto import ofproto_v1_3, ofproto_v1_3_parser

from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow import protocol
from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.profiles import OVS
from tests.controller.reported import DESCRIPTION, as_entries, multipart

OPENED, COMMITTED = 11 << 24, 11 << 24 | 1
BAD_GROUP_TYPE = (ofproto_v1_3.OFPET_GROUP_MOD_FAILED, ofproto_v1_3.OFPGMFC_BAD_TYPE)
MARKER = rows.marker(0x5047 << 48)


def row(number):
    """A bundled flow-mod that adds a row with this cookie number."""
    body = parts.flow_add(1, number, 0x5046 << 48, (), parts.goto_table(2))
    return parts.block(rows.bundled_add(14, b"".join(body.body), 50 + number))


class Programs:
    def __init__(self, *ids):
        self.by_datapath_id = {number: vertex for vertex, number in enumerate(ids or (11, 12))}
        self.able = OVS

    def program(self, vertex, _=0):
        return FlowProgram((), (row(vertex), MARKER))

    def profile(self, vertex):  # noqa: ARG002
        return self.able

    def restrict(self, vertex, able):  # noqa: ARG002
        self.able = able

    def describe(self, number):
        return f"row {number}"


def names(type_, code):
    ryu = ofproto_v1_3
    return ryu.ofp_error_type_to_str(type_), ryu.ofp_error_code_to_str(type_, code)


def error(type_, code, xid):
    """An error as Ryu writes it, quoting a flow-mod with this xid."""
    quoted = protocol.message(14, xid, bytes(56))
    made = ofproto_v1_3_parser.OFPErrorMsg(ofproto_v1_3, type_, code, quoted)
    made.datapath = type("Datapath", (), {"ofproto": ofproto_v1_3})
    made.version, made.xid = 4, xid
    made.serialize()
    return bytes(made.buf)


REPLY = parts.bundle_control(protocol.Bundle.COMMIT_REPLY, rows.BUNDLE, 7)


def entries(program):
    return b"".join(entry for block in program.flows for entry in as_entries(block))


def sent(fabric, key):
    """What has been sent to a connection since the last look, together."""
    return b"".join(out.data for out in fabric.send.take() if out.key == key)


def questions(fabric, key):
    """The xids of the requests by kind; that of who made the switch is answered."""
    found, data = {}, sent(fabric, key)
    while data:
        kind, length, xid = protocol.header(data)
        if kind == protocol.MessageType.MULTIPART_REQUEST:
            found[protocol.MULTIPART.read(data, protocol.HEADER.size).kind] = xid
        data = data[length:]
    if made := found.pop(0, None):
        fabric.received(key, multipart(0, made, DESCRIPTION))
    return found


def tell(fabric, key, flows=b"", groups=b""):
    """Answer what the fabric has asked; the switch holds this. Returns what it then sends."""
    asked = questions(fabric, key)
    fabric.received(key, multipart(1, asked[1], flows))
    fabric.received(key, multipart(7, asked[7], groups))
    return sent(fabric, key)


def orders(fabric, key):
    """What has been sent but for questions, which are left to answer."""
    asked, out = protocol.MessageType.MULTIPART_REQUEST, fabric.send.take()
    fabric.send += [one for one in out if one.data and protocol.header(one.data)[0] == asked]
    return b"".join(one.data for one in out if one.key == key and one not in fabric.send)


def barrier(fabric, key, xid):
    """Confirm a barrier; returns what is then sent, but for questions."""
    fabric.received(key, protocol.message(protocol.MessageType.BARRIER_REPLY, xid))
    return orders(fabric, key)


def check(fabric, key, rows=2):
    """Answer the question how many rows the switch holds, and which groups."""
    asked = questions(fabric, key)
    fabric.received(key, multipart(2, asked[2], protocol.AGGREGATE_STATS.pack(flows=rows)))
    fabric.received(key, multipart(7, asked[7]))


def commit(fabric, key, xid=COMMITTED):
    """The switch confirms its bundle, and holds what it should."""
    fabric.received(key, REPLY)
    fabric.received(key, protocol.message(protocol.MessageType.BARRIER_REPLY, xid))
    check(fabric, key)


def connect(fabric, key, datapath_id, peer=""):
    """A switch that holds nothing, up to its filled bundle."""
    fabric.connected(key, datapath_id, peer)
    return tell(fabric, key)


def program(fabric, key, datapath_id, peer=""):
    connect(fabric, key, datapath_id, peer)
    assert barrier(fabric, key, OPENED) == rows.commit() + rows.barrier(1)
    commit(fabric, key)


def kinds(fabric):
    return [(event.kind, event.node) for event in fabric.take_events()]


def slow(fabric):
    """The connected switches that have not answered for a while, and may be hung."""
    return {vertex for vertex, switch in fabric.present.items() if switch.connection.is_slow}
