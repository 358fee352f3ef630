"""The report on routes as switches hold them, next to those of the build."""

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
from compilers.targets.options import Chosen
from compilers.targets.system_names import hostname
from compilers.targets.target import Progress
from compilers.targets.target_lookup import target, usual_first
from compilers.workers.local_processes import on_all_cores
from inventory.problems import InputError, Problem, did_you_mean, few, file_name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RouteReport:
    """Routes of switches, compared with a build.

    routes: how many the switches that were read should hold. unread: switches without a file.
    """

    name: str
    target: str
    switches: int
    routes: int
    unread: tuple[str, ...]
    differences: tuple[RouteDifference, ...]

    @classmethod
    def of(
        cls,
        build: Build,
        paths: Iterable[Path],
        name: str = "",
        options: Chosen | None = None,
        progress: Progress = None,
    ) -> RouteReport:
        """Compare routing tables with a build.

        Args:
            build: the plan.
            paths: files named by their switches, and folders of them.
            name: of the target that configured the switches; "" where the form of the files tells.
            options: those that it was rendered with.
            progress: called with (switches done, all switches).

        Raises:
            InputError: a file cannot be read or names no switch, the target has no routes, or none
                is named and files are those of several systems.
        """
        files = _by_switch(build, paths)
        # A table without a route looks alike on several systems.
        held = (read_tables(device_texts(files[v])).form for v in sorted(files) if not name)
        system = target(name or next(filter(None, held), usual_first()[0].name))
        build, chosen = system.check(build, options)
        compare = partial(_compared, ExpectedRoutes.of(system, build, chosen), files)
        results: list[ComparedRouter] = []
        problems: list[Problem] = []
        for result in on_all_cores(compare, sorted(files), progress):
            if isinstance(result, InputError):
                problems += result.problems
            else:
                results.append(result)
        if problems:
            raise InputError(few(problems))
        results.sort(key=lambda one: one.vertex)
        forms = {one.form: files[one.vertex][0] for one in reversed(results) if one.form}
        if not name and len(forms) > 1:
            raise InputError(_of_several_systems(forms))
        names = build.wiring.names
        there = np.flatnonzero(build.topology.present).tolist()
        return cls(
            name=build.name,
            target=system.name,
            switches=len(files),
            routes=sum(result.routes for result in results),
            unread=tuple(names[v] for v in there if v not in files),
            differences=tuple(one for result in results for one in result.differences),
        )

    @property
    def good(self) -> bool:
        """Whether every switch that was read holds what it should."""
        return not self.differences

    def __repr__(self) -> str:
        """`<RouteReport lab: 13 switches, 156 routes, 2 differences>`."""
        counts = f"{self.switches:,} switches, {self.routes:,} routes"
        return f"<RouteReport {self.name}: {counts}, {len(self.differences):,} differences>"

    def counts(self) -> dict[str, int]:
        """How many differences there are of each kind."""
        by_kind = Counter(one.kind for one in self.differences)
        return {kind: by_kind[kind] for kind in KINDS}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "target": self.target,
            "switches": self.switches,
            "routes": self.routes,
            **{kind.replace(" ", "_"): count for kind, count in self.counts().items()},
            "unread": list(self.unread),
            "differences": [one.as_dict() for one in self.differences],
        }


def _compared(
    expected: ExpectedRoutes, files: Mapping[int, Sequence[Path]], vertex: int
) -> ComparedRouter | InputError:
    """A switch by its files, or why they cannot be read."""
    try:
        return expected.compared(vertex, device_texts(files[vertex]))
    except InputError as error:
        return error


def _of_several_systems(forms: Mapping[str, Path]) -> Problem:
    """By the form of files, one of them."""
    given = " and ".join(f"{form} ({file_name(path.name)})" for form, path in sorted(forms.items()))
    todo = (
        "compare the switches of each by themselves, or give `target` if all were rendered for one"
    )
    return Problem(
        "the tables of one system", given, todo, file_name(next(iter(forms.values())).parent)
    )


def _by_switch(build: Build, paths: Iterable[Path]) -> dict[int, list[Path]]:
    """The files of every switch: `n12.json`, `n12.ipv6.json`, by host or by management address.

    Files in folders may have the name of a folder: `n12/tmp/routes.json`.

    Raises:
        InputError: a file names no switch, or there is none.
    """
    wiring, there = build.wiring, build.topology.present.tolist()
    known = {text.lower(): v for v, text in enumerate(wiring.management) if text and there[v]}
    known |= {hostname(text).lower(): v for v, text in enumerate(wiring.names) if there[v]}
    known |= {text.lower(): v for v, text in enumerate(wiring.names) if there[v]}
    files: dict[int, list[Path]] = {}
    problems: list[Problem] = []
    for file in device_files(paths, "routing tables", problems):
        path = file.path
        words = path.name.lower().split(".")
        names = [".".join(words[:n]) for n in range(len(words), 0, -1)]
        names += [folder.lower() for folder in file.folders]
        vertex = next((known[name] for name in names if name in known), None)
        if vertex is None:
            required = f"a file named by its switch: {wiring.names[0]}.json"
            todo = did_you_mean(path.stem, wiring.names)
            problems.append(Problem(required, repr(path.name), todo, file_name(path)))
        else:
            files.setdefault(vertex, []).append(path)
    if problems or not files:
        nothing = Problem("the routing table of a switch", "no file")
        raise InputError(few(problems) or nothing)
    return files
