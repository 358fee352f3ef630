"""Compare the tables that a router prints with the tables that its build gives it.

`check routes` compares files with a build, and `push` reads a device back until its tables match.
Both call `ExpectedRoutes.compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compilers.audit.route_table_file import read_tables
from compilers.readers.devices.held_routes import RULES, RouteTables
from compilers.tables.build import Build
from compilers.targets.devices.route_differences import RouteDifference, route_differences
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_options import has_wcmp
from compilers.targets.routed.static_routes import fabric_pools
from compilers.targets.target import Target
from compilers.targets.target_lookup import installed_systems
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class ComparedRouter:
    """The result of comparing the tables of a router with those of its build."""

    vertex: int
    """The vertex of the router."""
    routes: int
    """How many routes it should hold, policy rules not counted."""
    differences: tuple[RouteDifference, ...]
    """The prefixes whose routes are not those of the build."""
    form: str
    """The form of its tables, a key of `route_forms`; "" where they are empty."""


@dataclass(frozen=True, slots=True)
class ExpectedRoutes:
    """The routes that the routers of a build should hold."""

    build: Build
    """The build, with ports named as the system names them."""
    tables: Callable[[int], RouteTables]
    """The tables of a router, by its vertex."""
    pools: tuple[str, ...]
    """The networks of the fabric's addresses. Other prefixes are not compared."""
    rounds_weights: bool
    """Whether the system scales weights to a sum of its own and rounds them, as BGP does."""

    @classmethod
    def of(
        cls, system: Target, build: Build, chosen: Chosen, earlier: Build | None = None
    ) -> ExpectedRoutes:
        """The routes of a build on a system.

        Args:
            system: the target that configures the routers.
            build: as `system.check` returns it.
            chosen: the value of every option of the target.
            earlier: the build that the routers had before. Its routes are compared, too: those that
                are still there are differences.

        Raises:
            InputError: the target has no routing tables.
        """
        tables = system.routes_held(build, chosen)
        if tables is None:
            required = f"one of {', '.join(_systems_with_routes())}"
            raise InputError.of(required, f"target {system.name}", key="target")
        pools = dict.fromkeys(fabric_pools(build.addressing))
        if earlier:
            pools |= dict.fromkeys(fabric_pools(earlier.addressing))
        return cls(build, tables, tuple(pools), has_wcmp(chosen))

    def compare(
        self, vertex: int, texts: Sequence[tuple[str, str]], expected: RouteTables | None = None
    ) -> ComparedRouter:
        """Compare a router with the routes that it should hold.

        Args:
            vertex: the vertex of the router.
            texts: the texts and paths of its tables, as `read_tables` takes them.
            expected: the tables that it should have; None: those of the build.

        Raises:
            InputError: the tables cannot be read.
        """
        wanted = self.tables(vertex) if expected is None else expected
        held = read_tables(texts, {prefix for routes in wanted.values() for prefix in routes})
        differences = route_differences(
            self.build.wiring.names[vertex],
            wanted=wanted,
            held=held.tables,
            pools=self.pools,
            host_blocks=self._host_networks(vertex),
            shows_all_choices=held.shows_all_choices,
            rounds_weights=self.rounds_weights,
        )
        count = sum(len(routes) for table, routes in wanted.items() if table not in RULES)
        return ComparedRouter(vertex, count, tuple(differences), held.form)

    def _host_networks(self, vertex: int) -> tuple[str, ...]:
        """The networks of a router's own hosts, in which its routes are not compared."""
        addressing = self.build.addressing
        if not addressing.ipv6:
            return (str(addressing.network(vertex)),)
        return str(addressing.network(vertex)), str(addressing.network6(vertex))


def _systems_with_routes() -> list[str]:
    """The names of the installed systems that have routing tables.

    These are more than the forms of routing tables: some systems print the form of another.
    """
    without = Target.routes_held
    return [s.name for s in installed_systems() if type(s).routes_held is not without]
