"""The base class of targets: systems and tools for which polarfab renders files.

A target is a class in `compilers/targets/NAME/target.py` and a folder `templates/NAME/`. The class
says what the system can do and computes the variables of the templates; the templates print them;
the reader of the target reads the files back, so that they are compared with the compiled tables.

A *system* runs on switches; a *tool*, such as containerlab, handles the files of systems.
*Agreements* are the options on which both ends of a link have to agree. An *addition* is
configuration that another package adds to a system's (`targets.addition`).

Before rendering, `check` completes the options and calls `require`, which refuses what the system
cannot do. `render` writes. `check_emitted` reads the files back: it calls `check` and `read_back`,
which has one `emitted_check` for all switches, or `fabric_check` in its place. `reader` gives the
reader by the options alone, and `reader_of` by the build, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.devices.held_routes import RouteTables, RoutingTableForm
from compilers.readers.devices.neighbour_facts import NeighbourForm
from compilers.readers.emitted_check import EmittedCheck, Reader
from compilers.readers.emitted_report import DifferenceList, EmittedReport
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.addition import Addition, additions
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.router_device import RouterDevice
from compilers.targets.devices.tool_settings import AnsibleConnection, ContainerKind, RouteMapWords
from compilers.targets.node_facts import FabricFacts, NodeFacts, UserVariables, fields_of
from compilers.targets.options import NO_OPTIONS, Chosen, Options, choose
from compilers.targets.rendering.renderer import Renderer, WrittenFiles
from compilers.targets.routed.interfaces import Interfaces
from compilers.targets.system_names import PORT_DESCRIPTION, SystemNames
from compilers.workers.local_processes import on_all_cores
from inventory.problems import InputError, Problem
from templates import TEMPLATES

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    FabricCheck = staticmethod[[Build, Chosen, Path, "Progress", tuple[str, ...]], EmittedReport]
Progress = Callable[[int, int], None] | None
"""Called with (switches done, all switches)."""
NEEDS_ALL = "only the files of all switches together can be read back"
"""Why the files of some switches cannot be read back."""
NO_BFD = "they do not follow BFD"
"""Why `control_plane.bfd` has to be false with static routes of most systems."""
Page = tuple[str, "DataclassInstance"]
"""A folder that a target fills: its path below OUT, and the variables of its files' templates."""


