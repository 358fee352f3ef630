"""Crafts the frames that hosts send, many at once, and the frames that have to arrive.

A rehearsal sends them through Open vSwitch, to try each row of a switch and to probe the paths
between hosts (`mininet_scenarios.traffic`). The headers of a frame are followed by a trailer with
the frame's number, and by padding up to its size.
TCP frames have the reset flag, and checksums of UDP, TCP and ICMP are wrong, so that no host
answers. Switches do not look at these checksums. Frames whose ports are to change their path are
TCP, because Open vSwitch's hash leaves UDP ports out.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.spec.address_blocks import FIRST_HOST
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS
from compilers.targets.openflow.answer_rows import (
    ADVERTISEMENT,
    ARP,
    ICMPV6,
    REPLY,
    REQUEST,
    SOLICITATION,
    TARGET_LINK_LAYER,
)
from compilers.targets.openflow.flow_tables import ND_ANSWER_FLAGS
from compilers.targets.openflow.message_parts import mac_bytes
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.observations import hops_of

ETHERTYPES = {4: 0x0800, 6: 0x86DD}
"""The ethertype of each version of the Internet protocol."""
LOCAL_EXPERIMENT = 0x88B5
"""An ethertype for local experiments (IEEE 802). Only the last row of a switch matches it."""
BROADCAST = b"\xff" * 6
"""The broadcast MAC address, at which all hosts receive."""
UDP_NUMBER, TCP_NUMBER = 17, 6
"""The protocol numbers in an IP header."""
ECHO_REPLY = {4: (1, 0), 6: (58, 129)}
"""The protocol number and the type of ICMP's answer to an echo request; no host answers it."""
RESET = 4
"""The reset flag of TCP."""
WORD_BYTES, DATA_OFFSET_SHIFT = 4, 4
"""TCP's data offset is the length of its header in words of so many bytes, shifted by so many bits
in its byte (RFC 9293, §3.1)."""
TRAFFIC_CLASS_SHIFT = 20
"""The lowest bit of the traffic class in the first word of an IPv6 header (RFC 8200, §3)."""
FIRST_TTL = MOST_HOPS
"""The time to live of a sent packet: one that visits more switches than a verified path may counts
as looping, and is dropped by the switches, too."""
DISCARD = 9
"""The destination port: the discard service, which answers nothing (RFC 863)."""
FULL_PACKET, SMALL_PACKET = 1500, 0
"""Bytes of a packet: the most that Ethernet takes, or as few as it can have."""
WRONG_CHECKSUM = 0xBAD1
"""The checksum of UDP, TCP and ICMP: hosts drop such a packet, and switches do not look at it."""
MAGIC = b"plfr"
"""The bytes by which a frame of polarfab is known."""
SOURCE_LINK_LAYER = 1
"""The type of neighbour discovery's option with the sender's MAC address (RFC 4861, §4.6.1)."""
HOP_LIMIT = 255
"""The hop limit of neighbour discovery (RFC 4861, §7.1)."""
PADDING_PERIOD = 251
"""The bytes of padding count up from 0, and begin again after so many: so they show where bytes are
lost or moved."""
LONGEST_DIFFERENCE = 100
"""The most characters that describe a difference between two members of a frame."""


def _header(members: str) -> np.dtype[np.void]:
    """A header of members NAME:TYPE, in the types of numpy."""
    return np.dtype([tuple(member.split(":")) for member in members.split()])


