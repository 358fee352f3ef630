"""Lossless priorities of SONiC: tables of CONFIG_DB that separate channels in switches.

A traffic class is a channel together with whether the packet came in on a marked port
(`priorities`). So the class gives the priority group, which is the channel that the
packet came in, and at the port that it leaves by the queue and the DSCP, which are the channel that
it leaves in. Class, priority group, queue and PFC priority of a channel have one number; classes of
packets from marked ports take numbers that are free. `pfc_to_pg_map` is left to the platform, whose
own says that a priority group answers for the PFC priority of its number.

Names and keys: sonic-yang-models; the names of pools and profiles are those of SONiC's buffermgrd,
which else would put profiles of its own in their place.

Headroom is the bytes that still arrive at a port after it has asked for a pause (IEEE 802.1Q-2018,
annex N): the pause waits behind a packet that is being sent, goes down the cable, and takes the
other end some time; that one finishes its packet, and what is on the cable arrives. Buffers are
given out in cells, so that in the worst case small packets take more than their bytes (SONiC's
buffer_headroom_mellanox.lua reckons alike).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from compilers.readers.emitted_report import DifferenceList
from compilers.targets.options import OFF, Chosen, Option
from compilers.targets.routed.interfaces import PhysicalPort
from compilers.targets.routed.p2p_links import HostPort, P2pFabric, P2pLink, P2pRouter
from compilers.targets.sonic.target import (
    Entry,
    SonicTables,
    Table,
)
from compilers.wiring.hardware import BufferFacts
from extensions.lossless.lossless_addition import LOSSLESS, LosslessAddition
from extensions.lossless.priorities import HOP, VALLEY, PriorityPlan, buffer_of, dscp_of
from extensions.lossless.sonic_priorities import check_priorities
from inventory.problems import InputError, Problem

DSCPS, CLASSES = range(64), range(8)
CNP_DSCP = 48
"""Congestion notifications of RoCE: a class of their own before all others, not lossless."""
BEST_EFFORT, CNP_CLASS, CONTROL = 0, 6, 7
OTHERS = {BEST_EFFORT: 0, CNP_CLASS: CNP_DSCP, CONTROL: 56}
"""Classes that drop, with their DSCP."""
WATCHDOG = 200
"""Milliseconds in which a host's port may be paused without a break."""
MEGABITS_OF_SPEED = 1000
METRES_PER_NANOSECOND = 0.198
"""Of light in fibre and copper."""
FRAME = 22
"""Bytes of a frame around its IP packet: addresses, type, a VLAN tag, check sequence."""
SMALLEST = 64
"""Bytes of the smallest frame."""


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
        buffer = buffer_of(self.fabric.routed.build, vertex)
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
        wiring = self.fabric.routed.build.wiring
        kind = f"node_types.{wiring.type_names[int(wiring.node_type[vertex])]}"
        if unsaid := [port.name for port in ports if not (port.speed and port.mtu)]:
            raise InputError(
                Problem(
                    key=f"{kind}.ports",
                    required="speed and mtu of every port in use, for headroom",
                    given=f"none for {unsaid[0]}",
                )
            )
        needed = self._headroom(ports, buffer) + self._reserved(ports, buffer)
        if needed >= buffer.size:
            raise InputError(
                Problem(
                    key=f"{kind}.buffer.size",
                    required=f"more than {needed:,} bytes, headroom and a packet for each priority "
                    f"of {len(ports)} ports",
                    given=f"{buffer.size:,}",
                    todo="choose a shorter cable, fewer priorities or another type",
                )
            )

    def _headroom(self, ports: list[PhysicalPort], buffer: BufferFacts) -> int:
        """The bytes of all ports; a speed's profile is for its largest MTU."""
        by_speed = _largest(ports)
        sizes = (headroom(by_speed[port.speed], buffer) for port in ports)
        return len(self.plan.priorities) * sum(sizes)

    def _reserved(self, ports: list[PhysicalPort], buffer: BufferFacts) -> int:
        """The bytes that the priority groups of all ports have to themselves: a packet each."""
        by_speed = _largest(ports)
        sizes = (packet_bytes(by_speed[port.speed], buffer) for port in ports)
        return len(self.plan.priorities) * sum(sizes)

    def _classes(self) -> list[tuple[int, int, int]]:
        """Class, priority in and priority out of each class that is lossless."""
        priorities = self.plan.priorities
        free = iter(sorted(set(range(1, CNP_CLASS)) - set(priorities)))
        stay = [(priority, priority, priority) for priority in priorities]
        move = [(next(free), *pair) for pair in pairwise(priorities)]
        return [*stay, *move]

    def _maps(self) -> dict[str, Table]:
        priorities, classes = self.plan.priorities, self._classes()
        moved = {into: number for number, into, out in classes if into != out}
        plain = {dscp: number for number, dscp in OTHERS.items() if number != CONTROL}
        arriving = {
            "LOSSLESS_HOST": {dscp_of(priorities[0]): priorities[0]},
            "LOSSLESS_SAME": {dscp_of(p): p for p in priorities},
            "LOSSLESS_NEXT": {dscp_of(p): moved.get(p, p) for p in priorities},
        }
        leaving = {
            "LOSSLESS_SAME": {number: into for number, into, _ in classes},
            "LOSSLESS_NEXT": {number: out for number, _, out in classes},
        }
        others = {number: number for number in OTHERS}
        marks = {name: {c: dscp_of(p) for c, p in m.items()} for name, m in leaving.items()}
        return {
            "DSCP_TO_TC_MAP": {n: _all(DSCPS, plain | m) for n, m in arriving.items()},
            "TC_TO_PRIORITY_GROUP_MAP": {
                "LOSSLESS": _all(CLASSES, {CONTROL: CONTROL} | leaving["LOSSLESS_SAME"])
            },
            "TC_TO_QUEUE_MAP": {n: _all(CLASSES, others | m) for n, m in leaving.items()},
            "TC_TO_DSCP_MAP": {n: _all(CLASSES, OTHERS | m) for n, m in marks.items()},
            "MAP_PFC_PRIORITY_TO_QUEUE": {"LOSSLESS": {str(n): str(n) for n in CLASSES}},
        }

    def _port_maps(self, vertex: int, router: P2pRouter) -> Iterator[tuple[str, Entry]]:
        build = self.fabric.routed.build
        marked = {build.wiring.port_name(vertex, port) for port in self.plan.marked(vertex)}
        lossless = ",".join(map(str, sorted(self.plan.priorities)))
        ends: tuple[P2pLink | HostPort, ...] = (*router.links, *router.hosts)
        for end in ends:
            turn = "LOSSLESS_NEXT" if end.interface in marked else "LOSSLESS_SAME"
            # By hop every port has the same maps for leaving packets: some chips have one only.
            out = "LOSSLESS_NEXT" if self.plan.scheme == HOP else turn
            host = isinstance(end, HostPort)
            yield (
                end.interface,
                {
                    "dscp_to_tc_map": "LOSSLESS_HOST" if host else turn,
                    "tc_to_pg_map": "LOSSLESS",
                    "tc_to_queue_map": out,
                    "tc_to_dscp_map": out,
                    "pfc_to_queue_map": "LOSSLESS",
                    "pfc_enable": lossless,
                    "pfcwd_sw_enable": lossless if host else "",
                },
            )

    def _queues(self, ports: list[PhysicalPort]) -> Iterator[tuple[str, Entry]]:
        for port in ports:
            yield f"{port.name}|{BEST_EFFORT}", {"scheduler": "LOSSY"}
            for priority in self.plan.priorities:
                queue = {"scheduler": "LOSSLESS", "wred_profile": "LOSSLESS"}
                yield f"{port.name}|{priority}", queue
            yield f"{port.name}|{CNP_CLASS}", {"scheduler": "CNP"}

    def _buffers(self, ports: list[PhysicalPort], buffer: BufferFacts) -> dict[str, Table]:
        """Headroom of all ports at once, so that it never runs out, and a packet for each group.

        The rest is shared.
        """
        runs = list(_runs(sorted(self.plan.priorities)))
        names = {
            port.name: f"pg_lossless_{port.speed * MEGABITS_OF_SPEED}_{buffer.cable}m_profile"
            for port in ports
        }
        total = self._headroom(ports, buffer)
        profiles: Table = {
            "egress_lossless_profile": {
                "pool": "egress_lossless_pool",
                "size": "0",
                "static_th": str(buffer.size),
            }
        }
        for port in _largest(ports).values():
            one = str(packet_bytes(port, buffer))
            profiles[names[port.name]] = {
                "pool": "ingress_lossless_pool",
                "size": one,
                "xon": one,
                "xon_offset": one,
                "xoff": str(headroom(port, buffer)),
                "dynamic_th": "0",
            }
        return {
            "CABLE_LENGTH": {"AZURE": {port.name: f"{buffer.cable}m" for port in ports}},
            "BUFFER_POOL": {
                "ingress_lossless_pool": {
                    "type": "ingress",
                    "mode": "dynamic",
                    "size": str(buffer.size - total - self._reserved(ports, buffer)),
                    "xoff": str(total),
                },
                "egress_lossless_pool": {
                    "type": "egress",
                    "mode": "static",
                    "size": str(buffer.size),
                },
            },
            "BUFFER_PROFILE": profiles,
            "BUFFER_PG": {
                f"{port.name}|{run}": {"profile": names[port.name]}
                for port in ports
                for run in runs
            },
            "BUFFER_QUEUE": {
                f"{port.name}|{run}": {"profile": "egress_lossless_profile"}
                for port in ports
                for run in runs
            },
        }


