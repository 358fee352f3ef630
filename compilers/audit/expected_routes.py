"""Compare the tables that a router prints with the tables that its build gives it.

`check routes` compares files with a build, and `push` reads a device back until its tables match.
Both call `ExpectedRoutes.compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compilers.audit.route_table_file import read_tables, route_forms
from compilers.readers.devices.held_routes import RULES, RouteTables
from compilers.tables.build import Build
from compilers.targets.devices.route_differences import RouteDifference, route_differences
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_options import has_wcmp
from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.target import Target
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class ComparedRouter:
    """A router whose tables were compared."""

    vertex: int
    """The vertex of the router."""
    routes: int
    """How many routes it should hold."""
    differences: tuple[RouteDifference, ...]
    """The prefixes that it routes otherwise than its build says."""
    form: str
    """The form of its tables, "" where they are empty."""


@dataclass(frozen=True, slots=True)
class ExpectedRoutes:
    """The routes that the routers of a build should hold."""

    build: Build
    """The build, with ports named as the system names them."""
    tables: Callable[[int], RouteTables]
    """The tables of a router, by its vertex."""
    pools: tuple[str, ...]
    """The networks of the fabric's addresses."""
    rounds_weights: bool
    """Whether the system scales weights to a sum of its own and rounds them, as BGP does."""

    @classmethod
    def of(
        cls, system: Target, build: Build, chosen: Chosen, before: Build | None = None
    ) -> ExpectedRoutes:
        """The routes of a build on a system.

        Args:
            system: the target that configures the routers.
            build: as `system.check` returns it.
            chosen: the value of every option of the target.
            before: the build that the routers had before, whose addresses belong to the fabric too.

        Raises:
            InputError: the target has no routing tables.
        """
        tables = system.routes_held(build, chosen)
        if tables is None:
            required, given = f"one of {', '.join(route_forms())}", f"target {system.name}"
            raise InputError.of(required, given, key="target")
        pools = dict.fromkeys(fabric_pools(build.addressing))
        if before:
            pools |= dict.fromkeys(fabric_pools(before.addressing))
        return cls(build, tables, tuple(pools), has_wcmp(chosen))

    def compare(
        self, vertex: int, texts: Sequence[tuple[str, str]], expected: RouteTables | None = None
    ) -> ComparedRouter:
        """Compare a router with the routes that it should hold.

        Args:
            vertex: of the router.
            texts: its tables, see `read_tables`.
            expected: the tables that it should have; None: those of the build.

        Raises:
            InputError: the tables cannot be read.
        """
        tables = self.tables(vertex) if expected is None else expected
        held = read_tables(texts, {prefix for routes in tables.values() for prefix in routes})
        differences = route_differences(
            self.build.wiring.names[vertex],
            wanted=tables,
            held=held.tables,
            pools=self.pools,
            host_blocks=self._host_networks(vertex),
            shows_all_choices=held.shows_all_choices,
            rounds_weights=self.rounds_weights,
        )
        count = sum(len(routes) for table, routes in tables.items() if table not in RULES)
        return ComparedRouter(vertex, count, tuple(differences), held.form)

    def _host_networks(self, vertex: int) -> tuple[str, ...]:
        """The networks of a router's own hosts, for which it may have any routes."""
        addressing = self.build.addressing
        if not addressing.ipv6:
            return (str(addressing.network(vertex)),)
        return str(addressing.network(vertex)), str(addressing.network6(vertex))
