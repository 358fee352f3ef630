"""Frames of hosts, the only place that writes them: many at once, and how they have to arrive.

They are of every kind, and end with a mark, which numbers them, and a filling up to their size. TCP
has the reset flag, so that no host answers; Open vSwitch's hash leaves UDP ports out. Checksums of
UDP, TCP and ICMP are wrong, so that no host answers; switches do not look at them.
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
from compilers.targets.openflow.flow_tables import ND_ANSWER_FLAGS
from compilers.targets.openflow.group_and_flow_bytes import (
    ADVERTISEMENT,
    ARP,
    ICMPV6,
    REPLY,
    REQUEST,
    SOLICITATION,
    TARGET_LINK_LAYER,
)
from compilers.targets.openflow.message_parts import mac_bytes
from mininet_scenarios.scenario.engine import HostSample, hops_of

TCP_NUMBER, RESET = 6, 4
ETHERTYPES = {4: 0x0800, 6: 0x86DD}


def _header(members: str) -> np.dtype[np.void]:
    """A header of members NAME:TYPE, in the types of numpy."""
    return np.dtype([tuple(member.split(":")) for member in members.split()])


ETHERNET = _header("to:6u1 from:6u1 ethertype:>u2")
IP = {
    4: _header(
        "version:u1 service:u1 length:>u2 identity:>u2 fragment:>u2 ttl:u1 protocol:u1 "
        "checksum:>u2 from:(1,)>u4 to:(1,)>u4"
    ),
    6: _header("version:>u4 length:>u2 protocol:u1 ttl:u1 from:2>u8 to:2>u8"),
}
"""The headers of IPv4 (RFC 791, §3.1) and IPv6 (RFC 8200, §3)."""
IP_VERSION = {4: 0x45, 6: 6 << 28}
"""The version, for IPv4 with the header's length: five words."""
TCP = _header(
    "from:>u2 to:>u2 sequence:>u4 acknowledged:>u4 words:u1 flags:u1 window:>u2 checksum:>u2 "
    "urgent:>u2"
)
"""RFC 9293, §3.1."""

UDP_NUMBER, DISCARD = 17, 9
ECHO_REPLY = {4: (1, 0), 6: (58, 129)}
"""Protocol and type of ICMP's answer to an echo request; no host answers that."""
FULL_PACKET, SMALL_PACKET = 1500, 0
"""Bytes of a packet: the most that Ethernet takes, or as few as it can have."""
WRONG_CHECKSUM = 0xBAD1
UDP = _header("from:>u2 to:>u2 length:>u2 checksum:>u2")
"""RFC 768."""
ICMP = _header("kind:u1 code:u1 checksum:>u2 identity:>u2 sequence:>u2")
"""An echo (RFC 792; RFC 4443, §4)."""
FRAME_MARK = _header("magic:S4 number:>u4")
MAGIC = b"plfr"


@dataclass(frozen=True, slots=True)
class FrameKind:
    """A kind of packet."""

    protocol: str
    """The protocol."""
    size: int
    """The bytes of a packet, at least."""
    service: int
    """The traffic class: DSCP and ECN."""

    def __str__(self) -> str:
        """`UDP, 1500 bytes, DSCP 46`."""
        size = f"{self.size} bytes" if self.size else "small"
        return f"{self.protocol}, {size}, DSCP {self.service >> 2}"


FRAME_KINDS = (
    FrameKind("UDP", SMALL_PACKET, 46 << 2),
    FrameKind("UDP", FULL_PACKET, 0),
    FrameKind("TCP", FULL_PACKET, 10 << 2 | 2),
    FrameKind("ICMP", SMALL_PACKET, 34 << 2),
)
"""Those that every pair of hosts exchanges: each protocol, both sizes, several traffic classes."""
HASHED = FrameKind("TCP", SMALL_PACKET, 0)
"""The kind whose ports Open vSwitch's hash takes in."""


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
    """The frames as they are sent."""
    arriving: NDArray[np.void]
    """The frames as they have to arrive, with the time to live of a packet that has crossed no
    link.
    """

    def __len__(self) -> int:
        return len(self.source)

    def by_host(self, names: Sequence[str]) -> list[HostFrame]:
        """The frames, each with the name of the host that sends it."""
        width, data = self.sent.dtype.itemsize, self.sent.tobytes()
        rows = (data[place : place + width] for place in range(0, len(data), width))
        return list(zip((names[i] for i in self.source.tolist()), rows, strict=True))

    def difference(self, number: int, data: bytes) -> tuple[int, str]:
        """Links that an arrived frame has crossed, and what is not as it has to be; "" if whole."""
        if len(data) != self.arriving.dtype.itemsize:
            return 0, f"{len(data)} bytes instead of {self.arriving.dtype.itemsize}"
        got = np.frombuffer(data, self.arriving.dtype)
        links = MOST_HOPS - 1 - int(got["ip"]["ttl"][0])
        right = self.arriving[number : number + 1].copy()
        _decrement_ttl(right["ip"], self.version, links)
        if right.tobytes() == data:
            return links, ""
        return links, "; ".join(_unequal(right, got))


