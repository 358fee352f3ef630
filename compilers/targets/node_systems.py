"""The systems of a fabric whose nodes do not all have the same one, as one target.

Each node is rendered and read back by its own system. Every system names the ports of its nodes, so
a neighbour's port has the name that the neighbour's system gives it. What both ends of a link agree
on, as whether it has addresses, is decided here, once for the fabric.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.bgp.bgp_speaker import BgpSwitch
from compilers.readers.devices.held_routes import RouteTables
from compilers.readers.emitted_check import Reader
from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.emitted_report import DifferenceList
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.options import Chosen, Option, Options, choose
from compilers.targets.rendering.text_target import Written
from compilers.targets.routed.bgp.bgp_options import BFD, GTSM, INTERFACE_SESSIONS, ROUTING
from compilers.targets.routed.link_addresses import UNNUMBERED
from compilers.targets.target import Progress, Target
from compilers.targets.target_lookup import target
from inventory.problems import Finding, InputError, Problem, few

FRR_FILE = "frr.conf"
"""The file in which the statements of FRR have the order of our templates."""
SYSTEMS = "systems"
"""The name under which a folder lists the files of nodes that were rendered for their systems."""


class NodeSystems(Target):
    """The systems of a build's nodes.

    Args:
        names: the name of each node, by vertex.
        systems: the name of its system.
    """

    name = SYSTEMS
    summary = "every node for its own system"
    files: ClassVar[Mapping[str, type]] = {}

    def __init__(self, names: Sequence[str], systems: Sequence[str]) -> None:
        self.systems = tuple(systems)
        """The name of the system of each vertex."""
        self.of_node = dict(zip(names, systems, strict=True))
        """The name of the system of each node, by the node's name."""
        self.parts: dict[str, Target] = {name: target(name) for name in sorted({*systems})}
        """The systems by their names."""

    @classmethod
    def of(cls, build: Build) -> NodeSystems:
        """The systems of a build's nodes.

        Raises:
            InputError: a system is not installed.
        """
        return cls(build.wiring.names, build.systems)

    @property
    def title(self) -> str:
        """The names of the systems, for reports."""
        return " and ".join(self.parts)

    @property
    def kinds(self) -> list[type]:
        """See `Target.kinds`."""
        return [type(self), *map(type, self.parts.values())]

    @property
    def all_options(self) -> Options:
        """The options of all systems."""
        options: dict[str, Option] = {}
        for part in reversed(self.parts.values()):  # the first system goes before the others
            options |= part.all_options
        return options

    def by_vertex(self, vertices: int) -> Sequence[Target]:  # noqa: ARG002
        """See `Target.by_vertex`."""
        return [self.parts[system] for system in self.systems]

    def options_of(self, name: str, options: Chosen | None) -> Chosen:
        """Keep the options that a system has."""
        has = self.parts[name].all_options
        return {word: value for word, value in (options or {}).items() if word in has}

    def options_in(self, plane: int, options: Chosen | None) -> Chosen | None:
        """See `Target.options_in`."""
        for part in self.parts.values():
            options = part.options_in(plane, options)
        return options

    def vertices(self, name: str, build: Build, only: Collection[int] | None = None) -> list[int]:
        """The switches of a system, perhaps only some of them."""
        present = np.flatnonzero(build.topology.present).tolist()
        return [v for v in present if self.systems[v] == name and (only is None or v in only)]

    def agreed(self, build: Build) -> dict[str, str]:
        """What both ends of every link agree on, as options of targets.

        Links have addresses unless both ends can do without them in the same way. Between systems
        with the same way, such as FRR's, links of eBGP have no addresses if fabric.yaml says so.
        """
        if len(self.parts) < 2:
            return dict(build.control)
        routing = build.control.get(ROUTING, "static")
        options = {ROUTING: routing, BFD: "on" if routing == "bgp" else "off", **build.control}
        if routing == "bgp":
            apart = options[BFD] == "on" and self.partly_frr
            options.setdefault(GTSM, "off" if self.without(GTSM) or apart else "on")
        usual = "on" if routing == "static" and self.alike(routing) else "off"
        return {UNNUMBERED: usual, **options}

    @property
    def partly_frr(self) -> bool:
        """Whether some systems have FRR's BGP and others do not.

        FRR's BFD takes one hop, as that of others does, only if a session joins a group that has
        TTL security already, as in the files that are rendered. If TTL security is turned on while
        sessions run, FRR takes several hops, and BFD stays down until FRR is restarted (tried with
        10.3 and 10.7 beside BIRD). So it is off unless fabric.yaml turns it on.
        """
        ways = self._unnumbered_ways("bgp")
        return INTERFACE_SESSIONS in ways and len(ways) > 1

    def _unnumbered_ways(self, routing: str) -> set[str]:
        """The ways in which the systems do without addresses of links, "" for a system that cannot.

        Args:
            routing: the value of the option `routing`.
        """
        return {(part.unnumbered or {}).get(routing, "") for part in self.parts.values()}

    @property
    def foreign_files(self) -> list[str]:
        """The systems with FRR's BGP that write FRR's file themselves, in an order of their own."""
        return [
            name
            for name, part in self.parts.items()
            if (part.unnumbered or {}).get("bgp") == INTERFACE_SESSIONS
            and FRR_FILE not in part.files
        ]

    def without(self, option: str) -> list[str]:
        """The systems that do not have an option."""
        return [name for name, part in self.parts.items() if option not in part.agreements]

    def alike(self, routing: str) -> bool:
        """Whether all systems do without addresses of links, in the same way."""
        ways = self._unnumbered_ways(routing)
        return len(ways) == 1 and "" not in ways

    def check(self, build: Build, options: Chosen | None = None) -> tuple[Build, Chosen]:
        """See `Target.check`: each system checks the whole fabric.

        Raises:
            InputError: a system cannot do what the build asks for, all reasons of all systems at
                once; or they do not go together.
        """
        choose(self.title, self.all_options, options)
        problems = list(self._conflicts(build))
        if problems:
            raise InputError(few(problems))
        chosen: dict[str, str] = {}
        named = build
        for name, part in self.parts.items():
            try:
                named, chosen_of_part = part.check(build, self.options_of(name, options))
                chosen |= chosen_of_part
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(few(list(dict.fromkeys(problems))))
        return named, chosen

    def _conflicts(self, build: Build) -> Iterator[Problem]:
        """Why the systems do not work beside each other, or not with what the build asks for."""
        if len(self.parts) < 2:
            return
        alone = [name for name, part in self.parts.items() if part.unnumbered is None]
        if alone:
            required = f"one system for all nodes, as {alone[0]} stands beside no other"
            yield Problem(required, self.title, "choose another system", key="system")
            return
        agreed = self.agreed(build)
        yield from self._routing_conflicts(agreed)
        yield from self._address_conflicts(agreed)
        if build.forwarding.marks and len(self._unnumbered_ways(agreed[ROUTING])) > 1:
            required = "a balance that marks no packets, or systems that write the same marks"
            yield Problem(required, f"{build.balance} on {self.title}", key="routing.balance")

    def _routing_conflicts(self, agreed: Chosen) -> Iterator[Problem]:
        """Why the systems cannot all have eBGP, TTL security or BFD as `agreed` says."""
        if agreed[ROUTING] != "bgp":
            if agreed[BFD] == "on":
                required = (
                    "false with static routes of several systems, of which each has its own way"
                )
                todo = "remove it" if self.without(ROUTING) else "or write `routes: ebgp`"
                yield Problem(required, "true", todo, key=CONTROL_KEYS[BFD])
            return
        if without := self.without(ROUTING):
            required = f"static, as system {without[0]} has no eBGP"
            todo = "or choose another system for its nodes"
            yield Problem(required, "ebgp", todo, key=CONTROL_KEYS[ROUTING])
        elif agreed[GTSM] == "on" and (without := self.without(GTSM)):
            required = f"false, as system {without[0]} sends packets that others then drop"
            yield Problem(required, "true", "remove it", key=CONTROL_KEYS[GTSM])
        elif agreed[GTSM] == agreed[BFD] == "on" and self.partly_frr and self.foreign_files:
            name = self.foreign_files[0]
            required = f"false with BFD on {self.title}, as {name} orders the lines of FRR itself"
            yield Problem(required, "true", "remove it", key=CONTROL_KEYS[GTSM])

    def _address_conflicts(self, agreed: Chosen) -> Iterator[Problem]:
        """Why the systems cannot all do with or without addresses of links as `agreed` says."""
        routing = agreed[ROUTING]
        if agreed[UNNUMBERED] == "on" and not self.alike(routing):
            required = f"false, as {self.title} do without addresses of links in different ways"
            yield Problem(required, "true", "remove it", key=CONTROL_KEYS[UNNUMBERED])
        elif agreed[UNNUMBERED] == "off":
            ebgp = "" if self.without(ROUTING) else "write `control_plane: {routes: ebgp}`, or "
            for name, part in self.parts.items():
                if routing in part.only_unnumbered:
                    required = f"another system than {name} beside others with these routes"
                    given = f"{self.title}, whose links need addresses"
                    yield Problem(required, given, f"{ebgp}choose another system", key="system")

    def pool_problems(self, build: Build, chosen: Chosen) -> Iterator[Problem]:
        """See `Target.pool_problems`: those of all systems."""
        for name, part in self.parts.items():
            yield from part.pool_problems(build, self.chosen_of(name, build, chosen))

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], Any]:
        """See `Target.variables`: those of the node's own system."""
        variables_of_system = {
            name: part.variables(build, self.chosen_of(name, build, chosen))
            for name, part in self.parts.items()
        }
        return lambda vertex: variables_of_system[self.systems[vertex]](vertex)

    def chosen(self, build: Build, options: Chosen | None = None) -> Chosen:
        """See `Target.chosen`."""
        chosen: dict[str, str] = {}
        for name, part in self.parts.items():
            chosen |= part.chosen(build, self.options_of(name, options))
        return chosen

    def chosen_of(self, name: str, build: Build, options: Chosen | None) -> Chosen:
        """The value of every option of a system, by values of options of any system."""
        part = self.parts[name]
        agreed = {
            word: value for word, value in self.agreed(build).items() if word in part.agreements
        }
        users = choose(name, part.all_options, self.options_of(name, options))
        return {**choose(name, part.agreements, agreed), **users}

    def render(
        self,
        build: Build,
        out: Path,
        templates: Path | None = None,
        progress: Progress = None,
        options: Chosen | None = None,
        only: Collection[int] | None = None,
    ) -> Written:
        """See `Target.render`: each system writes the files of its nodes."""
        self.check(build, options)
        written = Written()
        for name, part in self.parts.items():
            if vertices := self.vertices(name, build, only):
                part_options = self.options_of(name, options)
                written += part.render(build, out, templates, progress, part_options, vertices)
        return written

    def reader_of(self, build: Build, chosen: Chosen) -> Reader | None:
        """The reader of a node's folder, which is that of its system; None where one has none."""
        readers: dict[str, Reader] = {}
        for name, part in self.parts.items():
            reader = part.reader(self.chosen_of(name, build, chosen))
            if reader is None:
                return None
            readers[name] = reader

        def read(folder: Path) -> EmittedSwitch:
            return readers[self.of_node[folder.name]](folder)

        def speaker(folder: Path) -> BgpSwitch:
            reader = readers[self.of_node.get(folder.name, next(iter(readers)))]
            if not isinstance(reader, BgpReader):
                raise TypeError(f"{folder.name} does not speak BGP")
            return reader.speaker(folder)

        if any(isinstance(reader, BgpReader) for reader in readers.values()):
            return BgpReader(speaker)
        return read

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables] | None:
        """See `Target.routes_held`: those of the node's own system."""
        routes_of_system: dict[str, Callable[[int], RouteTables]] = {}
        for name, part in self.parts.items():
            routes_held = part.routes_held(build, self.chosen_of(name, build, chosen))
            if routes_held is None:
                return None
            routes_of_system[name] = routes_held
        return lambda vertex: routes_of_system[self.systems[vertex]](vertex)

    def more_differences(
        self, build: Build, chosen: Chosen, folder: Path, only: Collection[int] | None
    ) -> Iterator[DifferenceList]:
        """See `Target.more_differences`."""
        for name, part in self.parts.items():
            vertices = self.vertices(name, build, only)
            chosen_of_part = self.chosen_of(name, build, chosen)
            yield from part.more_differences(build, chosen_of_part, folder, vertices)


