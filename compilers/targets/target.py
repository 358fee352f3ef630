"""The base class of targets: it checks options and abilities, and renders the templates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.devices.held_routes import RouteTables, RoutingTables
from compilers.readers.devices.neighbour_facts import NeighbourTables
from compilers.readers.emitted_check import EmittedCheck, Reader
from compilers.readers.emitted_report import DifferenceList, EmittedReport
from compilers.tables.build import Build
from compilers.targets.addition import Addition, additions
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.reached import AnsibleConnection, ContainerKind, RouteMapWords
from compilers.targets.devices.router_device import RouterDevice
from compilers.targets.node_facts import FabricFacts, NodeFacts, UserVariables, shown
from compilers.targets.options import NO_OPTIONS, Chosen, Options, choose
from compilers.targets.rendering.text_target import Renderer, Written
from compilers.targets.routed.interfaces import Interfaces
from compilers.targets.system_names import PORT, SystemNames
from compilers.workers.local_processes import on_all_cores
from inventory.problems import InputError
from templates import TEMPLATES

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    FabricCheck = staticmethod[[Build, Chosen, Path, "Progress", tuple[str, ...]], EmittedReport]
Progress = Callable[[int, int], None] | None
NEEDS_ALL = "only the files of all switches together can be read back"
"""Why those of some switches cannot."""
Page = tuple[str, "DataclassInstance"]
"""A folder below OUT, and the variables of the templates that print into it."""


class Target(ABC):
    """A system, and the files that configure it.

    Attributes:
        name: of the target, and of its folder of templates.
        summary: what it writes, in a line.
        files: of every file that it writes, the dataclass whose fields are the variables of its
            template; those of a switch first.
        capabilities: what the system can do, with the options' defaults.
        options: what `--set` takes, by name.
        whole_fabric: whether it writes once for the whole fabric, not for every switch.
        hier_config: the platform of hier_config, by file, for files that it reads.
        interfaces: how the system names its ports; None: as the build does.
        host_name: makes a host name of a node's.
        description: of a port, by the node and the port at the other end.
        usual: whether it is the system that tools take where none is named.
        policy_rules: whether rules lead packets to tables, by where they come in.
        neighbours: reads the neighbour tables that devices print; None: they print none.
        routing_tables: reads the routing tables that devices print.
        device: what `push` speaks to; None: it cannot reach such devices.
        ansible: how Ansible reaches devices.
        container: how containerlab runs the system.
        route_maps: how lines of route maps are written, for `drain`; None: it writes none.
        fabric_check: compares the files of all switches together, where no switch's can be read
            alone: by the build, the options, the folder, progress, and what to accept.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    files: ClassVar[Mapping[str, type]]
    capabilities: ClassVar[Capabilities] = Capabilities()
    options: ClassVar[Options] = NO_OPTIONS
    whole_fabric: ClassVar[bool] = False
    hier_config: ClassVar[Mapping[str, str]] = {}
    interfaces: ClassVar[Interfaces | None] = None
    host_name: ClassVar[staticmethod[[str], str]] = staticmethod(str)
    description: ClassVar[str] = PORT
    usual: ClassVar[bool] = False
    policy_rules: ClassVar[bool] = False
    neighbours: ClassVar[NeighbourTables | None] = None
    routing_tables: ClassVar[RoutingTables | None] = None
    device: ClassVar[type[RouterDevice] | None] = None
    ansible: ClassVar[AnsibleConnection | None] = None
    container: ClassVar[ContainerKind | None] = None
    route_maps: ClassVar[RouteMapWords | None] = None
    fabric_check: ClassVar[FabricCheck | None] = None

    @property
    def additions(self) -> tuple[Addition[Any, Any], ...]:
        """What packages add to the system."""
        return additions(self.name)

    @property
    def all_options(self) -> Options:
        """What `--set` takes: the system's own options, and those of its additions."""
        added = (addition.options.items() for addition in self.additions)
        return MappingProxyType({**self.options, **dict(chain.from_iterable(added))})

    def wanted(self, chosen: Chosen) -> list[Addition[Any, Any]]:
        """The additions that options ask for."""
        return [addition for addition in self.additions if addition.wanted(chosen)]

    @property
    def templates(self) -> Path:
        """The folder of the templates, FILE.j2 for each of `files`."""
        return TEMPLATES / self.name

    def with_port_names(self, build: Build, chosen: Chosen) -> Build:  # noqa: ARG002
        """The build with its ports named as the system names them."""
        return self.interfaces.named(build, self.name) if self.interfaces else build

    def names(self, build: Build) -> SystemNames:
        """What the system calls the nodes and ports of a build."""
        return SystemNames.of(build, self.host_name, self.interfaces, self.description, self.name)

    def options_in(self, plane: int, options: Chosen | None) -> Chosen | None:
        """The options of a plane of several, from 0: those of all but for what additions change."""
        for addition in self.additions:
            options = addition.options_in(plane, options)
        return options

    def require(self, build: Build, chosen: Chosen) -> None:  # noqa: ARG002
        """Pass when the system can do all that the build and the options ask for.

        Raises:
            InputError: it cannot; every reason at once.
        """
        self.capabilities.require(build, self.name)

    @abstractmethod
    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], DataclassInstance]:
        """The variables of a switch's templates, by its vertex.

        What all switches share is computed here, once. A target for the whole fabric has the same
        variables at every vertex.

        Args:
            build: what is rendered, ports named as the system names them.
            chosen: the value of every option.

        Raises:
            InputError: the system cannot have what the build has.
        """

    def pages(self, build: Build, chosen: Chosen) -> Callable[[int], Iterable[Page]]:
        """All that is written for a switch, by its vertex: here its own folder only."""
        of_switch = self.variables(build, chosen)
        return lambda vertex: [(build.wiring.names[vertex], of_switch(vertex))]

    def check(self, build: Build, options: Chosen | None = None) -> tuple[Build, Chosen]:
        """The build with the system's port names, and the value of every option.

        Args:
            build: what is to be rendered.
            options: values of `options` by name; defaults for those that are not there.

        Raises:
            InputError: an option is wrong, or the build asks for what the system cannot do.
        """
        chosen = choose(self.name, self.all_options, options)
        build = self.with_port_names(build, chosen)
        self.require(build, chosen)
        return build, chosen

    def render(
        self,
        build: Build,
        out: Path,
        templates: Path | None = None,
        progress: Progress = None,
        options: Chosen | None = None,
        only: Collection[int] | None = None,
    ) -> Written:
        """Write the files of every switch of the build in OUT/<node>/; returns how much.

        Args:
            build: what to render.
            out: the folder; files in it are replaced one by one, each whole or not at
                all.
            templates: a folder with templates of the user's own, TARGET/FILE.j2.
            progress: called with (switches done, all switches).
            options: values of `options` by name; defaults for those that are not there.
            only: vertices of the switches to write; None for all.

        Raises:
            InputError: an option is wrong, the build asks for what this target cannot do, a
                template of the user's is wrong, or OUT cannot be written.
        """
        if self.whole_fabric and only is not None:
            raise InputError.of(
                key="node",
                required=f"no node: target {self.name} writes for the whole fabric",
                given=f"{len(only)}",
            )
        build, chosen = self.check(build, options)
        renderer = self.renderer(templates)
        if self.whole_fabric:
            self.write_fabric(renderer, build, chosen, out, progress)
        else:
            vertices = np.flatnonzero(build.topology.present).tolist()
            wanted = [v for v in vertices if only is None or v in only]
            write = self.switch_writer(renderer, build, chosen)
            renderer.each(wanted, partial(write, out), progress)
        return renderer.written

    def renderer(self, templates: Path | None) -> Renderer:
        """The templates, those of a folder of the user's first.

        Raises:
            InputError: one of the user's is wrong.
        """
        return Renderer(self.name, self.templates, templates, self.files, self.whole_fabric)

    def reader(self, chosen: Chosen) -> Reader | None:  # noqa: ARG002
        """Reads the folder of a switch back, from the text alone; None: there is no such reader."""
        return None

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables] | None:  # noqa: ARG002
        """The routes that a switch has in its own tables, by its vertex, once it is configured.

        None where the system has no tables of prefixes that it could be asked for.

        Args:
            build: what is configured, ports named as the system names them.
            chosen: the value of every option.
        """
        return None

    def unreadable(self, chosen: Chosen, *, part: bool) -> str:
        """Why the files cannot be read back, "" where they can.

        Args:
            chosen: the value of every option.
            part: whether only some switches are there.
        """
        reader = self.reader(chosen)
        if self.fabric_check or isinstance(reader, BgpReader):  # what BGP finds all decide
            return NEEDS_ALL if part else ""
        return "" if reader else f"there is no reader for target {self.name}"

    def check_emitted(
        self,
        build: Build,
        folder: Path,
        options: Chosen | None = None,
        only: Collection[int] | None = None,
        progress: Progress = None,
        accept: Collection[str] = (),
    ) -> EmittedReport:
        """Read the files of every switch back and compare them with the tables.

        Args:
            build: what was rendered.
            folder: where to, the same as for `render`.
            options: those that it was rendered with.
            only: vertices of the switches that are there; None for all.
            progress: called with (switches done, all switches).
            accept: how statements of the user's own begin, or names of files, that no reader knows.

        Raises:
            InputError: an option is wrong, the build asks for what this target cannot do, or the
                files cannot be read back, or an empty text is to be accepted.
        """
        if not all(map(str.strip, accept)):
            raise InputError.of(
                key="accept",
                required="how a statement of yours begins, or the name of a file",
                given="nothing",
            )
        build, chosen = self.check(build, options)
        if why := self.unreadable(chosen, part=only is not None):
            raise InputError.of(key="emitted", required="files that can be read back", given=why)
        return self.read_back(build, chosen, folder, only, progress, tuple(accept))

    def read_back(
        self,
        build: Build,
        chosen: Chosen,
        folder: Path,
        only: Collection[int] | None,
        progress: Progress,
        accept: tuple[str, ...],
    ) -> EmittedReport:
        """See `check_emitted`: the options are all there, the ports named as the system does."""
        if self.fabric_check:
            return self.fabric_check(build, chosen, folder, progress, accept)
        check = self.emitted_check(build, chosen, folder, accept)
        vertices = np.flatnonzero(build.topology.present).tolist()
        wanted = [v for v in vertices if only is None or v in only]
        reader = check.reader
        found = reader.failures(folder) if only is None and isinstance(reader, BgpReader) else None
        checked = list(on_all_cores(check.switch, wanted, progress))  # by what was read for that
        report = check.report(self.name, checked, whole=len(wanted) == len(vertices))
        if found:
            report = report.also(found.differences(folder))
        for more in self.more_differences(build, chosen, folder, only):
            report = report.also(more)
        return report

    def emitted_check(
        self, build: Build, chosen: Chosen, folder: Path, accept: tuple[str, ...]
    ) -> EmittedCheck:
        """The check of the files of every switch; see `check_emitted`."""
        reader = self.reader(chosen)
        assert reader, "unreadable has said so"  # noqa: S101
        return EmittedCheck(build, folder, reader, accept)

    def more_differences(
        self,
        build: Build,  # noqa: ARG002
        chosen: Chosen,  # noqa: ARG002
        folder: Path,  # noqa: ARG002
        only: Collection[int] | None,  # noqa: ARG002
    ) -> Iterator[DifferenceList]:
        """Of what the files of switches say besides where packets go; see `check_emitted`."""
        yield from ()

    def write_fabric(
        self, renderer: Renderer, build: Build, chosen: Chosen, out: Path, progress: Progress
    ) -> None:
        """Write the files of a target for the whole fabric.

        Raises:
            InputError: a template is wrong, or OUT cannot be written.
        """
        values = shown(of_fabric := self.variables(build, chosen)(0))
        facts = {
            "fabric": FabricFacts(build.name, build.identity, build),
            "vars": UserVariables(build.vars),
        }
        renderer.write(out, type(of_fabric), values | facts)
        if progress:
            nodes = int(build.topology.present.sum())
            progress(nodes, nodes)

    def switch_writer(
        self, renderer: Renderer, build: Build, chosen: Chosen
    ) -> Callable[[Path, int], None]:
        """Writes the files of a switch below a folder, by its vertex.

        Args:
            renderer: of this target.
            build: ports named as the system names them.
            chosen: the value of every option.
        """
        pages = self.pages(build, chosen)
        fabric = FabricFacts(build.name, build.identity, build)

        def write(out: Path, vertex: int) -> None:
            facts = {"fabric": fabric, "facts": NodeFacts.of(build, vertex)}
            own = build.node_vars.get(build.wiring.names[vertex], {})
            facts["vars"] = UserVariables({**build.vars, **own})
            for folder, values in pages(vertex):
                renderer.write(out / folder, type(values), shown(values) | facts)

        return write
