"""Reads the moments of a timeline as cases, each with an event of the fabric, for `rehearsal_plan`.

A *moment* is an entry of the timeline in a scenario file. An *event* is what an engine does to the
fabric, such as to cut links. A *case* is an event with what is expected from it on. A moment has
one case, or with `each` many.

A fabric may move from build to build, and builds may name the same switch or host differently.
Engines and events use the names of the build that is cabled (`as_cabled`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compilers.proof.name_lookup import find_failure, find_switch
from compilers.tables.build import Build
from compilers.topology.layout import layout
from compilers.topology.replicated_clusters import whole_topology
from compilers.update.loss import missing_cables
from compilers.update.matching import HostTable, SwitchMatching, kept_hosts
from compilers.wiring.shared_risk import (
    GROUP_KINDS,
    RiskGroup,
    rack_hint,
    resolve_name,
    risk_groups,
)
from inventory.problems import InputError, KeyPath, Problem, did_you_mean
from inventory.yamlfile import Document
from mininet_scenarios.scenario.engine import Ability
from mininet_scenarios.scenario.outage import (
    BuildChange,
    ControllerChange,
    Event,
    Link,
    Miswire,
    PhysicalChange,
)
from mininet_scenarios.scenario.scenario_file import MOVES, ExpectInMoment, Scenario, TimelineEntry


@dataclass(frozen=True, slots=True)
class TimelineCase:
    """One event of a timeline, with what is expected from it on."""

    what: str
    """The event in words, for reports."""
    group: str
    """The name under which checks are added up; the cases of a moment with `each` share it."""
    event: Event
    """The event, as an engine applies it."""
    expect: ExpectInMoment
    """What is expected from the event on."""
    at: float | None = None
    """Seconds after the timeline began; None to wait until the fabric has dealt with the event
    before.
    """
    undo: Event | None = None
    """The event that undoes `event` when the checks of the case are done, and has no checks of its
    own; None if nothing undoes it.
    """
    moment: int = 0
    """The number of the case's moment in the timeline."""

    @property
    def soon(self) -> bool:
        """Whether the event happens before the fabric has dealt with the event before."""
        in_round = isinstance(self.event, ControllerChange) and self.event.round is not None
        return in_round or self.at is not None


@dataclass(frozen=True, slots=True, eq=False)
class MomentMove:
    """The build that a moment of the timeline moves the fabric to."""

    number: int
    """The number of the build among the builds of the rehearsal."""
    build: Build
    """The build."""


def cases(
    scenario: Scenario,
    build: Build,
    document: Document | None,
    moves: Mapping[int, MomentMove] | None = None,
    cabled: Build | None = None,
    other_planes: Sequence[Build] = (),
) -> tuple[TimelineCase, ...]:
    """The cases of a scenario's timeline, in their order.

    Args:
        scenario: has the timeline.
        build: the build that the fabric begins with.
        document: the scenario's file, for messages; None without one.
        moves: by the number of a moment, the build that the moment moves the fabric to.
        cabled: the build that is cabled, whose names are used; None for `build`.
        other_planes: the other planes of the fabric. A moment about one of them is left out.

    Raises:
        InputError: moments or `expect.paths` name switches or links that no plane has; all
            problems, with lines.
    """
    reader = _MomentReader(build)
    all_cases: list[TimelineCase] = []
    builds = (build, *other_planes, *(move.build for move in (moves or {}).values()))
    problems = list(_path_problems(scenario.expect.paths, builds, ("expect", "paths"), document))
    for number, moment in enumerate(scenario.timeline):
        path = ("timeline", number, "expect", "paths")
        problems += _path_problems(moment.expect.paths, builds, path, document)
    for number, moment in enumerate(scenario.timeline):
        try:
            if moves and number in moves:
                move = moves[number]
                all_cases.append(replace(_move(moment, move.number), moment=number))
                reader = _MomentReader(as_cabled(move.build, cabled or build))
                continue
            all_cases += [replace(case, moment=number) for case in reader.cases(moment)]
        except InputError as error:
            if any(_MomentReader(plane).knows(moment) for plane in other_planes):
                continue
            problems += [with_line_of_moment(p, number, moment, document) for p in error.problems]
    if problems:
        raise InputError(problems)
    return tuple(all_cases)