def needs_restart_of_frr(old: Build, new: Build) -> bool:
    """Whether TTL security is turned on with BFD, in a fabric of FRR and others.

    BFD of an FRR that runs then stays down; see `NodeSystems.partly_frr`.
    """
    if not (old.systems and new.systems):
        return False
    now = system_target(new)
    if not isinstance(now, NodeSystems) or not now.partly_frr:
        return False
    before, after = system_target(old).chosen(old), now.chosen(new)
    is_on = after.get(GTSM) == after.get(BFD) == "on"
    return is_on and before.get(ROUTING) == "bgp" and before.get(GTSM) != "on"


def system_target(build: Build, others: Sequence[Build] = ()) -> Target:
    """The target that renders every node for its own system; the system where all have one.

    Args:
        build: the plane that is rendered.
        others: further planes of the fabric, whose nodes count as well.

    Raises:
        InputError: the build names no systems, or one is not installed.
    """
    if not build.systems:
        required = "a target, or `system:` in fabric.yaml"
        raise InputError.of(required, "none", "polarfab targets lists them", key="target")
    names = {*build.systems}.union(*(other.systems for other in others))
    return NodeSystems.of(build) if len(names) > 1 else target(names.pop())


def builds_for(builds: Sequence[Build], name: str) -> list[Build]:
    """The builds as a target renders them: a named system is that of all nodes.

    Args:
        builds: one a plane.
        name: of the target; "" for each node's own system.
    """
    if not name or target(name).of_others:
        return list(builds)
    return [replace(build, systems=()) if build.systems else build for build in builds]


