"""The check of the segment routes in the rendered SRv6 files of switches, against the tables.

`segment_check` reads the files (`segment_text`) and calls `SwitchSegments.check`. A *carrier* is an
IPv6 address that names a path by uSIDs, one for each switch on it. So each switch has a route for
every other switch that a carrier may name, by the port of the tables, and one for each link.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compilers.readers.emitted_report import DifferenceList
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import no_route
from extensions.host_paths.segment_text import (
    CROSS,
    END,
    VIA,
    Segment,
    SegmentTable,
    Usids,
)

BRIDGE = "hosts"
"""The interface of several hosts of a switch on Linux."""


class SwitchSegments:
    """The segment routes of a fabric's switches, and their comparison with the tables.

    Args:
        build: the tables.
        tables: the segment routes of each switch, by vertex.
        differences: gets what differs.
        shared: the interface of several hosts of a switch.
    """

    def __init__(
        self,
        build: Build,
        tables: Mapping[int, SegmentTable],
        differences: DifferenceList,
        shared: str = BRIDGE,
    ) -> None:
        self.build, self.tables, self.differences, self.shared = build, tables, differences, shared
        self.cables = build.wiring.cables()
        """int[S, ports + 1]: the switch at the other end of each port's cable; -1: none."""
        fib = Fib.of(build.tables, self.cables)
        self.egress = fib.egress(np.arange(build.tables.switches))
        """int[S, S]: the egress class of each switch for each destination."""
        self.block = next((table.block for table in tables.values() if table.block), b"")
        """The first 32 bits of all uSIDs, by the first file."""
        self.port_number = [
            {name: n for n, name in enumerate(build.wiring.port_names[int(t)], 1)}
            for t in build.wiring.node_type
        ]
        """The number of each port, by vertex and name."""
        self.switch_of_address: dict[str, int] = {}
        """The switch for which each next hop's address stands."""
        self.link_local: dict[int, str] = {}
        """The link-local address of each switch."""
        self.switch_of_usid: dict[int, int] = {}
        """The switch of each uSID."""
        for vertex, table in tables.items():
            self._add_locator(vertex, table)
        self.usid_of = {vertex: usid for usid, vertex in self.switch_of_usid.items()}
        """The uSID of each switch."""

    def _add_locator(self, vertex: int, table: SegmentTable) -> None:
        """Note the uSID of a switch: that of its route with the action END. There has to be one."""
        own_usids = [usids[0] for usids, row in table.rows.items() if row.action == END]
        name = self.build.wiring.names[vertex]
        if len(own_usids) != 1 or table.block != self.block or own_usids[0] in self.switch_of_usid:
            self.differences.add(
                table.file, 0, f"{name} with {len(own_usids)} uSIDs", "one that no other has"
            )
        for usid in own_usids[:1]:
            self.switch_of_usid.setdefault(usid, vertex)

    def check(self) -> None:
        """Compare the segment routes of all switches.

        Each switch has one for every other switch that carriers may name, by the port of the
        tables, and one for each of its links.
        """
        for vertex, table in self.tables.items():
            port_to: dict[int, int] = {}
            link_ports: list[int] = []
            host_interface = self.host_interface(vertex)
            for usids, row in table.rows.items():
                port = self.port_number[vertex].get(row.interface, 0)
                far = int(self.cables[vertex, port]) if port else -1
                destination = self.switch_of_usid.get(usids[0], -1)
                if row.action == VIA and destination >= 0 and len(usids) == 1:
                    port_to[destination] = port
                elif row.action == CROSS:
                    link_ports.append(port)
                self._check_next_hop(table, usids, row, far)
                to_hosts = row.interface == host_interface
                if row.action in (VIA, CROSS) and far < 0 and not to_hosts:
                    self._add_difference(table, usids, row_text(usids, row), "a port with a cable")
            self._compare_ports(vertex, table, port_to)
            links = self.build.wiring.port[vertex][self.build.wiring.far[vertex] >= 0]
            if sorted(link_ports) != sorted(links.tolist()):
                sids = f"{len(link_ports)} SIDs of links"
                self.differences.add(table.file, 0, sids, f"{len(links)}")

    def _check_next_hop(self, table: SegmentTable, usids: Usids, row: Segment, far: int) -> None:
        """Note an address that stands for two switches, or a second link-local one of a switch."""
        if far < 0 or not row.address:
            return
        switch = self.switch_of_address.setdefault(row.address, far)
        address = row.address
        if address.startswith("fe80"):
            address = self.link_local.setdefault(far, address)
        if switch != far or address != row.address:
            stated = f"{row.address} is {self.build.wiring.names[far]}"
            self._add_difference(
                table, usids, stated, "an address of one switch, the same everywhere"
            )

    def _add_difference(
        self, table: SegmentTable, usids: Usids, stated: str, expected: str
    ) -> None:
        """Note a difference at the line of a segment route."""
        self.differences.add(table.file, table.lines.get(usids, 0), stated, expected)

    def host_interface(self, vertex: int) -> str:
        """The interface to the hosts of a switch: the only port, or the shared one; "" for none."""
        ports = self.build.wiring.host_port[vertex]
        names = [self.build.wiring.port_name(vertex, port) for port in ports[ports > 0].tolist()]
        if not names:
            return ""
        return names[0] if len(names) == 1 else self.shared

    def _compare_ports(self, vertex: int, table: SegmentTable, port_to: dict[int, int]) -> None:
        """Compare the port to each switch with that of the tables.

        Args:
            vertex: the vertex of the switch.
            table: the segment routes of the switch.
            port_to: by these routes, the port to each other switch.
        """
        classes, wiring = self.build.tables.classes, self.build.wiring
        egress = self.egress[vertex]
        forwards = egress < no_route(egress)
        port = np.zeros(len(egress), np.int64)
        port[forwards] = classes.port[vertex, egress[forwards]]
        # A neighbour without hosts has no route, but carriers may name it.
        for far, link_port in zip(
            wiring.far[vertex].tolist(), wiring.port[vertex].tolist(), strict=True
        ):
            if far >= 0 and not port[far]:
                port[far] = link_port
        port[vertex] = 0
        expected = {int(switch): int(port[switch]) for switch in np.flatnonzero(port)}
        if expected == port_to:
            return

        def port_name(port_number: int) -> str:
            """The name of a port; 0 is no port."""
            return wiring.port_name(vertex, port_number) if port_number else "no port"

        for switch in expected.keys() | port_to.keys():
            if expected.get(switch) != port_to.get(switch):
                usids = (self.usid_of.get(switch, 0),)
                by = port_name(port_to.get(switch, 0))
                stated = f"{wiring.names[vertex]} to {wiring.names[switch]} by {by}"
                self._add_difference(
                    table, usids, stated, f"by {port_name(expected.get(switch, 0))}"
                )


def row_text(usids: Usids, row: Segment | None) -> str:
    """A segment route in words."""
    name = ":".join(f"{usid:x}" for usid in usids)
    words = (row.action, row.address, row.interface) if row else ("nothing",)
    return " ".join((name, *filter(None, words)))