def _path_problems(
    paths: Iterable[Iterable[str]],
    builds: Sequence[Build],
    key: KeyPath,
    document: Document | None,
) -> Iterator[Problem]:
    """The problems of paths that name switches which none of these builds has.

    Args:
        paths: the names of the switches of each path.
        builds: all planes of the fabric, and all builds that it moves to.
        key: the key of the paths in the scenario's file.
        document: the scenario's file; None without one.
    """
    for node in dict.fromkeys(node for path in paths for node in path):
        errors = []
        for build in builds:
            try:
                find_switch(build, node)
            except InputError as error:
                errors.append(error)
        if len(errors) < len(builds):
            continue
        for problem in errors[0].problems:
            yield (
                document.problem(key, problem.required, problem.given, problem.todo)
                if document
                else replace(problem, key=".".join(map(str, key)))
            )


def with_line_of_moment(
    problem: Problem, number: int, moment: TimelineEntry, document: Document | None
) -> Problem:
    """A problem, with the line of a moment added unless the problem is about another file."""
    if document is None or (problem.file and problem.file != document.file):
        return problem
    path = ("timeline", number, moment.happens()[0])
    return document.problem(path, problem.required, problem.given, problem.todo)


def needs(scenario: Scenario, timeline_cases: tuple[TimelineCase, ...]) -> dict[Ability, str]:
    """By ability that a scenario needs, the part of the scenario that needs it."""
    parts: dict[Ability, str] = {}
    for case in timeline_cases:
        # Every engine can cut and mend links; all other events need the ability.
        if not isinstance(case.event, PhysicalChange) or case.event.switches:
            parts.setdefault("events", case.group)
    traffic = scenario.traffic
    if traffic.flows:
        parts["flows"] = "traffic.flows"
    if scenario.repair and "repair" in scenario.model_fields_set:
        parts["repair"] = "repair: true"
    if traffic.link_rate:
        parts["rates"] = "traffic.link_rate"
    if scenario.expect.paths or any(case.expect.paths for case in timeline_cases):
        parts["paths"] = "expect.paths"
    return parts


@dataclass(frozen=True, slots=True)
class Elements:
    """Links and nodes that fail together."""

    name: str
    """The links and nodes in words, for reports."""
    links: tuple[Link, ...] = ()
    """The links, by their two switches."""
    nodes: tuple[str, ...] = ()
    """The nodes."""

    def change(self, up: bool) -> PhysicalChange:
        """The event that cuts them, or mends them."""
        return PhysicalChange(self.links, self.nodes, up)


