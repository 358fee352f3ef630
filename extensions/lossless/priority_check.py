"""Checks the lossless priorities in the rendered files of switches against the proved channels.

The readers of SONiC's and EOS's files (`sonic_priorities`, `eos_priorities`) call it with what each
port does by DSCP. `verify` has proved that the channel dependencies of all packets form no cycle
(`compilers.proof.lossless.channels`). So it is enough that every switch separates channels in the
same way. A packet that comes in with the DSCP of a channel has to be buffered in that channel's
priority. It has to be queued, and to leave marked, in the priority of the next channel, which
depends on the port that it leaves by. Both ends of a link then mean the same by a priority, as both
are compared with the same plan (`PriorityPlan`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import bare, read_exact
from compilers.readers.routers.router_text import lines_of
from compilers.tables.build import Build
from extensions.lossless.priorities import PriorityPlan, dscp_of

DEFAULT_CLASS = 0
"""The traffic class of a DSCP that no map names."""
DscpClasses = Mapping[int, int]
"""The traffic class of each DSCP."""
ClassPriorities = Mapping[int, int]
"""The PFC priority of each traffic class."""
ClassDscps = Mapping[int, int]
"""The DSCP of each traffic class."""


@dataclass(frozen=True, slots=True)
class PortPriorities:
    """What a port does with packets by their DSCP and traffic class."""

    line: int
    """The line of the file where the port's entry begins."""
    class_of_dscp: DscpClasses
    """The traffic class of each DSCP, for packets that come in."""
    ingress_priority: ClassPriorities
    """By traffic class, the PFC priority that a full buffer asks to pause; lossless classes only.
    """
    egress_priority: ClassPriorities
    """By traffic class, the PFC priority that pauses its queue; only queues that can be paused."""
    egress_dscp: ClassDscps | None
    """By traffic class, the DSCP that packets leave with; None where packets keep their own."""


def on_each_switch(
    build: Build,
    folder: Path,
    only: Collection[int] | None,
    file: str,
    check: Callable[[int, Path, DifferenceList], None],
) -> DifferenceList:
    """Run a check at every switch; a file that cannot be read is a difference, too.

    Args:
        build: the build whose switches are checked.
        folder: the folder with a folder of files for each switch.
        only: vertices of the switches that are there; None for all.
        file: the name of the switch's file that has priorities.
        check: called with a vertex, the switch's folder, and the list that takes differences.
    """
    differences = DifferenceList()
    for vertex in np.flatnonzero(build.topology.present).tolist():
        if only is None or vertex in only:
            of_switch = folder / build.wiring.names[vertex]
            path = of_switch / file
            try:
                check(vertex, of_switch, differences)
            except OSError as error:
                differences.add(path, 0, error.strerror or "cannot be read", "a file")
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                # The argument of the error is mostly what the file states wrongly: a missing name,
                # or a text that is no number.
                culprit = str(error.args[0]) if error.args else ""
                line = next(lines_of(read_exact(path), [culprit])) if culprit else 0
                is_missing = isinstance(error, KeyError)
                stated = f"{culprit}, which is not there" if is_missing else str(error)
                differences.add(path, line, stated, "priorities of a switch")
    return differences


def check_statements(
    file: Path,
    statements: Mapping[str, object],
    expected: Mapping[str, object],
    differences: DifferenceList,
) -> None:
    """Note the statements of a file, by name, that are not those of the build, whatever they do."""
    for name in sorted(statements.keys() | expected.keys()):
        if statements.get(name) != expected.get(name):
            stated = f"{bare(name)}: {statements.get(name)}"
            differences.add(file, 0, stated, f"{expected.get(name)}")


def check_channels(
    plan: PriorityPlan,
    vertex: int,
    folder: Path,
    ports: Mapping[str, PortPriorities],
    differences: DifferenceList,
) -> None:
    """Note where the ports of a switch do not separate channels as the plan does."""
    _ChannelCheck(plan, vertex, folder, ports, differences).check()


@dataclass(frozen=True, slots=True)
class _CheckedPort:
    """A port of a switch, as it is compared with the channels."""

    name: str
    """The name of the port."""
    priorities: PortPriorities
    """What it does with packets."""
    advances_channel: bool
    """Whether it is a marked port of the plan (`PriorityPlan.marked_ports`): packets that come in
    by one and leave by one move to the next channel."""
    is_host: bool
    """Whether a host is at it."""

    @property
    def behaviour(self) -> tuple[object, ...]:
        """A value that is equal for ports that do the same."""
        priorities = self.priorities
        maps = (
            priorities.class_of_dscp,
            priorities.ingress_priority,
            priorities.egress_priority,
            priorities.egress_dscp,
        )
        return (self.advances_channel, self.is_host, *map(_hashable, maps))


@dataclass(frozen=True, slots=True)
class WrongPriority:
    """A statement of a switch about priorities that is wrong."""

    stated: str
    """The statement in words."""
    expected: str
    """The right statement in words."""


