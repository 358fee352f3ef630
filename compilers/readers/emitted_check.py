"""The check of what was emitted: the text of every switch against the tables, and every pair.

For every switch, every way in (each host, each port) and every destination the text has to try the
same ports in the same order, by the same weights. So it does under every failure what the tables
do, whatever fails: repair in a switch depends on nothing else. What the tables do then is proved by
`verify --failures`. Then every pair is followed through the text's own rows, over every way that
its packets may take, to where the text delivers it.

Own prefixes and aggregates are numbered as in `Routes`, those of IPv6 behind those of IPv4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import (
    Chain,
    EmittedDifference,
    EmittedSwitch,
    Interface,
    Lookup,
    NextHop,
    OwnAddress,
    Port,
    canonical,
    network_text,
)
from compilers.readers.emitted_pairs import FirstWays, SwitchWays, delivered_pairs
from compilers.readers.emitted_report import EmittedReport
from compilers.readers.expected_forwarding import ExpectedSwitch, by_destination, expected_claims
from compilers.tables.build import Build

EXAMPLES = 10
"""Differences of which place and text are told; all are counted."""
Reader = Callable[[Path], EmittedSwitch]
"""Reads the folder of a switch.

It raises OSError where a file is not there, and ValueError(file, line, text) where a line makes no
sense at all.
"""


@dataclass(frozen=True, slots=True)
class CheckedSwitch:
    """What is known of a switch once its files were read; small, it comes from another process.

    ways: where its packets go first, by family; none where the files could not be read.
    """

    vertex: int
    differences: int
    examples: tuple[EmittedDifference, ...]
    ways: tuple[SwitchWays, ...] = ()
    next_hops: tuple[NextHop, ...] = ()
    addresses: tuple[OwnAddress, ...] = ()


class EmittedCheck:
    """The check of one plane's files.

    Args:
        build: ports named as the system names them.
        folder: that of all switches.
        reader: of the target.
    """

    def __init__(self, build: Build, folder: Path, reader: Reader) -> None:
        self.build, self.folder, self.reader = build, folder, reader
        a = build.addressing
        self.blocks = len(a.ipv4_prefixes()[0])
        texts = [str(a.network(p)) for p in range(self.blocks)]
        if a.ipv6:
            texts += [str(a.network6(p)) for p in range(self.blocks)]
        self.numbers = {text: number for number, text in enumerate(texts)}
        self.families = 1 + (a.ipv6 is not None)

    def switch(self, vertex: int) -> CheckedSwitch:
        """Read the files of a switch and compare them with its tables."""
        folder = self.folder / self.build.wiring.names[vertex]
        try:
            emitted = self.reader(folder)
        except (OSError, ValueError) as error:
            return CheckedSwitch(vertex, 1, (_unreadable(folder, error),))
        return _SwitchCheck(self, vertex, emitted).result()

    def report(
        self, target: str, checked: Iterable[CheckedSwitch], whole: bool = True
    ) -> EmittedReport:
        """Put together what was found at every switch.

        Args:
            target: whose files they are.
            checked: the switches, in any order.
            whole: whether they are all switches, so that pairs can be followed.
        """
        by_vertex = {each.vertex: each for each in sorted(checked, key=lambda s: s.vertex)}
        count = sum(each.differences for each in by_vertex.values())
        examples = [example for each in by_vertex.values() for example in each.examples]
        for difference in (*(self._strangers() if whole else ()), *self._neighbours(by_vertex)):
            count += 1
            examples.append(difference)
        pairs = delivered = 0
        if whole:
            ways = {v: each.ways for v, each in by_vertex.items()}
            pairs, delivered = delivered_pairs(self.build, ways, self.families)
        return EmittedReport(
            target, len(by_vertex), pairs, delivered, count, tuple(examples[:EXAMPLES])
        )

    def port_number(self, vertex: int, port: Port) -> int:
        """The number of a port that a text names, -1 where the switch has none of that name."""
        w = self.build.wiring
        names = w.port_names[int(w.node_type[vertex])]
        if isinstance(port, int):
            return port if 0 < port <= len(names) else -1
        return names.index(port) + 1 if port in names else -1

    def _strangers(self) -> Iterator[EmittedDifference]:
        """Folders that look like those of switches and are of none."""
        w, there = self.build.wiring, self.build.topology.present.tolist()
        known = {name for name, is_there in zip(w.names, there, strict=True) if is_there}
        one = next((self.folder / n for n in w.names if (self.folder / n).is_dir()), None)
        files = {file.name for file in one.glob("*")} if one else set()
        for folder in sorted(self.folder.glob("*")):
            if folder.name not in known and any((folder / file).is_file() for file in files):
                yield EmittedDifference(
                    str(folder), 0, "files of a switch", "there is none of that name"
                )

    def _neighbours(self, checked: Mapping[int, CheckedSwitch]) -> Iterator[EmittedDifference]:
        """Next hops that are not the switch at the other end, by what that one's own files say."""
        w = self.build.wiring
        owned: dict[str, list[tuple[int, OwnAddress]]] = {}
        for vertex, each in checked.items():
            for own in each.addresses:
                owned.setdefault(own.address, []).append((vertex, own))
        for address, owners in owned.items():
            if len({vertex for vertex, _ in owners}) > 1:
                other = owners[-1][1]
                first = owners[0][1]
                where = f"{first.file}:{first.line}"
                says = f"address {address}, which stands in {where} too"
                yield EmittedDifference(other.file, other.line, says, "one switch has it")
        for vertex, each in checked.items():
            ends = {
                int(port): (int(far), int(far_port))
                for port, far, far_port in zip(
                    w.port[vertex], w.far[vertex], w.far_port[vertex], strict=True
                )
                if far >= 0
            }
            for hop in each.next_hops:
                far, far_port = ends.get(self.port_number(vertex, hop.port), (-1, 0))
                if far >= 0 and far not in checked:
                    continue
                there = [
                    own
                    for v, own in owned.get(hop.address, ())
                    if v == far
                    and (
                        not hop.address.startswith("fe80")
                        or self.port_number(far, own.port) == far_port
                    )
                ]
                if not there:
                    name = f"{w.names[far]} at the other end" if far >= 0 else "nobody there"
                    says = f"{hop.address} behind {hop.port}"
                    yield EmittedDifference(
                        hop.file, hop.line, says, f"{name}, without that address"
                    )


