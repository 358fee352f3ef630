"""The wire bytes, read by Ryu's and os-ken's own parsers, against rules written out here."""

import importlib
import math
import struct
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from ipaddress import IPv4Network, IPv6Network

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.pipeline import compile_fabric
from compilers.routing.minimal_routes import minimal
from compilers.routing.plane_choices import compact_valiant, polarfly
from compilers.routing.split_classes import split_direct
from compilers.spec.address_blocks import ipv4_block_length
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes, no_route
from compilers.targets.capabilities import Capabilities
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import barrier, commit, opening
from compilers.topology.families import FAMILIES
from compilers.wiring.addressing import Addressing, default_host_macs
from compilers.wiring.wiring import generated_inventory, wire
from inventory.problems import InputError
from tests.compilers.targets.openflow_expected import class_rules, expected

ONF = 0x4F4E4600
GATEWAY = 0x025046000001


def build(q=3, hosts=1, ipv4="10.0.0.0/8", ipv6=None, gateway=GATEWAY, first_mac=0):
    topology = FAMILIES["polarfly"].build({"q": q})
    wiring = wire(topology, generated_inventory(topology, hosts), hosts)
    order = topology.graph.order
    return Build(
        name="lab",
        balance="minimal",
        protect="none",
        inputs={},
        topology=topology,
        wiring=wiring,
        addressing=Addressing(
            ipv4=IPv4Network(ipv4),
            ipv4_length=ipv4_block_length(hosts),
            ipv6=IPv6Network(ipv6) if ipv6 else None,
            gateway_mac=gateway,
            host_mac=default_host_macs(order, hosts) + np.uint64(first_mac),
        ),
        tables=minimal(topology, wiring),
        identity="0123456789abcdef",
    )


MOVED = {"nd_target": "ipv6_nd_target"}
"""Nicira's names of fields where OpenFlow has another."""


class Reader:
    """A framework's own parser."""

    def __init__(self, name):
        self.parser = importlib.import_module(f"{name}.ofproto.ofproto_v1_3_parser")
        protocol = importlib.import_module(f"{name}.ofproto.ofproto_protocol")
        self.datapath = protocol.ProtocolDesc(version=4)

    def flow(self, data):
        version, kind, length, xid = struct.unpack_from(">BBHL", data)
        assert (version, kind, length) == (4, 14, len(data))
        message = self.parser.OFPFlowMod.parser(self.datapath, version, kind, length, xid, data)
        assert (message.idle_timeout, message.hard_timeout, message.flags) == (0, 0, 0)
        return message

    def rule(self, message):
        match = dict(message.match.items())
        done = [part for i in message.instructions for part in self._instruction(i)]
        return (message.table_id, message.priority, message.cookie, match, done)

    def _instruction(self, instruction):
        name = type(instruction).__name__.removeprefix("OFPInstruction")
        if name == "GotoTable":
            return [("goto", instruction.table_id)]
        if name == "WriteMetadata":
            return [("metadata", instruction.metadata, instruction.metadata_mask)]
        assert (name, instruction.type) == ("Actions", 4)
        return [self.action(action) for action in instruction.actions]

    def action(self, action):
        name = type(action).__name__
        if name == "OFPActionOutput":
            return ("output", action.port)
        if name == "OFPActionGroup":
            return ("group", action.group_id)
        if name == "OFPActionSetField":
            return ("set", action.key, action.value)
        if name == "NXActionRegMove":
            if action.src_field == "nw_ttl":
                ends = (action.src_field, action.src_ofs), (action.dst_field, action.dst_ofs)
                bits = [part for end in ends for part in end]
                return ("move", *bits, action.n_bits)
            assert (action.src_ofs, action.dst_ofs) == (0, 0)
            ends = (MOVED.get(end, end) for end in (action.src_field, action.dst_field))
            return ("move", *(end.removesuffix("_nxm") for end in ends), action.n_bits)
        if name == "NXActionRegLoad":
            first, bits = divmod(action.ofs_nbits, 64)
            return ("load", action.dst.removesuffix("_nxm"), first, bits + 1, action.value)
        assert name == "OFPActionDecNwTtl"
        return ("dec_ttl",)


@pytest.fixture(scope="module", params=["ryu", "os_ken"])
def reader(request):
    return Reader(request.param)


