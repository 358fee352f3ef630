"""A timeline's moments as events of this fabric: names become switches, `each` becomes many.

Where a fabric moves from build to build, engines know switches and hosts by the names of the build
that is cabled. Where another build calls one otherwise, the cabled build's name goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compilers.proof.explanation import find_failure, find_switch
from compilers.tables.build import Build
from compilers.topology.layout import layout
from compilers.topology.replicated_clusters import whole_topology
from compilers.update.loss import cables_apart
from compilers.update.matching import HostTable, Matching, kept_hosts
from compilers.wiring.shared_risk import GROUP_KINDS, RiskGroup, find, groups, rack_in_words
from inventory.problems import InputError, Problem, did_you_mean
from inventory.yamlfile import Document
from mininet_scenarios.scenario.engine import (
    Ability,
    BuildChange,
    ControllerChange,
    Event,
    Miswire,
    PhysicalChange,
)
from mininet_scenarios.scenario.scenario_file import MOVES, ExpectInMoment, Scenario, TimelineEntry

Link = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """One event of a timeline."""

    what: str
    """What the event is called in reports."""
    group: str
    """What its checks are counted under."""
    event: Event
    """The event, as an engine applies it."""
    expect: ExpectInMoment
    """What is expected from the event on."""
    at: float | None = None
    """Seconds after the timeline began; None to wait until the fabric has dealt with the event
    before.
    """
    undo: Event | None = None
    """What follows when its checks are done, unchecked."""
    moment: int = 0
    """The number of its moment in the timeline."""

    @property
    def soon(self) -> bool:
        """Whether it does not wait until the fabric has dealt with the event before."""
        crash = isinstance(self.event, ControllerChange) and self.event.round is not None
        return crash or self.at is not None


def cases(
    scenario: Scenario,
    build: Build,
    document: Document | None,
    moves: Mapping[int, tuple[int, Build]] | None = None,
    ground: Build | None = None,
    others: Sequence[Build] = (),
) -> tuple[Case, ...]:
    """The events of a scenario's timeline, in their order.

    Args:
        scenario: whose.
        build: the first one.
        ground: the one that is cabled, whose names go; None: `build`.
        document: its file, None where there is none.
        moves: by the moments' numbers, the numbers of the builds that these move to, and these.
        others: the other planes; a moment of one of these and not of `build` is left out.

    Raises:
        InputError: it names what no plane has; all of it, with lines.
    """
    reader = _MomentReader(build)
    events: list[Case] = []
    problems: list[Problem] = []
    for number, moment in enumerate(scenario.timeline):
        try:
            if moves and number in moves:
                to, other = moves[number]
                events.append(replace(_move(moment, to), moment=number))
                reader = _MomentReader(as_cabled(other, ground or build))
                continue
            events += [replace(case, moment=number) for case in reader.cases(moment)]
        except InputError as error:
            if any(_MomentReader(other).knows(moment) for other in others):
                continue
            problems += [of_moment(p, number, moment, document) for p in error.problems]
    if problems:
        raise InputError(problems)
    return tuple(events)


def of_moment(
    problem: Problem, number: int, moment: TimelineEntry, document: Document | None
) -> Problem:
    """The problem at the line of an event, if it has no better place."""
    if document is None or (problem.file and problem.file != document.file):
        return problem
    path = ("timeline", number, moment.happens()[0])
    return document.problem(path, problem.required, problem.given, problem.todo)


def needs(scenario: Scenario, events: tuple[Case, ...]) -> dict[Ability, str]:
    """The abilities that a scenario needs, and what of it needs them."""
    wanted: dict[Ability, str] = {}
    for case in events:
        if not isinstance(case.event, PhysicalChange) or case.event.switches:
            wanted.setdefault("events", case.group)
    traffic = scenario.traffic
    if traffic.flows:
        wanted["flows"] = "traffic.flows"
    if scenario.repair and "repair" in scenario.model_fields_set:
        wanted["repair"] = "repair: true"
    if traffic.link_rate:
        wanted["rates"] = "traffic.link_rate"
    if scenario.expect.paths or any(case.expect.paths for case in events):
        wanted["paths"] = "expect.paths"
    return wanted


@dataclass(frozen=True, slots=True)
class Elements:
    """Links and nodes that fail together."""

    name: str
    """What they are called in reports."""
    links: tuple[Link, ...] = ()
    """The links, by their two switches."""
    nodes: tuple[str, ...] = ()
    """The nodes."""

    def change(self, up: bool) -> PhysicalChange:
        """The event that cuts them, or mends them."""
        return PhysicalChange(self.links, self.nodes, up)


@dataclass(frozen=True, slots=True)
class _MomentReader:
    """Reads the events of moments, by the names that a build has."""

    build: Build
    """The build."""

    def cases(self, moment: TimelineEntry) -> Iterator[Case]:
        """The events of one moment."""
        word = moment.happens()[0]
        kind, _, state = word.partition("_")
        if state:
            elements = self._elements(kind, getattr(moment, word))
            what = f"{elements.name} {state}"
            event = elements.change(up=state == "up")
            yield Case(what, what, event, moment.expect, moment.at)
        elif kind == "each":
            yield from self._each(moment, str(moment.each))
        elif kind == "controller":
            yield self._controller(moment)
        else:
            yield self._swap(moment, getattr(moment, word), repaired=kind == "rewire")

    def knows(self, moment: TimelineEntry) -> bool:
        """Whether the fabric has what a moment names."""
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
            return self._of_group(find(self.build.wiring, self.build.hardware, value))
        if kind == "rack":
            racks = layout(whole_topology(self.build.topology))
            if value not in racks.names:
                todo = rack_in_words(self.build.hardware, value)
                todo = todo or did_you_mean(value, racks.names)
                raise InputError.of(f"one of {', '.join(racks.names)}", value, todo)
            members = racks.members(racks.names.index(value))
            members = members[self.build.topology.present[members]]
            return Elements(f"rack {value}", nodes=self._names(members.tolist()))
        hardware = self.build.hardware
        if value != max(hardware.plane if hardware else 0, 1):
            raise InputError.of("a plane that the fabric has", str(value))
        vertices = np.flatnonzero(self.build.topology.present).tolist()
        return Elements(f"plane {value}", nodes=self._names(vertices))

    def _swap(self, moment: TimelineEntry, words: tuple[str, ...], repaired: bool) -> Case:
        """The event that two cables change places, or are put back."""
        one, other = (self._link(word) for word in words)
        if len({*one, *other}) < 4:
            raise InputError.of("two links of four nodes", " and ".join(words))
        what = f"cables {' and '.join(words)} {'corrected' if repaired else 'swapped'}"
        return Case(what, what, Miswire(one, other, repaired), moment.expect, moment.at)

    def _controller(self, moment: TimelineEntry) -> Case:
        """The event that the controller is killed or started."""
        what = f"controller {moment.controller}"
        what += f" in round {moment.in_round}" if moment.in_round else ""
        event = ControllerChange(moment.controller == "started", moment.in_round)
        expect = _without_loss(moment.expect) if moment.in_round else moment.expect
        return Case(what, what, event, expect, moment.at)

    def _each(self, moment: TimelineEntry, kind: str) -> Iterator[Case]:
        """The events that every link, node or group fails in turn, one after the other."""
        wiring = self.build.wiring
        if kind in GROUP_KINDS:
            failing = [self._of_group(g) for g in groups(wiring, self.build.hardware, kind)]
        elif kind == "link":
            links = map(self._names, wiring.link_ends().tolist())
            failing = [
                Elements(f"link {one}-{other}", links=((one, other),)) for one, other in links
            ]
        else:
            nodes = self._names(np.flatnonzero(self.build.topology.present).tolist())
            failing = [Elements(f"node {name}", nodes=(name,)) for name in nodes]
        if moment.sample and moment.sample < len(failing):
            random = np.random.default_rng(moment.seed)
            sample = np.sort(random.permutation(len(failing))[: moment.sample])
            failing = [failing[number] for number in sample.tolist()]
        for elements in failing:
            down, up = elements.change(up=False), elements.change(up=True)
            group = f"each {kind} down, {len(failing)}"
            yield Case(f"{elements.name} down", group, down, moment.expect, undo=up)

    def _link(self, word: str) -> Link:
        """The two switches of a link that a word names, in the order of the word."""
        element, ends = find_failure(self.build, word), self.build.wiring.link_ends().tolist()
        if element >= len(ends):
            raise InputError.of("a link, two nodes such as 3-8", word)
        one, other = self._names(ends[element])
        # In the order of the word: which end a swap moves depends on it.
        return (one, other) if word.startswith(f"{one}-") else (other, one)

    def _names(self, switches: Iterable[int]) -> tuple[str, ...]:
        """The names of switches."""
        return tuple(self.build.wiring.names[v] for v in switches)

    def _of_group(self, group: RiskGroup) -> Elements:
        """The links and switches of a group that shares a risk."""
        links = tuple((one, other) for one, other in map(self._names, group.links))
        return Elements(group.name, links, self._names(group.switches))


def _move(moment: TimelineEntry, build: int) -> Case:
    """A move to a build, by its number; by default no packet may be lost."""
    word = next(word for word in MOVES if getattr(moment, word) is not None)
    target = moment.expand or moment.build or ""
    if moment.policy:
        values = moment.policy.model_dump(mode="json", exclude_unset=True)
        target = ", ".join(f"{key} {value}" for key, value in values.items())
    what = f"{word}: {target}"
    return Case(what, what, BuildChange(build), _without_loss(moment.expect), moment.at)


def _without_loss(expect: ExpectInMoment) -> ExpectInMoment:
    """The expectation, with no loss allowed where it does not say."""
    return expect if expect.lost is not None else expect.model_copy(update={"lost": 0})


def as_cabled(build: Build, ground: Build) -> Build:
    """A build with the names that its switches and hosts have in the one that is cabled."""
    if build is ground:
        return build
    nodes, wiring = Matching.of(build, ground), build.wiring
    names, host_names = list(wiring.names), list(wiring.host_names)
    for vertex, cabled_vertex in zip(nodes.before.tolist(), nodes.after.tolist(), strict=True):
        if vertex >= 0 and cabled_vertex >= 0:
            names[vertex] = ground.wiring.names[cabled_vertex]
    hosts, cabled_hosts = HostTable.of(build), HostTable.of(ground)
    kept = kept_hosts(hosts, cabled_hosts)
    for row, cabled_vertex in enumerate(kept.tolist()):
        if cabled_vertex >= 0:
            place = int(hosts.vertex[row]) * wiring.host_port.shape[1] + int(hosts.host[row])
            at = int(cabled_hosts.vertex[cabled_vertex]) * ground.wiring.host_port.shape[1]
            host_names[place] = ground.wiring.host_names[at + int(cabled_hosts.host[cabled_vertex])]
    return replace(build, wiring=replace(wiring, names=tuple(names), host_names=tuple(host_names)))


def ground_of(builds: Sequence[Build]) -> Build:
    """The one of them that has all switches, cables and hosts of the others, the first if several.

    Raises:
        InputError: none has.
    """
    for candidate in builds:
        if not any(lacking(build, candidate) for build in builds if build is not candidate):
            return candidate
    first, last = builds[0], builds[-1]
    raise InputError.of(
        required="builds of which one has all switches, cables and hosts of the others",
        given=f"one without {lacking(first, last)}, the other without {lacking(last, first)}",
        todo="go by way of a build in between, which has all",
    )


def lacking(build: Build, ground: Build) -> str:
    """A description of what one build has and another lacks; "" if it lacks nothing."""
    nodes = Matching.of(build, ground)
    gone = np.flatnonzero((nodes.before >= 0) & (nodes.after < 0))
    if len(gone):
        return f"switch {build.wiring.names[nodes.before[gone[0]]]} ({len(gone):,} in all)"
    if cables := cables_apart(build, ground, nodes.node_before, nodes.node_after):
        return f"the cable from {cables[0][0]} to {cables[0][1]} ({len(cables):,} in all)"
    here = HostTable.of(build)
    lost = np.flatnonzero(kept_hosts(here, HostTable.of(ground)) < 0)
    if len(lost):
        number = int(here.vertex[lost[0]]) * build.wiring.host_port.shape[1]
        name = build.wiring.host_names[number + int(here.host[lost[0]])]
        return f"host {name} at its place with its address ({len(lost):,} in all)"
    return ""
