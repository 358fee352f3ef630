"""The rounds of a push from a known build: what every switch has after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from compilers.audit.route_lines import Place, RouteLine
from compilers.tables.build import Build
from compilers.targets.options import LOSSLESS, OFF, Chosen
from compilers.targets.routed.bgp.control_plane import ROUTING
from compilers.targets.routed.linux_tables import ENTER
from compilers.targets.target import Target
from compilers.update.router_move import PrefixRounds, RouterMove
from controller.devices.configured_device import ConfiguredDevice
from inventory.problems import InputError, Problem, few
from inventory.route_tables.held_routes import MAIN, RULES, Choices, RouteTables

BEFORE = -1
Lines = tuple[RouteLine, ...]


@dataclass(frozen=True, slots=True)
class PushRounds:
    """What every switch has after each round, 0 to `last`.

    old: the folder that the old build was rendered in. held: the routes that a vertex of the old
    and of the new build holds. ruled: whether packets from hosts get to their table by a rule.
    """

    move: RouterMove
    old: Path
    held: tuple[Callable[[int], RouteTables], Callable[[int], RouteTables]]
    hosts: str
    ruled: bool

    @classmethod
    def of(
        cls, system: Target, old: Build, rendered: Path, new: Build, chosen: Chosen
    ) -> PushRounds:
        """The rounds from a build that was rendered with the same options.

        Args:
            system: the target of both.
            old: what the switches have.
            rendered: the folder that it was rendered in.
            new: what they are to have, ports named as the system names them.
            chosen: the value of every option.

        Raises:
            InputError: the target's routes cannot go in rounds, or no order of rows is safe, or
                links are lossless, which mixtures of two builds could deadlock.
        """
        if system.name == "linux":
            reason = "next hops of the kernel are numbered by build, so routes of two cannot mix"
            raise InputError.of("another target", f"`from` and target linux: {reason}", key="from")
        if chosen.get(ROUTING) == "bgp":
            raise InputError.of("static routes", "routing=bgp, which converges", key="from")
        if (scheme := chosen.get(LOSSLESS, OFF)) != OFF:
            reason = "priorities are proved free of deadlock in each build, not between the two"
            todo = "have hosts mark nothing lossless meanwhile, and push without `from`"
            raise InputError.of(f"{LOSSLESS}={OFF}", f"{scheme}: {reason}", todo, key="from")
        old = system.with_port_names(old, chosen)
        system.require(old, chosen)
        held = system.routes_held(old, chosen), system.routes_held(new, chosen)
        ruled = system.name == "frr"
        hosts = str(ENTER) if ruled else getattr(system, "vrf", "")
        if held[0] is None or held[1] is None:
            raise InputError.of("a target with routes", system.name, key="from")
        found = cls(RouterMove.of(old, new), rendered, (held[0], held[1]), hosts, ruled)
        if problems := list(found._other_links()):
            raise InputError(few(problems))
        return found

    @property
    def last(self) -> int:
        """The last round."""
        return self.move.last

    def lines(self, device: ConfiguredDevice, vertex: int) -> Callable[[int], list[RouteLine]]:
        """The lines of a switch of the new build by the number of a round, BEFORE for the old."""
        before, rounds = self._of(vertex)
        old: dict[Place, Lines] = {}
        if before >= 0:
            name = self.move.update.old.wiring.names[before]
            text = replace(device, files=self.old / name).rendered()
            old = _by_place(device.lines(text))
        new = _by_place(device.lines(device.rendered()))

        def after(number: int) -> list[RouteLine]:
            found = old if number == BEFORE else rounds.held_after(old, new, number, _moved)
            return [line for lines in found.values() for line in lines]

        return after

    def tables(self, vertex: int, number: int) -> RouteTables:
        """The routes of a switch of the new build after a round."""
        before, rounds = self._of(vertex)
        new = self.held[1](vertex)
        old = self.held[0](before) if before >= 0 else {}
        found = rounds.held_after(_places(old), _places(new), number, lambda hops, _: hops)
        tables: RouteTables = {
            table: dict(routes) for table, routes in new.items() if table in RULES
        }
        for (table, prefix), choices in found.items():
            tables.setdefault(table, {})[prefix] = choices
        return tables

    def _other_links(self) -> Iterator[Problem]:
        """The interfaces behind which another address is after the move."""
        new = self.move.update.new
        for vertex in np.flatnonzero(new.topology.present).tolist():
            before = self.move.before(vertex)
            if before < 0:
                continue
            was, now = _gateways(self.held[0](before)), _gateways(self.held[1](vertex))
            for place in sorted(was.keys() & now.keys()):
                if was[place] != now[place]:
                    where = f"{place[0]} of {new.wiring.names[vertex]}"
                    yield Problem(
                        required="links that lead to the same address in both builds",
                        given=f"{was[place]} and {now[place]} behind {where}",
                        todo="push without `from`",
                        key="from",
                    )

    def _of(self, vertex: int) -> tuple[int, PrefixRounds]:
        return self.move.before(vertex), self.move.rounds(vertex, self.hosts, self.ruled)


def _gateways(tables: RouteTables) -> dict[tuple[str, bool], str]:
    """What is behind an interface, for each address family; hosts are not asked for."""
    return {
        (interface, ":" in gateway): gateway
        for prefix, choices in tables.get(MAIN, {}).items()
        for hops in choices
        for gateway, interface, _ in hops
        if gateway and interface and prefix.partition("/")[0] != gateway
    }


def _by_place(lines: Sequence[RouteLine]) -> dict[Place, Lines]:
    """In one order: texts that say the same routes are the same."""
    found: dict[Place, Lines] = {}
    for line in sorted(lines, key=lambda line: line.words):
        found[line.place] = (*found.get(line.place, ()), line)
    return found


def _moved(lines: Lines, prefix: str) -> Lines:
    return tuple(line.moved(prefix) for line in lines)


def _places(tables: RouteTables) -> dict[Place, Choices]:
    return {
        (table, prefix): choices
        for table, routes in tables.items()
        if table not in RULES
        for prefix, choices in routes.items()
    }