ETHERNET = _header("to:6u1 from:6u1 ethertype:>u2")
"""The header of Ethernet."""
IP = {
    4: _header(
        "version:u1 traffic_class:u1 length:>u2 identity:>u2 fragment:>u2 ttl:u1 protocol:u1 "
        "checksum:>u2 from:(1,)>u4 to:(1,)>u4"
    ),
    6: _header("version:>u4 length:>u2 protocol:u1 ttl:u1 from:2>u8 to:2>u8"),
}
"""The headers of IPv4 (RFC 791, §3.1) and IPv6 (RFC 8200, §3)."""
IP_VERSION = {4: 0x45, 6: 6 << 28}
"""The value of the member `version`: for IPv4 also the header's length, five words of 32 bits."""
TCP = _header(
    "from:>u2 to:>u2 sequence:>u4 acknowledged:>u4 data_offset:u1 flags:u1 window:>u2 checksum:>u2 "
    "urgent:>u2"
)
"""The header of TCP (RFC 9293, §3.1)."""
UDP = _header("from:>u2 to:>u2 length:>u2 checksum:>u2")
"""The header of UDP (RFC 768)."""
ICMP = _header("kind:u1 code:u1 checksum:>u2 identity:>u2 sequence:>u2")
"""The header of an echo (RFC 792; RFC 4443, §4)."""
TRAILER = _header("magic:S4 number:>u4")
"""The trailer after the headers of a crafted frame: `MAGIC`, and the number of the frame."""
MEMBER_NAMES = {
    ("ethernet", "to"): "destination MAC address",
    ("ethernet", "from"): "source MAC address",
    ("ip", "traffic_class"): "DSCP or ECN",
    ("ip", "version"): "version or traffic class",
    ("ip", "ttl"): "time to live",
    ("segment", "data_offset"): "data offset",
    ("trailer", "magic"): "trailer magic",
    ("trailer", "number"): "trailer number",
    ("padding", ""): "padding",
}
"""By header and member, what reports call the member."""
HostFrame = tuple[str, bytes]
"""A host by its name, and a frame that it sends or gets."""


@dataclass(frozen=True, slots=True)
class FrameKind:
    """A kind of packet."""

    protocol: str
    """The protocol."""
    size: int
    """The bytes of a packet, at least."""
    traffic_class: int
    """The traffic class (IPv4: type of service): DSCP in the upper six bits, ECN below."""

    def __str__(self) -> str:
        """`UDP, 1500 bytes, DSCP 46`."""
        size = f"{self.size} bytes" if self.size else "small"
        return f"{self.protocol}, {size}, DSCP {self.traffic_class >> 2}"


FRAME_KINDS = (
    FrameKind("UDP", SMALL_PACKET, 46 << 2),
    FrameKind("UDP", FULL_PACKET, 0),
    FrameKind("TCP", FULL_PACKET, 10 << 2 | 2),
    FrameKind("ICMP", SMALL_PACKET, 34 << 2),
)
"""The kinds that every pair of hosts exchanges: each protocol, both sizes, several traffic
classes."""
HASHED = FrameKind("TCP", SMALL_PACKET, 0)
"""The kind whose ports change its path, because Open vSwitch's hash takes them in."""


@dataclass(frozen=True, slots=True, eq=False)
class CraftedFrames:
    """n frames of a kind from hosts to hosts: as sent, and as they have to arrive."""

    kind: FrameKind
    """The kind of packet."""
    version: int
    """The version of the Internet protocol."""
    source: NDArray[np.int64]
    """int64[n], the number of the sending host."""
    destination: NDArray[np.int64]
    """int64[n], the number of the receiving host."""
    sent: NDArray[np.void]
    """[n] the frames as they are sent."""
    arriving: NDArray[np.void]
    """[n] the frames as they have to arrive, with the time to live of a packet that has crossed
    no link.
    """

    def __len__(self) -> int:
        return len(self.source)

    def by_host(self, names: Sequence[str]) -> list[HostFrame]:
        """The frames, each with the name of the host that sends it."""
        width, data = self.sent.dtype.itemsize, self.sent.tobytes()
        rows = (data[start : start + width] for start in range(0, len(data), width))
        return list(zip((names[i] for i in self.source.tolist()), rows, strict=True))

    def difference(self, number: int, data: bytes) -> tuple[int, str]:
        """Compare an arrived frame with the frame of this number that had to arrive.

        Returns:
            The links that the frame has crossed, and in words what differs; "" if nothing does.
        """
        if len(data) != self.arriving.dtype.itemsize:
            return 0, f"{len(data)} bytes instead of {self.arriving.dtype.itemsize}"
        arrived = np.frombuffer(data, self.arriving.dtype)
        links = FIRST_TTL - 1 - int(arrived["ip"]["ttl"][0])
        required = self.arriving[number : number + 1].copy()
        _decrement_ttl(required["ip"], self.version, links)
        if required.tobytes() == data:
            return links, ""
        return links, "; ".join(_unequal(required, arrived))


@dataclass(frozen=True, slots=True)
class Question:
    """A frame from a host, and the frame that it gets back."""

    words: str
    """The question in words."""
    sent: HostFrame
    """The frame from the host."""
    answer: bytes | None
    """The frame that the host gets back; None for silence."""


