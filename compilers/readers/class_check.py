"""Compares what the egress classes of one switch would do with packets that never occur.

An *egress class* is a numbered list of port sets that a switch tries in order. All routes of the
switch with the same next hops share a class. OpenFlow files contain entries even for classes that
carry no traffic, and number them. `switch_check` compares the forwarding of all packets that occur;
`ClassCheck` compares these entries too:

- of classes to which no route leads
- of classes for packets from hosts, at a switch without hosts
- of a class that tries every fabric port, for packets from a port that it does not try. There is no
  such port, but the files say what would happen to the packets.

A *chain* is the sequence of port sets of a class; an *entry* is what a row of the files leads to.

Example: by the tables, class 3 sends packets to port 5, and to port 6 while port 5 is down. In the
files, rows "of class 3" lead to an entry, and its group tries ports 5 and 7. If a route leads to
class 3, `switch_check` reports the wrong port for the packets of the route. If no route leads to
class 3, `ClassCheck` reports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compilers.readers.chain_numbers import ANY_OTHER, FROM_HOST, ChainNumbers
from compilers.readers.chain_words import chain_words
from compilers.readers.emitted_forwarding import Chain, EmittedSwitch, Lookup, canonical
from compilers.readers.emitted_report import DifferenceList
from compilers.readers.expected_forwarding import ExpectedSwitch
from compilers.tables.build import Build


@dataclass(frozen=True, slots=True)
class ClassCheck:
    """The comparison of the classes of one switch."""

    build: Build
    """The plane, with ports named as the system names them."""
    vertex: int
    """The vertex of the switch."""
    emitted: EmittedSwitch
    """The contents of its files."""
    expected: ExpectedSwitch
    """Its forwarding by the tables."""
    chains: ChainNumbers
    """The chains of its files."""
    fabric_ports: Sequence[int]
    """The ports with a link."""
    host_ports: Sequence[int]
    """The ports with a host."""
    differences: DifferenceList
    """The list to which the differences are added."""
    folder: str
    """The folder with the files of the switch."""

    def compare(self) -> None:
        """Compare all classes if the files number them, as those of OpenFlow do."""
        if self.emitted.class_entries is not None:
            classes_of_tables = np.flatnonzero(self.build.tables.classes.port[self.vertex] > 0)
            numbers: list[int] = classes_of_tables.tolist()
            self._add_unknown_classes(numbers, self.emitted.class_entries)
            self._compare_classes(numbers, self.emitted.class_entries)

    def _add_unknown_classes(
        self, numbers: Sequence[int], class_entries: Mapping[int, int]
    ) -> None:
        """Add a difference for each class that the tables do not have, and no route leads to.

        Args:
            numbers: the classes that the tables have.
            class_entries: the entry of each class in the files.
        """
        # A switch of OpenFlow has one table of routes for all packets.
        routes_table = self.emitted.anywhere[0]
        routed_entries = set(routes_table.rows.entries.tolist())
        for number in sorted(set(class_entries) - set(numbers)):
            entry = class_entries[number]
            # `switch_check` has compared the packets of routes that lead to the class.
            if entry not in routed_entries:
                file, line = self._file_and_line(entry, ANY_OTHER)
                says = f"class {number}, to which no route leads"
                self.differences.add(file, line, says, "none such")

    def _compare_classes(self, numbers: Sequence[int], class_entries: Mapping[int, int]) -> None:
        """Compare each class that the tables have, for the packets that no route leads to it.

        Args:
            numbers: the classes that the tables have.
            class_entries: the entry of each class in the files.
        """
        routed_classes = set(self.expected.egress.tolist())
        for number in numbers:
            is_routed = number in routed_classes
            # `switch_check` has compared the packets of a routed class from all fabric ports.
            ports = [ANY_OTHER] if is_routed else [*self.fabric_ports, ANY_OTHER]
            entry = class_entries.get(number)
            # One difference of a class is enough: packets from hosts would only repeat it.
            if not self._differs_in_transit(number, entry, ports):
                self._compare_from_hosts(number, entry, is_routed)

    def _differs_in_transit(self, number: int, entry: int | None, ports: Sequence[int]) -> bool:
        """Whether a class differs for packets in transit; the first such port is a difference.

        Args:
            number: the number of the class.
            entry: its entry in the files; None: there is none.
            ports: the ports where packets come in.
        """
        classes = np.full(len(ports), number)
        cannot_occur = self.expected.cannot_occur(classes, np.array(ports, np.int64))
        for index in np.flatnonzero(~cannot_occur).tolist():
            port = ports[index]
            ingress = "any other port" if port == ANY_OTHER else f"port {self._port_name(port)}"
            expected = canonical(self.expected.transit_chain(number, port), port)
            if self._differs(number, ingress, port, entry, expected):
                return True
        return False

    def _compare_from_hosts(self, number: int, entry: int | None, is_routed: bool) -> None:
        """Compare a class for packets from hosts.

        Args:
            number: the number of the class.
            entry: its entry in the files; None: there is none.
            is_routed: whether routes lead to the class. Then `switch_check` has compared packets
                from hosts of the switch.
        """
        expected = canonical(self.expected.from_hosts(number), FROM_HOST)
        host_entries = self.emitted.host_class_entries
        if host_entries is not None:  # a switch without hosts that has rows for hosts
            self._differs(number, "hosts", FROM_HOST, host_entries.get(number), expected)
        if self.host_ports and not is_routed:
            # Rows for packets from hosts name their ports, so a port is needed to look them up.
            # All ports of hosts have the same rows for a class, so the first one is enough.
            port = self.host_ports[0]
            self._differs(number, "hosts", port, entry, expected)

    def _differs(
        self, number: int, ingress: str, port: int, entry: int | None, expected: Chain
    ) -> bool:
        """Whether a class differs for packets from a port; if so, add the difference.

        Args:
            number: the number of the class.
            ingress: the ingress port in words.
            port: the ingress port, FROM_HOST or ANY_OTHER.
            entry: the entry of the class in the files; None: there is none.
            expected: the chain by the tables.
        """
        table = self._table_for(port)
        chain = () if entry is None else table.chains[int(table.number[entry])]
        # The canonical form of a chain leaves out the fabric port that a packet came in by. Packets
        # from hosts, whatever their port, may leave by all fabric ports.
        in_port = FROM_HOST if port in self.host_ports else port
        stated = self.chains.in_turn([self.chains.number(chain)], in_port)
        if stated == expected:
            return False
        file, line = (self.folder, 0) if entry is None else self._file_and_line(entry, port)
        leaves = chain_words(stated, self.chains.names)
        says = f"packets of class {number} from {ingress} leave {leaves}"
        self.differences.add(file, line, says, chain_words(expected, self.chains.names))
        return True

    def _table_for(self, port: int) -> Lookup:
        """The table in which packets from a port are looked up.

        A switch of OpenFlow has a single table for each port: one for the port, or that of all.
        """
        return self.emitted.by_ingress.get(port, self.emitted.anywhere)[0]

    def _file_and_line(self, entry: int, port: int) -> tuple[str, int]:
        """Where the files state what an entry does with packets from a port."""
        table = self._table_for(port)
        return table.places[int(table.number[entry])]

    def _port_name(self, port: int) -> str:
        """The name of a port."""
        return self.chains.names[port - 1]