def messages(data):
    while data:
        (length,) = struct.unpack_from(">H", data, 2)
        assert 8 <= length <= len(data)
        yield data[:length]
        data = data[length:]


def push(encoder, vertex):
    """A program in its bundle, as it is sent to a switch that holds nothing."""
    parts = encoder.program(vertex).parts
    return b"".join([opening(), *parts, barrier(0), commit(), barrier(1)])


def unwrap(data):
    """The messages that a program's bundle adds, after checks of all that is around them."""
    found = list(messages(data))
    controls = [struct.unpack(">BBHLLLLHH", m) for m in (found[0], found[-2])]
    assert [c[:3] + c[4:] for c in controls] == [
        (4, 4, 24, ONF, 2300, 0x5046, 0, 3),
        (4, 4, 24, ONF, 2300, 0x5046, 4, 3),
    ]
    barriers = [struct.unpack(">BBHL", m) for m in (found[-3], found[-1])]
    assert [b[:3] for b in barriers] == [(4, 20, 8)] * 2
    assert len({b[3] for b in barriers}) == 2
    for message in found[1:-3]:
        head = struct.unpack_from(">BBHLLLLHH", message)
        assert head[:3] + head[4:] == (4, 4, len(message), ONF, 2301, 0x5046, 0, 3)
        assert struct.unpack_from(">L", message, 28)[0] == head[3], "inner and outer xid"
        yield message[24:]


def program(encoder, reader, vertex):
    """(groups as (id, type, buckets), rules) of a switch."""
    groups, rules = [], []
    for data in unwrap(push(encoder, vertex)):
        if data[1] == 15:
            command, kind, number = struct.unpack_from(">HBxL", data, 8)
            assert command == 0
            groups.append((number, kind, list(buckets(reader, data))))
            continue
        message = reader.flow(data)
        assert message.command == 0
        rules.append(reader.rule(message))
    return groups, rules


def buckets(reader, data):
    """(weight, watched port, watched group, actions …) of each bucket of a group-mod."""
    place = 16
    while place < len(data):
        bucket = reader.parser.OFPBucket.parser(data, place)
        actions = map(reader.action, bucket.actions)
        yield bucket.weight, bucket.watch_port, bucket.watch_group, *actions
        place += bucket.len
    assert place == len(data)


def leads_to(buckets):
    return [action[1] for *_, action in buckets if action[0] == "group"]


def plain(rules):
    """Rules as texts in an order of their own."""
    return sorted(
        repr((t, p, hex(c), sorted(match.items()), done)) for t, p, c, match, done in rules
    )


def check(made, reader, vertices):
    encoder = Encoder(made)
    for vertex in vertices:
        groups, rules = program(encoder, reader, vertex)
        assert sorted(groups) == sorted(class_rules(made, vertex)[0])
        added = [0, *(number for number, _, _ in groups)]
        assert all(added.index(g) < added.index(n) for n, _, made in groups for g in leads_to(made))
        assert plain(rules) == plain(expected(made, vertex))
        assert len(rules) == encoder.rows(vertex)
        assert rules[-1][2] >> 48 == 0x5047, "the marker comes last"


@pytest.mark.parametrize("q", [2, 3, 4])
@pytest.mark.parametrize(
    ("hosts", "ipv6"), [(0, None), (1, None), (0, "fd00::/48"), (3, "fd00::/48")]
)
def test_every_switch_reads_back_to_its_rules(q, hosts, ipv6, reader):
    made = build(q, hosts, ipv6=ipv6)
    check(made, reader, range(made.tables.switches))


def with_policy(made, disjoint=True, share=None, protect=True):
    """A build with alternates, and protection or none."""
    tables = split_direct(made.tables, made.wiring)
    tables = compact_valiant(tables, made.wiring, disjoint, share)
    balance = "compact-valiant"
    if not protect:
        return replace(made, balance=balance, tables=tables)
    tables = polarfly(tables, made.wiring)
    return replace(made, balance=balance, protect="link", tables=tables)


@pytest.mark.parametrize("q", [2, 3, 4, 7])
@pytest.mark.parametrize("policy", [{}, {"disjoint": False}, {"share": Fraction(1, 3)}])
def test_alternates_and_protection_read_back(q, policy, reader):
    made = with_policy(build(q, 2, ipv6="fd00::/48"), **policy)
    check(made, reader, range(0, made.tables.switches, 3))


