"""A fabric whose nodes run several systems, as one target.

Each node is rendered and read back by its own system. *Agreements* are the options on which both
ends of a link have to agree, such as whether links have addresses; `NodeSystems.agreement_values`
decides them once for the fabric. Links are *unnumbered* if they have no addresses of their own.
`system_target` gives commands the target of a build.
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
from compilers.targets.rendering.renderer import WrittenFiles
from compilers.targets.routed.bgp.bgp_checks import NO_GTSM
from compilers.targets.routed.bgp.bgp_options import BFD, GTSM, INTERFACE_SESSIONS, ROUTING
from compilers.targets.routed.link_addresses import UNNUMBERED
from compilers.targets.target import Progress, Target
from compilers.targets.target_lookup import target
from inventory.problems import InputError, Problem, few

FRR_FILE = "frr.conf"
"""The file of FRR's configuration, where a target renders it itself."""
LINKS_NEED_ADDRESSES = ""
"""In the place of the way in which a system does without addresses on links: it does not."""
SYSTEMS = "systems"
"""The name of this target, also in the manifest of a folder with its files."""


class NodeSystems(Target):
    """The systems of a build's nodes.

    A command gives one set of options for all systems. Each system takes those that it has
    (`options_for`); with its defaults and the agreements, they are the value of every option of the
    system (`chosen_for`).

    Args:
        names: the name of each node, by vertex.
        systems: the name of each node's system, by vertex.
    """

    name = SYSTEMS
    summary = "every node for its own system"
    files: ClassVar[Mapping[str, type]] = {}

    def __init__(self, names: Sequence[str], systems: Sequence[str]) -> None:
        self.systems = tuple(systems)
        """The name of the system of each vertex."""
        self.system_of_node = dict(zip(names, systems, strict=True))
        """The name of the system of each node, by the node's name."""
        self.targets: dict[str, Target] = {name: target(name) for name in sorted({*systems})}
        """The targets of the systems, by their names."""

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
        return " and ".join(self.targets)

    @property
    def source_classes(self) -> list[type]:
        """See `Target.source_classes`."""
        return [type(self), *map(type, self.targets.values())]

    @property
    def all_options(self) -> Options:
        """The options of all systems."""
        options: dict[str, Option] = {}
        for system in reversed(self.targets.values()):  # options of the first system replace others
            options |= system.all_options
        return options

    def by_vertex(self, vertices: int) -> Sequence[Target]:  # noqa: ARG002
        """See `Target.by_vertex`."""
        return [self.targets[name] for name in self.systems]

    def options_for(self, name: str, options: Chosen | None) -> Chosen:
        """The options among those of a command that a system has.

        Args:
            name: the name of the system.
            options: values of options of any system.
        """
        known_options = self.targets[name].all_options
        return {
            option: value for option, value in (options or {}).items() if option in known_options
        }

    def options_in(self, plane: int, options: Chosen | None) -> Chosen | None:
        """See `Target.options_in`."""
        for system in self.targets.values():
            options = system.options_in(plane, options)
        return options

    def vertices(self, name: str, build: Build, only: Collection[int] | None = None) -> list[int]:
        """The vertices of the switches of a system that are installed.

        Args:
            name: the name of the system.
            build: the build.
            only: vertices; the result has no others. None for all.
        """
        present = np.flatnonzero(build.topology.present).tolist()
        return [
            vertex
            for vertex in present
            if self.systems[vertex] == name and (only is None or vertex in only)
        ]

    def agreement_values(self, build: Build) -> dict[str, str]:
        """The agreements, as fabric.yaml says them or as the systems need them.

        Links have addresses unless all systems can do without them in the same way. Links of eBGP
        have none only if fabric.yaml says so.
        """
        if len(self.targets) < 2:
            return dict(build.control)
        routing = build.control.get(ROUTING, "static")
        options = {ROUTING: routing, BFD: "on" if routing == "bgp" else "off", **build.control}
        if routing == "bgp":
            bfd_needs_off = options[BFD] == "on" and self.mixes_frr_bgp
            is_off = self.systems_without(GTSM) or bfd_needs_off
            options.setdefault(GTSM, "off" if is_off else "on")
        can_be_unnumbered = routing == "static" and self.can_all_be_unnumbered(routing)
        return {UNNUMBERED: "on" if can_be_unnumbered else "off", **options}

    @property
    def mixes_frr_bgp(self) -> bool:
        """Whether some systems have FRR's BGP and others do not.

        Then TTL security is off unless fabric.yaml turns it on. FRR's BFD is single-hop, as that of
        other systems is, only if a session joins a group that has TTL security already, as in the
        files that are rendered. If TTL security is turned on while sessions run, FRR's BFD becomes
        multihop, and stays down until FRR is restarted (tried with 10.3 and 10.7 beside BIRD).
        """
        dialects = self._unnumbered_dialects("bgp")
        return INTERFACE_SESSIONS in dialects and len(dialects) > 1

    def _unnumbered_dialects(self, routing: str) -> set[str]:
        """The ways in which the systems do without addresses on links (`Target.unnumbered`).

        LINKS_NEED_ADDRESSES stands for a system that cannot do without.

        Args:
            routing: the value of the option `routing`.
        """
        return {
            (system.unnumbered or {}).get(routing, LINKS_NEED_ADDRESSES)
            for system in self.targets.values()
        }

    @property
    def systems_writing_frr_file(self) -> list[str]:
        """The names of systems that run FRR's BGP and write its file at the switch themselves.

        The order of lines in such a file is not that of the rendered ones.
        """
        return [
            name
            for name, system in self.targets.items()
            if (system.unnumbered or {}).get("bgp") == INTERFACE_SESSIONS
            and FRR_FILE not in system.files
        ]

    def systems_without(self, option: str) -> list[str]:
        """The names of the systems that do not have an agreement."""
        return [name for name, system in self.targets.items() if option not in system.agreements]

    def can_all_be_unnumbered(self, routing: str) -> bool:
        """Whether all systems can do without addresses on links, in the same way."""
        dialects = self._unnumbered_dialects(routing)
        return len(dialects) == 1 and LINKS_NEED_ADDRESSES not in dialects

    def check(self, build: Build, options: Chosen | None = None) -> tuple[Build, Chosen]:
        """See `Target.check`: each system checks the whole fabric.

        Raises:
            InputError: a system cannot do what the build asks for, or the systems do not work
                beside each other; all reasons at once.
        """
        choose(self.title, self.all_options, options)
        problems = list(self._conflicts(build))
        if problems:
            raise InputError(few(problems))
        chosen: dict[str, str] = {}
        named = build
        for name, system in self.targets.items():
            try:
                named, system_chosen = system.check(build, self.options_for(name, options))
                chosen |= system_chosen
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(few(list(dict.fromkeys(problems))))
        return named, chosen

    def _conflicts(self, build: Build) -> Iterator[Problem]:
        """The problems of systems that do not work beside each other, as the build asks for it."""
        if len(self.targets) < 2:
            return
        not_mixed = [name for name, system in self.targets.items() if system.unnumbered is None]
        if not_mixed:
            yield Problem(
                key="system",
                required=f"one system for all nodes, as {not_mixed[0]} stands beside no other",
                given=self.title,
                todo="choose another system",
            )
            return
        agreed = self.agreement_values(build)
        yield from self._routing_conflicts(agreed)
        yield from self._address_conflicts(agreed)
        # Systems that do without addresses in different ways write different marks.
        if build.forwarding.marks and len(self._unnumbered_dialects(agreed[ROUTING])) > 1:
            yield Problem(
                key="routing.balance",
                required="a balance that marks no packets, or systems that write the same marks",
                given=f"{build.balance} on {self.title}",
            )

    def _routing_conflicts(self, agreed: Chosen) -> Iterator[Problem]:
        """The problems of systems that cannot have the agreed eBGP, TTL security or BFD."""
        if agreed[ROUTING] != "bgp":
            if agreed[BFD] == "on":
                todo = "remove it"
                if not self.systems_without(ROUTING):
                    todo += ", or write `routes: ebgp`"
                yield Problem(
                    key=CONTROL_KEYS[BFD],
                    required="false with static routes of several systems: each follows BFD in its "
                    "own way, or not at all",
                    given="true",
                    todo=todo,
                )
            if agreed.get(GTSM) == "on":
                yield Problem(NO_GTSM, "true", "remove it", key=CONTROL_KEYS[GTSM])
            return
        if static_systems := self.systems_without(ROUTING):
            yield Problem(
                key=CONTROL_KEYS[ROUTING],
                required=f"static, as system {static_systems[0]} has no eBGP",
                given="ebgp",
                todo="or choose another system for its nodes",
            )
        elif agreed[GTSM] == "on":
            yield from self._ttl_security_conflicts(agreed)

    def _ttl_security_conflicts(self, agreed: Chosen) -> Iterator[Problem]:
        """The problem of systems that cannot have TTL security, alone or with the agreed BFD."""
        if systems_without := self.systems_without(GTSM):
            name = systems_without[0]
            required = f"false, as system {name} sends packets that others then drop"
        elif agreed[BFD] == "on" and self.mixes_frr_bgp and self.systems_writing_frr_file:
            name = self.systems_writing_frr_file[0]
            required = f"false with BFD on {self.title}, as {name} orders the lines of FRR itself"
        else:
            return
        yield Problem(key=CONTROL_KEYS[GTSM], required=required, given="true", todo="remove it")

    def _address_conflicts(self, agreed: Chosen) -> Iterator[Problem]:
        """The problems of systems that cannot have links with, or without, addresses as agreed."""
        routing = agreed[ROUTING]
        if agreed[UNNUMBERED] == "on" and not self.can_all_be_unnumbered(routing):
            yield Problem(
                key=CONTROL_KEYS[UNNUMBERED],
                required=f"false, as {self.title} do without addresses of links in different ways",
                given="true",
                todo="remove it",
            )
        elif agreed[UNNUMBERED] == "off":
            can_use_ebgp = not self.systems_without(ROUTING)
            use_ebgp = "write `control_plane: {routes: ebgp}`, or " if can_use_ebgp else ""
            for name, system in self.targets.items():
                if routing in system.only_unnumbered:
                    yield Problem(
                        key="system",
                        required=f"another system than {name} beside others with these routes",
                        given=f"{self.title}, whose links need addresses",
                        todo=f"{use_ebgp}choose another system",
                    )

    def pool_problems(self, build: Build, chosen: Chosen) -> Iterator[Problem]:
        """See `Target.pool_problems`: those of all systems."""
        for name, system in self.targets.items():
            yield from system.pool_problems(build, self.chosen_for(name, build, chosen))

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], Any]:
        """See `Target.variables`: those of the node's own system."""
        variables_by_system = {
            name: system.variables(build, self.chosen_for(name, build, chosen))
            for name, system in self.targets.items()
        }
        return lambda vertex: variables_by_system[self.systems[vertex]](vertex)

    def chosen(self, build: Build, options: Chosen | None = None) -> Chosen:
        """See `Target.chosen`."""
        chosen: dict[str, str] = {}
        for name, system in self.targets.items():
            chosen |= system.chosen(build, self.options_for(name, options))
        return chosen

    def chosen_for(self, name: str, build: Build, options: Chosen | None) -> Chosen:
        """The value of every option of a system.

        Args:
            name: the name of the system.
            build: the build.
            options: values of options of any system.
        """
        system = self.targets[name]
        agreed = {
            option: value
            for option, value in self.agreement_values(build).items()
            if option in system.agreements
        }
        user_values = choose(name, system.all_options, self.options_for(name, options))
        return {**choose(name, system.agreements, agreed), **user_values}

    def render(
        self,
        build: Build,
        out: Path,
        templates: Path | None = None,
        progress: Progress = None,
        options: Chosen | None = None,
        only: Collection[int] | None = None,
    ) -> WrittenFiles:
        """See `Target.render`: each system writes the files of its nodes."""
        self.check(build, options)
        written = WrittenFiles()
        for name, system in self.targets.items():
            if vertices := self.vertices(name, build, only):
                system_options = self.options_for(name, options)
                written += system.render(build, out, templates, progress, system_options, vertices)
        return written

    def reader_of(self, build: Build, chosen: Chosen) -> Reader | None:
        """The reader of a node's folder: that of its system; None where a system has none."""
        readers: dict[str, Reader] = {}
        for name, system in self.targets.items():
            reader = system.reader(self.chosen_for(name, build, chosen))
            if reader is None:
                return None
            readers[name] = reader
        any_system = next(iter(readers))

        def read(folder: Path) -> EmittedSwitch:
            return readers[self.system_of_node[folder.name]](folder)

        def speaker(folder: Path) -> BgpSwitch:
            # A folder that is no node's is read by any of the readers.
            reader = readers[self.system_of_node.get(folder.name, any_system)]
            if not isinstance(reader, BgpReader):
                raise TypeError(f"{folder.name} does not speak BGP")
            return reader.read_speaker(folder)

        if any(isinstance(reader, BgpReader) for reader in readers.values()):
            return BgpReader(speaker)
        return read

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables] | None:
        """See `Target.routes_held`: those of the node's own system."""
        routes_by_system: dict[str, Callable[[int], RouteTables]] = {}
        for name, system in self.targets.items():
            routes_held = system.routes_held(build, self.chosen_for(name, build, chosen))
            if routes_held is None:
                return None
            routes_by_system[name] = routes_held
        return lambda vertex: routes_by_system[self.systems[vertex]](vertex)

    def more_differences(
        self, build: Build, chosen: Chosen, folder: Path, only: Collection[int] | None
    ) -> Iterator[DifferenceList]:
        """See `Target.more_differences`."""
        for name, system in self.targets.items():
            vertices = self.vertices(name, build, only)
            system_chosen = self.chosen_for(name, build, chosen)
            yield from system.more_differences(build, system_chosen, folder, vertices)


