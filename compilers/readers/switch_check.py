"""Compares the files of one switch with its tables.

What comes in are the contents of the files (`EmittedSwitch`) and a build; what goes out is a
`CheckedSwitch`, with the differences. `emitted_check` calls it for each switch.

The next hop of a packet depends only on its ingress port, its destination, and the ports of the
switch that are up. A chain in canonical form (`emitted_forwarding.canonical`) *is* that function of
the ports that are up: two chains that differ choose different ports under some failure. So where
the chains are equal for every ingress port and destination, the switch forwards under any failures
as its tables do, and what `verify --failures` proves of the tables holds for it.

Chains in transit are compared as rows of arrays, for all ingress ports and destination classes at
once. Two destinations are of one *destination class* if both their egress classes and their entries
in the files are the same. Packets that no route leads to an egress class are compared by
`class_check`, claims by `claim_check`.

Words of the other modules: a *chain* is the sequence of *port sets* that a switch tries in order,
and the ports of a set share packets; a *claim* is a fact besides forwarding; an *entry* is what a
row of the files leads to. In a lookup table (`Lookup`), row r leads to entry e = `rows.entries[r]`.
Entry e stands for the chain with the index n = `number[e]`: `chains[n]`, stated at `places[n]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.chain_numbers import (
    DROPPED,
    DROPPING_CHAIN,
    FROM_HOST,
    NOT_ONE_PORT,
    ChainNumbers,
    Integers,
)
from compilers.readers.chain_words import chain_words
from compilers.readers.claim_check import compare_claims
from compilers.readers.class_check import ClassCheck
from compilers.readers.emitted_forwarding import (
    Chain,
    EmittedDifference,
    EmittedRows,
    EmittedSwitch,
    Lookup,
    NextHop,
    OwnAddress,
    PortSet,
    canonical,
    covering,
    marked,
    prefix_text,
    unmarked_numbers,
)
from compilers.readers.emitted_report import EXAMPLES, DifferenceList
from compilers.readers.expected_forwarding import (
    FULL_ABILITY,
    Ability,
    ExpectedSwitch,
    by_destination,
)
from compilers.tables.build import Build


@dataclass(frozen=True, slots=True)
class CheckedSwitch:
    """The result for one switch; it is small, as it comes from another process."""

    vertex: int
    """The vertex of the switch."""
    differences: int
    """How many differences there are."""
    examples: tuple[EmittedDifference, ...]
    """The first differences."""
    path_differences: DifferenceList = field(default_factory=DifferenceList)
    """Differences of packets' paths, if a routing protocol finds the routes. Their cause may be in
    the files of other switches. With static routes they are among `differences`."""
    correct_destinations: int | None = None
    """The number of destinations with hosts to which packets of both families go by the tables;
    None: files could not be read (`was_read`)."""
    next_hops: tuple[NextHop, ...] = ()
    """The neighbours to which its files send packets by address."""
    addresses: tuple[OwnAddress, ...] = ()
    """The addresses of the switch on its links."""
    accepted: int = 0
    """How many statements of the user's own were accepted."""
    checked_sources: int = 0
    """The ports of hosts from which only the host's own source address is taken."""
    shares: Mapping[int, PortSet] = field(default_factory=dict)
    """The ports that share packets from hosts, with their weights, by class; classes whose shares
    are those of the tables are left out."""

    @property
    def was_read(self) -> bool:
        """Whether the files of the switch could be read."""
        return self.correct_destinations is not None


