"""Lossless priorities of SONiC: tables of CONFIG_DB that separate channels in switches.

The targets of SONiC add these tables where their option `lossless` is on. A traffic class stands
for a channel, and for whether the packet came in on a marked port (`priorities.PriorityPlan`). So
the class determines the priority group: that of the channel in which the packet came in. At the
port by which the packet leaves, the class determines queue and DSCP: those of the channel in which
the packet leaves. Class, priority group, queue and PFC priority of a channel have one number.
Classes of packets from marked ports take numbers that are free. `pfc_to_pg_map` is left to the
platform. The platform's map says that a priority group answers for the PFC priority of its number.

With the priorities 3 and 4, the classes 3 and 4 are for packets that stay in their channel, and
class 1 moves packets from the first channel to the second one. A switch does this with a packet:

    the packet comes in        DSCP    class  priority group  and leaves by  queue  DSCP
    from a host                26      3      3               any port       3      26
    by a port without a mark   26      3      3               any port       3      26
    by a marked port           26      1      3               a marked one   4      34
    by a marked port           26      1      3               another one    3      26
    from a switch              34      4      4               any port       4      34
    by any port                48      6      0               any port       6      48
    by any port                others  0      0               any port       0      0

With the scheme `hop` all ports send packets as marked ones do.

Names and keys are those of sonic-yang-models. `sonic_buffers` has the tables of buffers.
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
from compilers.targets.routed.p2p_fabric import P2pFabric
from compilers.targets.routed.p2p_variables import HostPort, P2pLink, P2pRouter
from compilers.targets.sonic.config_db import Entry, Table
from compilers.targets.sonic.target import SonicTables
from compilers.wiring.node_type_facts import BufferFacts
from extensions.lossless.lossless_addition import LOSSLESS as LOSSLESS_OPTION
from extensions.lossless.lossless_addition import LosslessAddition
from extensions.lossless.priorities import HOP, VALLEY, PriorityPlan, buffer_of, dscp_of
from extensions.lossless.sonic_buffers import SwitchBuffers
from extensions.lossless.sonic_priorities import MAPS, check_priorities
from inventory.problems import InputError, Problem

DSCPS, CLASSES = range(64), range(8)
"""All DSCPs, and all traffic classes."""
CNP_DSCP = 48
"""The DSCP of RoCE's congestion notifications. They have a class of their own, which is served
before all others and is not lossless."""
BEST_EFFORT_CLASS, CNP_CLASS, CONTROL_CLASS = 0, 6, 7
"""The traffic classes that are not lossless. No packet that comes in at a port gets the class of
control."""
DSCP_OF_LOSSY_CLASS = {BEST_EFFORT_CLASS: 0, CNP_CLASS: CNP_DSCP, CONTROL_CLASS: 56}
"""The DSCP of each class that is not lossless."""
WATCHDOG_MILLISECONDS = 200
"""Milliseconds of a pause after which the watchdog drops packets to a host."""


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
        facts = buffer_of(self.fabric.routers.build, vertex)
        buffers = SwitchBuffers(ports, facts, self.plan.priorities)
        self._require(vertex, buffers)
        port_maps = dict(self._port_maps(vertex, router))
        tables = {
            **self._maps(port_maps.values()),
            "PORT_QOS_MAP": port_maps,
            "SCHEDULER": {
                "LOSSLESS": {"type": "DWRR", "weight": "40"},
                "LOSSY": {"type": "DWRR", "weight": "20"},
                "CNP": {"type": "STRICT"},
            },
            "WRED_PROFILE": {"LOSSLESS": _wred(facts)},
            "QUEUE": dict(self._queues(ports)),
            **buffers.tables(),
            "PFC_WD": dict(_watchdog(router)),
        }
        return {name: table for name, table in tables.items() if table}

    def _require(self, vertex: int, buffers: SwitchBuffers) -> None:
        """Require speed and MTU of all ports, and memory for their headroom.

        Raises:
            InputError: one of them is missing.
        """
        wiring = self.fabric.routers.build.wiring
        key = f"node_types.{wiring.type_names[int(wiring.node_type[vertex])]}"
        if incomplete := [port.name for port in buffers.ports if not (port.speed and port.mtu)]:
            raise InputError(
                Problem(
                    key=f"{key}.ports",
                    required="speed and mtu of every port in use, for headroom",
                    given=f"none for {incomplete[0]}",
                )
            )
        needed = buffers.total_headroom + buffers.total_reserved
        if needed >= buffers.facts.size:
            raise InputError(
                Problem(
                    key=f"{key}.buffer.size",
                    required=f"more than {needed:,} bytes, headroom and a packet for each priority "
                    f"of {len(buffers.ports)} ports",
                    given=f"{buffers.facts.size:,}",
                    todo="choose a shorter cable, fewer priorities or another type",
                )
            )

    def _classes(self) -> list[LosslessClass]:
        """The lossless classes: one for each priority, and one for each move to the next."""
        priorities = self.plan.priorities
        free = iter(sorted(set(range(1, CNP_CLASS)) - set(priorities)))
        staying = [LosslessClass(priority, priority, priority) for priority in priorities]
        moving = [
            LosslessClass(number=next(free), priority_in=priority, priority_out=next_priority)
            for priority, next_priority in pairwise(priorities)
        ]
        return [*staying, *moving]

    def _maps(self, port_maps: Collection[Entry]) -> dict[str, Table]:
        """The maps that ports have.

        Each map that is here is created in the chip, and some chips have room for one only. So
        there are no maps that no port has.

        Args:
            port_maps: the maps of each port.
        """
        used = {(MAPS[key], of_port[key]) for of_port in port_maps for key in MAPS}
        return {
            table: {name: entry for name, entry in named.items() if (table, name) in used}
            for table, named in self._all_maps().items()
        }

    def _all_maps(self) -> dict[str, Table]:
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
        priority_in = {lossless.number: lossless.priority_in for lossless in classes}
        priority_out = {
            "LOSSLESS_SAME": priority_in,
            "LOSSLESS_NEXT": {lossless.number: lossless.priority_out for lossless in classes},
        }
        # No DSCP leads to CONTROL_CLASS. Otherwise hosts could put their packets into it.
        lossy_class_of_dscp = {
            dscp: number for number, dscp in DSCP_OF_LOSSY_CLASS.items() if number != CONTROL_CLASS
        }
        # Congestion notifications share the priority group of best effort.
        lossy_priority_groups = {CONTROL_CLASS: CONTROL_CLASS}
        lossy_queues = {number: number for number in DSCP_OF_LOSSY_CLASS}
        return {
            "DSCP_TO_TC_MAP": {
                name: _complete_map(DSCPS, lossy_class_of_dscp | mapping)
                for name, mapping in class_of_dscp.items()
            },
            "TC_TO_PRIORITY_GROUP_MAP": {
                "LOSSLESS": _complete_map(CLASSES, lossy_priority_groups | priority_in)
            },
            "TC_TO_QUEUE_MAP": {
                name: _complete_map(CLASSES, lossy_queues | mapping)
                for name, mapping in priority_out.items()
            },
            "TC_TO_DSCP_MAP": {
                name: _complete_map(
                    CLASSES, DSCP_OF_LOSSY_CLASS | {c: dscp_of(p) for c, p in mapping.items()}
                )
                for name, mapping in priority_out.items()
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


def _complete_map(keys: range, values: dict[int, int]) -> Entry:
    """A map with a value for every key, so that none of an earlier map remains: best effort for
    other keys than those of `values`.
    """
    return {str(key): str(values.get(key, BEST_EFFORT_CLASS)) for key in keys}


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


class SonicLossless(LosslessAddition[SonicTables]):
    """The option of SONiC for lossless priorities."""

    options = MappingProxyType(
        {
            LOSSLESS_OPTION: Option.choice(
                "Lossless priorities without deadlock; a packet changes to the next one at every "
                "hop, or at each valley.",
                OFF,
                HOP,
                VALLEY,
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
