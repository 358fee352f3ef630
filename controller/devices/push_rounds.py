"""The rounds of a push from a known build: the routes of every switch after each round.

Where switches hold a build that polarfab rendered, `controller.devices.device_push` moves all of
them together, in the rounds of `compilers.update.router_move`. These are proved: no packet is lost
while some switches are at a round and others at the round before. The key of a route is its table
and its prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compilers.audit.expected_routes import ExpectedRoutes
from compilers.readers.devices.held_routes import MAIN_TABLE, RULES, Choices, RouteKey, RouteTables
from compilers.tables.build import Build
from compilers.targets.devices.configured_device import ConfiguredDevice
from compilers.targets.devices.route_lines import RouteLine
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_options import ROUTING
from compilers.targets.routed.linux_tables import HOSTS_TABLE
from compilers.targets.target import Target
from compilers.update.router_move import RouterMove
from inventory.problems import InputError, Problem, few

BEFORE = -1
"""In place of the number of a round: the old build, which switches have before round 0."""


class RenderedBuild(NamedTuple):
    """A build, and the folder that it was rendered in."""

    build: Build
    """The build."""
    folder: Path
    """The folder."""


class _Route(NamedTuple):
    """A route: its lines in a configuration, and its next hops."""

    lines: tuple[RouteLine, ...]
    """The lines of a configuration that make it."""
    choices: Choices
    """Its next hops."""


class RoundRoutes(NamedTuple):
    """The routes of a switch after a round."""

    lines: list[RouteLine]
    """The lines of its configuration."""
    tables: RouteTables
    """The routes that these make."""


@dataclass(frozen=True, slots=True)
class PushRounds:
    """The routes of every switch after each round, 0 to `move.last`."""

    move: RouterMove
    """The rounds in which routers move from the old build to the new one."""
    old_folder: Path
    """The folder that the old build was rendered in."""
    routes_before: Callable[[int], RouteTables]
    """The routes of a switch of the old build, by its vertex."""
    routes_after: Callable[[int], RouteTables]
    """The routes of a switch of the new build, by its vertex."""
    host_tables: tuple[str, ...]
    """The name of the table that forwards packets from hosts, by vertex of the new build."""
    has_policy_rules: tuple[bool, ...]
    """Whether policy rules lead packets from hosts to that table, by vertex."""

    @classmethod
    def of(
        cls,
        system: Target,
        before: RenderedBuild,
        new: ExpectedRoutes,
        chosen: Chosen,
        options: Chosen,
    ) -> PushRounds:
        """The rounds from a build that was rendered with the same options.

        Args:
            system: the target of both builds.
            before: the old build, which the switches hold.
            new: the routes of the new build.
            chosen: the value of every option for the new build.
            options: the options that the user has set.

        Raises:
            InputError: the routes cannot change in rounds, no order of rows is safe, or links are
                lossless: these could deadlock between two builds.
        """
        systems = system.by_vertex(len(new.build.wiring.names))
        for switch_system in dict.fromkeys(systems):
            device_class = switch_system.device
            if device_class and device_class.no_mix_reason:
                given = f"`from` and target {switch_system.name}: {device_class.no_mix_reason}"
                raise InputError.of("another target", given, key="from")
        old_chosen = system.chosen(before.build, options)
        _require_static(system, chosen, old_chosen)
        old = system.with_port_names(before.build, old_chosen)
        system.require(old, old_chosen)
        routes_before = ExpectedRoutes.of(system, old, old_chosen).tables
        has_policy_rules = tuple(switch_system.policy_rules for switch_system in systems)
        vrfs = (getattr(switch_system, "vrf", "") for switch_system in systems)
        host_tables = tuple(
            str(HOSTS_TABLE) if has_rules else vrf
            for has_rules, vrf in zip(has_policy_rules, vrfs, strict=True)
        )
        move = RouterMove.of(old, new.build)
        rounds = cls(
            move,
            old_folder=before.folder,
            routes_before=routes_before,
            routes_after=new.tables,
            host_tables=host_tables,
            has_policy_rules=has_policy_rules,
        )
        problems = list(rounds._gateway_problems())
        if problems:
            raise InputError(few(problems))
        return rounds

    def routes_by_round(
        self, device: ConfiguredDevice, vertex: int
    ) -> Callable[[int], RoundRoutes]:
        """A function that returns the routes of a switch after a round, by the round's number.

        BEFORE is the number for the old build. Policy rules are those of the new build from the
        first round on.

        Args:
            device: the switch's device.
            vertex: its vertex in the new build.
        """
        old_vertex = self.move.old_vertex(vertex)  # negative where the old build lacks the switch
        rounds = self.move.rounds(vertex, self.host_tables[vertex], self.has_policy_rules[vertex])
        routes, old = self.routes_after(vertex), dict[RouteKey, _Route]()
        new = _by_key(device.lines(device.rendered()), routes)
        if old_vertex >= 0:
            files = self.old_folder / self.move.update.old.wiring.names[old_vertex]
            text = replace(device, files=files).rendered()
            old = _by_key(device.lines(text), self.routes_before(old_vertex))

        def routes_after_round(number: int) -> RoundRoutes:
            by_key = old if number == BEFORE else rounds.held_after(old, new, number, _with_prefix)
            tables = {table: dict(routes[table]) for table in RULES if table in routes}
            for (table, prefix), route in by_key.items():
                if route.choices:
                    tables.setdefault(table, {})[prefix] = route.choices
            lines = [line for route in by_key.values() for line in route.lines]
            return RoundRoutes(lines, tables)

        return routes_after_round

    def _gateway_problems(self) -> Iterator[Problem]:
        """Problems for the interfaces whose links lead to another address after the move."""
        new = self.move.update.new
        for vertex in np.flatnonzero(new.topology.present).tolist():
            old_vertex = self.move.old_vertex(vertex)
            if old_vertex < 0:
                continue
            before = _gateways(self.routes_before(old_vertex))
            after = _gateways(self.routes_after(vertex))
            for interface, is_ipv6 in sorted(before.keys() & after.keys()):
                addresses = before[interface, is_ipv6], after[interface, is_ipv6]
                if addresses[0] != addresses[1]:
                    where = f"{interface} of {new.wiring.names[vertex]}"
                    yield Problem(
                        required="links that lead to the same address in both builds",
                        given=f"{addresses[0]} and {addresses[1]} behind {where}",
                        todo="push without `from`",
                        key="from",
                    )


def _require_static(system: Target, chosen: Chosen, old_chosen: Chosen) -> None:
    """Refuse options with which routes cannot change in rounds.

    Args:
        system: the target.
        chosen: the value of every option for the new build.
        old_chosen: the value of every option for the old build.
    """
    if "bgp" in (chosen.get(ROUTING), old_chosen.get(ROUTING)):
        required = "static routes in both builds"
        raise InputError.of(required, "eBGP, which converges", key="from")
    for addition in system.requested_additions(chosen):
        addition.require_rounds(chosen)


def _gateways(tables: RouteTables) -> dict[tuple[str, bool], str]:
    """The gateway at each interface, by the interface and whether the gateway's address is IPv6.

    Interfaces to hosts are left out: there the gateway is the destination itself.
    """
    return {
        (interface, ":" in gateway): gateway
        for prefix, choices in tables.get(MAIN_TABLE, {}).items()
        for hops in choices
        for gateway, interface, _ in hops
        if gateway and interface and prefix.partition("/")[0] != gateway
    }


def _by_key(lines: Iterable[RouteLine], routes: RouteTables) -> dict[RouteKey, _Route]:
    """The routes by key, of lines of a configuration and of the next hops that these make.

    Lines are sorted, so that two configurations with the same routes in another order are equal.
    """
    lines_at: dict[RouteKey, tuple[RouteLine, ...]] = {}
    for line in sorted(lines, key=lambda line: line.words):
        lines_at[line.key] = (*lines_at.get(line.key, ()), line)
    choices_at: dict[RouteKey, Choices] = {
        (table, prefix): choices
        for table, choices_of in routes.items()
        if table not in RULES
        for prefix, choices in choices_of.items()
    }
    return {
        key: _Route(lines_at.get(key, ()), choices_at.get(key, ()))
        for key in dict.fromkeys((*lines_at, *choices_at))
    }


def _with_prefix(route: _Route, prefix: str) -> _Route:
    """The route of an aggregate, for this prefix instead, over the same next hops."""
    return _Route(tuple(line.for_prefix(prefix) for line in route.lines), route.choices)
