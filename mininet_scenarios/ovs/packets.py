"""Packets between hosts as OpenFlow packet-outs and packet-ins, many at once.

A packet is TCP (Open vSwitch's hash leaves UDP ports out) with the reset flag, so that no host
would answer it. Behind the TCP header stand four numbers: which round, from which host, to which
host, and its number among those of the pair; the number is the TCP destination port, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS
from compilers.targets.openflow.message_parts import (
    Column,
    mac_bytes,
    packet_out,
    unbundled,
)
from compilers.targets.openflow.protocol import (
    HEADER,
    LOCAL,
    OXM,
    PACKET_IN,
    PACKET_PAD,
    MessageType,
)
from mininet_scenarios.ovs.management_socket import headers
from mininet_scenarios.scenario.engine import HostSample

TCP_NUMBER, RESET, SOURCE_PORT, FIRST_PORT = 6, 4, 9, 1024
ETHERTYPES = {4: 0x0800, 6: 0x86DD}
ETHERNET = np.dtype([("to", "u1", 6), ("from", "u1", 6), ("ethertype", ">u2")])
IP = {
    4: np.dtype(
        [
            ("version", "u1"),
            ("service", "u1"),
            ("length", ">u2"),
            ("identity", ">u2"),
            ("fragment", ">u2"),
            ("ttl", "u1"),
            ("protocol", "u1"),
            ("checksum", ">u2"),
            ("from", ">u4", (1,)),
            ("to", ">u4", (1,)),
        ]
    ),
    6: np.dtype(
        [
            ("version", ">u4"),
            ("length", ">u2"),
            ("protocol", "u1"),
            ("ttl", "u1"),
            ("from", ">u8", 2),
            ("to", ">u8", 2),
        ]
    ),
}
"""The headers of IPv4 (RFC 791, §3.1) and IPv6 (RFC 8200, §3)."""
IP_VERSION = {4: 0x45, 6: 6 << 28}
"""The version, for IPv4 with the header's length: five words."""
TCP = np.dtype(
    [
        ("from", ">u2"),
        ("to", ">u2"),
        ("sequence", ">u4"),
        ("acknowledged", ">u4"),
        ("words", "u1"),
        ("flags", "u1"),
        ("window", ">u2"),
        ("checksum", ">u2"),
        ("urgent", ">u2"),
    ]
)
"""RFC 9293, §3.1."""
MARK = np.dtype([(name, ">u4") for name in ("round", "source", "destination", "number")])
"""The four numbers of a packet."""


@dataclass(frozen=True, slots=True, eq=False)
class HostPackets:
    """n packets: from and to which hosts, int64[n] each, and their numbers, int64[n], from 0."""

    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    number: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, which: Any) -> HostPackets:
        return HostPackets(self.source[which], self.destination[which], self.number[which])

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> HostPackets:
        """counts[i, j] of them from host i to host j."""
        pairs = np.argwhere(counts)
        times = counts[tuple(pairs.T)]
        first = np.repeat(np.cumsum(times) - times, times)
        source, destination = np.repeat(pairs, times, axis=0).T
        return cls(source, destination, np.arange(len(source)) - first)

    def back(self) -> HostPackets:
        """The answers to them."""
        return HostPackets(self.destination, self.source, self.number)


class FrameWriter:
    """Writes frames of one version of the Internet protocol as they leave their hosts.

    gateway: uint8[1, 6], its MAC address; mac, address: those of the hosts.
    """

    def __init__(self, build: Build, hosts: HostSample, version: int) -> None:
        self.version, plan = version, build.addressing
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


class Postman(FrameWriter):
    """Writes packets of one version of the Internet protocol for hosts, and reads them again."""

    def __init__(self, build: Build, hosts: HostSample, version: int) -> None:
        super().__init__(build, hosts, version)
        match = ("field", OXM.dtype), ("in_port", ">u4"), ("match_end", "V4")
        packet = ("ethernet", ETHERNET), *IP[version].descr, ("tcp", TCP), *MARK.descr
        pad = "packet_pad", f"V{PACKET_PAD}"
        self.row = np.dtype(
            [("message", HEADER.dtype), ("head", PACKET_IN.dtype), *match, pad, *packet]
        )

    def outs(self, packets: HostPackets, ports: NDArray[np.int64], turn: int) -> NDArray[np.void]:
        """A packet-out each, [n] of opaque bytes: the packet leaves the bridge by its port."""
        frames = self._frames(packets, turn)
        frames = frames.view(f"V{frames.dtype.itemsize}")
        message = packet_out(LOCAL, "port", (Column("frame", frames.dtype),))
        block = unbundled(message, 0, len(frames), port=ports, frame=frames).block
        return block.view(f"V{block.shape[1]}")[:, 0]

    def ins(self, data: bytes) -> NDArray[Any]:
        """The packets in these messages, in rows of `row`; other messages are left out."""
        width = self.row.itemsize
        if len(data) % width == 0:
            rows = np.frombuffer(data, self.row)
            head = rows["message"]
            if np.all((head["type"] == MessageType.PACKET_IN) & (head["length"] == width)):
                return rows
        found = [
            data[start : start + width]
            for start, kind, length in headers(data)
            if (kind, length) == (MessageType.PACKET_IN, width)
        ]
        return np.frombuffer(b"".join(found), self.row)

    def _frames(self, packets: HostPackets, turn: int) -> NDArray[np.void]:
        """[n]: the packets as they leave their hosts."""
        members = ("tcp", TCP), ("mark", MARK)
        frames = self.frames(packets.source, packets.destination, TCP_NUMBER, members)
        tcp, mark = frames["tcp"], frames["mark"]
        tcp["from"], tcp["to"] = SOURCE_PORT, FIRST_PORT + packets.number
        tcp["words"], tcp["flags"] = TCP.itemsize // 4 << 4, RESET
        mark["round"], mark["number"] = turn, packets.number
        mark["source"], mark["destination"] = packets.source, packets.destination
        return frames


def checksum(headers: NDArray[np.void]) -> NDArray[np.int64]:
    """int64[n]: of IPv4 headers (RFC 791, §3.1)."""
    words = np.ascontiguousarray(headers).view(">u2").reshape(len(headers), headers.itemsize // 2)
    total: NDArray[np.int64] = words.sum(axis=1, dtype=np.int64)
    total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - ((total & 0xFFFF) + (total >> 16))
