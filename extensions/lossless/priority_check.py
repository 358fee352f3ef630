"""Lossless priorities as the files of a switch say them, against the channels that were proved.

`verify` follows every packet of the tables on its channels, and finds no cycle of waits. So it is
enough that every switch separates channels as it did there: at every port a packet that comes in
the DSCP of a channel fills the buffer of that channel's priority, and waits, leaves and is marked
in the one that the channel is followed by towards the port that it leaves by. Both ends of a link
then mean the same by a priority, for both are held against the same plan.
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

Marks = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class PortPriorities:
    """What a port does with packets by their DSCP and traffic class."""

    line: int
    """The line of the configuration."""
    arriving: Marks
    """The traffic class of each DSCP."""
    pauses: Marks
    """By traffic class, the PFC priority that a full buffer asks to pause; lossless classes only.
    """
    queues: Marks
    """By traffic class, the PFC priority that pauses its queue; only queues that can be paused."""
    leaves: Marks | None
    """By traffic class, the DSCP that packets leave with; None where packets keep their own."""


def on_each_switch(
    build: Build,
    folder: Path,
    only: Collection[int] | None,
    file: str,
    check: Callable[[int, Path, DifferenceList], None],
) -> DifferenceList:
    """What a check finds at the switches; a file that makes no sense is a difference, too.

    Args:
        build: whose switches they are.
        folder: of all switches.
        only: vertices of the switches that are there; None for all.
        file: that of a switch in which priorities are.
        check: called with a vertex, the switch's folder, and what takes the differences.
    """
    differences = DifferenceList()
    for vertex in np.flatnonzero(build.topology.present).tolist():
        if only is None or vertex in only:
            here = folder / build.wiring.names[vertex]
            try:
                check(vertex, here, differences)
            except OSError as error:
                differences.add(here / file, 0, error.strerror or "cannot be read", "a file")
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                word = str(error.args[0]) if error.args else ""
                line = next(lines_of(read_exact(here / file), [word])) if word else 0
                says = f"{word}, which is not there" if isinstance(error, KeyError) else str(error)
                differences.add(here / file, line, says, "priorities of a switch")
    return differences


def check_statements(
    file: Path,
    said: Mapping[str, object],
    wanted: Mapping[str, object],
    differences: DifferenceList,
) -> None:
    """Note the statements of a file, by name, that are not those of the build, whatever they do."""
    for name in sorted(said.keys() | wanted.keys()):
        if said.get(name) != wanted.get(name):
            differences.add(file, 0, f"{bare(name)}: {said.get(name)}", f"{wanted.get(name)}")


def check_channels(
    plan: PriorityPlan,
    vertex: int,
    folder: Path,
    ports: Mapping[str, PortPriorities],
    differences: DifferenceList,
) -> None:
    """Note what the ports of a switch do otherwise than its channels need."""
    _Switch(plan, vertex, folder, ports, differences).check()


@dataclass(frozen=True, slots=True)
class _Switch:
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
        """Compare every pair of ports, of those that say the same one pair only."""
        w = self.plan.build.wiring
        marked = self.plan.marked(self.vertex)
        hosts = [port for port in w.host_port[self.vertex].tolist() if port]
        links = w.port[self.vertex][w.far[self.vertex] >= 0].tolist()
        kinds: dict[tuple[object, ...], tuple[str, PortPriorities, bool, bool]] = {}
        for number in (*links, *hosts):
            name = w.port_name(self.vertex, number)
            text = self.ports.get(name)
            if text is None:
                self.differences.add(self.folder, 0, f"no priorities of {name}", "lossless ones")
                continue
            is_host = number in hosts
            said = (text.arriving, text.pauses, text.queues, text.leaves)
            key = (number in marked, is_host, *map(_frozen, said))
            kinds.setdefault(key, (name, text, number in marked, is_host))
        for name in sorted(
            self.ports.keys() - {w.port_name(self.vertex, n) for n in links + hosts}
        ):
            self.differences.add(
                self.folder, self.ports[name].line, f"priorities of {name}", "no port"
            )
        for one in kinds.values():
            for difference in self._pairs(one, kinds.values()):
                self.differences.add(self.folder, one[1].line, *difference)

    def _pairs(
        self,
        one: tuple[str, PortPriorities, bool, bool],
        others: Collection[tuple[str, PortPriorities, bool, bool]],
    ) -> Iterator[tuple[str, str]]:
        name, text, marked, is_host = one
        priorities = self.plan.priorities
        channel_of = {dscp_of(p): k for k, p in enumerate(priorities[: 1 if is_host else None])}
        for dscp in range(64):
            number = text.arriving.get(dscp, 0)
            pause, channel = text.pauses.get(number), channel_of.get(dscp)
            wanted = None if channel is None else priorities[channel]
            if pause != wanted:
                yield f"DSCP {dscp} into {name} pauses {_said(pause)}", _said(wanted)
                continue
            for other, out, out_marked, to_host in others:
                if pause is None and number not in out.queues:
                    # What may be dropped must not look like what may not.
                    mark = dscp if out.leaves is None else out.leaves.get(number, dscp)
                    if mark in map(dscp_of, priorities):
                        yield f"DSCP {dscp} from {name} leaves {other} as {mark}", "one that drops"
                    continue
                waits, mark = out.queues.get(number), (out.leaves or {}).get(number, dscp)
                if channel is None:
                    yield f"DSCP {dscp} from {name} waits in {_said(waits)} at {other}", _said(None)
                    continue
                following = channel + (marked and out_marked)
                if to_host and waits in priorities:
                    following = priorities.index(waits)  # hosts take every priority, and end it
                if following >= len(priorities):
                    continue  # no packet goes on from the last channel, so the proof says
                if (waits, mark) != (priorities[following], dscp_of(priorities[following])):
                    differs = f"in {_said(waits)} as DSCP {mark}"
                    should = (
                        f"in {_said(priorities[following])} as {dscp_of(priorities[following])}"
                    )
                    yield f"DSCP {dscp} from {name} leaves {other} {differs}", should


def _frozen(marks: Marks | None) -> tuple[tuple[int, int], ...] | None:
    return None if marks is None else tuple(sorted(marks.items()))


def _said(priority: int | None) -> str:
    return "no priority" if priority is None else f"priority {priority}"