class _SwitchCheck:
    """The comparison of one switch."""

    def __init__(self, check: EmittedCheck, vertex: int, emitted: EmittedSwitch) -> None:
        self.check, self.vertex, self.emitted = check, vertex, emitted
        self.build = check.build
        self.expected = ExpectedSwitch.of(self.build, vertex)
        self.count = 0
        self.examples: list[EmittedDifference] = []
        w = self.build.wiring
        self.names = w.port_names[int(w.node_type[vertex])]
        self.number = {name: n for n, name in enumerate(self.names, 1)}
        columns = _columns(w.port[vertex], w.far[vertex])
        self.fabric = sorted(port for port, far in columns if far >= 0)
        self.hosts = [port for port in w.host_port[vertex].tolist() if port]
        self._chains: dict[Chain, Chain] = {}

    def result(self) -> CheckedSwitch:
        """Compare everything."""
        ways = self._forwarding()
        self._discards()
        self._claims()
        for file, line, text in self.emitted.unread:
            self.differ(file, line, f"{text!r}, which is not understood")
        for file, line, what in self.emitted.unused:
            self.differ(file, line, f"{what}, to which nothing leads")
        unique = dict.fromkeys(self.emitted.next_hops)
        return CheckedSwitch(
            self.vertex,
            self.count,
            tuple(self.examples[:EXAMPLES]),
            ways,
            tuple(unique),
            tuple(self.emitted.addresses),
        )

    def differ(self, file: str, line: int, says: str, tables: str = "", times: int = 1) -> None:
        """Count a difference, and keep the first ones."""
        self.count += times
        self.examples.append(EmittedDifference(file, line, says, tables))

    def _claims(self) -> None:
        stated: dict[str, set[tuple[str | int, ...]]] = {}
        for claim in self.emitted.claims:
            value = tuple(self._known(part) for part in claim.value)
            of_kind = stated.setdefault(claim.kind, set())
            if value in of_kind:
                self.differ(claim.file, claim.line, _said(claim.kind, value), "once")
            elif value not in self._expected_claims(claim.kind):
                self.differ(claim.file, claim.line, _said(claim.kind, value), "none such")
            of_kind.add(value)
        folder = str(self.check.folder / self.build.wiring.names[self.vertex])
        for kind in sorted(self.emitted.claimed):
            for value in sorted(
                self._expected_claims(kind) - stated.get(kind, set()), key=lambda v: str(v)
            ):
                self.differ(folder, 0, "nothing of it", _said(kind, value))

    def _expected_claims(self, kind: str) -> set[tuple[str | int, ...]]:
        return expected_claims(self.build, self.vertex, kind)

    def _known(self, part: str | int) -> str | int:
        return self.number.get(str(part), -1) if isinstance(part, Interface) else part

    def _discards(self) -> None:
        """Discarded prefixes are shorter than all that are forwarded."""
        for prefix, file, line in self.emitted.discards:
            if self.number_of(prefix) >= 0:
                self.differ(file, line, f"{prefix} is discarded", "it is forwarded")

    def number_of(self, prefix: str) -> int:
        """The number of a prefix, -1 where the fabric has none such."""
        number = self.check.numbers.get(prefix)
        if number is None:
            try:
                number = self.check.numbers.get(network_text(prefix), -1)
            except ValueError:
                number = -1
            self.check.numbers[prefix] = number
        return number

    def _forwarding(self) -> tuple[SwitchWays, ...]:
        """Compare what every way in does with every destination; where packets go first."""
        ingress = [(port, True) for port in self.hosts] + [(port, False) for port in self.fabric]
        groups: dict[tuple[int, ...], list[tuple[int, bool, tuple[Lookup, ...]]]] = {}
        for port, of_host in ingress:
            by = self.emitted.by_ingress
            tables = by.get(port) or by.get(self.names[port - 1]) or self.emitted.anywhere
            key = tuple(id(table.rows) for table in tables)
            groups.setdefault(key, []).append((port, of_host, tables))
        families = self.check.families
        ways = [FirstWays.none(self.build.tables.switches, self.fabric) for _ in range(families)]
        columns: dict[int, NDArray[np.int64]] = {}
        for group in groups.values():
            tables = group[0][2]
            for table in tables:
                if id(table.rows) not in columns:
                    columns[id(table.rows)] = self._by_destination(table)
            if not tables:
                continue
            rows = np.stack([columns[id(table.rows)] for table in tables])
            for family in range(families):
                self._compare(group, rows[:, family], family, ways[family])
        return tuple(map(SwitchWays.of, ways))

    def _by_destination(self, table: Lookup) -> NDArray[np.int64]:
        """int64[F, S]: the row of the table for every destination, -1 where it has none."""
        rows, blocks = table.rows, self.check.blocks
        number = np.fromiter(map(self.number_of, rows.prefixes), np.int64, len(rows.prefixes))
        place = np.full(blocks * self.check.families, -1, np.int64)
        known = np.flatnonzero(number >= 0)
        place[number[known]] = known
        for row in np.flatnonzero(number < 0)[:EXAMPLES].tolist():
            self.differ(rows.file, rows.lines[row], rows.prefixes[row], "no prefix of the fabric")
        for row in np.setdiff1d(known, place)[:EXAMPLES].tolist():
            self.differ(rows.file, rows.lines[row], f"{rows.prefixes[row]} again", "one row")
        aggregate = self.build.tables.routes.aggregate
        found = np.stack(
            [by_destination(own, aggregate) for own in np.split(place, self.check.families)]
        )
        # Its own prefix is connected; a row for it, not for its aggregate, would be one too many.
        found[:, self.vertex] = place.reshape(self.check.families, -1)[:, self.vertex]
        return found

    def _compare(
        self,
        group: Sequence[tuple[int, bool, tuple[Lookup, ...]]],
        rows: NDArray[np.int64],
        family: int,
        ways: FirstWays,
    ) -> None:
        """Compare each kind of destination once for every way in; write down where packets go.

        Args:
            group: ways in whose packets meet the same rows.
            rows: int64[T, S], the row in each table for each destination, -1: none.
            family: 0 for IPv4, 1 for IPv6.
            ways: what is written.
        """
        tables = group[0][2]
        entries = np.stack([_entry_of(table, row) for table, row in zip(tables, rows, strict=True)])
        egress = self.expected.egress
        code = egress + 1
        for entry in entries:
            code = code * (int(entry.max(initial=0)) + 2) + entry + 1
        _, first, kind, times = np.unique(
            code, return_index=True, return_inverse=True, return_counts=True
        )
        for k, (d, many) in enumerate(zip(first.tolist(), times.tolist(), strict=True)):
            here = entries[:, d].tolist()
            if egress[d] < 0 and max(here) < 0:
                continue
            alike = np.flatnonzero(kind == k)
            wrong: tuple[Chain, Chain, int, bool] | None = None
            passing: dict[Chain, list[int]] = {}
            usual: tuple[Chain, Chain] | None = None
            apart = set(self.expected.order[egress[d]] if egress[d] >= 0 else ())
            apart.update(*(t.aware(e) for t, e in zip(tables, here, strict=True) if e >= 0))
            for port, of_host, looked in group:
                if usual and not of_host and port not in apart:
                    passing[usual[0]].append(port)
                    continue
                text = self._text(looked, here, port, of_host)
                should = self._should(int(egress[d]), port, of_host)
                if of_host:
                    ways.enter(alike, text)
                else:
                    passing.setdefault(text, []).append(port)
                    used = {at for stage in text for at, _ in stage}
                    if port not in apart | used:
                        usual = text, should
                        apart |= {at for at in used if isinstance(at, int)}
                if text != should and not self._unreachable(int(egress[d]), port, of_host):
                    wrong = wrong or (text, should, port, of_host)
            for text, ports in passing.items():
                ways.pass_through(alike, ports, text)
            if wrong:
                self._tell_wrong(wrong, tables, rows[:, d], d, family, many)

    def _text(
        self, tables: Sequence[Lookup], entries: Sequence[int], port: int, of_host: bool
    ) -> Chain:
        """What the text does with packets that come in on a port, by their entries in tables."""
        chain = tuple(
            stage
            for table, entry in zip(tables, entries, strict=True)
            if entry >= 0
            for stage in table.chain(entry, port)
        )
        return canonical(self._by_number(chain), 0 if of_host else port)

    def _should(self, egress: int, port: int, of_host: bool) -> Chain:
        if egress < 0:
            return ()
        if of_host:
            return canonical(self.expected.from_hosts(egress), 0)
        return canonical(self.expected.transit(egress, port), port)

    def _unreachable(self, egress: int, port: int, of_host: bool) -> bool:
        """Whether no packet is ever there: without alternates and repair none comes back."""
        order = self.expected.order[egress] if egress >= 0 else []
        return self.expected.plain and not of_host and order == [port]

    def _by_number(self, chain: Chain) -> Chain:
        if chain not in self._chains:
            self._chains[chain] = tuple(
                tuple((self._number(port), weight) for port, weight in stage) for stage in chain
            )
        return self._chains[chain]

    def _number(self, port: Port) -> Port:
        """A number that the switch has; what is no port of it stays as the text names it."""
        if isinstance(port, int):
            return port
        return self.number.get(port, port)

    def _tell_wrong(
        self,
        wrong: tuple[Chain, Chain, int, bool],
        tables: Sequence[Lookup],
        rows: NDArray[np.int64],
        destination: int,
        family: int,
        times: int,
    ) -> None:
        text, should, port, of_host = wrong
        a = self.build.addressing
        block = a.network6(destination) if family else a.network(destination)
        found = [
            (table.rows, row) for table, row in zip(tables, rows.tolist(), strict=True) if row >= 0
        ]
        whence = f"from {'hosts' if of_host else 'port'} {self.names[port - 1]}"
        if found:
            place, row = found[0]
            file, line = place.file, place.lines[row]
        else:
            file, line = tables[0].rows.file if tables else "", 0
        self.differ(file, line, f"{block} {whence} {self._words(text)}", self._words(should), times)

    def _words(self, chain: Chain) -> str:
        return ", else ".join(_stage(stage, self.names) for stage in chain) or "not at all"


