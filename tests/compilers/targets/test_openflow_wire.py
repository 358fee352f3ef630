"""A switch's program in its bundle, read back against the tables, and by Ryu's parser."""

import struct
from dataclasses import replace
from fractions import Fraction
from ipaddress import IPv4Network, IPv6Network

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.pipeline import compile_fabric
from compilers.routing.minimal_routes import minimal_tables
from compilers.routing.plane_choices import with_plane_alternates, with_plane_repairs
from compilers.routing.split_classes import split_direct
from compilers.spec.address_blocks import ipv4_block_length
from compilers.spec.fabric_file import load_fabric
from compilers.spec.forwarding import PLAIN, Forwarding
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.openflow.emitted_messages import check_messages, message_text
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.group_and_flow_bytes import barrier, commit, opening
from compilers.topology.families import FAMILIES
from compilers.wiring.addressing import Addressing
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.mac_addresses import default_host_macs
from compilers.wiring.wire import wire
from inventory.problems import InputError
from tests.compilers.readers.framework_reader import FrameworkReader
from tests.compilers.routed import with_alternates

ONF, GROUP_MOD = 0x4F4E4600, 15
GATEWAY = 0x025046000001


def build(q=3, hosts=1, ipv4="10.0.0.0/8", ipv6=None, gateway=GATEWAY, first_mac=0):
    topology = FAMILIES["polarfly"].build({"q": q})
    wiring = wire(topology, generated_inventory(topology, hosts), hosts)
    order = topology.graph.order
    return Build(
        name="lab",
        balance="minimal",
        forwarding=PLAIN,
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
        tables=minimal_tables(topology, wiring),
        identity="0123456789abcdef",
    )


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


def check(made):
    """What the messages say is what the tables say, and what Ryu's parser reads."""
    report = check_messages(made)
    assert (report.examples, report.passed) == ((), True)
    encoder, framework = Encoder(made), FrameworkReader("ryu")
    for vertex in range(2):
        data = b"".join(encoder.program(vertex).parts)
        text = message_text(data)
        assert (text.flows, text.groups) == framework.texts(data)


@pytest.mark.parametrize(("q", "hosts", "ipv6"), [(2, 0, None), (3, 1, None), (2, 3, "fd00::/48")])
def test_every_switch_reads_back(q, hosts, ipv6):
    check(build(q, hosts, ipv6=ipv6))


def with_policy(made, disjoint=True, share=None, protect="link"):
    """A build with alternates, and protection or none."""
    forwarding = with_alternates(share, disjoint, protect)
    tables = split_direct(made.tables, made.wiring)
    tables = with_plane_alternates(tables, made.wiring, forwarding)
    if forwarding.repairs:
        tables = with_plane_repairs(tables, made.wiring)
    return replace(made, balance="compact-valiant", forwarding=forwarding, tables=tables)


@pytest.mark.parametrize(
    ("q", "policy"), [(2, {}), (3, {"disjoint": False}), (2, {"share": Fraction(1, 3)})]
)
def test_alternates_and_protection_read_back(q, policy):
    check(with_policy(build(q, 2, ipv6="fd00::/48"), **policy))


def test_alternates_or_protection_alone_read_back():
    made = build(3)
    check(with_policy(made, protect="none", share=Fraction(0)))
    check(with_policy(made, protect="none"))
    tables = with_plane_repairs(split_direct(made.tables, made.wiring), made.wiring)
    check(replace(made, forwarding=Forwarding(protect="link"), tables=tables))


@settings(max_examples=3)
@given(
    hosts=st.integers(0, 20),
    network=st.integers(0, 2**16 - 1),
    site=st.none() | st.integers(0, 2**48 - 1),
    gateway=st.integers(0, 2**48 - 1),
    first_mac=st.integers(0, 2**40),
)
def test_any_addressing_reads_back(hosts, network, site, gateway, first_mac):
    made = build(
        3,
        hosts,
        ipv4=str(IPv4Network((network << 16, 16))),
        ipv6=None if site is None else str(IPv6Network((site << 80, 48))),
        gateway=gateway,
        first_mac=first_mac,
    )
    check(made)


def added(encoder, vertex):
    """The messages that a program's bundle adds: groups, then rows."""
    found = list(unwrap(push(encoder, vertex)))
    return [m for m in found if m[1] == GROUP_MOD], [m for m in found if m[1] != GROUP_MOD]


def test_hosts_that_are_not_there_get_no_rows():
    made = build(2, 2)
    ports = made.wiring.host_port.copy()
    ports[3] = 0
    made = replace(made, wiring=replace(made.wiring, host_port=ports))
    encoder = Encoder(made)
    assert encoder.row_count(3) == encoder.row_count(0) - 8
    assert len(added(encoder, 3)[1]) == encoder.row_count(3)


def test_missing_routes_are_left_out():
    made = build(2)
    egress = made.tables.routes.egress.copy()
    egress[0, 4] = 254
    routes = replace(made.tables.routes, egress=egress)
    encoder = Encoder(replace(made, tables=replace(made.tables, routes=routes)))
    rows = added(encoder, 0)[1]
    gone = made.addressing.network(4).network_address.packed
    assert len(rows) == encoder.row_count(0)
    assert not any(gone in row for row in rows)


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


def test_polarstar_reads_back_with_its_aggregates_and_policy():
    spec = {
        "name": "star",
        "topology": {"family": "polarstar", "q": 2, "supernode": "inductive-quad", "degree": 0},
        "routing": {"balance": "compact-valiant", "protect": "link", "disjoint": "edge"},
    }
    check(replace(compile_fabric(load_fabric(spec)), identity="0123456789abcdef"))