class Target(ABC):
    """A system or a tool, and the files that configure it."""

    name: ClassVar[str]
    """The name of the target, and of its folder of templates."""

    # What the target writes

    summary: ClassVar[str]
    """What it writes, in one line."""
    files: ClassVar[Mapping[str, type]]
    """The files that it writes, those of a switch first: for each the dataclass whose fields are
    the variables of its template."""
    capabilities: ClassVar[Capabilities] = Capabilities()
    """What the system can do with the defaults of its options."""
    options: ClassVar[Options] = NO_OPTIONS
    """The system's own options for `--set`."""
    agreements: ClassVar[Options] = NO_OPTIONS
    """The agreements that the system supports. Their values come from fabric.yaml
    (`CONTROL_KEYS`)."""
    is_default: ClassVar[bool] = False
    """Whether tools take this system where the user names none."""
    whole_fabric: ClassVar[bool] = False
    """Whether it writes files for the whole fabric, and none for each switch."""
    is_tool: ClassVar[bool] = False
    """Whether it is a tool. If nodes have several systems, a tool handles the files of each node by
    the system of the node."""
    hier_config: ClassVar[Mapping[str, str]] = {}
    """The platform of the library hier_config for each file that hier_config can read."""

    # Names

    interfaces: ClassVar[Interfaces | None] = None
    """How the system names its ports; None: as the build does."""
    host_name: ClassVar[staticmethod[[str], str]] = staticmethod(str)
    """Makes the host name of a node from its name."""
    description: ClassVar[str] = PORT_DESCRIPTION
    """The description of a port, with fields for the node and the port at the other end."""

    # How switches forward

    unnumbered: ClassVar[Mapping[str, str] | None] = None
    """By the value of the option `routing`, words that say how links work without addresses.

    - Two systems interoperate over such links if they have the same words.
    - For a value of `routing` that is missing, links need addresses.
    - None: the system is no router (`is_router`). It cannot be in a fabric of several systems.
    """
    only_unnumbered: ClassVar[frozenset[str]] = frozenset()
    """The values of `routing` with which its links cannot have addresses."""
    policy_rules: ClassVar[bool] = False
    """Whether policy rules lead packets to tables by their ingress interface."""

    # Devices, and tools that reach them

    neighbours: ClassVar[NeighbourForm | None] = None
    """Reads the neighbour tables that devices print; None: they print none."""
    routing_tables: ClassVar[RoutingTableForm | None] = None
    """Reads the routing tables that devices print."""
    device: ClassVar[type[RouterDevice] | None] = None
    """The class by which `push` configures devices; None: it cannot reach them."""
    ansible: ClassVar[AnsibleConnection | None] = None
    """How Ansible reaches devices."""
    container: ClassVar[ContainerKind | None] = None
    """How containerlab runs the system."""
    route_maps: ClassVar[RouteMapWords | None] = None
    """How the system writes route maps, for `drain`; None: it has none."""

    # Reading the files back

    fabric_check: ClassVar[FabricCheck | None] = None
    """Compares the files of all switches at once, where the files of one switch alone say too
    little; None: switches are compared one by one. Its arguments are those of `read_back` without
    `only`: the build, the value of every option, the folder, progress, and what to accept."""

    @property
    def additions(self) -> tuple[Addition[Any, Any], ...]:
        """The additions that installed packages register for the system."""
        return additions(self.name)

    @property
    def all_options(self) -> Options:
        """The options for `--set`: the system's own, and those of its additions."""
        added = (addition.options.items() for addition in self.additions)
        return MappingProxyType({**self.options, **dict(chain.from_iterable(added))})

    @property
    def is_router(self) -> bool:
        """Whether its switches are routers, to which `control_plane` of fabric.yaml applies."""
        return self.unnumbered is not None

    def requested_additions(self, chosen: Chosen) -> list[Addition[Any, Any]]:
        """The additions that options ask for."""
        return [addition for addition in self.additions if addition.is_requested(chosen)]

    @property
    def source_classes(self) -> list[type]:
        """The classes whose source code decides what it writes."""
        return [type(self)]

    @property
    def title(self) -> str:
        """Its name in reports."""
        return self.name

    @property
    def templates(self) -> Path:
        """The folder of the templates, FILE.j2 for each of `files`."""
        return TEMPLATES / self.name

    def by_vertex(self, vertices: int) -> Sequence[Target]:
        """The system of each vertex.

        Args:
            vertices: the number of vertices.
        """
        return (self,) * vertices

    def with_port_names(self, build: Build, chosen: Chosen) -> Build:  # noqa: ARG002
        """The build with the ports of each node named as its system names them."""
        if len({*build.systems}) > 1:
            named_build: Build = _later_module("system_port_names").named_by_systems(build)
            return named_build
        return self.interfaces.named(build, self.name) if self.interfaces else build

    def names(self, build: Build) -> SystemNames:
        """The names that the system has for the nodes and ports of a build."""
        names = SystemNames.of(build, self.host_name, self.interfaces, self.description, self.name)
        if len({*build.systems}) <= 1:
            return names
        # Ports at far ends are named as the system there names them.
        named_build: Build = _later_module("system_port_names").named_by_systems(build)
        return replace(names, wiring_by_own_systems=named_build.wiring)

    def agreement_values(self, build: Build) -> dict[str, str]:
        """The values of agreements that fabric.yaml or the systems of a fabric decide."""
        if len({*build.systems}) > 1:
            options = _later_module("node_systems").NodeSystems.of(build).agreement_values(build)
        else:
            options = dict(build.control)
        return {name: value for name, value in options.items() if name in self.agreements}

    def chosen(self, build: Build, options: Chosen | None = None) -> Chosen:
        """The value of every option: fabric.yaml gives those of agreements, the user the others.

        Options without a given value have their defaults.

        Raises:
            InputError: an option does not exist or does not take its value, or the system cannot do
                what fabric.yaml says.
        """
        if problems := list(self._unsupported(build.control)):
            raise InputError(problems)
        user_values = choose(self.name, self.all_options, options)
        agreed = choose(self.name, self.agreements, self.agreement_values(build))
        return {**agreed, **user_values}

    def _unsupported(self, control: Mapping[str, str]) -> Iterator[Problem]:
        """The settings of `control_plane` in fabric.yaml that the system does not support.

        Args:
            control: the settings, as options by name (`CONTROL_KEYS`).
        """
        if not self.is_router:
            return
        if control.get("routing") == "bgp" and "routing" not in self.agreements:
            required = f"static, as system {self.name} has no eBGP"
            todo = "or choose another system"
            yield Problem(required, "ebgp", todo, key=CONTROL_KEYS["routing"])
            return
        routing = control.get("routing", "static")
        is_always_unnumbered = routing in self.only_unnumbered
        for name, value in control.items():
            if name == "unnumbered" and is_always_unnumbered:
                continue
            if value == "on" and name not in self.agreements:
                required = f"false, as system {self.name} does not have it"
                if (name, routing) == ("bfd", "static"):
                    required = f"false with static routes of {self.name}: {NO_BFD}"
                todo = "remove it, or choose another system"
                yield Problem(required, "true", todo, key=CONTROL_KEYS[name])
        if control.get("unnumbered") == "off" and is_always_unnumbered:
            required = f"true with {routing} routes: their next hops are link-local addresses"
            todo = "remove it"
            if "routing" in self.agreements:
                todo += ", or write `routes: ebgp`"
            yield Problem(required, "false", todo, key=CONTROL_KEYS["unnumbered"])

    def options_in(self, plane: int, options: Chosen | None) -> Chosen | None:
        """The options of one plane of several, numbered from 0, as additions may change them."""
        for addition in self.additions:
            options = addition.options_in(plane, options)
        return options

    def pool_problems(self, build: Build, chosen: Chosen) -> Iterator[Problem]:  # noqa: ARG002
        """The problems of address pools that are too small or overlap others, for `compile`.

        Args:
            build: what is compiled.
            chosen: the value of every option.
        """
        yield from ()

    def require(self, build: Build, chosen: Chosen) -> None:  # noqa: ARG002
        """Check that the system can do all that the build and the options ask for.

        Raises:
            InputError: it cannot; all reasons at once.
        """
        self.capabilities.require(build, self.name)

    @abstractmethod
    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], DataclassInstance]:
        """A function from a vertex to the variables of the switch's templates.

        What all switches share is computed here, once. For a target that writes for the whole
        fabric the function has the same result at every vertex.

        Args:
            build: what is rendered, ports named as the system names them.
            chosen: the value of every option.

        Raises:
            InputError: the system cannot express something in the build.
        """

    def pages(self, build: Build, chosen: Chosen) -> Callable[[int], Iterable[Page]]:
        """A function from a vertex to the pages of the switch: by default its own folder only."""
        variables_of = self.variables(build, chosen)
        return lambda vertex: [(build.wiring.names[vertex], variables_of(vertex))]

    def check(self, build: Build, options: Chosen | None = None) -> tuple[Build, Chosen]:
        """The build with the system's port names, and the value of every option.

        Args:
            build: what is to be rendered.
            options: values by name; others have their defaults.

        Raises:
            InputError: an option is wrong, or the build asks for what the system cannot do.
        """
        chosen = self.chosen(build, options)
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
    ) -> WrittenFiles:
        """Write the files of every switch into OUT/<node>/.

        Args:
            build: what to render.
            out: the folder; files in it are replaced one by one, each as a whole or not at all.
            templates: a folder with templates of the user's own, TARGET/FILE.j2.
            progress: called with (switches done, all switches).
            options: values by name; others have their defaults.
            only: vertices of the switches to write; None for all.

        Returns:
            How many files and bytes were written.

        Raises:
            InputError: an option is wrong, the build asks for what this target cannot do, a
                template of the user's is wrong, or OUT cannot be written.
        """
        if self.whole_fabric and only is not None:
            raise InputError.of(
                key="node",
                required=f"no node: target {self.name} writes for the whole fabric",
                given=", ".join(build.wiring.names[vertex] for vertex in only),
            )
        build, chosen = self.check(build, options)
        renderer = self.renderer(templates)
        if self.whole_fabric:
            self.write_fabric(renderer, build, chosen, out, progress)
        else:
            vertices = np.flatnonzero(build.topology.present).tolist()
            selected = [vertex for vertex in vertices if only is None or vertex in only]
            write = self.switch_writer(renderer, build, chosen)
            renderer.write_switches(selected, partial(write, out), progress)
        return renderer.written

    def renderer(self, templates: Path | None) -> Renderer:
        """What renders the templates; those in a folder of the user come before the target's.

        Raises:
            InputError: a template of the user's is wrong.
        """
        return Renderer(self.name, self.templates, templates, self.files, self.whole_fabric)

    def reader(self, chosen: Chosen) -> Reader | None:  # noqa: ARG002
        """The function that reads the folder of a switch; None: the target has none."""
        return None

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables] | None:  # noqa: ARG002
        """A function from a vertex to the routes that the configured switch holds.

        None: the system shows no routing tables.

        Args:
            build: what is configured, ports named as the system names them.
            chosen: the value of every option.
        """
        return None

    def reader_of(self, build: Build, chosen: Chosen) -> Reader | None:  # noqa: ARG002
        """The function that reads the folder of any switch of a build; None: there is none."""
        return self.reader(chosen)

    def unreadable_reason(self, build: Build, chosen: Chosen, *, part: bool) -> str:
        """Why rendered files cannot be read back; "" where they can.

        Args:
            build: what is rendered.
            chosen: the value of every option.
            part: whether only some switches have files.
        """
        if self.fabric_check:
            return NEEDS_ALL if part else ""
        return "" if self.reader_of(build, chosen) else f"there is no reader for target {self.name}"

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
            folder: the folder that `render` wrote.
            options: those that it was rendered with.
            only: vertices of the switches to read; None for all.
            progress: called with (switches done, all switches).
            accept: beginnings of statements that the user has added, or names of files.

        Raises:
            InputError: an option is wrong, the build asks for what this target cannot do, the files
                cannot be read back, or a text to accept is empty.
        """
        if not all(map(str.strip, accept)):
            raise InputError.of(
                key="accept",
                required="how a statement of yours begins, or the name of a file",
                given="nothing",
            )
        system_build, chosen = self.check(build, options)
        if reason := self.unreadable_reason(build, chosen, part=only is not None):
            raise InputError.of(key="emitted", required="files that can be read back", given=reason)
        accepted = tuple(accept)
        if only is None or not isinstance(self.reader_of(system_build, chosen), BgpReader):
            return self.read_back(
                system_build,
                chosen=chosen,
                folder=folder,
                only=only,
                progress=progress,
                accept=accepted,
            )
        # The paths that BGP chooses depend on all switches, also on those without files.
        with TemporaryDirectory() as temporary:
            complete = Path(temporary)
            self._complete_folder(build, folder, complete, options, only)
            report = self.read_back(
                system_build,
                chosen=chosen,
                folder=complete,
                only=only,
                progress=progress,
                accept=accepted,
            )
        return report.moved(complete, folder)

    def _complete_folder(
        self,
        build: Build,
        folder: Path,
        complete: Path,
        options: Chosen | None,
        only: Collection[int],
    ) -> None:
        """Fill a folder with the files of some switches, and with rendered files of all others.

        Args:
            build: what was rendered.
            folder: the folder with the files of some switches.
            complete: the folder that is filled.
            options: the options with which the files were rendered.
            only: the vertices of the switches that have files.
        """
        others = set(np.flatnonzero(build.topology.present).tolist()).difference(only)
        self.render(
            build, out=complete, templates=None, progress=None, options=options, only=sorted(others)
        )
        for name in (build.wiring.names[vertex] for vertex in only):
            (complete / name).symlink_to((folder / name).resolve(), target_is_directory=True)

    def read_back(
        self,
        build: Build,
        chosen: Chosen,
        folder: Path,
        only: Collection[int] | None,
        progress: Progress,
        accept: tuple[str, ...],
    ) -> EmittedReport:
        """The rest of `check_emitted`, for the build and the options that `check` returns."""
        if self.fabric_check:
            return self.fabric_check(build, chosen, folder, progress, accept)
        check = self.emitted_check(build, chosen, folder, accept)
        vertices = np.flatnonzero(build.topology.present).tolist()
        selected = [vertex for vertex in vertices if only is None or vertex in only]
        failures = None
        if only is None and isinstance(check.reader, BgpReader):
            # Before the switches, as worker processes inherit what this reads of all folders.
            failures = check.reader.failures(folder)
        checked = list(on_all_cores(check.switch, selected, progress))
        report = check.report(self.title, checked, whole=len(selected) == len(vertices))
        if failures:
            report = report.with_differences(failures.differences(folder))
        for more in self.more_differences(build, chosen, folder, only):
            report = report.with_differences(more)
        return report

    def emitted_check(
        self, build: Build, chosen: Chosen, folder: Path, accept: tuple[str, ...]
    ) -> EmittedCheck:
        """The check of the files of every switch; see `check_emitted`."""
        reader = self.reader_of(build, chosen)
        if reader is None:
            raise TypeError(f"target {self.name} has no reader, and no `unreadable_reason`")
        return EmittedCheck(build, folder, reader, accept)

    def more_differences(
        self,
        build: Build,  # noqa: ARG002
        chosen: Chosen,  # noqa: ARG002
        folder: Path,  # noqa: ARG002
        only: Collection[int] | None,  # noqa: ARG002
    ) -> Iterator[DifferenceList]:
        """The differences of files in other things than forwarding; see `check_emitted`."""
        yield from ()

    def write_fabric(
        self, renderer: Renderer, build: Build, chosen: Chosen, out: Path, progress: Progress
    ) -> None:
        """Write the files of a target for the whole fabric.

        Raises:
            InputError: a template is wrong, or OUT cannot be written.
        """
        variables = self.variables(build, chosen)(0)
        facts = {
            "fabric": FabricFacts(build.name, build.identity, build),
            "vars": UserVariables(build.vars),
        }
        renderer.write(out, type(variables), fields_of(variables) | facts)
        if progress:
            nodes = int(build.topology.present.sum())
            progress(nodes, nodes)

    def switch_writer(
        self, renderer: Renderer, build: Build, chosen: Chosen
    ) -> Callable[[Path, int], None]:
        """A function that writes the files of a switch, given the folder of all and the vertex.

        Args:
            renderer: renders the templates of this target.
            build: the build, with ports named as the system names them.
            chosen: the value of every option.
        """
        pages = self.pages(build, chosen)
        fabric = FabricFacts(build.name, build.identity, build)

        def write(out: Path, vertex: int) -> None:
            facts = {"fabric": fabric, "facts": NodeFacts.of(build, vertex)}
            node_vars = build.node_vars.get(build.wiring.names[vertex], {})
            facts["vars"] = UserVariables({**build.vars, **node_vars})
            for folder, values in pages(vertex):
                renderer.write(out / folder, type(values), fields_of(values) | facts)

        return write


def _later_module(name: str) -> Any:
    """A module of this folder that imports this one, and so cannot be imported at the top."""
    return import_module(f"{__package__}.{name}")