class FrameWriter:
    """Writes frames of one version of the Internet protocol as they leave their hosts."""

    def __init__(self, build: Build, hosts: HostSample, version: int) -> None:
        self.hosts, self.plan, self.version = hosts, build.addressing, version
        plan = self.plan
        places = zip(hosts.switch.tolist(), hosts.number.tolist(), strict=True)
        if version == 4:
            addresses = [int(plan.host(switch, number)) for switch, number in places]
            self.address = np.array(addresses, ">u4")[:, None]
        else:
            packed = b"".join(plan.host6(switch, number).packed for switch, number in places)
            self.address = np.frombuffer(packed, ">u8").reshape(-1, 2)
        self.gateway_mac = mac_bytes(np.array([plan.gateway_mac], np.uint64))
        """uint8[1, 6], the MAC address of the gateway."""
        self.mac = mac_bytes(plan.host_mac[hosts.switch, hosts.number])
        """uint8[H, 6], the MAC addresses of the hosts."""

    def frames(
        self,
        source: NDArray[np.int64],
        destination: NDArray[np.int64],
        protocol: int,
        payload: Sequence[tuple[str, Any]],
        traffic_class: int = 0,
    ) -> NDArray[np.void]:
        """[n] frames with the headers of Ethernet and IP, and a payload of zeros.

        Args:
            source: int64[n], the sending hosts.
            destination: int64[n], the receiving hosts.
            protocol: the protocol number of the payload.
            payload: the parts of the payload, by name and type.
            traffic_class: the traffic class, DSCP and ECN.
        """
        ip_header = IP[self.version]
        members = [("ethernet", ETHERNET), ("ip", ip_header), *payload]
        frames: NDArray[np.void] = np.zeros(len(source), np.dtype(members))
        ethernet, ip = frames["ethernet"], frames["ip"]
        ethernet["to"], ethernet["from"] = self.gateway_mac, self.mac[source]
        ethernet["ethertype"] = ETHERTYPES[self.version]
        ip["from"], ip["to"] = self.address[source], self.address[destination]
        ip["protocol"], ip["ttl"] = protocol, FIRST_TTL
        ip["length"] = frames.dtype.itemsize - ETHERNET.itemsize
        if self.version == 4:
            ip["version"], ip["traffic_class"] = IP_VERSION[4], traffic_class
            ip["checksum"] = checksum(ip)
        else:
            ip["version"] = IP_VERSION[6] | traffic_class << TRAFFIC_CLASS_SHIFT
            ip["length"] -= ip_header.itemsize
        return frames

    def of_kind(
        self,
        kind: FrameKind,
        source: NDArray[np.int64],
        destination: NDArray[np.int64],
        ports: NDArray[np.int64] | int,
        first: int,
    ) -> CraftedFrames:
        """Frames of one kind from hosts to hosts.

        Args:
            kind: the kind of packet.
            source: int64[n], the sending hosts.
            destination: int64[n], the receiving hosts.
            ports: the source ports of UDP or TCP, or the identifiers of an ICMP echo: int64[n], or
                one for all.
            first: the number of the first frame.
        """
        numbers = {"UDP": UDP_NUMBER, "TCP": TCP_NUMBER, "ICMP": ECHO_REPLY[self.version][0]}
        segment = {"UDP": UDP, "TCP": TCP, "ICMP": ICMP}[kind.protocol]
        ip_bytes = IP[self.version].itemsize
        padding = max(0, kind.size - ip_bytes - segment.itemsize - TRAILER.itemsize)
        members: list[tuple[str, Any]] = [("segment", segment), ("trailer", TRAILER)]
        if padding:
            members.append(("padding", f"V{padding}"))
        sent = self.frames(source, destination, numbers[kind.protocol], members, kind.traffic_class)
        _segment(sent["segment"], kind.protocol, self.version, ports)
        if kind.protocol == "UDP":
            sent["segment"]["length"] = sent.dtype.itemsize - ETHERNET.itemsize - ip_bytes
        sent["trailer"]["magic"] = MAGIC
        sent["trailer"]["number"] = first + np.arange(len(source))
        if padding:
            sent["padding"] = np.void(bytes(i % PADDING_PERIOD for i in range(padding)))
        arriving = sent.copy()
        arriving["ethernet"]["to"] = self.mac[destination]
        arriving["ethernet"]["from"] = self.gateway_mac
        _decrement_ttl(arriving["ip"], self.version, 1)
        return CraftedFrames(
            kind,
            version=self.version,
            source=source,
            destination=destination,
            sent=sent,
            arriving=arriving,
        )

    def questions(self) -> list[Question]:
        """The frames by which hosts ask for addresses, and of IPv4 one that no row matches.

        Each host asks for its own address, to which nobody answers, and for that of its gateway.
        """
        questions = []
        for host, name in enumerate(self.hosts.names):
            addresses = _Addresses(self.mac[host].tobytes(), self.address[host].tobytes())
            gateway = self._gateway(host)
            if self.version == 4:
                protocol, frames = "ARP", _arp_frames(addresses, gateway)
                ethertype = LOCAL_EXPERIMENT.to_bytes(2, "big")
                unknown = BROADCAST + addresses.mac + ethertype + bytes(46)
                questions.append(Question(f"{name}: unknown frame", (name, unknown), None))
            else:
                protocol, frames = "neighbour discovery", _neighbour_frames(addresses, gateway)
            words = f"{name}: {protocol} for its own address"
            questions.append(Question(words, (name, frames.probe), None))
            words = f"{name}: {protocol} for its gateway"
            questions.append(Question(words, (name, frames.request), frames.answer))
        return questions

    def _gateway(self, host: int) -> _Addresses:
        """The addresses of a host's gateway."""
        switch = int(self.hosts.switch[host])
        if self.version == 4:
            router = self.plan.gateway(switch).packed
        else:
            router = self.plan.network6(switch)[FIRST_HOST - 1].packed
        return _Addresses(self.gateway_mac.tobytes(), router)