class _IngressGroup(NamedTuple):
    """Ingress ports whose packets are looked up in tables with the same rows.

    T is the number of tables, K of destination classes, F of address families, S of switches.
    Destination v is the prefix of vertex v in IPv4, and destination S + v that in IPv6.
    """

    ports: list[int]
    """The ingress ports."""
    tables: list[tuple[Lookup, ...]]
    """The tables of each port."""
    entries: Integers
    """int64[T, K]: the entry of each destination class in each table, -1: none."""
    egress: Integers
    """int64[K]: the egress class of each destination class."""
    destination_class: Integers
    """int64[F * S]: the destination class of each destination."""
    first_of_class: Integers
    """int64[K]: the first destination of each destination class."""
    count_of_class: Integers
    """int64[K]: how many destinations are of each destination class."""
    rows: Integers
    """int64[T, F * S]: the row of each destination in each table."""

    @classmethod
    def of(
        cls, tables_of_port: Mapping[int, tuple[Lookup, ...]], rows: Integers, egress: Integers
    ) -> _IngressGroup:
        """The group of some ingress ports.

        Args:
            tables_of_port: the ingress ports, each with its tables; all have the same rows.
            rows: int64[T, F * S], the row of each destination in each table; -1: none.
            egress: int64[F * S], the egress class of each destination.
        """
        tables = next(iter(tables_of_port.values()))
        if tables:
            entries = np.stack(
                [
                    # Row -1, for destinations without a row, leads to the entry -1 behind the last.
                    np.append(table.rows.entries, -1)[row_of_destination]
                    for table, row_of_destination in zip(tables, rows, strict=True)
                ]
            )
        else:
            entries = np.full((1, len(egress)), -1)
        _, first_of_class, destination_class, count_of_class = np.unique(
            _combination_numbers(egress, entries),
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        return cls(
            ports=list(tables_of_port),
            tables=list(tables_of_port.values()),
            entries=entries[:, first_of_class],
            egress=egress[first_of_class],
            destination_class=destination_class,
            first_of_class=first_of_class,
            count_of_class=count_of_class,
            rows=rows,
        )


def _combination_numbers(egress: Integers, entries: Integers) -> Integers:
    """int64[n]: a number for each combination of an egress class and its entries.

    The class and the entries are its digits, each from 0 on. All of them are -1 or more.

    Args:
        egress: int64[n], the classes.
        entries: int64[T, n], the entries.

    Three destinations, of which the first and the last have the same class and entry:

    >>> _combination_numbers(np.array([4, 4, 4]), np.array([[0, -1, 0]])).tolist()
    [11, 10, 11]
    """
    number = egress + 1
    for digit in entries + 1:
        base = int(digit.max(initial=1)) + 1
        number = number * base + digit
    return number


class _ArrayCache:
    """Keeps an array for each object, which is known by its identity.

    The objects are parts of an `EmittedSwitch`, which outlives this.
    """

    def __init__(self) -> None:
        self._arrays: dict[int, Integers] = {}

    def get(self, key: object, compute: Callable[[], Integers]) -> Integers:
        """The array of an object, computed at the first call."""
        if id(key) not in self._arrays:
            self._arrays[id(key)] = compute()
        return self._arrays[id(key)]


class SwitchCheck:
    """The comparison of one switch.

    Args:
        build: the plane, with ports named as the system names them.
        vertex: the vertex of the switch.
        emitted: the contents of its files.
        prefix_numbers: the number of every prefix of the fabric, the IPv6 ones behind the IPv4
            ones; other texts of the same prefixes are added.
        folder: where its files are.
        accept: beginnings of statements, or names of files, that count as the user's own.
        ability: what the switch can do of the tables.
    """

    def __init__(
        self,
        build: Build,
        vertex: int,
        emitted: EmittedSwitch,
        prefix_numbers: dict[str, int],
        folder: str,
        accept: tuple[str, ...] = (),
        ability: Ability = FULL_ABILITY,
    ) -> None:
        self.build, self.vertex, self.emitted = build, vertex, emitted
        self.prefix_numbers, self.folder = prefix_numbers, folder
        self.families = 1 if build.addressing.ipv6 is None else 2
        """F, the number of address families."""
        self.prefix_count = len(build.addressing.ipv4_prefixes()[0])
        """How many prefixes an address family has."""
        self.expected = ExpectedSwitch.of(build, vertex, ability)
        """The forwarding by the tables."""
        self.is_correct = np.ones(self.families * build.tables.switches, np.bool_)
        """bool[F * S]: the destinations to which all packets go by the tables."""
        self.differences = DifferenceList(accept)
        """The differences so far."""
        self.forwarding_differences = (
            DifferenceList(accept) if emitted.converged else self.differences
        )
        """The differences of packets' paths so far: `differences`, or a list of their own if a
        routing protocol finds the routes."""
        wiring = build.wiring
        self.names = wiring.port_names[int(wiring.node_type[vertex])]
        """The names of the switch's ports, of which the first has number 1."""
        self.chains = ChainNumbers(self.names)
        """The chains of the files."""
        self.fabric_ports = sorted(port for port, _, _ in wiring.links_of(vertex))
        """The ports with a link."""
        self.host_ports = [port for port in wiring.host_port[vertex].tolist() if port]
        """The ports with a host."""
        self._numbers_of_chains = _ArrayCache()
        """By a table's list of chains: their numbers."""
        self._rows_by_destination = _ArrayCache()
        """By the rows of a table: the row for each destination."""
        self._numbers_of_prefixes = _ArrayCache()
        """By a list of prefixes: their numbers."""
        self._shares: dict[int, PortSet] = {}
        """See `CheckedSwitch.shares`."""

    def result(self) -> CheckedSwitch:
        """Compare everything."""
        correct_destinations = self._compare_forwarding()
        for file, line, text in self.emitted.unread:
            self.differences.add_statement(file, line, text)
        self._compare_discards()
        ClassCheck(
            build=self.build,
            vertex=self.vertex,
            emitted=self.emitted,
            expected=self.expected,
            chains=self.chains,
            fabric_ports=self.fabric_ports,
            host_ports=self.host_ports,
            differences=self.differences,
            folder=self.folder,
        ).compare()
        compare_claims(
            self.build,
            vertex=self.vertex,
            emitted=self.emitted,
            number_of=self.chains.number_of_port,
            differences=self.differences,
            folder=self.folder,
        )
        for file, line, text in self.emitted.wrong:
            self.differences.add(file, line, text)
        for file, line, name in self.emitted.unused:
            self.differences.add(file, line, f"{name}, to which nothing leads")
        guarded = sum(claim.kind == "guarded" for claim in self.emitted.claims)
        return CheckedSwitch(
            vertex=self.vertex,
            differences=self.differences.count,
            examples=tuple(self.differences.examples),
            path_differences=(
                self.forwarding_differences if self.emitted.converged else DifferenceList()
            ),
            correct_destinations=correct_destinations,
            next_hops=tuple(dict.fromkeys(self.emitted.next_hops)),
            addresses=tuple(self.emitted.addresses),
            accepted=self.differences.accepted,
            checked_sources=0 if self.differences.count else guarded,
            shares=self._shares,
        )

    def _compare_discards(self) -> None:
        """Compare discarded prefixes: no forwarded prefix may contain one."""
        for prefix, file, line in self.emitted.discards:
            if not (shorter := covering(prefix)):
                self.differences.add(file, line, f"{prefix} is discarded", "a prefix")
            elif any(self.prefix_number(containing) >= 0 for containing in shorter):
                self.differences.add(file, line, f"{prefix} is discarded", "it is forwarded")

    def prefix_number(self, prefix: str) -> int:
        """The number of a prefix, -1 where the fabric does not have it."""
        number = self.prefix_numbers.get(prefix)
        if number is None:
            number = self.prefix_numbers[prefix] = self.prefix_numbers.get(prefix_text(prefix), -1)
        return number

    def _compare_forwarding(self) -> int:
        """Compare the chains for every ingress port and destination.

        Returns:
            The number of other switches with hosts to which all chains are those of the tables, in
            both address families.
        """
        build = self.build
        self._compare_transit(list(self._ingress_groups(self.fabric_ports)))
        for group in self._ingress_groups(self.host_ports):
            self._compare_from_hosts(group)
        with_hosts = build.topology.endpoints & (build.wiring.host_port > 0).any(axis=1)
        is_correct = self.is_correct.reshape(self.families, -1).all(axis=0) & with_hosts
        is_correct[self.vertex] = False
        return int(np.count_nonzero(is_correct))

    def _ingress_groups(self, ports: Sequence[int]) -> Iterator[_IngressGroup]:
        """Yield the groups of ingress ports whose tables have the same rows."""
        # By the `id` of the rows of each table: the tables of each port.
        groups: dict[tuple[int, ...], dict[int, tuple[Lookup, ...]]] = {}
        for port in ports:
            by_ingress = self.emitted.by_ingress
            tables = (
                by_ingress.get(port)
                or by_ingress.get(self.names[port - 1])
                or self.emitted.anywhere
            )
            key = tuple(id(table.rows) for table in tables)
            groups.setdefault(key, {})[port] = tables
        egress = np.tile(self.expected.egress, self.families)
        for tables_of_port in groups.values():
            tables = next(iter(tables_of_port.values()))
            rows = np.array([self._rows_of_destinations(table) for table in tables], np.int64)
            rows = rows.reshape(len(tables), len(egress))  # [0, F * S] for a port without tables
            yield _IngressGroup.of(tables_of_port, rows, egress)

    def _rows_of_destinations(self, table: Lookup) -> Integers:
        """int64[F * S]: see `_find_rows`, which is called once for tables with the same rows."""
        return self._rows_by_destination.get(table.rows, lambda: self._find_rows(table.rows))

    def _find_rows(self, rows: EmittedRows) -> Integers:
        """int64[F * S]: the row of a table for every destination; -1 where it has none."""
        # int64[F, prefixes of a family]
        row_of_prefix = self._rows_of_prefixes(rows).reshape(self.families, self.prefix_count)
        aggregate = self.build.tables.routes.aggregate
        row_of_destination = np.stack(
            [by_destination(of_family, aggregate) for of_family in row_of_prefix]
        )
        # The switch's own prefix is connected: a row for it, not for its aggregate, is a fault.
        row_of_destination[:, self.vertex] = row_of_prefix[:, self.vertex]
        return row_of_destination.ravel()

    def _rows_of_prefixes(self, rows: EmittedRows) -> Integers:
        """int64[F * prefixes of a family]: the last row of every prefix; -1 where there is none.

        Rows of other prefixes, and further rows of a prefix, are differences.
        """
        prefix = self._numbers_of(rows.names)
        if rows.prefix is not None:
            prefix = prefix[rows.prefix]
        of_fabric = np.flatnonzero(prefix >= 0)
        row_of_prefix = np.full(self.prefix_count * self.families, -1, np.int64)
        row_of_prefix[prefix[of_fabric]] = of_fabric
        for row in np.flatnonzero(prefix < 0)[:EXAMPLES].tolist():
            self._add_row_difference(rows, row, rows.name(row), "no prefix of the fabric")
        if np.count_nonzero(row_of_prefix >= 0) < len(of_fabric):
            for row in np.setdiff1d(of_fabric, row_of_prefix)[:EXAMPLES].tolist():
                self._add_row_difference(rows, row, f"{rows.name(row)} again", "one row")
        return row_of_prefix

    def _add_row_difference(self, rows: EmittedRows, row: int, says: str, tables: str) -> None:
        """Add a difference at the line of a row."""
        self.forwarding_differences.add(rows.file, int(rows.lines[row]), says, tables)

    def _numbers_of(self, names: Sequence[str]) -> Integers:
        """int64[n]: the numbers of prefixes, -1 for prefixes that the fabric does not have."""
        return self._numbers_of_prefixes.get(names, lambda: self._find_prefixes(names))

    def _find_prefixes(self, names: Sequence[str]) -> Integers:
        """int64[n]: the numbers of prefixes, see `_numbers_of`."""
        numbers = list(map(self.prefix_numbers.get, names))
        if None in numbers:  # a prefix that is written in another way, or another prefix
            numbers = list(map(self.prefix_number, names))
        return np.array(numbers, np.int64)

    def _chains_of(self, table: Lookup) -> Integers:
        """int64[E + 1]: the number of the chain of every entry of a table.

        The last one is DROPPING_CHAIN: that of entry -1, which is none.
        """
        numbers = self._numbers_of_chains.get(
            table.chains,
            lambda: np.array([self.chains.number(chain) for chain in table.chains], np.int64),
        )
        return np.append(numbers[table.number], DROPPING_CHAIN)

    def _compare_transit(self, groups: Sequence[_IngressGroup]) -> None:
        """Compare packets in transit; every fabric port is in one of the groups."""
        if not groups:
            return
        chains_of_groups = [self._chains_of_group(group) for group in groups]
        most_tables = max(chains.shape[2] for chains in chains_of_groups)
        # The combinations of ingress port and destination class of all groups, n in all, as rows
        # of three arrays: the numbers of their chains, their ingress ports and egress classes.
        chains_of_combinations = np.concatenate(
            [
                _padded(chains.reshape(-1, chains.shape[2]), most_tables)
                for chains in chains_of_groups
            ]
        )
        in_port = np.concatenate([np.repeat(group.ports, len(group.egress)) for group in groups])
        egress = np.concatenate([np.tile(group.egress, len(group.ports)) for group in groups])
        wrong = self._wrong_transit(chains_of_combinations, egress, in_port)

        ends_of_groups = np.cumsum([len(group.ports) * len(group.egress) for group in groups])
        wrong_of_groups = np.split(wrong, ends_of_groups[:-1])
        for group, chains, is_wrong in zip(groups, chains_of_groups, wrong_of_groups, strict=True):
            self._judge(group, chains, is_wrong.reshape(chains.shape[:2]), of_host=False)

    def _chains_of_group(self, group: _IngressGroup) -> Integers:
        """int64[ports, K, T]: the chain of each destination class in each table of each port."""
        return np.stack([self._chains_of_classes(group, tables) for tables in group.tables])

    def _judge(
        self, group: _IngressGroup, chains: Integers, wrong: NDArray[np.bool_], *, of_host: bool
    ) -> None:
        """Note the destination classes that are wrong, and add differences for them.

        Args:
            group: the ingress ports.
            chains: of `_chains_of_group`.
            wrong: bool[ports, K], whether packets of a destination class from a port are wrong.
            of_host: whether hosts are at the ports.
        """
        is_wrong_class = np.logical_or.reduce(wrong)  # bool[K], by any ingress port
        self.is_correct &= ~is_wrong_class[group.destination_class]
        if is_wrong_class.any():
            self._add_differences(group, chains, wrong, of_host=of_host)

    def _wrong_transit(
        self, chain_numbers: Integers, egress: Integers, in_port: Integers
    ) -> NDArray[np.bool_]:
        """bool[n]: whether packets in transit differ from the tables.

        Chains whose port sets have one port each are compared as rows of ports. For example, the
        tables have a packet from port 4 try port 2, and then port 5. If the files state the chain
        2, 2, 5, its row in canonical form is 2, 5, 0: that is right. The row of the chain 5, 2 is
        another one: that is wrong. A chain such as {2, 3}, 5 has no row, and is compared singly.

        Args:
            chain_numbers: int64[n, T], their chains in the tables where they are looked up.
            egress: int64[n], their egress classes.
            in_port: int64[n], where they come in.
        """
        # int64[n, T * L]: the only port of each port set, through the chains of all tables in turn.
        only_ports = self.chains.only_ports()[chain_numbers].reshape(len(chain_numbers), -1)
        expected_ports = _canonical_ports(self.expected.transit(egress, in_port), in_port)
        wrong = _differ(_canonical_ports(only_ports, in_port), expected_ports)
        for row in np.flatnonzero((only_ports == NOT_ONE_PORT).any(axis=1)).tolist():
            one_by_one = tuple(((port, 1),) for port in expected_ports[row].tolist() if port)
            wrong[row] = self._stated_chain(chain_numbers[row], int(in_port[row])) != one_by_one
        # With ECMP at every hop, most packets in transit are shared as those from hosts are. Port
        # sets with several ports are in no row, so these chains are compared singly as well.
        for row in np.flatnonzero(self.expected.is_shared(egress, in_port)).tolist():
            shared = canonical(self.expected.from_hosts(int(egress[row])), FROM_HOST)
            wrong[row] = self._stated_chain(chain_numbers[row], int(in_port[row])) != shared
        return wrong & ~self.expected.cannot_occur(egress, in_port)

    def _stated_chain(self, chain_numbers: Integers, in_port: int) -> Chain:
        """The chain of packets from a port by the files, in canonical form.

        Args:
            chain_numbers: int64[T], their chains in the tables where they are looked up.
            in_port: where they come in.
        """
        return self.chains.in_turn(chain_numbers.tolist(), in_port)

    def _compare_from_hosts(self, group: _IngressGroup) -> None:
        """Compare packets from hosts."""
        expected = [
            canonical(self.expected.from_hosts(egress), FROM_HOST) if egress >= 0 else ()
            for egress in group.egress.tolist()
        ]
        chains = self._chains_of_group(group)
        wrong = np.zeros(chains.shape[:2], np.bool_)
        # By the chains of a port, as most ports of hosts have the same ones: bool[K].
        compared: dict[bytes, NDArray[np.bool_]] = {}
        for index, chains_of_port in enumerate(chains):
            key = chains_of_port.tobytes()
            if key not in compared:
                stated = [
                    self.chains.in_turn(of_class, FROM_HOST) for of_class in chains_of_port.tolist()
                ]
                self._store_shares(group.egress.tolist(), stated)
                compared[key] = np.array(
                    [chain != right for chain, right in zip(stated, expected, strict=True)]
                )
            wrong[index] = compared[key]
        self._judge(group, chains, wrong, of_host=True)

    def _store_shares(self, egress_classes: Sequence[int], chains: Sequence[Chain]) -> None:
        """Store the shares of packets from hosts that are not those of the tables."""
        for egress, chain in zip(egress_classes, chains, strict=True):
            if egress >= 0 and chain and chain[0] != self._table_shares(egress):
                self._shares[egress] = chain[0]

    def _table_shares(self, egress: int) -> PortSet:
        """The ports of a class and their weights, as `canonical` writes them."""
        classes = self.build.tables.classes
        minimal = int(classes.port[self.vertex, egress])
        ports = [minimal, *classes.alternate[self.vertex, egress].tolist()]
        weights = classes.weight[self.vertex, egress].tolist()
        weight_of = FULL_ABILITY.weight_of_port(ports, weights)
        if self.build.forwarding.marks:
            # Packets that leave by an alternate are marked.
            weight_of = {
                port if port == minimal else marked(port): weight
                for port, weight in weight_of.items()
            }
        chain = canonical((tuple(weight_of.items()),), FROM_HOST)
        return chain[0] if chain else ()

    def _chains_of_classes(self, group: _IngressGroup, tables: Sequence[Lookup]) -> Integers:
        """int64[K, T]: the number of the chain of each destination class in each table.

        Args:
            group: the ingress ports, with the entries of destination classes.
            tables: those of one of the ports.
        """
        if not tables:
            return np.zeros((len(group.egress), 1), np.int64)
        return np.stack(
            [
                self._chains_of(table)[entry_of_class]
                for table, entry_of_class in zip(tables, group.entries, strict=True)
            ],
            axis=1,
        )

    def _add_differences(
        self, group: _IngressGroup, chains: Integers, wrong: NDArray[np.bool_], *, of_host: bool
    ) -> None:
        """Add a difference for each destination class that is wrong, by its first ingress port.

        Args:
            group: the ingress ports.
            chains: of `_chains_of_group`.
            wrong: bool[ports, K], whether packets of a destination class from a port are wrong.
            of_host: whether hosts are at the ports.
        """
        correct_entries = set(group.entries[0, ~wrong.any(axis=0)].tolist())
        for destination_class in np.flatnonzero(wrong.any(axis=0)).tolist():
            index = int(wrong[:, destination_class].argmax())
            port, egress = group.ports[index], int(group.egress[destination_class])
            in_port = FROM_HOST if of_host else port
            stated = self._stated_chain(chains[index, destination_class], in_port)
            expected = self._expected_chain(egress, port, of_host=of_host) if egress >= 0 else ()
            destination = int(group.first_of_class[destination_class])
            file, line = self._file_and_line(group, index, destination_class, correct_entries)
            ingress = f"from {'host port' if of_host else 'port'} {self.names[port - 1]}"
            leaves = chain_words(stated, self.names)
            says = f"packets for {self._block(destination)} {ingress} leave {leaves}"
            tables = chain_words(expected, self.names)
            self.forwarding_differences.add(
                file, line, says, tables, int(group.count_of_class[destination_class])
            )

    def _expected_chain(self, egress: int, port: int, *, of_host: bool) -> Chain:
        """The chain by which a class forwards packets from a port, by the tables."""
        if of_host:
            return canonical(self.expected.from_hosts(egress), FROM_HOST)
        return canonical(self.expected.transit_chain(egress, port), port)

    def _file_and_line(
        self,
        group: _IngressGroup,
        index: int,
        destination_class: int,
        correct_entries: set[int],
    ) -> tuple[str, int]:
        """The file and the line of a difference.

        They are those of the chain, unless the entry is right for other destination classes: then
        the row is wrong, which leads to this entry.

        Args:
            group: the ingress ports.
            index: the index of the port in the group.
            destination_class: the destination class.
            correct_entries: entries that are right for other destination classes, so that the row
                has to be wrong.
        """
        tables = group.tables[index]
        if not tables:
            return self.folder, 0
        entries = group.entries[:, destination_class].tolist()
        rows = group.rows[:, group.first_of_class[destination_class]].tolist()
        for table, entry, row in zip(tables, entries, rows, strict=True):
            if entry < 0:
                continue
            if table.places and entry not in correct_entries:
                return table.places[int(table.number[entry])]
            return table.rows.file, int(table.rows.lines[row])
        return tables[0].rows.file, 0

    def _block(self, destination: int) -> str:
        """The prefix of a destination, by its number among those of all families."""
        family, vertex = divmod(destination, self.build.tables.switches)
        addressing = self.build.addressing
        return str(addressing.network6(vertex) if family else addressing.network(vertex))


def _canonical_ports(ports: Integers, in_port: Integers) -> Integers:
    """Chains whose port sets have one port, in canonical form; see `canonical`.

    For example, the ports 2, 2, 4, 7 of packets from port 4 become 2, 4, 0, 0: no port is tried
    twice, and port 4 is up, so nothing behind it is tried.

    Returns:
        int64[n, L], the ports that are tried, and zeros behind them.

    Args:
        ports: int64[n, L], the ports of the port sets in order.
        in_port: int64[n], where packets come in.
    """
    is_tried, port = ports > 0, unmarked_numbers(ports)
    # Nothing is tried after a port set that drops, nor after the ingress port, which is up.
    is_tried &= ~np.logical_or.accumulate(ports == DROPPED, axis=1)
    is_ingress = (port == in_port[:, None]) & is_tried
    is_tried[:, 1:] &= ~np.logical_or.accumulate(is_ingress, axis=1)[:, :-1]
    for later in range(1, ports.shape[1]):
        is_tried[:, later] &= (port[:, :later] != port[:, later, None]).all(axis=1)
    tried = np.where(is_tried, ports, 0)
    return np.take_along_axis(tried, np.argsort(~is_tried, axis=1, kind="stable"), axis=1)


def _differ(rows: Integers, others: Integers) -> NDArray[np.bool_]:
    """bool[n]: which of n rows differ from others, whatever zeros stand behind them."""
    width = max(rows.shape[1], others.shape[1])
    differ: NDArray[np.bool_] = (_padded(rows, width) != _padded(others, width)).any(axis=1)
    return differ


def _padded(rows: Integers, width: int) -> Integers:
    """Rows with zeros behind them, up to a width."""
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) if rows.shape[1] < width else rows
