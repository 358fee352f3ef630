"""Packets for the collectors: read by os-ken's own parser; rows for the database."""

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.openflow.protocol import MessageType, header
from compilers.wiring.mac_addresses import format_mac
from mininet_scenarios.ovs.frames import HASHED, FrameWriter, frame_number, links_of
from mininet_scenarios.ovs.management_socket import frame_out
from mininet_scenarios.scenario.engine import HostSample


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    file = tmp_path_factory.mktemp("packets") / "fabric.yaml"
    topology = "topology: {family: polarfly, q: 3}"
    file.write_text(
        f'name: lab\n{topology}\nhosts_per_node: 2\naddressing: {{ipv6: "fd00::/48"}}\n'
    )
    return compile_fabric(load_fabric(file))


@pytest.mark.parametrize("version", [4, 6])
def test_an_independent_reader_finds_the_packet(build, version):
    from os_ken.lib.packet import ipv4, ipv6, packet
    from os_ken.ofproto import ofproto_v1_3_parser as parser

    hosts = HostSample.of(build)
    writer = FrameWriter(build, hosts, version)
    frames = writer.of_kind(HASHED, np.array([3]), np.array([20]), np.array([1029]), 7)
    ((name, data),) = frames.by_host(hosts.names)
    assert (name, frame_number(data), links_of(data)) == (hosts.names[3], 7, -1)
    out = frame_out(data, 4)
    assert header(out)[:2] == (MessageType.PACKET_OUT, len(out))
    action = parser.OFPAction.parser(out, 24)
    assert (action.port, out[4:8]) == (4, b"\0\0\0\0")
    read = packet.Packet(out[40:])
    ethernet, ip, tcp = read.protocols[:3]
    at, to = ((int(hosts.switch[i]), int(hosts.number[i])) for i in (3, 20))
    a = build.addressing
    assert (ethernet.src, ethernet.dst) == (a.mac(*at), format_mac(a.gateway_mac))
    address = a.host if version == 4 else a.host6
    assert (ip.src, ip.dst) == (str(address(*at)), str(address(*to)))
    assert (ip.ttl if version == 4 else ip.hop_limit) == 64
    assert isinstance(ip, ipv4.ipv4 if version == 4 else ipv6.ipv6)
    assert (tcp.src_port, tcp.bits) == (1029, 4)
    if version == 4:
        words = np.frombuffer(out[54:74], ">u2").sum(dtype=int)
        assert (words & 0xFFFF) + (words >> 16) == 0xFFFF


@pytest.mark.parametrize("version", [4, 6])
def test_an_independent_reader_finds_the_questions(build, version):
    """Its parser, and its checksum of a neighbour's message (RFC 4443, §2.3)."""
    from os_ken.lib.packet import arp, icmpv6, packet
    from os_ken.lib.packet.packet_utils import checksum_ip

    hosts, a = HostSample.of(build), build.addressing
    at = int(hosts.switch[3]), int(hosts.number[3])
    router = str(a.gateway(at[0]) if version == 4 else a.network6(at[0])[1])
    questions = FrameWriter(build, hosts, version).questions()
    (asked,) = (q for q in questions if q.answer and q.sent[0] == hosts.names[3])
    assert [q.answer for q in questions if q.sent[0] == hosts.names[3] and q is not asked] == (
        [None, None] if version == 4 else [None]
    )
    for data, kind in ((asked.sent[1], 1), (asked.answer, 2)):
        ethernet, *others = packet.Packet(data).protocols
        assert (ethernet.src == a.mac(*at)) == (kind == 1)
        if version == 4:
            (message,) = others
            assert isinstance(message, arp.arp)
            assert message.opcode == kind
            assert router == (message.dst_ip if kind == 1 else message.src_ip)
            continue
        ip, message = others
        assert message.type_ == (icmpv6.ND_NEIGHBOR_SOLICIT, icmpv6.ND_NEIGHBOR_ADVERT)[kind - 1]
        assert message.data.dst == router
        assert message.data.option.hw_src == (
            a.mac(*at) if kind == 1 else format_mac(a.gateway_mac)
        )
        assert checksum_ip(ip, len(data) - 54, data[54:]) == 0
