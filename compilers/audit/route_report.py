"""The report of `check routes`: the routes that switches hold, compared with those of the build.

`RouteReport.of` finds the files of each switch and compares them on all cores (`expected_routes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from compilers.audit.expected_routes import ComparedRouter, ExpectedRoutes
from compilers.audit.route_table_file import device_texts, read_tables
from compilers.readers.devices.device_files import device_files
from compilers.tables.build import Build
from compilers.targets.devices.route_differences import KINDS, RouteDifference
from compilers.targets.node_systems import builds_for, system_target
from compilers.targets.options import Chosen
from compilers.targets.system_names import hostname
from compilers.targets.target import Progress
from compilers.targets.target_lookup import default_first, target
from compilers.workers.local_processes import on_all_cores
from inventory.problems import InputError, Problem, did_you_mean, few, file_name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RouteReport:
    """The routes of switches, compared with those of a build."""

    name: str
    """The name of the build."""
    target: str
    """The title of the target that configured the switches."""
    switches: int
    """How many switches were read."""
    routes: int
    """How many routes these should hold."""
    unread: tuple[str, ...]
    """The switches without a file."""
    differences: tuple[RouteDifference, ...]
    """The prefixes whose routes on a switch are not those of the build."""

    @classmethod
    def of(
        cls,
        build: Build,
        paths: Iterable[Path],
        target_name: str = "",
        options: Chosen | None = None,
        progress: Progress = None,
    ) -> RouteReport:
        """Compare routing tables with a build.

        Args:
            build: what the switches should hold.
            paths: files named by their switches, and folders of them.
            target_name: the target that configured the switches; "": the build names the system of
                each, or the form of the files tells.
            options: the options with which the target rendered the build.
            progress: called with (switches done, all switches).

        Raises:
            InputError: a file cannot be read or names no switch, the target has no routes, or files
                are of several systems and no target is named.
        """
        files = _files_by_switch(build, paths)
        (build,) = builds_for([build], target_name)
        told_by_files = not target_name and not build.systems
        if target_name:
            system = target(target_name)
        elif build.systems:
            system = system_target(build)
        else:
            system = target(_system_of_files(files))
        build, chosen = system.check(build, options)
        compare = partial(_compare_switch, ExpectedRoutes.of(system, build, chosen), files)
        results: list[ComparedRouter] = []
        problems: list[Problem] = []
        for result in on_all_cores(compare, sorted(files), progress):
            if isinstance(result, InputError):
                problems += result.problems
            else:
                results.append(result)
        if problems:
            raise InputError(few(problems))
        results.sort(key=lambda result: result.vertex)
        example_of_form: dict[str, Path] = {}
        for result in results:
            if result.form:
                example_of_form.setdefault(result.form, files[result.vertex][0])
        if told_by_files and len(example_of_form) > 1:
            raise InputError(_several_systems_problem(example_of_form))
        present = np.flatnonzero(build.topology.present).tolist()
        return cls(
            name=build.name,
            target=system.title,
            switches=len(files),
            routes=sum(result.routes for result in results),
            unread=tuple(build.wiring.names[v] for v in present if v not in files),
            differences=tuple(d for result in results for d in result.differences),
        )

    @property
    def good(self) -> bool:
        """Whether every switch that was read holds the routes of the build."""
        return not self.differences

    def __repr__(self) -> str:
        """Such as `<RouteReport lab: 13 switches, 156 routes, 2 differences>`."""
        counts = f"{self.switches:,} switches, {self.routes:,} routes"
        return f"<RouteReport {self.name}: {counts}, {len(self.differences):,} differences>"

    def counts(self) -> dict[str, int]:
        """How many differences there are of each kind."""
        by_kind = Counter(difference.kind for difference in self.differences)
        return {kind: by_kind[kind] for kind in KINDS}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "target": self.target,
            "switches": self.switches,
            "routes": self.routes,
            **{kind.replace(" ", "_"): count for kind, count in self.counts().items()},
            "unread": list(self.unread),
            "differences": [difference.as_dict() for difference in self.differences],
        }


def _system_of_files(files: Mapping[int, Sequence[Path]]) -> str:
    """The system that printed the files, by the form of their tables.

    Tables without routes look alike on several systems. So the first table with routes decides, and
    without any the default target is taken.
    """
    forms = (read_tables(device_texts(files[v])).form for v in sorted(files))
    return next(filter(None, forms), default_first()[0].name)


def _compare_switch(
    expected: ExpectedRoutes, files: Mapping[int, Sequence[Path]], vertex: int
) -> ComparedRouter | InputError:
    """Compare a switch by its files; return the error if they cannot be read.

    This runs in another process, and the errors of all switches are reported together.
    """
    try:
        return expected.compare(vertex, device_texts(files[vertex]))
    except InputError as error:
        return error


def _several_systems_problem(example_of_form: Mapping[str, Path]) -> Problem:
    """The problem that files are of several systems.

    Args:
        example_of_form: by form, the first file with tables of this form.
    """
    examples = sorted(example_of_form.items())
    given = " and ".join(f"{form} ({file_name(path.name)})" for form, path in examples)
    todo = (
        "compare the switches of each by themselves, or give `target` if all were rendered for one"
    )
    return Problem(
        "the tables of one system",
        given,
        todo,
        file_name(next(iter(example_of_form.values())).parent),
    )


def _files_by_switch(build: Build, paths: Iterable[Path]) -> dict[int, list[Path]]:
    """The files of every switch, by vertex.

    A file is named by a node, its host name or its management address, as n12.json or
    n12.ipv6.json, or it is in a folder with such a name, as n12/tmp/routes.json.

    Raises:
        InputError: a file names no switch, or there is no file.
    """
    wiring, present = build.wiring, build.topology.present.tolist()
    vertex_of: dict[str, int] = {}
    for column in (wiring.management, map(hostname, wiring.names), wiring.names):
        vertex_of |= {text.lower(): v for v, text in enumerate(column) if text and present[v]}
    files: dict[int, list[Path]] = {}
    problems: list[Problem] = []
    for file in device_files(paths, "routing tables", problems):
        path = file.path
        parts = path.name.lower().split(".")
        # n12.ipv6.json may be of a node n12.ipv6.json, n12.ipv6 or n12.
        names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
        names += [folder.lower() for folder in file.folders]
        vertex = next((vertex_of[name] for name in names if name in vertex_of), None)
        if vertex is None:
            required = f"a file named by its switch: {wiring.names[0]}.json"
            todo = did_you_mean(path.stem, wiring.names)
            problems.append(Problem(required, repr(path.name), todo, file_name(path)))
        else:
            files.setdefault(vertex, []).append(path)
    if problems:
        raise InputError(few(problems))
    if not files:
        raise InputError(Problem("the routing table of a switch", "no file"))
    return files
