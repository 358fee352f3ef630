"""The proof of a push: what the tables of a switch are to be, and that they are."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from compilers.audit.expected_routes import ExpectedRoutes
from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.devices.held_routes import ANY, MAIN, Place, RouteTables
from compilers.targets.devices.device_shell import DeviceError
from compilers.targets.devices.route_differences import RouteDifference
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_options import ROUTING
from compilers.targets.target import Target
from controller.devices.push_report import PushedSwitch, named
from inventory.problems import InputError

PROOF_PATIENCE, PROOF_POLL = 10.0, 0.25
"""Seconds until a daemon has handed its routes on, and between two looks."""


@dataclass(slots=True)
class PushProof:
    """The routes that switches are to hold, and how their own tables differ."""

    chosen: Chosen
    """The value of every option."""
    expected: ExpectedRoutes
    """The routes of the build."""
    shut: frozenset[tuple[str, str]] = frozenset()
    """The ports that stay shut, and those at the other end of their cables: (node, port)."""
    drained: bool = False
    """Whether any switch is drained."""
    left: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """The ports of BGP's paths without the shut ones, by switch and prefix, where they are known.
    """

    @property
    def bgp(self) -> bool:
        """Whether BGP finds the routes of the main table."""
        return self.chosen.get(ROUTING) == "bgp"

    def note_shut(self, switches: Sequence[PushedSwitch], system: Target, rendered: Path) -> None:
        """Take what was read: nothing is expected over what is shut.

        BGP's paths are not known if only some switches were read, as others may have shut ports.
        """
        build, shut = self.expected.build, set()
        w = build.wiring
        for one in switches:
            columns = (column[one.vertex].tolist() for column in (w.port, w.far, w.far_port))
            for port, far, far_port in zip(*columns, strict=True):
                if far >= 0 and w.port_name(one.vertex, port) in one.plan.shut:
                    shut.add((w.names[far], w.port_name(far, far_port)))
            shut |= {(one.node, port) for port in one.plan.shut}
        self.shut, self.drained = frozenset(shut), any(one.plan.drained for one in switches)
        reader = system.reader_of(build, self.chosen)
        every = len(switches) == np.count_nonzero(build.topology.present)
        if self.bgp and shut and every and not self.drained and isinstance(reader, BgpReader):
            self.left = reader.ports_left(rendered, self.shut)

    def routes(self, one: PushedSwitch) -> RouteTables:
        """The routes of the build, by BGP's outcome while ports are shut."""
        built, left = self.expected.tables(one.vertex), self.left.get(one.node, {})
        main = dict(built.get(MAIN, {}))
        for prefix, choices in main.items():
            if prefix in left and left[prefix] != {hop[1] for hops in choices for hop in hops}:
                hops = tuple((ANY, port, 1) for port in sorted(left[prefix]))
                main[prefix] = (hops,) if hops else ()
        return {**built, MAIN: main}

    def around(self, one: PushedSwitch) -> int:
        """How many routes of the switch go around what is shut or drained."""
        main, built = self.routes(one)[MAIN], self.expected.tables(one.vertex).get(MAIN, {})
        return sum(main[prefix] != choices for prefix, choices in built.items())

    def wait(
        self, one: PushedSwitch, wanted: RouteTables, places: Collection[Place] | None = None
    ) -> list[RouteDifference]:
        """Wait until a switch's own tables are these, or differ only at other places than these.

        Returns the routes that go around what is shut or drained.

        Raises:
            DeviceError: they are not.
        """
        limit = time.monotonic() + PROOF_PATIENCE
        while True:
            differing = self.differences(one, wanted, one.device.tables())
            pending = [difference for difference in differing if not self._excused(difference)]
            if places is not None:
                pending = [difference for difference in pending if difference.place in places]
            if not pending:
                return [difference for difference in differing if self._excused(difference)]
            if time.monotonic() > limit:
                one.differences = tuple(pending)
                routes = f"{len(pending):,} routes are not the build's"
                # NAPALM saves, too
                unsaved = "" if one.device.driver else "; it is not saved"
                raise DeviceError(f"{routes} ({named(pending)}){unsaved}")
            time.sleep(PROOF_POLL)

    def _excused(self, difference: RouteDifference) -> bool:
        """Whether only next hops over ports that stay shut are missing.

        BGP finds others, also behind the neighbours of these ports, and around drained switches:
        where they are known they are expected, by ports and not by weights.
        """
        if difference.table == MAIN and difference.prefix in self.left.get(difference.switch, ()):
            return difference.kind == "weight"
        wanted = {hop for hops in difference.wanted for hop in hops}
        held = {hop for hops in difference.found for hop in hops}
        over = {hop for hop in wanted if (difference.switch, hop[1]) in self.shut}
        if self.bgp:
            return bool(over or (wanted and held and (self.shut or self.drained)))
        return bool(over) and held <= wanted <= held | over

    def differences(
        self, one: PushedSwitch, wanted: RouteTables, tables: str
    ) -> tuple[RouteDifference, ...]:
        """The routes in which a switch's tables differ from the wanted ones."""
        try:
            return self.expected.compared(one.vertex, [(tables, "")], wanted).differences
        except InputError as error:
            problem = error.problems[0]
            said = f"its routing tables: required {problem.required}, given {problem.given}"
            raise DeviceError(said) from error