BROADCAST = b"\xff" * 6
LOCAL_EXPERIMENT = 0x88B5
"""An ethertype for local experiments (IEEE 802): no switch has a rule for it but the last."""
SOURCE_LINK_LAYER = 1
HOP_LIMIT = 255
HostFrame = tuple[str, bytes]
"""A host by its name, and a frame that it sends or gets."""


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
    """Writes frames of one version of the Internet protocol as they leave their hosts.

    gateway: uint8[1, 6], its MAC address; mac, address: those of the hosts.
    """

    def __init__(self, build: Build, hosts: HostSample, version: int) -> None:
        self.hosts, self.plan, self.version = hosts, build.addressing, version
        plan = self.plan
        at = zip(hosts.switch.tolist(), hosts.number.tolist(), strict=True)
        if version == 4:
            self.address = np.array([int(plan.host(*host)) for host in at], ">u4")[:, None]
        else:
            packed = b"".join(plan.host6(*host).packed for host in at)
            self.address = np.frombuffer(packed, ">u8").reshape(-1, 2)
        self.gateway = mac_bytes(np.array([plan.gateway_mac], np.uint64))
        self.mac = mac_bytes(plan.host_mac[hosts.switch, hosts.number])

    def frames(
        self,
        source: NDArray[np.int64],
        destination: NDArray[np.int64],
        protocol: int,
        behind: Sequence[tuple[str, Any]],
        service: int = 0,
    ) -> NDArray[np.void]:
        """[n] frames with the headers of Ethernet and IP; what is behind these is zeros.

        Args:
            source: int64[n], hosts.
            destination: int64[n].
            protocol: the number of what is behind.
            behind: the members of that, by name and type.
            service: the traffic class, DSCP and ECN.
        """
        form = IP[self.version]
        members = [("ethernet", ETHERNET), ("ip", form), *behind]
        frames: NDArray[np.void] = np.zeros(len(source), np.dtype(members))
        ethernet, ip = frames["ethernet"], frames["ip"]
        ethernet["to"], ethernet["from"] = self.gateway, self.mac[source]
        ethernet["ethertype"] = ETHERTYPES[self.version]
        ip["from"], ip["to"] = self.address[source], self.address[destination]
        ip["protocol"], ip["ttl"] = protocol, MOST_HOPS
        ip["length"] = frames.dtype.itemsize - ETHERNET.itemsize
        if self.version == 4:
            ip["version"], ip["service"] = IP_VERSION[4], service
            ip["checksum"] = checksum(ip)
        else:
            ip["version"] = IP_VERSION[6] | service << 20
            ip["length"] -= form.itemsize
        return frames

    def of_kind(
        self,
        kind: FrameKind,
        source: NDArray[np.int64],
        destination: NDArray[np.int64],
        ports: NDArray[np.int64] | int,
        first: int,
    ) -> CraftedFrames:
        """Frames from hosts to hosts, int64[n] each, with these source ports, numbered from."""
        numbers = {"UDP": UDP_NUMBER, "TCP": TCP_NUMBER, "ICMP": ECHO_REPLY[self.version][0]}
        segment = {"UDP": UDP, "TCP": TCP, "ICMP": ICMP}[kind.protocol]
        head = IP[self.version].itemsize
        filling = max(0, kind.size - head - segment.itemsize - FRAME_MARK.itemsize)
        members: list[tuple[str, Any]] = [("segment", segment), ("mark", FRAME_MARK)]
        if filling:
            members.append(("filling", f"V{filling}"))
        sent = self.frames(source, destination, numbers[kind.protocol], members, kind.service)
        _segment(sent["segment"], kind.protocol, self.version, ports)
        if kind.protocol == "UDP":
            sent["segment"]["length"] = sent.dtype.itemsize - ETHERNET.itemsize - head
        sent["mark"]["magic"] = MAGIC
        sent["mark"]["number"] = first + np.arange(len(source))
        if filling:
            sent["filling"] = np.void(bytes(i % 251 for i in range(filling)))
        arriving = sent.copy()
        arriving["ethernet"]["to"] = self.mac[destination]
        arriving["ethernet"]["from"] = self.gateway
        _decrement_ttl(arriving["ip"], self.version, 1)
        return CraftedFrames(kind, self.version, source, destination, sent, arriving)

    def questions(self) -> list[Question]:
        """What every host asks, by ARP or neighbour discovery, and one frame that no rule knows."""
        questions, gateway = [], self.gateway.tobytes()
        for host, name in enumerate(self.hosts.names):
            mac, address = self.mac[host].tobytes(), self.address[host].tobytes()
            switch = int(self.hosts.switch[host])
            if self.version == 4:
                router, what = self.plan.gateway(switch).packed, "ARP"
                probe = _arp(BROADCAST, mac, REQUEST, (mac, bytes(4)), (bytes(6), address))
                request = _arp(BROADCAST, mac, REQUEST, (mac, address), (bytes(6), router))
                answer = _arp(mac, gateway, REPLY, (gateway, router), (mac, address))
                unknown = BROADCAST + mac + LOCAL_EXPERIMENT.to_bytes(2, "big") + bytes(46)
                questions.append(Question(f"{name}: unknown frame", (name, unknown), None))
            else:
                router = self.plan.network6(switch)[FIRST_HOST - 1].packed
                what, option = "neighbour discovery", bytes((SOURCE_LINK_LAYER, 1)) + mac
                probe = _nd(
                    (_group(address)[0], mac), (bytes(16), _group(address)[1]), 0, address, b""
                )
                request = _nd(
                    (_group(router)[0], mac), (address, _group(router)[1]), 0, router, option
                )
                option = bytes((TARGET_LINK_LAYER, 1)) + gateway
                answer = _nd((mac, gateway), (router, address), ND_ANSWER_FLAGS, router, option)
            questions.append(Question(f"{name}: {what} for its own address", (name, probe), None))
            questions.append(Question(f"{name}: {what} for its gateway", (name, request), answer))
        return questions