@dataclass(frozen=True, slots=True)
class _ChannelCheck:
    """The comparison of a switch's ports with the channels."""

    plan: PriorityPlan
    """The channels and their priorities."""
    vertex: int
    """The vertex of the switch."""
    folder: Path
    """The folder of its files."""
    ports: Mapping[str, PortPriorities]
    """What its ports do, by name."""
    differences: DifferenceList
    """Collects what is not as it should be."""

    def check(self) -> None:
        """Compare every pair of ports; of ports that do the same, only one is compared."""
        wiring = self.plan.build.wiring
        marked_ports = self.plan.marked_ports(self.vertex)
        hosts = [port for port in wiring.host_port[self.vertex].tolist() if port]
        links = wiring.port[self.vertex][wiring.far[self.vertex] >= 0].tolist()
        by_behaviour: dict[tuple[object, ...], _CheckedPort] = {}
        for number in (*links, *hosts):
            name = wiring.port_name(self.vertex, number)
            priorities = self.ports.get(name)
            if priorities is None:
                self.differences.add(self.folder, 0, f"no priorities of {name}", "lossless ones")
                continue
            port = _CheckedPort(name, priorities, number in marked_ports, number in hosts)
            by_behaviour.setdefault(port.behaviour, port)
        names = {wiring.port_name(self.vertex, number) for number in links + hosts}
        for name in sorted(self.ports.keys() - names):
            line = self.ports[name].line
            self.differences.add(self.folder, line, f"priorities of {name}", "no port")
        for port in by_behaviour.values():
            for wrong in self._wrong_from(port, by_behaviour.values()):
                line = port.priorities.line
                self.differences.add(self.folder, line, wrong.stated, wrong.expected)

    def _wrong_from(
        self, port: _CheckedPort, others: Collection[_CheckedPort]
    ) -> Iterator[WrongPriority]:
        """The wrong statements about packets that come in at a port and leave by others."""
        priorities, port_maps = self.plan.priorities, port.priorities
        # Hosts send on the first channel only.
        channels = priorities[:1] if port.is_host else priorities
        channel_of = {dscp_of(priority): channel for channel, priority in enumerate(channels)}
        for dscp in range(64):
            traffic_class = port_maps.class_of_dscp.get(dscp, DEFAULT_CLASS)
            channel = channel_of.get(dscp)
            paused_priority = port_maps.ingress_priority.get(traffic_class)
            expected = None if channel is None else priorities[channel]
            if paused_priority != expected:
                stated = f"DSCP {dscp} into {port.name} pauses {_priority_text(paused_priority)}"
                yield WrongPriority(stated, _priority_text(expected))
                continue
            for out in others:
                if channel is None:
                    wrong = self._wrong_lossy(dscp, traffic_class, port, out)
                else:
                    wrong = self._wrong_of_channel(dscp, traffic_class, channel, port, out)
                if wrong:
                    yield wrong

    def _wrong_lossy(
        self, dscp: int, traffic_class: int, port: _CheckedPort, out: _CheckedPort
    ) -> WrongPriority | None:
        """The wrong statement about packets that may be dropped, from one port to another."""
        egress_dscp, egress_priority = out.priorities.egress_dscp, out.priorities.egress_priority
        if traffic_class in egress_priority:
            priority = _priority_text(egress_priority[traffic_class])
            stated = f"DSCP {dscp} from {port.name} waits in {priority} at {out.name}"
            return WrongPriority(stated, _priority_text(None))
        # Packets that may be dropped must not get the DSCP of lossless ones.
        new_dscp = dscp if egress_dscp is None else egress_dscp.get(traffic_class, dscp)
        if new_dscp in map(dscp_of, self.plan.priorities):
            stated = f"DSCP {dscp} from {port.name} leaves {out.name} as {new_dscp}"
            return WrongPriority(stated, expected="one that drops")
        return None

    def _wrong_of_channel(
        self, dscp: int, traffic_class: int, channel: int, port: _CheckedPort, out: _CheckedPort
    ) -> WrongPriority | None:
        """The wrong statement about packets of a channel, from one port to another."""
        priorities = self.plan.priorities
        priority = out.priorities.egress_priority.get(traffic_class)
        new_dscp = (out.priorities.egress_dscp or {}).get(traffic_class, dscp)
        if out.is_host and priority in priorities:
            # Nothing depends on the buffer of a host, so towards it any channel is right.
            next_channel = priorities.index(priority)
        elif port.advances_channel and out.advances_channel:
            next_channel = channel + 1
        else:
            next_channel = channel
        if next_channel >= len(priorities):
            return None  # by the proof no packet goes on from the last channel
        expected = priorities[next_channel]
        if (priority, new_dscp) == (expected, dscp_of(expected)):
            return None
        return WrongPriority(
            f"DSCP {dscp} from {port.name} leaves {out.name} in {_priority_text(priority)} as DSCP "
            f"{new_dscp}",
            f"in {_priority_text(expected)} as {dscp_of(expected)}",
        )


def _hashable(mapping: Mapping[int, int] | None) -> tuple[tuple[int, int], ...] | None:
    """A map as a value that can be a key."""
    return None if mapping is None else tuple(sorted(mapping.items()))


def _priority_text(priority: int | None) -> str:
    """A priority in words."""
    return "no priority" if priority is None else f"priority {priority}"