@dataclass(frozen=True, slots=True)
class _MomentReader:
    """Reads the cases of moments, by the names that a build has."""

    build: Build
    """The build."""

    def cases(self, moment: TimelineEntry) -> Iterator[TimelineCase]:
        """The cases of one moment."""
        key = moment.happens()[0]  # such as `link_down`, `each` or `controller`
        kind, _, state = key.partition("_")
        if state:
            elements = self._elements(kind, getattr(moment, key))
            name = f"{elements.name} {state}"
            event = elements.change(up=state == "up")
            yield TimelineCase(name, name, event, moment.expect, moment.at)
        elif kind == "each":
            yield from self._each(moment, str(moment.each))
        elif kind == "controller":
            yield self._controller(moment)
        else:
            yield self._swap(moment, getattr(moment, key), repaired=kind == "rewire")

    def knows(self, moment: TimelineEntry) -> bool:
        """Whether the fabric has the switches and links that a moment names."""
        try:
            return bool(list(self.cases(moment)))
        except InputError:
            return False

    def _elements(self, kind: str, value: Any) -> Elements:
        """The elements of the fabric that a value names, by the kind of its key."""
        if kind == "link":
            links = tuple(self._link(word) for word in value)
            noun = "links" if len(links) > 1 else "link"
            return Elements(f"{noun} {', '.join(value)}", links=links)
        if kind == "node":
            nodes = self._names(find_switch(self.build, word) for word in value)
            noun = "nodes" if len(nodes) > 1 else "node"
            return Elements(f"{noun} {', '.join(value)}", nodes=nodes)
        if kind == "group":
            return self._group(resolve_name(self.build.wiring, self.build.hardware, value))
        if kind == "rack":
            return self._rack(value)
        hardware = self.build.hardware
        own_plane = max(hardware.plane if hardware else 0, 1)  # a fabric without planes is plane 1
        if value != own_plane:
            raise InputError.of("a plane that the fabric has", str(value))
        vertices = np.flatnonzero(self.build.topology.present).tolist()
        return Elements(f"plane {value}", nodes=self._names(vertices))

    def _rack(self, name: str) -> Elements:
        """The nodes of a rack of the family's layout.

        Raises:
            InputError: the layout has no such rack.
        """
        racks = layout(whole_topology(self.build.topology))
        if name not in racks.names:
            todo = rack_hint(self.build.hardware, name) or did_you_mean(name, racks.names)
            raise InputError.of(f"one of {', '.join(racks.names)}", name, todo)
        members = racks.members(racks.names.index(name))
        members = members[self.build.topology.present[members]]
        return Elements(f"rack {name}", nodes=self._names(members.tolist()))

    def _swap(self, moment: TimelineEntry, words: tuple[str, ...], repaired: bool) -> TimelineCase:
        """The case in which two cables are exchanged, or put back."""
        first, second = (self._link(word) for word in words)
        if len({*first, *second}) < 4:
            raise InputError.of("two links of four nodes", " and ".join(words))
        name = f"cables {' and '.join(words)} {'corrected' if repaired else 'swapped'}"
        return TimelineCase(name, name, Miswire(first, second, repaired), moment.expect, moment.at)

    def _controller(self, moment: TimelineEntry) -> TimelineCase:
        """The case in which the controller is killed or started."""
        name, expect = f"controller {moment.controller}", moment.expect
        if moment.in_round:
            name += f" in round {moment.in_round}"
            expect = _without_loss(expect)
        event = ControllerChange(moment.controller == "started", moment.in_round)
        return TimelineCase(name, name, event, expect, moment.at)

    def _each(self, moment: TimelineEntry, kind: str) -> Iterator[TimelineCase]:
        """Yield a case for each link, node or group of a kind: it fails, and is mended at the end.

        With `sample`, the moment has cases for some of them only, drawn by chance.
        """
        failing = self._all_of_kind(kind)
        if moment.sample and moment.sample < len(failing):
            random = np.random.default_rng(moment.seed)
            sample = np.sort(random.permutation(len(failing))[: moment.sample])
            failing = [failing[number] for number in sample.tolist()]
        for elements in failing:
            down, up = elements.change(up=False), elements.change(up=True)
            group = f"each {kind} down, {len(failing)}"
            yield TimelineCase(f"{elements.name} down", group, down, moment.expect, undo=up)

    def _all_of_kind(self, kind: str) -> list[Elements]:
        """All links, nodes or groups of a kind."""
        wiring = self.build.wiring
        if kind in GROUP_KINDS:
            return [self._group(group) for group in risk_groups(wiring, self.build.hardware, kind)]
        if kind == "link":
            links = map(self._names, wiring.link_ends().tolist())
            return [Elements(f"link {near}-{far}", links=((near, far),)) for near, far in links]
        nodes = self._names(np.flatnonzero(self.build.topology.present).tolist())
        return [Elements(f"node {name}", nodes=(name,)) for name in nodes]

    def _link(self, word: str) -> Link:
        """The two switches of a link that a word names, in the order of the word.

        The order decides which ends of two cables a swap exchanges.
        """
        element, ends = find_failure(self.build, word), self.build.wiring.link_ends().tolist()
        if element >= len(ends):
            raise InputError.of("a link, two nodes such as 3-8", word)
        near, far = self._names(ends[element])
        return (near, far) if word.startswith(f"{near}-") else (far, near)

    def _names(self, switches: Iterable[int]) -> tuple[str, ...]:
        """The names of switches."""
        return tuple(self.build.wiring.names[v] for v in switches)

    def _group(self, group: RiskGroup) -> Elements:
        """The links and switches of a group that shares a risk."""
        links = tuple((near, far) for near, far in map(self._names, group.links))
        return Elements(group.name, links, self._names(group.switches))


