"""Frames of every kind that hosts send each other, many at once, and how they have to arrive.

A frame ends with a mark, which numbers it, and a filling up to its size. Checksums of UDP, TCP and
ICMP are wrong, so that no host answers; switches do not look at them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.fib import MOST_HOPS
from mininet_scenarios.ovs.packets import (
    ETHERNET,
    IP,
    RESET,
    TCP,
    TCP_NUMBER,
    FrameWriter,
    checksum,
)

UDP_NUMBER, DISCARD = 17, 9
ECHO_REPLY = {4: (1, 0), 6: (58, 129)}
"""Protocol and type of ICMP's answer to an echo request; nobody answers that."""
FULL_PACKET, SMALL_PACKET = 1500, 0
"""Bytes of a packet: the most that Ethernet takes, or as few as it can have."""
WRONG_CHECKSUM = 0xBAD1
UDP = np.dtype([("from", ">u2"), ("to", ">u2"), ("length", ">u2"), ("checksum", ">u2")])
"""RFC 768."""
ICMP = np.dtype(
    [
        ("kind", "u1"),
        ("code", "u1"),
        ("checksum", ">u2"),
        ("identity", ">u2"),
        ("sequence", ">u2"),
    ]
)
"""An echo (RFC 792; RFC 4443, §4)."""
FRAME_MARK = np.dtype([("magic", "S4"), ("number", ">u4")])
MAGIC = b"plfr"


@dataclass(frozen=True, slots=True)
class FrameKind:
    """A kind of packet: its protocol, bytes (at least) and traffic class, DSCP and ECN."""

    protocol: str
    size: int
    service: int

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
    """n frames of a kind from hosts to hosts, int64[n]: as sent, and as they have to arrive.

    In `arriving` the time to live is that of a packet that has crossed no link.
    """

    kind: FrameKind
    version: int
    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    sent: NDArray[np.void]
    arriving: NDArray[np.void]

    def __len__(self) -> int:
        return len(self.source)

    def difference(self, number: int, data: bytes) -> tuple[int, str]:
        """Links that an arrived frame has crossed, and what is not as it has to be; "" if whole."""
        if len(data) != self.arriving.dtype.itemsize:
            return 0, f"{len(data)} bytes instead of {self.arriving.dtype.itemsize}"
        got = np.frombuffer(data, self.arriving.dtype)
        links = MOST_HOPS - 1 - int(got["ip"]["ttl"][0])
        right = self.arriving[number : number + 1].copy()
        _live_less(right["ip"], self.version, links)
        if right.tobytes() == data:
            return links, ""
        return links, "; ".join(_unequal(right, got))


class FrameCrafter(FrameWriter):
    """Makes frames of one version of the Internet protocol between hosts of a build."""

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
        _live_less(arriving["ip"], self.version, 1)
        return CraftedFrames(kind, self.version, source, destination, sent, arriving)


def marked(data: bytes) -> int | None:
    """The number of a frame of ours."""
    place = data.find(MAGIC)
    if place < 0 or place + FRAME_MARK.itemsize > len(data):
        return None
    return int(np.frombuffer(data, FRAME_MARK, 1, place)["number"][0])


def _segment(
    segment: NDArray[np.void], protocol: str, version: int, ports: NDArray[np.int64] | int
) -> None:
    segment["checksum"] = WRONG_CHECKSUM
    if protocol == "ICMP":
        segment["kind"], segment["identity"] = ECHO_REPLY[version][1], ports
        return
    segment["from"], segment["to"] = ports, DISCARD
    if protocol == "TCP":
        segment["words"], segment["flags"] = TCP.itemsize // 4 << 4, RESET


def _live_less(headers: NDArray[np.void], version: int, links: int) -> None:
    """What switches do to a packet: its time to live, and what sums it up."""
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
    found = []
    for part in right.dtype.names or ():
        for name in right[part].dtype.names or ("",):
            one, other = (x[part][name] if name else x[part] for x in (right, got))
            if one.tobytes() != other.tobytes():
                words = WORDS.get((part, name), f"{part} {name}".strip())
                found.append(f"{words} {other.tobytes().hex()} instead of {one.tobytes().hex()}")
    return [words if len(words) < 100 else words.split()[0] + " differs" for words in found]
