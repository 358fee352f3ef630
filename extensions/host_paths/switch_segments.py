"""The check of the segment routes in the rendered SRv6 files of switches, against the tables.

`segment_check` reads the files (`switch_segment_text`) and calls `SwitchSegments.check`. A
*carrier* is an IPv6 address that names a path by uSIDs, one for each switch on it after the first.
So each switch has a route for every other switch that a carrier may name, by the port of the
tables, and one for each link. The route with the action END, by which a switch removes its own
uSID, says which uSID that is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compilers.readers.emitted_report import DifferenceList
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import no_route
from extensions.host_paths.carrier_parts import Usids
from extensions.host_paths.switch_segment_text import CROSS, END, VIA, Segment, SegmentTable

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
        self.build, self.tables, self.differences = build, tables, differences
        self.cables = build.wiring.far_by_port()
        """int[S, ports + 1]: the switch at the other end of each port's cable; -1: none. Column 0
        stands for no port."""
        fib = Fib.of(build.tables, self.cables)
        self.egress = fib.egress(np.arange(build.tables.switches))
        """int[S, S]: the egress class of each switch for each destination."""
        self.block = next((table.block for table in tables.values() if table.block), b"")
        """The first 32 bits of all uSIDs, by the first file."""
        self.port_number = [
            {name: port for port, name in enumerate(build.wiring.port_names[int(node_type)], 1)}
            for node_type in build.wiring.node_type
        ]
        """The number of each port, by vertex and name."""
        self.host_interfaces = {vertex: host_interface(build, vertex, shared) for vertex in tables}
        """The interface to the hosts of each switch; "" for none."""
        self.switch_of_address: dict[str, int] = {}
        """The switch that has each address of next hops, by the first route that names it."""
        self.link_local: dict[int, str] = {}
        """The link-local address of each switch, by the first route that names one."""
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
            for usids, row in table.rows.items():
                self._check_row(vertex, table, usids, row)
            self._compare_ports_to_switches(vertex, table)
            self._compare_links(vertex, table)

    def _port(self, vertex: int, row: Segment) -> int:
        """The number of the port that packets of a row leave by; 0: none."""
        return self.port_number[vertex].get(row.interface, 0)

    def _check_row(self, vertex: int, table: SegmentTable, usids: Usids, row: Segment) -> None:
        """Check where a segment route leads, and its next hop's address."""
        far = int(self.cables[vertex, self._port(vertex, row)])
        if far >= 0 and row.address:
            self._check_next_hop(table, usids, row, far)
        is_to_hosts = row.interface == self.host_interfaces[vertex]
        if row.action in (VIA, CROSS) and far < 0 and not is_to_hosts:
            self._add_difference(table, usids, row_text(usids, row), "a port with a cable")

    def _check_next_hop(self, table: SegmentTable, usids: Usids, row: Segment, far: int) -> None:
        """Note an address that stands for two switches, or a second link-local one of a switch.

        Args:
            table: the segment routes of the switch.
            usids: the uSIDs of the row.
            row: the segment route, with the address of its next hop.
            far: the switch at the other end of its cable.
        """
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

    def _compare_links(self, vertex: int, table: SegmentTable) -> None:
        """Compare the ports of routes with the action CROSS with those of links, each once."""
        wiring = self.build.wiring
        stated = [self._port(vertex, row) for row in table.rows.values() if row.action == CROSS]
        links = wiring.port[vertex][wiring.far[vertex] >= 0].tolist()
        if sorted(stated) != sorted(links):
            self.differences.add(table.file, 0, f"{len(stated)} SIDs of links", f"{len(links)}")

    def _compare_ports_to_switches(self, vertex: int, table: SegmentTable) -> None:
        """Compare the port of the route for each other switch with that of the tables."""
        stated = {
            self.switch_of_usid[usids[0]]: self._port(vertex, row)
            for usids, row in table.rows.items()
            if row.action == VIA and len(usids) == 1 and usids[0] in self.switch_of_usid
        }
        expected = self._expected_ports(vertex)
        wiring = self.build.wiring

        def port_name(port: int | None) -> str:
            """The name of a port; a route may name none, or there is no route."""
            return wiring.port_name(vertex, port) if port else "no port"

        for switch in expected.keys() | stated.keys():
            if expected.get(switch) != stated.get(switch):
                self._add_difference(
                    table,
                    (self.usid_of.get(switch, 0),),
                    f"{wiring.names[vertex]} to {wiring.names[switch]} "
                    f"by {port_name(stated.get(switch))}",
                    f"by {port_name(expected.get(switch))}",
                )

    def _expected_ports(self, vertex: int) -> dict[int, int]:
        """The port of a switch to each other switch that carriers may name there."""
        classes, wiring = self.build.tables.classes, self.build.wiring
        egress = self.egress[vertex]
        forwards = egress < no_route(egress)
        port = np.zeros(len(egress), np.int64)
        port[forwards] = classes.port[vertex, egress[forwards]]
        # A neighbour without hosts has no route in the tables, but carriers may name it.
        for far, link_port in zip(
            wiring.far[vertex].tolist(), wiring.port[vertex].tolist(), strict=True
        ):
            if far >= 0 and not port[far]:
                port[far] = link_port
        port[vertex] = 0
        return {switch: int(port[switch]) for switch in np.flatnonzero(port).tolist()}


def host_interface(build: Build, vertex: int, shared: str) -> str:
    """The interface to the hosts of a switch; "" for none.

    Args:
        build: the build.
        vertex: the switch.
        shared: the interface of several hosts. One host has a port of its own.
    """
    ports = build.wiring.host_port[vertex]
    names = [build.wiring.port_name(vertex, port) for port in ports[ports > 0].tolist()]
    if not names:
        return ""
    return names[0] if len(names) == 1 else shared


def row_text(usids: Usids, row: Segment | None) -> str:
    """A segment route in words."""
    name = ":".join(f"{usid:x}" for usid in usids)
    words = (row.action, row.address, row.interface) if row else ("nothing",)
    return " ".join((name, *filter(None, words)))