def checksum(headers: NDArray[np.void]) -> NDArray[np.int64]:
    """int64[n]: the Internet checksum of each (RFC 1071)."""
    words = np.ascontiguousarray(headers).view(">u2").reshape(len(headers), headers.itemsize // 2)
    total: NDArray[np.int64] = words.sum(axis=1, dtype=np.int64)
    total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - ((total & 0xFFFF) + (total >> 16))


def marked(data: bytes) -> int | None:
    """The number of one of our frames."""
    place = data.find(MAGIC) + len(MAGIC)
    if place < len(MAGIC) or place + 4 > len(data):
        return None
    return int.from_bytes(data[place : place + 4], "big")


def links_of(data: bytes) -> int:
    """How many links a frame has crossed, by its TTL (hop limit)."""
    four = int.from_bytes(data[12:14], "big") == ETHERTYPES[4]
    return hops_of(data[ETHERNET.itemsize + IP[4 if four else 6].fields["ttl"][1]])  # type: ignore[index]


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
        segment["words"], segment["flags"] = TCP.itemsize // 4 << 4, RESET


def _decrement_ttl(headers: NDArray[np.void], version: int, links: int) -> None:
    """Lower the TTL (hop limit) by the links crossed, and compute the IPv4 header's checksum."""
    headers["ttl"] -= links
    if version == 4:
        headers["checksum"] = 0
        headers["checksum"] = checksum(headers)


WORDS = {
    ("ethernet", "to"): "destination MAC address",
    ("ethernet", "from"): "source MAC address",
    ("ip", "service"): "DSCP or ECN",
    ("ip", "version"): "version or traffic class",
    ("ip", "ttl"): "time to live",
}


def _unequal(right: NDArray[np.void], got: NDArray[Any]) -> list[str]:
    """The members that differ, in words."""
    differences = []
    for part in right.dtype.names or ():
        for name in right[part].dtype.names or ("",):
            one, other = (x[part][name] if name else x[part] for x in (right, got))
            if one.tobytes() != other.tobytes():
                words = WORDS.get((part, name), f"{part} {name}".strip())
                differences.append(
                    f"{words} {other.tobytes().hex()} instead of {one.tobytes().hex()}"
                )
    return [words if len(words) < 100 else words.split()[0] + " differs" for words in differences]


def _arp(
    to: bytes, source: bytes, operation: int, sender: tuple[bytes, bytes], target: tuple[bytes, ...]
) -> bytes:
    """RFC 826, for Ethernet and IPv4."""
    head = struct.pack("!HHHBBH", ARP, 1, ETHERTYPES[4], 6, 4, operation)
    return b"".join((to, source, head, *sender, *target))


def _group(address: bytes) -> tuple[bytes, bytes]:
    """The MAC and the solicited-node multicast address (RFC 2464, §7; RFC 4291, §2.7.1)."""
    mac = b"\x33\x33\xff" + address[-3:]
    return mac, bytes.fromhex("ff0200000000000000000001ff") + address[-3:]


def _nd(
    macs: tuple[bytes, bytes], ends: tuple[bytes, bytes], flags: int, target: bytes, option: bytes
) -> bytes:
    """A solicitation, or with flags an advertisement (RFC 4861, §4.3, §4.4)."""
    kind = ADVERTISEMENT if flags else SOLICITATION
    rest = struct.pack("!I", flags) + target + option
    length = 4 + len(rest)
    unsummed = b"".join((*ends, struct.pack("!IIBBH", length, ICMPV6, kind, 0, 0), rest))
    total = int(checksum(np.frombuffer(unsummed, f"V{len(unsummed)}"))[0])
    head = struct.pack("!BBH", kind, 0, total)
    ip = struct.pack("!IHBB", IP_VERSION[6], length, ICMPV6, HOP_LIMIT)
    return b"".join((*macs, struct.pack("!H", ETHERTYPES[6]), ip, *ends, head, rest))
