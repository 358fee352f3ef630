"""Lossless priorities of SONiC: tables of CONFIG_DB that separate channels in switches.

The targets of SONiC add these tables where their option `lossless` is on. A traffic class stands
for a channel, and for whether the packet came in on a marked port (`priorities.PriorityPlan`). So
the class determines the priority group: that of the channel in which the packet came in. At the
port by which the packet leaves, the class determines queue and DSCP: those of the channel in which
the packet leaves. Class, priority group, queue and PFC priority of a channel have one number.
Classes of packets from marked ports take numbers that are free. `pfc_to_pg_map` is left to the
platform. The platform's map says that a priority group answers for the PFC priority of its number.

Names and keys are those of sonic-yang-models. The names of pools and profiles are those of SONiC's
buffermgrd, which otherwise would put profiles of its own in their place.

Headroom is the bytes that still arrive at a port after it has asked for a pause (IEEE 802.1Q-2018,
annex N). The pause waits behind a packet that is being sent, goes down the cable, and takes the
other end some time. That end finishes its packet, and what is on the cable arrives. Buffers are
allocated in cells, so that in the worst case small packets take more than their bytes (SONiC's
buffer_headroom_mellanox.lua computes it in the same way).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from types import MappingProxyType

from compilers.readers.emitted_report import DifferenceList
from compilers.targets.options import OFF, Chosen, Option
from compilers.targets.routed.interfaces import PhysicalPort
from compilers.targets.routed.p2p_fabric import P2pFabric
from compilers.targets.routed.p2p_variables import HostPort, P2pLink, P2pRouter
from compilers.targets.sonic.config_db import Entry, Table
from compilers.targets.sonic.target import SonicTables
from compilers.wiring.node_type_facts import BufferFacts
from extensions.lossless.lossless_addition import LOSSLESS as LOSSLESS_OPTION
from extensions.lossless.lossless_addition import LosslessAddition
from extensions.lossless.priorities import HOP, VALLEY, PriorityPlan, buffer_of, dscp_of
from extensions.lossless.sonic_priorities import check_priorities
from inventory.problems import InputError, Problem

DSCPS, CLASSES = range(64), range(8)
"""All DSCPs, and all traffic classes."""
CNP_DSCP = 48
"""The DSCP of RoCE's congestion notifications. They have a class of their own, which is served
before all others and is not lossless."""
BEST_EFFORT_CLASS, CNP_CLASS, CONTROL_CLASS = 0, 6, 7
"""The traffic classes that are not lossless."""
LOSSY_DSCP = {BEST_EFFORT_CLASS: 0, CNP_CLASS: CNP_DSCP, CONTROL_CLASS: 56}
"""The DSCP of each class that is not lossless."""
WATCHDOG_MILLISECONDS = 200
"""Milliseconds of a pause after which the watchdog drops packets to a host."""
MEGABITS_A_GIGABIT = 1000
"""Speeds are in Gb/s, and in Mb/s in the names of profiles."""
METRES_PER_NANOSECOND = 0.198
"""The speed of light in fibre, and of signals in copper."""
FRAME_OVERHEAD = 22
"""Bytes of a frame around its IP packet: addresses, type, a VLAN tag, check sequence."""
SMALLEST_FRAME = 64
"""Bytes of the smallest frame."""


@dataclass(frozen=True, slots=True)
class LosslessClass:
    """A traffic class whose packets are not dropped."""

    number: int
    """Its number."""
    priority_in: int
    """The priority that its packets come in."""
    priority_out: int
    """The priority that they leave in, by a marked port."""


@dataclass(frozen=True, slots=True)
class SonicQos:
    """The tables of the lossless priorities of a fabric's switches."""

    fabric: P2pFabric
    """The fabric as SONiC's templates see it."""
    plan: PriorityPlan
    """The channels of the build as priorities."""

    def tables(self, vertex: int) -> dict[str, Table]:
        """The tables of a switch.

        Raises:
            InputError: its ports do not say speed and MTU, or headroom leaves nothing of its packet
                memory.
        """
        router = self.fabric.router(vertex)
        ports = router.ports
        buffer = buffer_of(self.fabric.routers.build, vertex)
        self._require(vertex, ports, buffer)
        tables = {
            **self._maps(),
            "PORT_QOS_MAP": dict(self._port_maps(vertex, router)),
            "SCHEDULER": {
                "LOSSLESS": {"type": "DWRR", "weight": "40"},
                "LOSSY": {"type": "DWRR", "weight": "20"},
                "CNP": {"type": "STRICT"},
            },
            "WRED_PROFILE": {"LOSSLESS": _wred(buffer)},
            "QUEUE": dict(self._queues(ports)),
            **self._buffers(ports, buffer),
            "PFC_WD": dict(_watchdog(router)),
        }
        return {name: table for name, table in tables.items() if table}

    def _require(self, vertex: int, ports: list[PhysicalPort], buffer: BufferFacts) -> None:
        """Require speed and MTU of all ports, and memory for their headroom.

        Raises:
            InputError: one of them is missing.
        """
        wiring = self.fabric.routers.build.wiring
        key = f"node_types.{wiring.type_names[int(wiring.node_type[vertex])]}"
        if incomplete := [port.name for port in ports if not (port.speed and port.mtu)]:
            raise InputError(
                Problem(
                    key=f"{key}.ports",
                    required="speed and mtu of every port in use, for headroom",
                    given=f"none for {incomplete[0]}",
                )
            )
        needed = self._headroom(ports, buffer) + self._reserved(ports, buffer)
        if needed >= buffer.size:
            raise InputError(
                Problem(
                    key=f"{key}.buffer.size",
                    required=f"more than {needed:,} bytes, headroom and a packet for each priority "
                    f"of {len(ports)} ports",
                    given=f"{buffer.size:,}",
                    todo="choose a shorter cable, fewer priorities or another type",
                )
            )

    def _headroom(self, ports: list[PhysicalPort], buffer: BufferFacts) -> int:
        """The headroom of all ports in bytes; a speed's profile is for its largest MTU."""
        by_speed = _largest_by_speed(ports)
        sizes = (headroom(by_speed[port.speed], buffer) for port in ports)
        return len(self.plan.priorities) * sum(sizes)

    def _reserved(self, ports: list[PhysicalPort], buffer: BufferFacts) -> int:
        """The bytes that are reserved for the priority groups of all ports: a packet each."""
        by_speed = _largest_by_speed(ports)
        sizes = (packet_bytes(by_speed[port.speed], buffer) for port in ports)
        return len(self.plan.priorities) * sum(sizes)

    def _classes(self) -> list[LosslessClass]:
        """The lossless classes: one for each priority, and one for each move to the next."""
        priorities = self.plan.priorities
        free = iter(sorted(set(range(1, CNP_CLASS)) - set(priorities)))
        stay = [LosslessClass(priority, priority, priority) for priority in priorities]
        move = [LosslessClass(next(free), *pair) for pair in pairwise(priorities)]
        return [*stay, *move]

    def _maps(self) -> dict[str, Table]:
        """The maps between DSCPs, classes, priority groups, queues and PFC priorities.

        A map that all ports share is called LOSSLESS. Other maps differ between ports of hosts
        (LOSSLESS_HOST); ports that are not marked, where packets keep their channel
        (LOSSLESS_SAME); and marked ports, where they move to the next channel (LOSSLESS_NEXT).
        """
        priorities, classes = self.plan.priorities, self._classes()
        moving_class = {
            lossless.priority_in: lossless.number
            for lossless in classes
            if lossless.priority_in != lossless.priority_out
        }
        class_of_dscp = {
            "LOSSLESS_HOST": {dscp_of(priorities[0]): priorities[0]},
            "LOSSLESS_SAME": {dscp_of(p): p for p in priorities},
            "LOSSLESS_NEXT": {dscp_of(p): moving_class.get(p, p) for p in priorities},
        }
        priority_of_class = {
            "LOSSLESS_SAME": {lossless.number: lossless.priority_in for lossless in classes},
            "LOSSLESS_NEXT": {lossless.number: lossless.priority_out for lossless in classes},
        }
        lossy_classes = {
            dscp: number for number, dscp in LOSSY_DSCP.items() if number != CONTROL_CLASS
        }
        lossy_queues = {number: number for number in LOSSY_DSCP}
        return {
            "DSCP_TO_TC_MAP": {
                name: _complete_map(DSCPS, lossy_classes | mapping)
                for name, mapping in class_of_dscp.items()
            },
            "TC_TO_PRIORITY_GROUP_MAP": {
                "LOSSLESS": _complete_map(
                    CLASSES, {CONTROL_CLASS: CONTROL_CLASS} | priority_of_class["LOSSLESS_SAME"]
                )
            },
            "TC_TO_QUEUE_MAP": {
                name: _complete_map(CLASSES, lossy_queues | mapping)
                for name, mapping in priority_of_class.items()
            },
            "TC_TO_DSCP_MAP": {
                name: _complete_map(
                    CLASSES, LOSSY_DSCP | {c: dscp_of(p) for c, p in mapping.items()}
                )
                for name, mapping in priority_of_class.items()
            },
            "MAP_PFC_PRIORITY_TO_QUEUE": {"LOSSLESS": {str(n): str(n) for n in CLASSES}},
        }

    def _port_maps(self, vertex: int, router: P2pRouter) -> Iterator[tuple[str, Entry]]:
        """The maps of each port, by its name."""
        build = self.fabric.routers.build
        marked = {build.wiring.port_name(vertex, port) for port in self.plan.marked_ports(vertex)}
        lossless_priorities = ",".join(map(str, sorted(self.plan.priorities)))
        ends: tuple[P2pLink | HostPort, ...] = (*router.links, *router.hosts)
        for end in ends:
            ingress_map = "LOSSLESS_NEXT" if end.interface in marked else "LOSSLESS_SAME"
            # By hop every port has the same maps for leaving packets: some chips have one only.
            egress_map = "LOSSLESS_NEXT" if self.plan.scheme == HOP else ingress_map
            is_host = isinstance(end, HostPort)
            yield (
                end.interface,
                {
                    "dscp_to_tc_map": "LOSSLESS_HOST" if is_host else ingress_map,
                    "tc_to_pg_map": "LOSSLESS",
                    "tc_to_queue_map": egress_map,
                    "tc_to_dscp_map": egress_map,
                    "pfc_to_queue_map": "LOSSLESS",
                    "pfc_enable": lossless_priorities,
                    "pfcwd_sw_enable": lossless_priorities if is_host else "",
                },
            )

    def _queues(self, ports: list[PhysicalPort]) -> Iterator[tuple[str, Entry]]:
        """The scheduler of each queue, by PORT|QUEUE."""
        for port in ports:
            yield f"{port.name}|{BEST_EFFORT_CLASS}", {"scheduler": "LOSSY"}
            for priority in self.plan.priorities:
                queue = {"scheduler": "LOSSLESS", "wred_profile": "LOSSLESS"}
                yield f"{port.name}|{priority}", queue
            yield f"{port.name}|{CNP_CLASS}", {"scheduler": "CNP"}

    def _buffers(self, ports: list[PhysicalPort], buffer: BufferFacts) -> dict[str, Table]:
        """The pools and profiles of buffers, and which of them priority groups and queues have.

        The headroom pool is enough for all ports at once, so that it never runs out. A packet is
        reserved for each priority group. The rest is shared.
        """
        ranges = list(_ranges(sorted(self.plan.priorities)))
        names = {
            port.name: f"pg_lossless_{port.speed * MEGABITS_A_GIGABIT}_{buffer.cable}m_profile"
            for port in ports
        }
        total_headroom = self._headroom(ports, buffer)
        profiles: Table = {
            "egress_lossless_profile": {
                "pool": "egress_lossless_pool",
                "size": "0",
                "static_th": str(buffer.size),
            }
        }
        for port in _largest_by_speed(ports).values():
            packet = str(packet_bytes(port, buffer))
            profiles[names[port.name]] = {
                "pool": "ingress_lossless_pool",
                "size": packet,
                "xon": packet,
                "xon_offset": packet,
                "xoff": str(headroom(port, buffer)),
                "dynamic_th": "0",
            }
        return {
            "CABLE_LENGTH": {"AZURE": {port.name: f"{buffer.cable}m" for port in ports}},
            "BUFFER_POOL": {
                "ingress_lossless_pool": {
                    "type": "ingress",
                    "mode": "dynamic",
                    "size": str(buffer.size - total_headroom - self._reserved(ports, buffer)),
                    "xoff": str(total_headroom),
                },
                "egress_lossless_pool": {
                    "type": "egress",
                    "mode": "static",
                    "size": str(buffer.size),
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


def _largest_by_speed(ports: list[PhysicalPort]) -> dict[int, PhysicalPort]:
    """A port of the largest MTU, by speed."""
    return {port.speed: port for port in sorted(ports, key=lambda port: port.mtu)}


def _complete_map(keys: range, values: dict[int, int]) -> Entry:
    """A map with a value for every key, so that none of an earlier map remains: best effort for
    other keys than those of `values`.
    """
    return {str(key): str(values.get(key, BEST_EFFORT_CLASS)) for key in keys}


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


def _wred(buffer: BufferFacts) -> Entry:
    """The thresholds from which packets are marked with congestion (ECN)."""
    entry = {"ecn": "ecn_all"}
    for colour in ("green", "yellow", "red"):
        entry |= {
            f"wred_{colour}_enable": "true",
            f"{colour}_min_threshold": str(buffer.ecn_min),
            f"{colour}_max_threshold": str(buffer.ecn_max),
            f"{colour}_drop_probability": str(buffer.ecn_percent),
        }
    return entry


def _watchdog(router: P2pRouter) -> Iterator[tuple[str, Entry]]:
    """The PFC watchdog of hosts' ports, by port.

    Between switches no pause lasts for ever, but a host's adapter may send one.
    """
    if router.hosts:
        yield "GLOBAL", {"POLL_INTERVAL": str(WATCHDOG_MILLISECONDS)}
    for host in router.hosts:
        yield (
            host.interface,
            {
                "action": "drop",
                "detection_time": str(WATCHDOG_MILLISECONDS),
                "restoration_time": str(WATCHDOG_MILLISECONDS),
            },
        )


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


class SonicLossless(LosslessAddition[SonicTables]):
    """The option of SONiC for lossless priorities."""

    options = MappingProxyType(
        {
            LOSSLESS_OPTION: Option.choice(
                "Lossless priorities without deadlock; a packet changes to the next one at every "
                "hop, or at each valley.",
                *(OFF, HOP, VALLEY),
            ),
        }
    )

    def differences(
        self, fabric: P2pFabric, chosen: Chosen, folder: Path, only: Collection[int] | None
    ) -> DifferenceList:
        """See `Addition.differences`."""
        qos = _qos(fabric, chosen)
        return check_priorities(qos.plan, qos.tables, folder, only)

    def printed(self, fabric: P2pFabric, chosen: Chosen) -> Callable[[int], SonicTables]:
        """See `Addition.printed`."""
        qos = _qos(fabric, chosen)
        return lambda vertex: SonicTables(qos.tables(vertex))


def _qos(fabric: P2pFabric, chosen: Chosen) -> SonicQos:
    """The lossless priorities of a fabric by the chosen scheme."""
    return SonicQos(fabric, PriorityPlan.of(fabric.routers.build, chosen[LOSSLESS_OPTION]))