def needs_restart_of_frr(old: Build, new: Build) -> bool:
    """Whether an update turns TTL security on beside BFD, in a fabric of FRR and other systems.

    BFD of an FRR that runs then stays down; see `NodeSystems.mixes_frr_bgp`.
    """
    if not (old.systems and new.systems):
        return False
    new_target = system_target(new)
    if not isinstance(new_target, NodeSystems) or not new_target.mixes_frr_bgp:
        return False
    old_options, new_options = system_target(old).chosen(old), new_target.chosen(new)
    had_gtsm = old_options.get(ROUTING) != "bgp" or old_options.get(GTSM) == "on"
    return new_options.get(GTSM) == new_options.get(BFD) == "on" and not had_gtsm


def system_target(build: Build, others: Sequence[Build] = ()) -> Target:
    """The target that renders every node for its own system; the system where all have one.

    Args:
        build: the build of the plane that is rendered.
        others: the builds of further planes of the fabric, whose nodes count as well.

    Raises:
        InputError: the build names no systems, or a system is not installed.
    """
    if not build.systems:
        required = "a target, or `system:` in fabric.yaml"
        raise InputError.of(required, "none", "polarfab targets lists them", key="target")
    names = {*build.systems}.union(*(other.systems for other in others))
    return NodeSystems.of(build) if len(names) > 1 else target(names.pop())


def builds_for(builds: Sequence[Build], name: str) -> list[Build]:
    """The builds as a target renders them.

    Systems of nodes are removed if the target is a system itself, as it renders all nodes.

    Args:
        builds: a build for each plane.
        name: the name of the target; "" for each node's own system.
    """
    if not name or target(name).is_tool:
        return list(builds)
    return [replace(build, systems=()) if build.systems else build for build in builds]
