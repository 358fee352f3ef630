"""The report on routes as switches hold them, next to those of the build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import numpy as np

from compilers.audit.route_differences import (
    KINDS,
    Network,
    RouteDifference,
    route_differences,
)
from compilers.tables.build import Build
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.control_plane import weighs
from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.system_names import hostname
from compilers.targets.target import Progress
from compilers.targets.target_lookup import target
from compilers.workers.local_processes import on_all_cores
from inventory.device_files import device_files
from inventory.problems import InputError, Problem, did_you_mean, few
from inventory.route_tables.held_routes import RULES, RouteTables
from inventory.route_tables.route_table_file import ROUTE_FORMS, read_routes


@dataclass(frozen=True, slots=True)
class Compared:
    """How many routes a switch should hold, what differs, and the form of its files."""

    vertex: int
    routes: int
    differences: tuple[RouteDifference, ...]
    form: str


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
        held = (read_routes(files[vertex]).form for vertex in sorted(files) if not name)
        system = target(name or next(filter(None, held), "linux"))
        build, chosen = system.check(build, options)
        routes_of = system.routes_held(build, chosen)
        if routes_of is None:
            given = f"target {system.name}"
            raise InputError.of(f"one of {', '.join(ROUTE_FORMS)}", given, key="target")
        pools = tuple(ip_network(pool) for pool in fabric_pools(build.addressing))
        check = SwitchRoutes(build, files, routes_of, pools, weighs(chosen))
        results: list[Compared] = []
        problems: list[Problem] = []
        for result in on_all_cores(check.compared, sorted(files), progress):
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


@dataclass(frozen=True, slots=True)
class SwitchRoutes:
    """The comparison of a switch, by its vertex.

    files: of every vertex. wanted: its routes. pools: the addresses of the fabric. rounded: whether
    weights are brought to a sum of the system's own, as those of BGP are.
    """

    build: Build
    files: Mapping[int, Sequence[Path]]
    wanted: Callable[[int], RouteTables]
    pools: tuple[Network, ...]
    rounded: bool = False

    def compared(self, vertex: int) -> Compared | InputError:
        """What differs, or why that cannot be said."""
        wanted = self.wanted(vertex)
        known = {prefix for routes in wanted.values() for prefix in routes}
        try:
            held = read_routes(self.files[vertex], known)
        except InputError as error:
            return error
        node, own = self.build.wiring.names[vertex], own_blocks(self.build, vertex)
        found = route_differences(
            node, wanted, held.tables, self.pools, own, held.whole, self.rounded
        )
        count = sum(len(routes) for table, routes in wanted.items() if table not in RULES)
        return Compared(vertex, count, tuple(found), held.form)


def _of_several_systems(forms: Mapping[str, Path]) -> Problem:
    """By the form of files, one of them."""
    given = " and ".join(f"{form} ({path.name})" for form, path in sorted(forms.items()))
    todo = (
        "compare the switches of each by themselves, or give `target` if all were rendered for one"
    )
    return Problem("the tables of one system", given, todo, str(next(iter(forms.values())).parent))


def own_blocks(build: Build, vertex: int) -> list[Network]:
    """The blocks of a switch's hosts."""
    a = build.addressing
    return [a.network(vertex), *([a.network6(vertex)] if a.ipv6 else [])]


def _by_switch(build: Build, paths: Iterable[Path]) -> dict[int, list[Path]]:
    """The files of every switch: `n12.json`, `n12.ipv6.json`, by host or by management address.

    Raises:
        InputError: a file names no switch, or there is none.
    """
    wiring, there = build.wiring, build.topology.present.tolist()
    known = {text.lower(): v for v, text in enumerate(wiring.management) if text and there[v]}
    known |= {hostname(text).lower(): v for v, text in enumerate(wiring.names) if there[v]}
    known |= {text.lower(): v for v, text in enumerate(wiring.names) if there[v]}
    files: dict[int, list[Path]] = {}
    problems: list[Problem] = []
    for path in device_files(paths, "routing tables", problems):
        words = path.name.lower().split(".")
        names = (".".join(words[:n]) for n in range(len(words), 0, -1))
        vertex = next((known[name] for name in names if name in known), None)
        if vertex is None:
            required = f"a file named by its switch: {wiring.names[0]}.json"
            todo = did_you_mean(path.stem, wiring.names)
            problems.append(Problem(required, repr(path.name), todo, str(path)))
        else:
            files.setdefault(vertex, []).append(path)
    if problems or not files:
        nothing = Problem("the routing table of a switch", "no file")
        raise InputError(few(problems) or nothing)
    return files
