"""The proof of a push: a check that the routing tables of switches converge to the build's routes.

`controller.devices.device_push` waits here (`PushProof.wait`) after each change of a switch, until
the switch's own routing tables show the change. Somebody may have shut ports or drained switches:
then other routes are expected than those of the build, or differences are accepted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from compilers.audit.expected_routes import ExpectedRoutes
from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.devices.held_routes import ANY, MAIN_TABLE, RouteKey, RouteTables
from compilers.targets.devices.device_shell import DeviceError
from compilers.targets.devices.route_differences import RouteDifference
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_options import ROUTING
from compilers.targets.target import Target
from compilers.wiring.wiring import Wiring
from controller.devices.push_report import PushedSwitch, first_prefixes
from inventory.problems import InputError

PROOF_PATIENCE, PROOF_POLL = 10.0, 0.25
"""Most seconds until a daemon has handed its routes on, and seconds between two readings."""


@dataclass(slots=True)
class PushProof:
    """The expected routes of switches, and the comparison of their own tables with these."""

    chosen: Chosen
    """The value of every option."""
    expected: ExpectedRoutes
    """The routes of the build."""
    shut: frozenset[tuple[str, str]] = frozenset()
    """The ports that somebody has shut, and the far ends of their cables: (node, port)."""
    drained: bool = False
    """Whether any switch is drained."""
    ports_left: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """The ports that BGP uses while others are shut, by switch and prefix. Empty where these are
    not known, or no port is shut."""

    @property
    def bgp(self) -> bool:
        """Whether BGP finds the routes of the main table."""
        return self.chosen.get(ROUTING) == "bgp"

    def note_shut(self, switches: Sequence[PushedSwitch], system: Target, rendered: Path) -> None:
        """Note the ports that are shut, over which no next hops are expected.

        The ports that BGP uses instead are known only if all switches were read, as any of them may
        have shut ports, and none is drained.

        Args:
            switches: the switches that were read.
            system: the push's target, the system of the switches.
            rendered: the folder that the build was rendered in.
        """
        build = self.expected.build
        self.shut = frozenset(
            port for switch in switches for port in _shut_ends(switch, build.wiring)
        )
        self.drained = any(switch.plan.drained for switch in switches)
        all_read = len(switches) == np.count_nonzero(build.topology.present)
        reader = system.reader_of(build, self.chosen)
        are_known = self.bgp and self.shut and all_read and not self.drained
        if are_known and isinstance(reader, BgpReader):
            self.ports_left = reader.ports_left(rendered, self.shut)

    def routes(self, switch: PushedSwitch) -> RouteTables:
        """The routes that a switch is to hold: the build's, or BGP's while ports are shut."""
        built = self.expected.tables(switch.vertex)
        ports_left = self.ports_left.get(switch.node, {})
        main = dict(built.get(MAIN_TABLE, {}))
        for prefix, choices in main.items():
            built_ports = {port for hops in choices for _, port, _ in hops}
            if ports_left.get(prefix, built_ports) != built_ports:
                hops = tuple((ANY, port, 1) for port in sorted(ports_left[prefix]))
                main[prefix] = (hops,) if hops else ()
        return {**built, MAIN_TABLE: main}

    def count_detours(self, switch: PushedSwitch) -> int:
        """How many expected routes of the switch differ from the build's, as ports are shut."""
        main = self.routes(switch)[MAIN_TABLE]
        built = self.expected.tables(switch.vertex).get(MAIN_TABLE, {})
        return sum(main[prefix] != choices for prefix, choices in built.items())

    def wait(
        self, switch: PushedSwitch, wanted: RouteTables, places: Collection[RouteKey] | None = None
    ) -> list[RouteDifference]:
        """Wait until a switch's own tables are as wanted.

        Args:
            switch: the switch.
            wanted: the routes that it is to hold.
            places: the routes, as pairs of table and prefix, whose differences count; None for all.

        Returns:
            The differences that are accepted, as ports are shut or switches are drained.

        Raises:
            DeviceError: the tables still differ after `PROOF_PATIENCE`, or after the time that the
                device's BGP needs to restart.
        """
        patience = max(PROOF_PATIENCE, switch.device.restart_patience)
        limit = time.monotonic() + patience
        while True:
            differences = self.differences(switch, wanted, switch.device.tables())
            accepted, pending = list[RouteDifference](), list[RouteDifference]()
            for difference in differences:
                if self._is_acceptable(difference):
                    accepted.append(difference)
                elif places is None or difference.key in places:
                    pending.append(difference)
            if not pending:
                return accepted
            if time.monotonic() > limit:
                switch.differences = tuple(pending)
                routes = f"{len(pending):,} routes are not the build's"
                # A device with a NAPALM driver has saved the change already.
                unsaved = "" if switch.device.driver else "; it is not saved"
                raise DeviceError(f"{routes} ({first_prefixes(pending)}){unsaved}")
            time.sleep(PROOF_POLL)

    def _is_acceptable(self, difference: RouteDifference) -> bool:
        """Whether a difference comes from shut ports or drained switches.

        - Where the ports that BGP uses instead are known (`ports_left`), the expected route has
          them already, and only weights may differ.
        - Where they are not known, BGP may use any other next hops while a port is shut or a switch
          is drained, also at neighbours of these switches.
        - A static route may lack its next hops over shut ports, and nothing else.
        """
        switch = difference.switch
        if difference.table == MAIN_TABLE and difference.prefix in self.ports_left.get(switch, ()):
            return difference.kind == "weight"
        wanted = {hop for hops in difference.wanted for hop in hops}
        actual = {hop for hops in difference.found for hop in hops}
        over_shut_ports = {
            (gateway, port, weight)
            for gateway, port, weight in wanted
            if (switch, port) in self.shut
        }
        if self.bgp:
            is_detour = wanted and actual and (self.shut or self.drained)
            return bool(over_shut_ports or is_detour)
        missing, extra = wanted - actual, actual - wanted
        return bool(over_shut_ports) and not extra and missing <= over_shut_ports

    def differences(
        self, switch: PushedSwitch, wanted: RouteTables, tables: str
    ) -> tuple[RouteDifference, ...]:
        """The routes in which a switch's tables differ from the wanted ones."""
        try:
            return self.expected.compare(switch.vertex, [(tables, "")], wanted).differences
        except InputError as error:
            problem = error.problems[0]
            text = f"its routing tables: required {problem.required}, given {problem.given}"
            raise DeviceError(text) from error


def _shut_ends(switch: PushedSwitch, wiring: Wiring) -> Iterator[tuple[str, str]]:
    """The ports of a switch that are shut, and those at the other end of their cables."""
    shut = switch.plan.shut
    yield from ((switch.node, port) for port in shut)
    columns = wiring.port, wiring.far, wiring.far_port
    links = zip(*(column[switch.vertex].tolist() for column in columns), strict=True)
    for port, far, far_port in links:
        if far >= 0 and wiring.port_name(switch.vertex, port) in shut:
            yield wiring.names[far], wiring.port_name(far, far_port)
