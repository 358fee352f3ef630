"""Requests of hosts to their own switch, by ARP and neighbour discovery, and the answers due."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from compilers.spec.address_blocks import FIRST_HOST
from compilers.tables.build import Build
from compilers.targets.openflow.flow_tables import ND_ANSWER_FLAGS
from compilers.targets.openflow.group_and_flow_bytes import (
    ADVERTISEMENT,
    ARP,
    ICMPV6,
    IPV6,
    REPLY,
    REQUEST,
    SOLICITATION,
    TARGET_LINK_LAYER,
)
from mininet_scenarios.ovs.collector_frames import HostFrame
from mininet_scenarios.scenario.engine import HostSample

BROADCAST = b"\xff" * 6
LOCAL_EXPERIMENT = 0x88B5
"""An ethertype for local experiments (IEEE 802): no switch has a rule for it but the last."""
SOURCE_LINK_LAYER = 1
HOP_LIMIT = 255


@dataclass(frozen=True, slots=True)
class Question:
    """A frame from a host, in words, and the frame that it gets back; None for silence."""

    words: str
    sent: HostFrame
    answer: bytes | None


def questions(build: Build, hosts: HostSample) -> list[Question]:
    """All questions of all hosts, and one frame each that no rule knows."""
    found = []
    places = hosts.names, hosts.switch.tolist(), hosts.number.tolist()
    for name, switch, number in zip(*places, strict=True):
        found += _arp(build, switch, number, name)
        if build.addressing.ipv6 is not None:
            found += _nd(build, switch, number, name)
        mac = _mac(build, switch, number)
        unknown = BROADCAST + mac + struct.pack("!H", LOCAL_EXPERIMENT) + bytes(46)
        found.append(Question(f"{name}: unknown frame", (name, unknown), None))
    return found


def _mac(build: Build, switch: int, number: int) -> bytes:
    return int(build.addressing.host_mac[switch, number]).to_bytes(6, "big")


def _arp(build: Build, switch: int, number: int, name: str) -> list[Question]:
    plan, mac = build.addressing, _mac(build, switch, number)
    gateway = int(plan.gateway_mac).to_bytes(6, "big")
    own, router = plan.host(switch, number).packed, plan.gateway(switch).packed
    probe = _arp_frame(BROADCAST, mac, REQUEST, (mac, bytes(4)), (bytes(6), own))
    asked = _arp_frame(BROADCAST, mac, REQUEST, (mac, own), (bytes(6), router))
    answer = _arp_frame(mac, gateway, REPLY, (gateway, router), (mac, own))
    return [
        Question(f"{name}: ARP for its own address", (name, probe), None),
        Question(f"{name}: ARP for its gateway", (name, asked), answer),
    ]


def _arp_frame(
    to: bytes, source: bytes, operation: int, sender: tuple[bytes, bytes], target: tuple[bytes, ...]
) -> bytes:
    """RFC 826, for Ethernet and IPv4."""
    head = struct.pack("!HHHBBH", ARP, 1, 0x0800, 6, 4, operation)
    return b"".join((to, source, head, *sender, *target))


def _nd(build: Build, switch: int, number: int, name: str) -> list[Question]:
    plan, mac = build.addressing, _mac(build, switch, number)
    gateway = int(plan.gateway_mac).to_bytes(6, "big")
    own, router = plan.host6(switch, number).packed, plan.network6(switch)[FIRST_HOST - 1].packed
    probe = _nd_frame((b"\x33\x33\xff" + own[-3:], mac), (bytes(16), _group(own)), 0, own, b"")
    option = bytes((SOURCE_LINK_LAYER, 1)) + mac
    asked = _nd_frame(
        (b"\x33\x33\xff" + router[-3:], mac), (own, _group(router)), 0, router, option
    )
    option = bytes((TARGET_LINK_LAYER, 1)) + gateway
    answer = _nd_frame((mac, gateway), (router, own), ND_ANSWER_FLAGS, router, option)
    return [
        Question(f"{name}: neighbour discovery for its own address", (name, probe), None),
        Question(f"{name}: neighbour discovery for its gateway", (name, asked), answer),
    ]


def _group(address: bytes) -> bytes:
    """The solicited-node multicast address (RFC 4291, §2.7.1)."""
    return bytes.fromhex("ff0200000000000000000001ff") + address[-3:]


def _nd_frame(
    macs: tuple[bytes, bytes], ends: tuple[bytes, bytes], flags: int, target: bytes, option: bytes
) -> bytes:
    """A solicitation, or with flags an advertisement (RFC 4861, §4.3, §4.4)."""
    kind = ADVERTISEMENT if flags else SOLICITATION
    rest = struct.pack("!I", flags) + target + option
    length = 4 + len(rest)
    pseudo = b"".join((*ends, struct.pack("!II", length, ICMPV6)))
    unsummed = pseudo + struct.pack("!BBH", kind, 0, 0) + rest
    total = sum(struct.unpack(f"!{len(unsummed) // 2}H", unsummed))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    head = struct.pack("!BBH", kind, 0, 0xFFFF - total)
    ip = struct.pack("!IHBB", 6 << 28, length, ICMPV6, HOP_LIMIT)
    return b"".join((*macs, struct.pack("!H", IPV6), ip, *ends, head, rest))
