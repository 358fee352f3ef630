"""PFC headroom: the bytes that still arrive at a port after it has asked for a pause.

IEEE 802.1Q-2018, annex N: the pause waits behind a packet that is being sent, goes down the cable,
and takes the other end some time; that one finishes its packet, and what is on the cable arrives.
Buffers are given out in cells, so that in the worst case small packets take more than their bytes
(SONiC's buffer_headroom_mellanox.lua reckons alike).
"""

from __future__ import annotations

from compilers.targets.routed.interfaces import PhysicalPort
from compilers.wiring.hardware import BufferFacts

METRES_PER_NANOSECOND = 0.198
"""Of light in fibre and copper."""
FRAME = 22
"""Bytes of a frame around its IP packet: addresses, type, a VLAN tag, check sequence."""
SMALLEST = 64
"""Bytes of the smallest frame."""


def packet_bytes(port: PhysicalPort, buffer: BufferFacts) -> int:
    """The bytes of buffer that a port's largest packet takes."""
    return -(-(port.mtu + FRAME) // buffer.cell) * buffer.cell


def headroom(port: PhysicalPort, buffer: BufferFacts) -> int:
    """The bytes of buffer that a lossless priority of a port needs above its threshold.

    Args:
        port: with speed in Gb/s and MTU in bytes.
        buffer: of its switch.
    """
    nanoseconds = 2 * buffer.cable / METRES_PER_NANOSECOND + buffer.reaction
    in_flight = nanoseconds * port.speed / 8 + port.mtu + FRAME
    cells = -(-in_flight // _worst_frame(buffer.cell))
    return packet_bytes(port, buffer) + int(cells) * buffer.cell


def _worst_frame(cell: int) -> float:
    """The bytes of frames that a cell holds at least, on average."""
    return SMALLEST if cell > 2 * SMALLEST else (cell + 1) / 2
