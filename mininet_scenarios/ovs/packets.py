"""Packets between hosts as OpenFlow packet-outs and packet-ins, many at once.

A packet is TCP (Open vSwitch's hash leaves UDP ports out) with the reset flag, so that no host
would answer it. Behind the TCP header stand four numbers: which round, from which host, to which
host, and its number among those of the pair; the number is the TCP destination port, too.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS
from compilers.targets.openflow.protocol import Column, Parts, column, mac_bytes, records, size
from mininet_scenarios.ovs.management_socket import PACKET_IN, PACKET_OUT, VERSION, headers
from mininet_scenarios.scenario.engine import HostSample

NO_BUFFER, LOCAL = 0xFFFFFFFF, 0xFFFFFFFE
TCP, RESET, SOURCE_PORT = 6, 4, 9
ETHERNET, IP_HEADER, TTL_AT = 14, {4: 20, 6: 40}, {4: 8, 6: 7}
"""Bytes of the headers, and where in the IP header the time to live stands."""
MARK_BYTES = 16
BEFORE = 42
"""Bytes of a packet-in before the packet, when its match is the in_port alone (§7.4.1)."""
IN_PORT_AT = 32


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


class Postman:
    """Writes packets of one version of the Internet protocol for hosts, and reads them again."""

    def __init__(self, build: Build, hosts: HostSample, version: int) -> None:
        self.version, plan = version, build.addressing
        at = zip(hosts.switch.tolist(), hosts.number.tolist(), strict=True)
        if version == 4:
            self.address = np.array([int(plan.host(*host)) for host in at], ">u4")[:, None]
        else:
            packed = b"".join(plan.host6(*host).packed for host in at)
            self.address = np.frombuffer(packed, ">u8").reshape(-1, 2)
        self.gateway = plan.gateway_mac.to_bytes(6, "big")
        self.mac = mac_bytes(plan.host_mac[hosts.switch, hosts.number])
        mark = ETHERNET + IP_HEADER[version] + 20
        self.row = np.dtype(
            {
                "names": ["in_port", "ttl", "round", "source", "destination", "number"],
                "formats": [">u4", "u1", *[">u4"] * 4],
                "offsets": [
                    IN_PORT_AT,
                    BEFORE + ETHERNET + TTL_AT[version],
                    *range(BEFORE + mark, BEFORE + mark + MARK_BYTES, 4),
                ],
                "itemsize": BEFORE + mark + MARK_BYTES,
            }
        )

    def outs(self, packets: HostPackets, ports: NDArray[np.int64], turn: int) -> NDArray[np.void]:
        """A packet-out each, [n] of opaque bytes: the packet leaves the bridge by its port."""
        frame = self._frame(packets, turn)
        length = 40 + size(frame)
        head = struct.pack(">BBHL", VERSION, PACKET_OUT, length, 0)
        head += struct.pack(">LLH6x", NO_BUFFER, LOCAL, 16)
        action = struct.pack(">HH", 0, 16), column("port", ports, 4), bytes(8)
        table = records((head, *action, *frame))
        return table.view(f"V{length}")

    def ins(self, data: bytes) -> NDArray[Any]:
        """The packets in these messages, in rows of `row`; other messages are left out."""
        width = self.row.itemsize
        if len(data) % width == 0:
            head = np.frombuffer(data, ">u4").reshape(-1, width // 4)[:, 0] if width % 4 == 0 else 0
            if np.all(head == VERSION << 24 | PACKET_IN << 16 | width):
                return np.frombuffer(data, self.row)
        found = [
            data[start : start + width]
            for start, kind, length in headers(data)
            if (kind, length) == (PACKET_IN, width)
        ]
        return np.frombuffer(b"".join(found), self.row)

    def _frame(self, packets: HostPackets, turn: int) -> Parts:
        ethertype = struct.pack(">H", 0x0800 if self.version == 4 else 0x86DD)
        rows = len(packets)
        return (
            self.gateway,
            Column("source mac", self.mac[packets.source]),
            ethertype,
            *self._ip(packets),
            struct.pack(">H", SOURCE_PORT),
            column("tcp port", 1024 + packets.number, 2),
            struct.pack(">LLBBHHH", 0, 0, 5 << 4, RESET, 0, 0, 0),
            struct.pack(">L", turn),
            column("from", packets.source, 4),
            column("to", packets.destination, 4),
            column("number", packets.number if rows else np.zeros(0, np.int64), 4),
        )

    def _ip(self, packets: HostPackets) -> Parts:
        source, destination = self.address[packets.source], self.address[packets.destination]
        addresses = Column("source", source), Column("destination", destination)
        if self.version == 6:
            return (struct.pack(">LHBB", 6 << 28, 20 + MARK_BYTES, TCP, MOST_HOPS), *addresses)
        head = struct.pack(">BBHHHBB", 0x45, 0, 20 + 20 + MARK_BYTES, 0, 0, MOST_HOPS, TCP)
        words = np.concatenate((source, destination), axis=1).astype(">u4").view(">u2")
        total = sum(struct.unpack(">5H", head)) + words.sum(axis=1, dtype=np.int64)
        total = (total & 0xFFFF) + (total >> 16)
        folded = (total & 0xFFFF) + (total >> 16)
        return (head, column("checksum", 0xFFFF - folded, 2), *addresses)