def _largest(ports: list[PhysicalPort]) -> dict[int, PhysicalPort]:
    """A port of the largest MTU, by speed."""
    return {port.speed: port for port in sorted(ports, key=lambda port: port.mtu)}


def _all(keys: range, values: dict[int, int]) -> Entry:
    """An entry for every key, so that none is left of an earlier map; best effort where unknown."""
    return {str(key): str(values.get(key, BEST_EFFORT)) for key in keys}


def _runs(numbers: list[int]) -> Iterator[str]:
    """`3-4` for 3 and 4."""
    begin = numbers[0]
    for number, following in zip(numbers, [*numbers[1:], -1], strict=True):
        if following != number + 1:
            yield f"{begin}-{number}" if number > begin else str(begin)
            begin = following


def _wred(buffer: BufferFacts) -> Entry:
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
    """Where hosts are: between switches no pause lasts for ever, but an adapter may send one."""
    if router.hosts:
        yield "GLOBAL", {"POLL_INTERVAL": str(WATCHDOG)}
    for host in router.hosts:
        yield (
            host.interface,
            {
                "action": "drop",
                "detection_time": str(WATCHDOG),
                "restoration_time": str(WATCHDOG),
            },
        )


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


class SonicLossless(LosslessAddition[SonicTables]):
    """Lossless priorities of SONiC."""

    options = MappingProxyType(
        {
            LOSSLESS: Option.choice(
                "Channels free of deadlock as lossless priorities, by when a packet moves on.",
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
    return SonicQos(fabric, PriorityPlan.of(fabric.routed.build, chosen[LOSSLESS]))
