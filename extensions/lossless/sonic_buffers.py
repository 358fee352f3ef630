"""Buffers of SONiC's lossless priorities: headroom, pools and profiles, as tables of CONFIG_DB.

*Headroom* is the bytes that still arrive at a port after it has asked for a pause (IEEE
802.1Q-2018, annex N). The pause waits behind a packet that is being sent, goes down the cable, and
takes the other end some time. That end finishes its packet, and what is on the cable arrives.
Buffers are allocated in cells, so that in the worst case small packets take more than their bytes
(SONiC's buffer_headroom_mellanox.lua computes it in the same way).

The names of pools and profiles are those of SONiC's buffermgrd, which otherwise would put profiles
of its own in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from compilers.targets.routed.interfaces import PhysicalPort
from compilers.targets.sonic.config_db import Table
from compilers.wiring.node_type_facts import BufferFacts

MEGABITS_A_GIGABIT = 1000
"""Speeds are in Gb/s, and in Mb/s in the names of profiles."""
METRES_PER_NANOSECOND = 0.198
"""The speed of light in fibre, and of signals in copper."""
FRAME_OVERHEAD = 22
"""Bytes of a frame around its IP packet: addresses, type, a VLAN tag, check sequence."""
SMALLEST_FRAME = 64
"""Bytes of the smallest frame."""


@dataclass(frozen=True, slots=True)
class SwitchBuffers:
    """How the packet memory of a switch is divided among its ports."""

    ports: list[PhysicalPort]
    """The ports in use. `SonicQos` requires speed and MTU of each."""
    facts: BufferFacts
    """The buffer of the switch."""
    priorities: tuple[int, ...]
    """The lossless priorities."""

    @property
    def total_headroom(self) -> int:
        """The headroom of all ports in bytes; a speed's profile is for its largest MTU."""
        by_speed = _largest_by_speed(self.ports)
        sizes = (headroom(by_speed[port.speed], self.facts) for port in self.ports)
        return len(self.priorities) * sum(sizes)

    @property
    def total_reserved(self) -> int:
        """The bytes that are reserved for the priority groups of all ports: a packet each."""
        by_speed = _largest_by_speed(self.ports)
        sizes = (packet_bytes(by_speed[port.speed], self.facts) for port in self.ports)
        return len(self.priorities) * sum(sizes)

    def tables(self) -> dict[str, Table]:
        """The pools and profiles of buffers, and which of them priority groups and queues have.

        The headroom pool is enough for all ports at once, so that it never runs out. A packet is
        reserved for each priority group. The rest is shared.
        """
        ports, facts = self.ports, self.facts
        ranges = list(_ranges(sorted(self.priorities)))
        names = {
            port.name: f"pg_lossless_{port.speed * MEGABITS_A_GIGABIT}_{facts.cable}m_profile"
            for port in ports
        }
        profiles: Table = {
            "egress_lossless_profile": {
                "pool": "egress_lossless_pool",
                "size": "0",
                "static_th": str(facts.size),
            }
        }
        for port in _largest_by_speed(ports).values():
            packet = str(packet_bytes(port, facts))
            profiles[names[port.name]] = {
                "pool": "ingress_lossless_pool",
                "size": packet,
                "xon": packet,
                "xon_offset": packet,
                "xoff": str(headroom(port, facts)),
                "dynamic_th": "0",
            }
        return {
            "CABLE_LENGTH": {"AZURE": {port.name: f"{facts.cable}m" for port in ports}},
            "BUFFER_POOL": {
                "ingress_lossless_pool": {
                    "type": "ingress",
                    "mode": "dynamic",
                    "size": str(facts.size - self.total_headroom - self.total_reserved),
                    "xoff": str(self.total_headroom),
                },
                "egress_lossless_pool": {
                    "type": "egress",
                    "mode": "static",
                    "size": str(facts.size),
                },
            },
            "BUFFER_PROFILE": profiles,
            "BUFFER_PG": {
                f"{port.name}|{number_range}": {"profile": names[port.name]}
                for port in ports
                for number_range in ranges
            },
            "BUFFER_QUEUE": {
                f"{port.name}|{number_range}": {"profile": "egress_lossless_profile"}
                for port in ports
                for number_range in ranges
            },
        }


def packet_bytes(port: PhysicalPort, buffer: BufferFacts) -> int:
    """The bytes of buffer that a port's largest packet takes."""
    cells = ceil((port.mtu + FRAME_OVERHEAD) / buffer.cell)
    return cells * buffer.cell


def headroom(port: PhysicalPort, buffer: BufferFacts) -> int:
    """The bytes of buffer that a lossless priority of a port needs above its threshold.

    Args:
        port: the port, which has a speed in Gb/s and an MTU in bytes.
        buffer: the buffer of the port's switch.
    """
    nanoseconds = 2 * buffer.cable / METRES_PER_NANOSECOND + buffer.reaction
    in_flight = nanoseconds * port.speed / 8 + port.mtu + FRAME_OVERHEAD
    cells = -(-in_flight // _worst_frame(buffer.cell))  # the exact quotient, rounded up
    return packet_bytes(port, buffer) + int(cells) * buffer.cell


def _worst_frame(cell: int) -> float:
    """The bytes of frames that a cell holds at least, on average."""
    return SMALLEST_FRAME if cell > 2 * SMALLEST_FRAME else (cell + 1) / 2


def _largest_by_speed(ports: list[PhysicalPort]) -> dict[int, PhysicalPort]:
    """A port of the largest MTU, by speed."""
    # A later port replaces earlier ones of its speed.
    return {port.speed: port for port in sorted(ports, key=lambda port: port.mtu)}


def _ranges(numbers: list[int]) -> Iterator[str]:
    """Ranges of consecutive numbers: `3-4` for 3 and 4.

    >>> list(_ranges([1, 3, 4]))
    ['1', '3-4']
    """
    begin = numbers[0]
    for number, following in zip(numbers, [*numbers[1:], -1], strict=True):
        if following != number + 1:
            yield f"{begin}-{number}" if number > begin else str(begin)
            begin = following