def test_alternates_or_protection_alone_read_back():
    made = build(3)
    check(with_policy(made, protect=False, share=Fraction(0)), RYU, range(13))
    check(with_policy(made, protect=False), RYU, range(13))
    tables = polarfly(split_direct(made.tables, made.wiring), made.wiring)
    check(replace(made, protect="link", tables=tables), RYU, range(13))


@settings(max_examples=40)
@given(data=st.data())
def test_any_classes_read_back(data):
    made = build(2)

    def numbers(most, *shape):
        values = st.lists(
            st.integers(0, most), min_size=math.prod(shape), max_size=math.prod(shape)
        )
        return np.array(data.draw(values)).reshape(shape)

    def ports(count):
        """Different ports, those that are none anywhere."""
        order = np.argsort(numbers(255, 7, 4, 6), axis=2, kind="stable")[..., :count] + 1
        return order * numbers(1, 7, 4, count)

    ways = ports(4)
    protection = ports(3)
    port = np.where(numbers(9, 7, 4), ways[..., 0] + 10 * (ways[..., 0] == 0), 0)
    protection[protection == port[..., None]] = 0
    bounce = ports(2)
    bounce[bounce == port[..., None]] = 0
    classes = Classes(
        port=port,
        alternate=ways[..., 1:],
        weight=numbers(3, 7, 4, 4).astype(np.uint16),
        protection=np.take_along_axis(protection, np.argsort(protection == 0, axis=2), axis=2),
        bounce=bounce,
    )
    check(replace(made, tables=replace(made.tables, classes=classes)), RYU, range(7))


@settings(max_examples=25)
@given(
    hosts=st.integers(0, 20),
    network=st.integers(0, 2**16 - 1),
    site=st.none() | st.integers(0, 2**48 - 1),
    gateway=st.integers(0, 2**48 - 1),
    first_mac=st.integers(0, 2**40),
    vertex=st.integers(0, 12),
)
def test_any_addressing_reads_back(hosts, network, site, gateway, first_mac, vertex):
    made = build(
        3,
        hosts,
        ipv4=str(IPv4Network((network << 16, 16))),
        ipv6=None if site is None else str(IPv6Network((site << 80, 48))),
        gateway=gateway,
        first_mac=first_mac,
    )
    check(made, RYU, [vertex])


RYU = Reader("ryu")


def again(flow):
    """What Ryu itself sends for a flow-mod that it has read."""
    flow.serialize()
    return bytes(flow.buf)


def unnoticed(row):
    """The bytes of a flow-mod whose flipping Ryu would not notice."""
    before = str(RYU.flow(row))
    for place in range(len(row)):
        wrong = bytearray(row)
        wrong[place] ^= 1
        with suppress(Exception):
            flow = RYU.flow(bytes(wrong))
            if str(flow) == before and again(flow) == wrong:
                yield place


def test_every_wrong_byte_is_noticed():
    encoder = Encoder(build(2, ipv6="fd00::/48"))
    for kind in (RowKind.OWN, RowKind.ROUTE, RowKind.HOST, RowKind.CLASS, RowKind.MARKER):
        row = next(m for m in messages(push(encoder, 0)) if m[4] == kind)[24:]
        assert set(unnoticed(row)) <= {4, 5, 6, 7}, "all but the xid"


def test_hosts_that_are_not_there_get_no_rows():
    made = build(2, 2)
    ports = made.wiring.host_port.copy()
    ports[3] = 0
    made = replace(made, wiring=replace(made.wiring, host_port=ports))
    encoder = Encoder(made)
    assert encoder.rows(3) == encoder.rows(0) - 4
    assert len(program(encoder, RYU, 3)[1]) == encoder.rows(3)


def test_missing_routes_are_left_out():
    made = build(2)
    egress = made.tables.routes.egress.copy()
    egress[0, 4] = 254
    routes = replace(made.tables.routes, egress=egress)
    encoder = Encoder(replace(made, tables=replace(made.tables, routes=routes)))
    rules = program(encoder, RYU, 0)[1]
    gone = str(made.addressing.network(4).network_address)
    assert len(rules) == encoder.rows(0)
    assert not any(gone in str(rule[3]) for rule in rules)


