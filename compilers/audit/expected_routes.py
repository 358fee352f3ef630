"""What the routers of a build hold, and what one holds instead.

`check routes` and `push` ask the same: they compare tables that a router prints with these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compilers.audit.route_table_file import read_tables, route_forms
from compilers.readers.devices.held_routes import RULES, RouteTables
from compilers.tables.build import Build
from compilers.targets.devices.route_differences import RouteDifference, route_differences
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.control_plane import weighs
from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.target import Target
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class ComparedRouter:
    """A router whose tables were compared."""

    vertex: int
    routes: int
    """How many it should hold."""
    differences: tuple[RouteDifference, ...]
    form: str
    """That of its tables, "" where they are empty."""


@dataclass(frozen=True, slots=True)
class ExpectedRoutes:
    """The routes of a build, as its routers hold them."""

    build: Build
    """Ports named as the system names them."""
    tables: Callable[[int], RouteTables]
    """The tables of a router, by its vertex."""
    pools: tuple[str, ...]
    """The addresses of the fabric."""
    rounded: bool
    """Whether weights are brought to a sum of the system's own, as those of BGP are."""

    @classmethod
    def of(
        cls, system: Target, build: Build, chosen: Chosen, before: Build | None = None
    ) -> ExpectedRoutes:
        """Those of a target.

        Args:
            system: the target that configures the routers.
            build: the plan, as `system.check` returns it.
            chosen: the value of every option.
            before: the build that the routers had, whose addresses are the fabric's, too.

        Raises:
            InputError: the target has no routes.
        """
        tables = system.routes_held(build, chosen)
        if tables is None:
            required, given = f"one of {', '.join(route_forms())}", f"target {system.name}"
            raise InputError.of(required, given, key="target")
        builds = (build, *([before] if before else []))
        pools = dict.fromkeys(pool for one in builds for pool in fabric_pools(one.addressing))
        return cls(build, tables, tuple(pools), weighs(chosen))

    def compared(
        self, vertex: int, texts: Sequence[tuple[str, str]], wanted: RouteTables | None = None
    ) -> ComparedRouter:
        """Compare a router with what it should hold.

        Args:
            vertex: of the router.
            texts: its tables, see `read_tables`.
            wanted: other tables than those of the build.

        Raises:
            InputError: the tables cannot be read.
        """
        tables = self.tables(vertex) if wanted is None else wanted
        held = read_tables(texts, {prefix for routes in tables.values() for prefix in routes})
        found = route_differences(
            self.build.wiring.names[vertex],
            tables,
            held.tables,
            self.pools,
            self._own(vertex),
            held.whole,
            self.rounded,
        )
        count = sum(len(routes) for table, routes in tables.items() if table not in RULES)
        return ComparedRouter(vertex, count, tuple(found), held.form)

    def _own(self, vertex: int) -> tuple[str, ...]:
        """The blocks of a router's own hosts, which it may divide as it likes."""
        a = self.build.addressing
        return str(a.network(vertex)), *([str(a.network6(vertex))] if a.ipv6 else [])
