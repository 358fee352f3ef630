"""Reads a fabric whose routes BGP finds: the best paths of every switch, from all folders.

What comes in is the folder of a switch; what goes out is its `EmittedSwitch`. Targets with BGP give
a `BgpReader` to the check of their files (`emitted_check`).

A switch's configuration does not state its routes. So the first switch that is read makes the
reader read the folders of all switches, and compute what BGP converges to (`bgp_outcome`). The
routes of each switch are then compared with the tables, as those of static configurations are.

After a failure BGP takes the shortest paths that are left, which no table states. Only static
routes whose next hops BGP resolves are followed under failures (`bgp_failures`).

Words: a *speaker* is a switch that speaks BGP, as its files configure it (`BgpSwitch`); its
`families` are what they say for IPv4, and for IPv6 if it has that. A `FabricFamily` is one address
family of all speakers, with the outcome of BGP. Of an `EmittedSwitch`, `anywhere` has the tables
for packets from any port, and `by_ingress` those for packets from ports with tables of their own,
here the ports of hosts. `converged` says that a protocol has found the routes, so that a fault of
one switch may show at another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from compilers.readers.bgp.bgp_failures import ShareFailures, share_failures
from compilers.readers.bgp.bgp_outcome import FabricFamily
from compilers.readers.bgp.bgp_speaker import FAMILIES, BgpSwitch
from compilers.readers.emitted_forwarding import (
    VIA,
    Claim,
    Discard,
    EmittedSwitch,
    Interface,
    LineText,
    Lookup,
    Port,
    PortSet,
)


class BgpReader:
    """Reads the folder of a switch at each call; the first call reads those of all switches.

    Args:
        read_speaker: reads the speaker in one folder.
    """

    def __init__(self, read_speaker: Callable[[Path], BgpSwitch]) -> None:
        self.read_speaker = read_speaker
        self._indices: dict[str, int] = {}
        """The index of each switch in `_speakers`, by the name of its folder."""
        self._speakers: list[BgpSwitch] = []
        """All speakers that could be read."""
        self._outcomes: list[FabricFamily] = []
        """The outcome of BGP among them, by address family."""

    def __call__(self, folder: Path) -> EmittedSwitch:
        """A switch, from its folder.

        Raises:
            OSError: a file is not there.
            ValueError: (file, line, text) a line makes no sense.
        """
        if not self._indices:
            self._read_all(folder.parent)
        if folder.name not in self._indices:
            self.read_speaker(folder)  # raises the error that `_read_all` has passed over
        index = self._indices[folder.name]
        speaker = self._speakers[index]
        emitted = speaker.without_bgp
        best_paths = self._best_paths(index)
        announced = {prefix for family in speaker.families for prefix in family.announced}
        discards = [discard for discard in emitted.discards if discard[0] not in announced]
        return replace(
            emitted,
            anywhere=best_paths,
            by_ingress=self._tables_for_hosts(index, best_paths),
            discards=discards,
            converged=True,
            wrong=[*_static_route_faults(emitted), *emitted.wrong],
            claimed_kinds=emitted.claimed_kinds | {"discard", "AS number", "session"},
            claims=[
                *emitted.claims,
                Claim("AS number", (speaker.as_number,), speaker.file, speaker.line),
                *_session_claims(speaker),
                *_discard_claims(discards),
            ],
        )

    def _best_paths(self, index: int) -> tuple[Lookup, ...]:
        """The best paths of the speaker with an index, one table for each address family."""
        file = self._speakers[index].file
        tables = (outcome.table(index, file) for outcome in self._outcomes)
        return tuple(table for table in tables if table is not None)

    def _tables_for_hosts(
        self, index: int, best_paths: tuple[Lookup, ...]
    ) -> dict[Port, tuple[Lookup, ...]]:
        """The tables for packets from hosts at a switch, by port, with next hops that BGP resolves.

        Args:
            index: the index of the speaker.
            best_paths: its best paths.
        """
        speaker = self._speakers[index]
        port_of: dict[str, str] = {}
        for outcome in self._outcomes:
            port_of |= outcome.ports_to_next_hops(index)
        # Some systems look a packet up in the main table if the table of its port has no route.
        main_tables = best_paths if speaker.falls_through else ()
        return {
            port: (*(_resolved(table, port_of) for table in tables), *main_tables)
            for port, tables in speaker.without_bgp.by_ingress.items()
        }

    def failures(self, folder: Path) -> ShareFailures | None:
        """Follow static routes whose next hops BGP resolves, under failures; None: there are none.

        Args:
            folder: the folder in which the switches have theirs.
        """
        if not self._indices:
            self._read_all(folder)
        if not any(outcome.is_next_hop.any() for outcome in self._outcomes):
            return None
        return share_failures(self._speakers, self._outcomes)

    def ports_left(
        self, folder: Path, closed: Collection[tuple[str, str]]
    ) -> dict[str, dict[str, frozenset[str]]]:
        """The ports of BGP's best paths while some ports are closed.

        Args:
            folder: the folder in which the switches have theirs.
            closed: the name of a switch and of a port of it, for each closed port. The far ends of
                their links are down too.

        Returns:
            The ports by the name of the switch and by prefix.
        """
        if not self._indices:
            self._read_all(folder)
        closed_ports = {
            (self._indices[node], port) for node, port in closed if node in self._indices
        }
        ports_by_speaker = [outcome.ports_left(closed_ports) for outcome in self._outcomes]
        return {
            node: {
                prefix: ports
                for of_family in ports_by_speaker
                for prefix, ports in of_family[index].items()
            }
            for node, index in self._indices.items()
        }

    def _read_all(self, folder: Path) -> None:
        """Read the folders of all switches, and compute the outcome of BGP between them."""
        speakers: list[BgpSwitch] = []
        for path in sorted(path for path in folder.iterdir() if path.is_dir()):
            try:
                speaker = self.read_speaker(path)
            except (OSError, ValueError):
                continue  # `__call__` reads it again, and reports what is wrong
            self._indices[path.name] = len(speakers)
            speakers.append(speaker)
        self._speakers = list(_with_disagreements(speakers))
        most_families = max((len(speaker.families) for speaker in speakers), default=0)
        self._outcomes = [FabricFamily(self._speakers, number) for number in range(most_families)]


def _with_disagreements(speakers: Sequence[BgpSwitch]) -> Iterator[BgpSwitch]:
    """Yield each speaker with the faults that only a comparison with the others shows.

    A router id or the address of a next hop belongs to one switch, and all switches accept paths of
    the same length.
    """
    file_of_id = {speaker.router_id: speaker.file for speaker in reversed(speakers)}
    announced_by: dict[str, str] = {}
    lengths = Counter(speaker.longest_path for speaker in speakers)
    common_length = lengths.most_common(1)[0][0] if lengths else 0
    for speaker in speakers:
        wrong = list(speaker.without_bgp.wrong)
        for next_hop in _announced_next_hops(speaker):
            first_file = announced_by.setdefault(next_hop, speaker.file)
            if first_file != speaker.file:
                text = f"next hop {next_hop} is announced by {first_file}, too"
                wrong.append((speaker.file, 0, text))
        first_file = file_of_id[speaker.router_id]
        if first_file != speaker.file:
            wrong.append(
                (speaker.file, 0, f"router id {speaker.router_id} is that of {first_file}")
            )
        if speaker.longest_path != common_length:
            text = f"paths of {speaker.longest_path} systems at most, elsewhere of {common_length}"
            wrong.append((speaker.file, 0, text))
        yield replace(speaker, without_bgp=replace(speaker.without_bgp, wrong=wrong))


def _announced_next_hops(speaker: BgpSwitch) -> Iterator[str]:
    """The addresses that a speaker announces as next hops of static routes."""
    for family in speaker.families:
        yield from filter(family.accepted.is_next_hop, family.announced)


def _session_claims(speaker: BgpSwitch) -> Iterator[Claim]:
    """Claim each session of a speaker: port, family and the neighbour's AS.

    A session whose port is not known is left out: its address is checked as a next hop.
    """
    for family_fields, family in zip(FAMILIES, speaker.families, strict=False):
        name = family_fields["family"]
        for session in family.sessions:
            if session.port:
                value = (Interface(session.port), name, f"AS {session.as_number}")
                yield Claim("session", value, speaker.file, session.line)


def _discard_claims(discards: Sequence[Discard]) -> Iterator[Claim]:
    """Claim each discarded prefix, at the first line that states it."""
    first_lines = {prefix: (file, line) for prefix, file, line in reversed(discards)}
    for prefix, (file, line) in first_lines.items():
        yield Claim("discard", (prefix,), file, line)


def _static_route_faults(emitted: EmittedSwitch) -> Iterator[LineText]:
    """Yield a fault for each static route that a system would prefer to BGP's routes.

    Such a route stays when the neighbour is dead. A static route for packets from hosts is right if
    BGP resolves all its next hops, as BGP withdraws them when the neighbour is dead.
    """
    for table in dict.fromkeys((*emitted.anywhere, *chain(*emitted.by_ingress.values()))):
        rows = table.rows
        is_for_hosts = table not in emitted.anywhere
        # By the number of a chain, whether BGP resolves all its next hops.
        is_resolved = [
            all(str(port).startswith(VIA) for port_set in port_sets for port, _ in port_set)
            for port_sets in table.chains
        ]
        chain_of_row = table.number[rows.entries]
        for row, line in enumerate(rows.lines.tolist()):
            if not (is_for_hosts and is_resolved[int(chain_of_row[row])]):
                yield rows.file, line, f"a static route to {rows.name(row)}, which goes before BGP"


def _resolved(table: Lookup, port_of: Mapping[str, str]) -> Lookup:
    """A table whose next hops are the ports by which BGP reaches their addresses.

    An address that BGP does not reach stays in the place of a port.
    """

    def resolved_set(port_set: PortSet) -> PortSet:
        """A port set with ports in the place of addresses."""
        return tuple(
            (port_of.get(str(port).removeprefix(VIA), port), weight) for port, weight in port_set
        )

    return replace(table, chains=[tuple(map(resolved_set, chain)) for chain in table.chains])
