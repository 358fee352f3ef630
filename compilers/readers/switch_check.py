"""One switch: what its files say, against its tables.

What a switch does with a packet depends on where it came in, where it goes, and which ports of the
switch are up; on nothing else. In canonical form a chain *is* that function of the ports that are
up: two that differ do different things under some failure. So where the chains are equal for every
ingress and every destination, the text does under every failure, of one link or of many, what the
tables do, and what `verify --failures` finds by walking the tables is so for the text.

Chains in transit are compared as rows of arrays, all ingress ports and kinds of destination at
once: two destinations are of a kind if their class and their entries in the text are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import (
    MARKED,
    Chain,
    EmittedDifference,
    EmittedSwitch,
    Interface,
    Lookup,
    NextHop,
    OwnAddress,
    Port,
    Stage,
    bare,
    canonical,
    covering,
    prefix_text,
    with_mark,
)
from compilers.readers.emitted_report import EXAMPLES, DifferenceList
from compilers.readers.expected_facts import FACTS, Value
from compilers.readers.expected_forwarding import (
    ALL,
    Ability,
    ExpectedSwitch,
    by_destination,
    expected_claims,
)
from compilers.tables.build import Build

Integers = NDArray[np.int64]
ANY_OTHER = -1
"""In the place of the port where a packet comes in: one of which no class knows."""
DROPPED, SHARED = -1, -2
"""In the place of a port: the packet is dropped; a stage of several ports, or of an unknown one."""


@dataclass(frozen=True, slots=True)
class CheckedSwitch:
    """What is known of a switch once its files were read; small, it comes from another process.

    elsewhere: how many packets go elsewhere, each kind at a place of the text, where a protocol of
    all switches leads them; else these are among the differences. right: of how many destinations
    with hosts all packets go as by the tables, in each family; None: files could not be read.
    shares: by class, the ports that share packets from hosts, with weights, of classes where these
    are not those of the tables.
    """

    vertex: int
    differences: int
    examples: tuple[EmittedDifference, ...]
    elsewhere: DifferenceList = field(default_factory=DifferenceList)
    right: int | None = None
    next_hops: tuple[NextHop, ...] = ()
    addresses: tuple[OwnAddress, ...] = ()
    accepted: int = 0
    shares: Mapping[int, Stage] = field(default_factory=dict)


class _Alike(NamedTuple):
    """Ingress ports whose packets are looked up in tables with the same rows.

    entries: int64[T, K], the entry of each kind of destination in each table, -1: none. egress:
    int64[K], its class. kind: int64[F * S], of each destination. first, times: int64[K], a
    destination of each kind, and how many there are. rows: int64[T, F * S], for each destination.
    """

    ports: list[int]
    tables: list[tuple[Lookup, ...]]
    entries: Integers
    egress: Integers
    kind: Integers
    first: Integers
    times: Integers
    rows: Integers


class SwitchCheck:
    """The comparison of one switch.

    Args:
        build: ports named as the system names them.
        vertex: of the switch.
        emitted: what its files say.
        numbers: the number of every prefix of the fabric, those of IPv6 behind those of IPv4; texts
            that mean the same are added.
        folder: where its files are.
        accept: see `DifferenceList`.
        able: what the switch can do of the tables.
    """

    def __init__(
        self,
        build: Build,
        vertex: int,
        emitted: EmittedSwitch,
        numbers: dict[str, int],
        folder: str,
        accept: tuple[str, ...] = (),
        able: Ability = ALL,
    ) -> None:
        self.build, self.vertex, self.emitted = build, vertex, emitted
        self.numbers, self.folder = numbers, folder
        self.families = 1 + (build.addressing.ipv6 is not None)
        self.blocks = len(build.addressing.ipv4_prefixes()[0])
        self.expected = ExpectedSwitch.of(build, vertex, able)
        self.found = DifferenceList(accept)
        w = build.wiring
        self.names = w.port_names[int(w.node_type[vertex])]
        self.port: dict[Port, int] = {name: n for n, name in enumerate(self.names, 1)}
        self.port |= {with_mark(name): n + MARKED for n, name in enumerate(self.names, 1)}
        self.fabric = sorted(port for port, _, _ in w.ends(vertex))
        self.hosts = [port for port in w.host_port[vertex].tolist() if port]
        self.chains: list[Chain] = [()]
        self._numbers: dict[Chain, int] = {(): 0}
        self._entry_chains: dict[int, Integers] = {}
        self._rows: dict[int, Integers] = {}
        self._prefixes: dict[int, Integers] = {}
        self._shares: dict[int, Stage] = {}

    def result(self) -> CheckedSwitch:
        """Compare everything."""
        right = self._forwarding()
        elsewhere = DifferenceList()
        if self.emitted.converged:
            elsewhere, self.found = self.found, DifferenceList(self.found.accept)
        for file, line, text in self.emitted.unread:
            self.found.statement(file, line, text)
        self._discards()
        self._unmet_classes()
        self._claims()
        for file, line, text in self.emitted.wrong:
            self.found.add(file, line, text)
        for file, line, what in self.emitted.unused:
            self.found.add(file, line, f"{what}, to which nothing leads")
        unique = dict.fromkeys(self.emitted.next_hops)
        examples = tuple(self.found.examples)
        addresses = tuple(self.emitted.addresses)
        return CheckedSwitch(
            self.vertex,
            self.found.count,
            examples,
            elsewhere,
            right,
            tuple(unique),
            addresses,
            self.found.accepted,
            self._shares,
        )

    def _unmet_classes(self) -> None:
        """Compare what classes do with packets that never come, where the files number classes.

        No route leads to some classes of a switch. At a switch without hosts no packet comes from
        hosts, and some classes try all fabric ports, so that none comes by another. Their rows and
        groups are emitted all the same.
        """
        numbered, entering = self.emitted.numbered, self.emitted.entering
        if numbered is None:
            return
        classes = np.flatnonzero(self.build.tables.classes.port[self.vertex] > 0)
        routed = set(self.emitted.anywhere[0].rows.entries.tolist())
        for number in sorted(set(numbered) - set(classes.tolist())):
            if numbered[number] not in routed:
                place = self._class_place(numbered[number], ANY_OTHER)
                self.found.add(*place, f"class {number}, to which no route leads", "none such")
        unmet = set(np.setdiff1d(classes, self.expected.egress).tolist())
        for number in classes.tolist():
            entry, ports = numbered.get(number), self.fabric if number in unmet else []
            if self._class_in_transit(number, entry, [*ports, ANY_OTHER]):
                continue
            wanted = canonical(self.expected.from_hosts(number), 0)
            if entering is not None:
                self._class_differs(number, "hosts", 0, entering.get(number), wanted)
            for port in self.hosts[:1] if number in unmet else ():
                self._class_differs(number, "hosts", port, entry, wanted, of_host=True)

    def _class_in_transit(self, number: int, entry: int | None, ports: Sequence[int]) -> bool:
        """Whether a class does something else with packets in transit; the first port is told."""
        in_port = np.array(ports, np.int64)
        egress = np.full(len(ports), number)
        shares, unmet = self.expected.shares(egress, in_port), self.expected.unmet(egress, in_port)
        tries = self.expected.transit(egress, in_port).tolist()
        for at in np.flatnonzero(~unmet).tolist():
            port = ports[at]
            should: Chain = tuple(((to, 1),) for to in tries[at] if to)
            should = self.expected.from_hosts(number) if shares[at] else should
            whence = "any other port" if port == ANY_OTHER else f"port {self.names[port - 1]}"
            if self._class_differs(number, whence, port, entry, canonical(should, port)):
                return True
        return False

    def _class_differs(
        self,
        number: int,
        whence: str,
        port: int,
        entry: int | None,
        should: Chain,
        *,
        of_host: bool = False,
    ) -> bool:
        """Whether a class does something else with packets from a port, which is told."""
        table = self.emitted.by_ingress.get(port, self.emitted.anywhere)[0]
        chain = () if entry is None else table.chains[int(table.number[entry])]
        text = self._chain([self._number(chain)], 0 if of_host else port)
        if differs := text != should:
            place = (self.folder, 0) if entry is None else self._class_place(entry, port)
            says = f"packets of class {number} from {whence} leave {self._words(text)}"
            self.found.add(*place, says, self._words(should))
        return differs

    def _class_place(self, entry: int, port: int) -> tuple[str, int]:
        """The file and the line of what an entry does with packets from a port."""
        table = self.emitted.by_ingress.get(port, self.emitted.anywhere)[0]
        return table.places[int(table.number[entry])]

    def _claims(self) -> None:
        claims = [(c, tuple(self._known(part) for part in c.value)) for c in self.emitted.claims]
        kinds = {*self.emitted.claimed, *(claim.kind for claim, _ in claims)}
        wanted = {kind: expected_claims(self.build, self.vertex, kind) for kind in kinds}
        missing = {kind: set(wanted[kind]) for kind in kinds}
        for claim, value in claims:
            missing[claim.kind].discard(value)
        place: dict[str | int, tuple[str, int]] = {}
        seen: set[tuple[str, Value]] = set()
        for claim, value in claims:
            kind, tables = claim.kind, "none such"
            if claim.kind in ("port", "hosts"):
                place[value[-1]] = claim.file, claim.line
            if value in wanted[kind] and (kind, value) not in seen:
                seen.add((kind, value))
                continue
            if value in wanted[kind]:
                tables = "once"
            elif instead := [v for v in missing[kind] if v[:-1] == value[:-1]] * (kind in FACTS):
                missing[kind].discard(instead[0])
                tables = _said(kind, self._named(instead[0]))
            self._differ(kind, claim.file, claim.line, _said(kind, claim.value), tables)
        for kind in sorted(self.emitted.claimed):
            for value in sorted(missing[kind], key=str):
                where = place.get(value[0], (self.folder, 0))
                self._differ(kind, *where, "nothing of it", _said(kind, self._named(value)))

    def _differ(self, kind: str, file: str, line: int, says: str, tables: str) -> None:
        differ = self.found.statement if kind in FACTS else self.found.add
        differ(file, line, says, tables)

    def _named(self, value: Value) -> Value:
        """A fact with the name of the port that it begins with."""
        port, *more = value
        return (self.names[port - 1], *more) if isinstance(port, int) and more else value

    def _known(self, part: str | int) -> str | int:
        return self.port.get(str(part), -1) if isinstance(part, Interface) else part

    def _discards(self) -> None:
        """Discarded prefixes are no part of any that is forwarded."""
        for prefix, file, line in self.emitted.discards:
            if not (shorter := covering(prefix)):
                self.found.add(file, line, f"{prefix} is discarded", "a prefix")
            elif any(self.number_of(each) >= 0 for each in shorter):
                self.found.add(file, line, f"{prefix} is discarded", "it is forwarded")

    def number_of(self, prefix: str) -> int:
        """The number of a prefix, -1 where the fabric has none such."""
        number = self.numbers.get(prefix)
        if number is None:
            number = self.numbers[prefix] = self.numbers.get(prefix_text(prefix), -1)
        return number

    def _forwarding(self) -> int:
        """Compare what every ingress port does with every destination; how many are all right."""
        build = self.build
        self.right = np.ones(self.families * build.tables.switches, np.bool_)
        self._transit(list(self._alike(self.fabric)))
        for group in self._alike(self.hosts):
            self._from_hosts(group)
        ends = build.topology.endpoints & (build.wiring.host_port > 0).any(axis=1)
        right = self.right.reshape(self.families, -1).all(axis=0) & ends
        right[self.vertex] = False
        return int(np.count_nonzero(right))

    def _alike(self, ports: Sequence[int]) -> Iterator[_Alike]:
        groups: dict[tuple[int, ...], list[tuple[int, tuple[Lookup, ...]]]] = {}
        for port in ports:
            by = self.emitted.by_ingress
            tables = by.get(port) or by.get(self.names[port - 1]) or self.emitted.anywhere
            key = tuple(id(table.rows) for table in tables)
            groups.setdefault(key, []).append((port, tables))
        egress = np.tile(self.expected.egress, self.families)
        for group in groups.values():
            tables = group[0][1]
            rows = np.array([self._by_destination(t) for t in tables], np.int64)
            rows = rows.reshape(len(tables), len(egress))
            entries = np.stack(
                [np.append(t.rows.entries, -1)[r] for t, r in zip(tables, rows, strict=True)]
                or [np.full_like(egress, -1)]
            )
            code = egress + 1
            for entry in entries:
                code = code * (int(entry.max(initial=0)) + 2) + entry + 1
            _, first, kind, times = np.unique(
                code, return_index=True, return_inverse=True, return_counts=True
            )
            yield _Alike(
                [port for port, _ in group],
                [each for _, each in group],
                entries[:, first],
                egress[first],
                kind,
                first,
                times,
                rows,
            )

    def _by_destination(self, table: Lookup) -> Integers:
        """int64[F * S]: the row of the table for every destination, -1 where it has none."""
        rows = table.rows
        if id(rows) not in self._rows:
            self._rows[id(rows)] = self._destinations(table)
        return self._rows[id(rows)]

    def _destinations(self, table: Lookup) -> Integers:
        rows, routes = table.rows, self.build.tables.routes
        if id(rows.names) not in self._prefixes:
            known = list(map(self.numbers.get, rows.names))
            if None in known:
                known = list(map(self.number_of, rows.names))
            numbers = np.array(known, np.int64)
            self._prefixes[id(rows.names)] = numbers
        found = self._prefixes[id(rows.names)]
        found = found if rows.prefix is None else found[rows.prefix]
        place = np.full(self.blocks * self.families, -1, np.int64)
        fitting = np.flatnonzero(found >= 0)
        place[found[fitting]] = fitting
        for row in np.flatnonzero(found < 0)[:EXAMPLES].tolist():
            line = int(rows.lines[row])
            self.found.add(rows.file, line, rows.name(row), "no prefix of the fabric")
        if np.count_nonzero(place >= 0) < len(fitting):
            for row in np.setdiff1d(fitting, place)[:EXAMPLES].tolist():
                self.found.add(
                    rows.file, int(rows.lines[row]), f"{rows.name(row)} again", "one row"
                )
        of_family = place.reshape(self.families, self.blocks)
        by_family = np.stack([by_destination(own, routes.aggregate) for own in of_family])
        # Its own prefix is connected; a row for it, not for its aggregate, would be one too many.
        by_family[:, self.vertex] = of_family[:, self.vertex]
        return by_family.ravel()

    def _chains_of(self, table: Lookup) -> Integers:
        """The number of the chain of every entry of a table, and of no entry behind them."""
        key = id(table.chains)
        if key not in self._entry_chains:
            found = [self._number(chain) for chain in table.chains]
            self._entry_chains[key] = np.array(found, np.int64)
        return np.append(self._entry_chains[key][table.number], 0)

    def _port_number(self, port: Port) -> Port:
        """The number of a port; a text where the switch has none of that name or number."""
        known = self.port.get(port, port)
        there = isinstance(known, str) or 0 < int(bare(known)) <= len(self.names)
        return known if there else f"port {bare(known)}"

    def _number(self, chain: Chain) -> int:
        """Equal chains have one number."""
        by_number = tuple(
            tuple((self._port_number(port), weight) for port, weight in stage) for stage in chain
        )
        number = self._numbers.setdefault(by_number, len(self.chains))
        if number == len(self.chains):
            self.chains.append(by_number)
        return number

    def _transit(self, groups: Sequence[_Alike]) -> None:
        """Compare packets in transit; every fabric port is in one of the groups."""
        chosen = [
            np.stack([self._of_group(group, tables) for tables in group.tables]) for group in groups
        ]
        most = max((ids.shape[2] for ids in chosen), default=1)
        flat = [_padded(ids.reshape(-1, ids.shape[2]), most) for ids in chosen]
        number = np.concatenate(flat) if flat else np.zeros((0, most), np.int64)
        came = [np.repeat(g.ports, len(g.egress)) for g in groups]
        in_port = np.concatenate(came).astype(np.int64) if came else np.zeros(0, np.int64)
        egress = np.concatenate(
            [np.tile(g.egress, len(g.ports)) for g in groups] or [np.zeros(0, np.int64)]
        )
        text = self._ports()[number].reshape(len(number), -1)
        odd = np.flatnonzero((text == SHARED).any(axis=1))
        text = _in_order(text, in_port)
        should = _in_order(self.expected.transit(egress, in_port), in_port)
        width = max(text.shape[1], should.shape[1])
        wrong = (_padded(text, width) != _padded(should, width)).any(axis=1)
        for at in odd.tolist():
            chain = self._chain(number[at].tolist(), int(in_port[at]))
            wrong[at] = chain != tuple(((port, 1),) for port in should[at].tolist() if port)
        for at in np.flatnonzero(self.expected.shares(egress, in_port)).tolist():
            chain = self._chain(number[at].tolist(), int(in_port[at]))
            wrong[at] = chain != canonical(self.expected.from_hosts(int(egress[at])), 0)
        wrong &= ~self.expected.unmet(egress, in_port)
        begin = 0
        for group, ids in zip(groups, chosen, strict=True):
            shape = ids.shape[:2]
            part = slice(begin, begin := begin + shape[0] * shape[1])
            self.right &= ~np.logical_or.reduce(wrong[part].reshape(shape))[group.kind]
            if wrong[part].any():
                self._tell(group, ids, wrong[part].reshape(shape), of_host=False)

    def _from_hosts(self, group: _Alike) -> None:
        """Compare packets from hosts."""
        wanted = [
            canonical(self.expected.from_hosts(egress), 0) if egress >= 0 else ()
            for egress in group.egress.tolist()
        ]
        ids = np.stack([self._of_group(group, tables) for tables in group.tables])
        wrong = np.zeros(ids.shape[:2], np.bool_)
        done: dict[bytes, NDArray[np.bool_]] = {}
        for at, numbers in enumerate(ids):
            key = numbers.tobytes()
            if key not in done:
                text = [self._chain(each, 0) for each in numbers.tolist()]
                self._keep_shares(group.egress.tolist(), text)
                done[key] = np.array([a != b for a, b in zip(text, wanted, strict=True)])
            wrong[at] = done[key]
        self.right &= ~np.logical_or.reduce(wrong)[group.kind]
        if wrong.any():
            self._tell(group, ids, wrong, of_host=True)

    def _keep_shares(self, egress: Sequence[int], text: Sequence[Chain]) -> None:
        """Keep the shares of packets from hosts that are not those of the tables."""
        for number, chain in zip(egress, text, strict=True):
            if number >= 0 and chain and chain[0] != self._table_shares(number):
                self._shares[number] = chain[0]

    def _table_shares(self, egress: int) -> Stage:
        """The ports of a class and their weights, as `canonical` writes them."""
        c = self.build.tables.classes
        ports = [int(c.port[self.vertex, egress]), *c.alternate[self.vertex, egress].tolist()]
        weighted = ALL.shared(ports, c.weight[self.vertex, egress].tolist())
        if self.build.forwarding.marks:
            weighted = {p if p == ports[0] else p + MARKED: w for p, w in weighted.items()}
        shared = canonical((tuple(weighted.items()),), 0)
        return shared[0] if shared else ()

    def _of_group(self, group: _Alike, tables: Sequence[Lookup]) -> Integers:
        """int64[K, T]: the number of the chain of each kind of destination in each table."""
        numbers = [self._chains_of(t)[e] for t, e in zip(tables, group.entries, strict=False)]
        return np.stack(numbers or [np.zeros_like(group.egress)], axis=1)

    def _ports(self) -> Integers:
        """int64[chains, L]: the ports of every chain in order; see DROPPED and SHARED."""
        rows = [[_only_port(stage) for stage in chain] for chain in self.chains]
        ports = np.zeros((len(rows), max(map(len, rows))), np.int64)
        for row, found in enumerate(rows):
            ports[row, : len(found)] = found
        return ports

    def _chain(self, numbers: Iterable[int], in_port: int) -> Chain:
        """What is tried in tables one after the other, in canonical form."""
        return canonical(tuple(stage for n in numbers for stage in self.chains[n]), in_port)

    def _tell(
        self, group: _Alike, ids: Integers, wrong: NDArray[np.bool_], *, of_host: bool
    ) -> None:
        """Tell each kind of destination that something is wrong about, by the first ingress port.

        Where the same entry is right for no other kind, the place is that of the entry.
        """
        good = set(group.entries[0, ~wrong.any(axis=0)].tolist())
        for kind in np.flatnonzero(wrong.any(axis=0)).tolist():
            at = int(wrong[:, kind].argmax())
            port, egress = group.ports[at], int(group.egress[kind])
            came = 0 if of_host else port
            text = self._chain(ids[at, kind].tolist(), came)
            should: Chain = ()
            if egress >= 0:
                one = np.array([egress]), np.array([port])
                ports = self.expected.transit(*one)[0].tolist()
                should = tuple(((p, 1),) for p in ports if p)
                shared = of_host or self.expected.shares(*one)[0]
                should = canonical(self.expected.from_hosts(egress) if shared else should, came)
            destination = int(group.first[kind])
            file, line = self._place(group, at, kind, destination, good)
            whence = f"from {'host port' if of_host else 'port'} {self.names[port - 1]}"
            says = f"packets for {self._block(destination)} {whence} leave {self._words(text)}"
            self.found.add(file, line, says, self._words(should), int(group.times[kind]))

    def _place(
        self, group: _Alike, at: int, kind: int, destination: int, good: set[int]
    ) -> tuple[str, int]:
        tables = group.tables[at]
        for table, entry, row in zip(
            tables, group.entries[:, kind].tolist(), group.rows[:, destination], strict=False
        ):
            if entry >= 0 and table.places and entry not in good:
                file, line = table.places[int(table.number[entry])]
                return file, line
            if entry >= 0:
                return table.rows.file, int(table.rows.lines[row])
        return (tables[0].rows.file if tables else self.folder), 0

    def _block(self, destination: int) -> str:
        six, vertex = divmod(destination, self.build.tables.switches)
        a = self.build.addressing
        return str(a.network6(vertex) if six else a.network(vertex))

    def _words(self, chain: Chain) -> str:
        return ", else ".join(_stage(stage, self.names) for stage in chain) or "by no port"


def _only_port(stage: Sequence[tuple[Port, int]]) -> int:
    if not stage:
        return DROPPED
    port = stage[0][0]
    return port if len(stage) == 1 and isinstance(port, int) and port > 0 else SHARED


def _in_order(ports: Integers, in_port: Integers) -> Integers:
    """int64[n, L]: what chains of one port a stage come to; see `canonical`."""
    keep, port = ports > 0, ports % MARKED
    keep &= ~np.logical_or.accumulate(ports == DROPPED, axis=1)
    hit = (port == in_port[:, None]) & keep
    keep[:, 1:] &= ~np.logical_or.accumulate(hit, axis=1)[:, :-1]
    for later in range(1, ports.shape[1]):
        keep[:, later] &= (port[:, :later] != port[:, later, None]).all(axis=1)
    kept = np.where(keep, ports, 0)
    return np.take_along_axis(kept, np.argsort(~keep, axis=1, kind="stable"), axis=1)


def _padded(rows: Integers, width: int) -> Integers:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) if rows.shape[1] < width else rows


def _stage(stage: Sequence[tuple[Port, int]], names: Sequence[str]) -> str:
    words = [
        _port_words(port, names) + (f" by {weight}" if len(stage) > 1 else "")
        for port, weight in stage
    ]
    return f"by {' and '.join(words)}" if len(stage) == 1 else f"shared by {', '.join(words)}"


def _port_words(port: Port, names: Sequence[str]) -> str:
    if isinstance(port, int) and port > MARKED:
        return f"{_port_words(port - MARKED, names)} with a mark"
    if isinstance(port, int) and 0 < port <= len(names):
        return names[port - 1]
    return f"{port or 'no port'}"


def _said(kind: str, value: Iterable[str | int]) -> str:
    return f"{kind} {' '.join(map(str, value))}"