@dataclass(frozen=True, slots=True)
class _Addresses:
    """The addresses of a host, a gateway or a group of hosts."""

    mac: bytes
    """The MAC address."""
    ip: bytes
    """The IPv4 or IPv6 address."""


@dataclass(frozen=True, slots=True)
class _ResolutionFrames:
    """The frames of address resolution between a host and its gateway."""

    probe: bytes
    """The host asks whether another host has its address."""
    request: bytes
    """The host asks for the gateway's MAC address."""
    answer: bytes
    """The gateway's answer."""


def checksum(headers: NDArray[np.void]) -> NDArray[np.int64]:
    """int64[n]: the Internet checksum of each header (RFC 1071)."""
    words = np.ascontiguousarray(headers).view(">u2").reshape(len(headers), headers.itemsize // 2)
    total: NDArray[np.int64] = words.sum(axis=1, dtype=np.int64)
    total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - ((total & 0xFFFF) + (total >> 16))


def frame_number(data: bytes) -> int | None:
    """The number of a crafted frame; None if the frame has no trailer."""
    start = data.find(MAGIC)
    trailer = data[start : start + TRAILER.itemsize]
    if start < 0 or len(trailer) < TRAILER.itemsize:
        return None
    return int.from_bytes(trailer[len(MAGIC) :], "big")


def links_of(data: bytes) -> int:
    """How many links a frame has crossed, by its TTL (hop limit)."""
    ethertype = data[ETHERNET.itemsize - 2 : ETHERNET.itemsize]  # the last member of the header
    version = 4 if int.from_bytes(ethertype, "big") == ETHERTYPES[4] else 6
    _, offset = IP[version].fields["ttl"][:2]  # type: ignore[index]
    return hops_of(data[ETHERNET.itemsize + offset])


def _segment(
    segment: NDArray[np.void], protocol: str, version: int, ports: NDArray[np.int64] | int
) -> None:
    """Fill in the headers above IP, with a checksum that is wrong."""
    segment["checksum"] = WRONG_CHECKSUM
    if protocol == "ICMP":
        segment["kind"], segment["identity"] = ECHO_REPLY[version][1], ports
        return
    segment["from"], segment["to"] = ports, DISCARD
    if protocol == "TCP":
        segment["data_offset"] = TCP.itemsize // WORD_BYTES << DATA_OFFSET_SHIFT
        segment["flags"] = RESET


def _decrement_ttl(headers: NDArray[np.void], version: int, links: int) -> None:
    """Lower the TTL (hop limit) by the links crossed, and compute the IPv4 header's checksum."""
    headers["ttl"] -= links
    if version == 4:
        headers["checksum"] = 0
        headers["checksum"] = checksum(headers)


def _unequal(required: NDArray[np.void], arrived: NDArray[Any]) -> list[str]:
    """The members in which two frames differ, in words."""
    differences = []
    for part in required.dtype.names or ():
        for name in required[part].dtype.names or ("",):
            required_bytes = _member(required, part, name)
            arrived_bytes = _member(arrived, part, name)
            if required_bytes != arrived_bytes:
                words = MEMBER_NAMES.get((part, name), f"{part} {name}".strip())
                difference = f"{words} {arrived_bytes.hex()} instead of {required_bytes.hex()}"
                if len(difference) >= LONGEST_DIFFERENCE:
                    difference = f"{difference.split()[0]} differs"
                differences.append(difference)
    return differences


def _member(frame: NDArray[Any], part: str, name: str) -> bytes:
    """A member of a part of a frame; the whole part if `name` is ""."""
    return bytes((frame[part][name] if name else frame[part]).tobytes())


def _arp_frames(host: _Addresses, gateway: _Addresses) -> _ResolutionFrames:
    """The frames of ARP between a host and its gateway."""
    unknown = bytes(6)
    return _ResolutionFrames(
        probe=_arp(
            BROADCAST, REQUEST, _Addresses(host.mac, bytes(4)), _Addresses(unknown, host.ip)
        ),
        request=_arp(BROADCAST, REQUEST, host, _Addresses(unknown, gateway.ip)),
        answer=_arp(host.mac, REPLY, gateway, host),
    )


def _arp(to: bytes, operation: int, sender: _Addresses, target: _Addresses) -> bytes:
    """A frame of ARP for Ethernet and IPv4 (RFC 826)."""
    head = struct.pack("!HHHBBH", ARP, 1, ETHERTYPES[4], 6, 4, operation)
    return b"".join((to, sender.mac, head, sender.mac, sender.ip, target.mac, target.ip))


def _neighbour_frames(host: _Addresses, gateway: _Addresses) -> _ResolutionFrames:
    """The frames of neighbour discovery between a host and its gateway."""
    source_option = bytes((SOURCE_LINK_LAYER, 1)) + host.mac
    target_option = bytes((TARGET_LINK_LAYER, 1)) + gateway.mac
    return _ResolutionFrames(
        probe=_neighbour_message(
            _Addresses(host.mac, bytes(16)), _solicited_node(host.ip), 0, host.ip, b""
        ),
        request=_neighbour_message(host, _solicited_node(gateway.ip), 0, gateway.ip, source_option),
        answer=_neighbour_message(gateway, host, ND_ANSWER_FLAGS, gateway.ip, target_option),
    )


def _solicited_node(address: bytes) -> _Addresses:
    """The multicast addresses by which a node is asked (RFC 2464, §7; RFC 4291, §2.7.1)."""
    mac = b"\x33\x33\xff" + address[-3:]
    return _Addresses(mac, bytes.fromhex("ff0200000000000000000001ff") + address[-3:])


def _neighbour_message(
    sender: _Addresses, receiver: _Addresses, flags: int, target: bytes, option: bytes
) -> bytes:
    """A solicitation, or with flags an advertisement (RFC 4861, §4.3, §4.4).

    Args:
        sender: of the frame.
        receiver: of the frame.
        flags: of an advertisement; 0 for a solicitation.
        target: the IPv6 address that the message is about.
        option: a link-layer address, or nothing.
    """
    kind = ADVERTISEMENT if flags else SOLICITATION
    body = struct.pack("!I", flags) + target + option
    length = 4 + len(body)  # the type, the code and the checksum take four bytes
    ends = sender.ip + receiver.ip
    # The checksum covers a pseudo-header, too (RFC 4443, §2.3).
    unsummed = ends + struct.pack("!IIBBH", length, ICMPV6, kind, 0, 0) + body
    total = int(checksum(np.frombuffer(unsummed, f"V{len(unsummed)}"))[0])
    head = struct.pack("!BBH", kind, 0, total)
    ip = struct.pack("!IHBB", IP_VERSION[6], length, ICMPV6, HOP_LIMIT)
    ethertype = struct.pack("!H", ETHERTYPES[6])
    return b"".join((receiver.mac, sender.mac, ethertype, ip, ends, head, body))