def _entry_of(table: Lookup, row: NDArray[np.int64]) -> NDArray[np.int64]:
    entries = np.append(np.asarray(table.rows.entries, np.int64), -1)
    found: NDArray[np.int64] = entries[row]
    return found


def _stage(stage: Sequence[tuple[Port, int]], names: Sequence[str]) -> str:
    words = [
        (names[port - 1] if isinstance(port, int) and 0 < port <= len(names) else f"{port}")
        + (f" by {weight}" if len(stage) > 1 else "")
        for port, weight in stage
    ]
    return f"by {' and '.join(words)}" if len(stage) == 1 else f"shared by {', '.join(words)}"


def _said(kind: str, value: Iterable[str | int]) -> str:
    return f"{kind} {' '.join(map(str, value))}"


def _columns(*columns: NDArray[np.int32]) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _unreadable(folder: Path, error: OSError | ValueError) -> EmittedDifference:
    if isinstance(error, OSError):
        file = str(error.filename or folder)
        return EmittedDifference(
            file, 0, error.strerror or "cannot be read", "a file of that switch"
        )
    if len(error.args) == 3:
        file, line, text = error.args
        return EmittedDifference(
            str(file), int(line), f"{text!r}", "nothing that the reader understands"
        )
    return EmittedDifference(str(folder), 0, f"{error}, which is not understood")