def test_xids_say_what_messages_are_about():
    encoder = Encoder(build(2, 1, ipv6="fd00::/48"))
    words = [
        encoder.describe(struct.unpack_from(">L", m, 4)[0]) for m in messages(push(encoder, 1))
    ]
    for text in (
        "start of the bundle",
        "group of egress class 2",
        "route 4 (10.0.0.16/30)",
        "route 4 (fd00:0:0:4::/64)",
        "silence about the own address of host 0",
        "host 0",
        "egress class 0",
        "build marker",
        "commit of the bundle",
    ):
        assert text in words
    assert encoder.describe(0xFFFFFF01) == "message 0xffffff01"
    assert encoder.by_datapath_id == {v + 1: v for v in range(7)}


def test_builds_that_differ_only_in_a_class_differ_only_in_that_row_and_the_marker():
    made = build(3)
    egress = made.tables.routes.egress.copy()
    egress[2, 7] = (egress[2, 7] + 1) % 3
    routes = replace(made.tables.routes, egress=egress)
    other = replace(made, tables=replace(made.tables, routes=routes), identity="fedcba9876543210")
    old, new = (set(messages(push(Encoder(b), 2))) for b in (made, other))
    words = sorted(Encoder(made).describe(struct.unpack_from(">L", m, 4)[0]) for m in new - old)
    assert words == ["build marker", "route 7 (10.0.0.28/30)"]


def test_aggregated_routes_and_too_many_classes_are_refused():
    made = build(2)
    prefix = made.tables.routes.prefix.copy()
    prefix[:, 6] = 7
    classes = replace(made.tables.classes, port=np.ones((7, 1025), np.int32))
    tables = replace(
        made.tables, routes=replace(made.tables.routes, prefix=prefix), classes=classes
    )
    wide = replace(made, tables=tables)
    with pytest.raises(InputError) as error:
        Capabilities().require(wide, "simple")
    assert "without aggregated routes" in str(error.value)
    with pytest.raises(InputError) as error:
        Encoder(wide)
    assert "at most 1024 groups per switch for target openflow, given 1025" in str(error.value)


def test_a_target_of_few_groups_takes_one_a_class():
    made = build(2)
    ports = np.pad(made.tables.classes.port, ((0, 0), (0, 1)))  # and a number that no class has
    classes = replace(made.tables.classes, port=ports)
    made = replace(made, tables=replace(made.tables, classes=classes))
    most = int(np.count_nonzero(ports, axis=1).max())
    Capabilities(groups=most).require(made, "simple")
    with pytest.raises(InputError, match=f"at most {most - 1} groups .* given {most};"):
        Capabilities(groups=most - 1).require(made, "simple")


def test_polarstar_reads_back_with_its_aggregates_and_policy(tmp_path):
    path = tmp_path / "fabric.yaml"
    path.write_text(
        "name: star\ntopology: {family: polarstar, q: 3, supernode: inductive-quad, degree: 3}\n"
        "routing: {balance: compact-valiant, protect: link, disjoint: edge}\n"
    )
    made = replace(compile_fabric(load_fabric(path)), identity="0123456789abcdef")
    encoder, a, routes = Encoder(made), made.addressing, made.tables.routes
    for vertex in range(0, made.tables.switches, 9):
        groups, rules = program(encoder, RYU, vertex)
        expected_groups, expected_rules = class_rules(made, vertex)
        assert sorted(groups) == sorted(expected_groups)
        assert plain([r for r in rules if r[0] == 2]) == plain(expected_rules)
        found = {
            (r[1], r[3]["ipv4_dst"]): r[4][0][1] for r in rules if r[0] == 1 and r[2] & 0xF == 4
        }
        rows = zip(routes.prefixes(vertex).tolist(), routes.egress[vertex].tolist(), strict=True)
        networks = {a.network(p): k for p, k in rows if k < no_route(routes.egress)}
        assert found == {
            (n.prefixlen, (str(n.network_address), str(n.netmask))): k for n, k in networks.items()
        }
        # Packets for nobody at home would go round.
        assert not {a.network(vertex), a.network(int(routes.aggregate[vertex]))} & set(networks)
    assert any(leads_to(buckets) for _, _, buckets in groups)


def test_an_unsaved_build_has_no_marker():
    with pytest.raises(ValueError, match="invalid literal"):
        Encoder(replace(build(2), identity=""))


def test_the_encoder_needs_no_controller_framework():
    code = (
        "import sys, compilers.targets.openflow.encoder as _; "
        "print([m for m in sys.modules if 'ryu' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