def named_by_systems(build: Build) -> Build:
    """The build with every node's ports named as its system names them.

    A node type whose nodes have several systems becomes several types.
    """
    w = build.wiring
    type_and_system = list(zip(w.node_type.tolist(), build.systems, strict=True))
    new_types = sorted({*type_and_system})
    number_of = {new_type: number for number, new_type in enumerate(new_types)}
    port_names_of: dict[str, tuple[tuple[str, ...], ...]] = {}
    for system in sorted({*build.systems}):
        interfaces = target(system).interfaces
        named = interfaces.named(build, system) if interfaces else build
        port_names_of[system] = named.wiring.port_names
    wiring = replace(
        w,
        node_type=np.array([number_of[pair] for pair in type_and_system], w.node_type.dtype),
        type_names=tuple(w.type_names[node_type] for node_type, _ in new_types),
        port_names=tuple(port_names_of[system][node_type] for node_type, system in new_types),
    )
    hardware = build.hardware
    if hardware:
        types = tuple(hardware.types[node_type] for node_type, _ in new_types)
        hardware = replace(hardware, types=types)
    return replace(build, wiring=wiring, hardware=hardware)


def misnamed(build: Build) -> Iterator[Finding]:
    """The node types with port names that the system of their nodes cannot have."""
    named = named_by_systems(build)
    system_of = dict(zip(named.wiring.node_type.tolist(), build.systems, strict=True))
    for system in sorted({*build.systems}):
        if interfaces := target(system).interfaces:
            for t, finding in interfaces.wrong_names(named):
                if system_of.get(t) == system:
                    yield finding