def _move(moment: TimelineEntry, build: int) -> TimelineCase:
    """The case in which the fabric moves to a build; by default no packet may be lost.

    Args:
        moment: the moment.
        build: the number of the build among the builds of the rehearsal.
    """
    word = next(word for word in MOVES if getattr(moment, word) is not None)
    target = moment.expand or moment.build or ""
    if moment.policy:
        values = moment.policy.model_dump(mode="json", exclude_unset=True)
        target = ", ".join(f"{key} {value}" for key, value in values.items())
    name = f"{word}: {target}"
    return TimelineCase(name, name, BuildChange(build), _without_loss(moment.expect), moment.at)


def _without_loss(expect: ExpectInMoment) -> ExpectInMoment:
    """The expectation, with no loss allowed unless it sets `lost`."""
    return expect if expect.lost is not None else expect.model_copy(update={"lost": 0})


def as_cabled(build: Build, cabled: Build) -> Build:
    """A build with the names that its switches and hosts have in the build that is cabled."""
    if build is cabled:
        return build
    nodes, wiring = SwitchMatching.of(build, cabled), build.wiring
    names, host_names = list(wiring.names), list(wiring.host_names)
    for vertex, cabled_vertex in zip(
        nodes.old_vertex.tolist(), nodes.new_vertex.tolist(), strict=True
    ):
        if vertex >= 0 and cabled_vertex >= 0:
            names[vertex] = cabled.wiring.names[cabled_vertex]
    hosts, cabled_hosts = HostTable.of(build), HostTable.of(cabled)
    for row, cabled_row in enumerate(kept_hosts(hosts, cabled_hosts).tolist()):
        if cabled_row >= 0:
            cabled_place = _name_place(cabled, cabled_hosts, cabled_row)
            host_names[_name_place(build, hosts, row)] = cabled.wiring.host_names[cabled_place]
    return replace(build, wiring=replace(wiring, names=tuple(names), host_names=tuple(host_names)))


def _name_place(build: Build, hosts: HostTable, row: int) -> int:
    """The place of a host's name in `Wiring.host_names`, by its row in the table of hosts."""
    hosts_per_switch: int = build.wiring.host_port.shape[1]
    return int(hosts.vertex[row]) * hosts_per_switch + int(hosts.host[row])


def cabled_build(builds: Sequence[Build]) -> Build:
    """The first build that has all switches, cables and hosts of the others.

    Raises:
        InputError: there is no such build.
    """
    for candidate in builds:
        if not any(lacking(build, candidate) for build in builds if build is not candidate):
            return candidate
    first, last = builds[0], builds[-1]
    lost, added = lacking(first, last), lacking(last, first)
    todo = "go by way of a build in between, which has all"
    if (lost, added) == (lost_hosts(first, last), lost_hosts(last, first)):
        todo = "a host that moves loses packets in any order: rehearse the rest without its move"
    raise InputError.of(
        required="builds of which one has all switches, cables and hosts of the others",
        given=f"one without {lost}, the other without {added}",
        todo=todo,
    )


def lacking(build: Build, candidate: Build) -> str:
    """What a build has and a candidate lacks, in words; "" if it lacks nothing."""
    nodes = SwitchMatching.of(build, candidate)
    lost_nodes = np.flatnonzero((nodes.old_vertex >= 0) & (nodes.new_vertex < 0))
    if len(lost_nodes):
        name = build.wiring.names[nodes.old_vertex[lost_nodes[0]]]
        return f"switch {name} ({len(lost_nodes):,} in all)"
    cables = missing_cables(build, candidate, nodes.node_of_old, nodes.node_of_new)
    if cables:
        return f"the cable from {cables[0][0]} to {cables[0][1]} ({len(cables):,} in all)"
    return lost_hosts(build, candidate)


def lost_hosts(build: Build, candidate: Build) -> str:
    """The hosts that a candidate does not have where the build has them, in words; "" if none."""
    hosts = HostTable.of(build)
    rows = np.flatnonzero(kept_hosts(hosts, HostTable.of(candidate)) < 0)
    if not len(rows):
        return ""
    name = build.wiring.host_names[_name_place(build, hosts, int(rows[0]))]
    return f"host {name} at its place with its address ({len(rows):,} in all)"
