"""The check of rendered files against the tables of a build, for all switches of a plane.

What comes in is a build, and the folder with the files of its switches; what goes out is an
`EmittedReport`. Targets call it after they rendered files, and `polarfab verify --emitted`.

Each switch is compared by itself (`switch_check`). Where every switch tries the ports that its
tables try, in the same order, packets go where the tables lead them, whatever fails: so no pair of
switches has to be followed. Two checks need several switches, and are made here: next hops have to
be addresses of the switch at the other end of the link, and the folder may not have files of
switches that do not exist.

Prefixes are numbered as in `Routes`, those of IPv6 behind those of IPv4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compilers.readers.emitted_forwarding import (
    EmittedDifference,
    EmittedSwitch,
    NextHop,
    OwnAddress,
    Port,
    without_mark,
)
from compilers.readers.emitted_report import EXAMPLES, DifferenceList, EmittedReport
from compilers.readers.expected_forwarding import FULL_ABILITY, Ability
from compilers.readers.switch_check import CheckedSwitch, SwitchCheck
from compilers.tables.build import Build

LINK_LOCAL = "fe80", "169.254."
"""Beginnings of link-local addresses, of which a switch may have the same one on several ports."""
Reader = Callable[[Path], EmittedSwitch]
"""Reads the folder of a switch.

It raises OSError where a file is not there, and ValueError(file, line, text) where a line makes no
sense.
"""


class _OwnedAddress(NamedTuple):
    """An address, with the switch that has it."""

    vertex: int
    """The vertex of the switch."""
    stated: OwnAddress
    """The address, as its file states it."""


class EmittedCheck:
    """The check of one plane's files.

    Args:
        build: the plane, with ports named as the system names them.
        folder: the folder in which each switch has its own.
        reader: reads the folder of a switch.
        accept: lines that begin with one of these texts, or files with one of these names, count
            as the user's own statements (`DifferenceList`).
        abilities: what each switch can do, by vertex; () where all switches can do everything.
    """

    def __init__(
        self,
        build: Build,
        folder: Path,
        reader: Reader,
        accept: tuple[str, ...] = (),
        abilities: Sequence[Ability] = (),
    ) -> None:
        self.accept, self.abilities = accept, abilities
        self.build, self.folder, self.reader = build, folder, reader
        texts = chain.from_iterable(build.addressing.prefix_texts())
        self.prefix_numbers = {text: number for number, text in enumerate(texts)}
        """The number of each prefix of the fabric."""

    def switch(self, vertex: int) -> CheckedSwitch:
        """Read the files of a switch and compare them with its tables."""
        folder = self.folder / self.build.wiring.names[vertex]
        try:
            emitted = self.reader(folder)
        except (OSError, ValueError, RecursionError) as error:
            return CheckedSwitch(vertex, differences=1, examples=(_unreadable(folder, error),))
        return SwitchCheck(
            build=self.build,
            vertex=vertex,
            emitted=emitted,
            prefix_numbers=self.prefix_numbers,
            folder=str(folder),
            accept=self.accept,
            ability=self.abilities[vertex] if self.abilities else FULL_ABILITY,
        ).result()

    def report(
        self, target: str, checked: Iterable[CheckedSwitch], whole: bool = True
    ) -> EmittedReport:
        """Put the results of switches together.

        Args:
            target: the system that the files are for.
            checked: the results, in any order.
            whole: whether these are all switches of the plane: only then pairs of switches are
                counted, and folders of no switch are looked for.
        """
        results = sorted(checked, key=lambda result: result.vertex)
        by_vertex = {result.vertex: result for result in results}
        differences = self._differences(results, by_vertex, whole)
        with_hosts: list[int] = []
        if whole:
            wiring, topology = self.build.wiring, self.build.topology
            has_hosts = topology.endpoints & (wiring.host_port > 0).any(axis=1)
            with_hosts = np.flatnonzero(has_hosts).tolist()
        return EmittedReport(
            target,
            switches=len(by_vertex),
            pairs=len(with_hosts) * max(len(with_hosts) - 1, 0),
            delivered=sum(
                by_vertex[v].correct_destinations or 0 for v in with_hosts if v in by_vertex
            ),
            differences=differences.count,
            examples=tuple(differences.examples),
            accepted=sum(result.accepted for result in results),
            checked_sources=sum(result.checked_sources for result in results),
            shares={result.vertex: result.shares for result in results if result.shares},
        )

    def _differences(
        self, results: Sequence[CheckedSwitch], by_vertex: Mapping[int, CheckedSwitch], whole: bool
    ) -> DifferenceList:
        """The differences of all switches, and those that only several switches show.

        Args:
            results: the results of switches.
            by_vertex: the results by vertex.
            whole: whether these are all switches.
        """
        count = sum(result.differences for result in results)
        # Files that cannot be read come first: they may be why others are wrong.
        ordered = sorted(results, key=lambda result: result.was_read)
        examples = [example for result in ordered for example in result.examples]
        among_switches = [
            *(self._folders_of_no_switch() if whole else ()),
            *self._address_differences(by_vertex),
        ]
        count += len(among_switches)
        examples += among_switches
        path_count = sum(result.path_differences.count for result in results)
        if path_count and count:
            # Wrong paths follow from wrong files: listing all of them would bury the cause.
            count += 1
            text = f"{path_count:,} more, of where packets go: they may follow from the others"
            examples = [*examples[: EXAMPLES - 1], EmittedDifference(str(self.folder), 0, text)]
        elif path_count:
            count += path_count
            examples += (
                example for result in results for example in result.path_differences.examples
            )
        return DifferenceList(count=count, examples=examples[:EXAMPLES])

    def port_number(self, vertex: int, port: Port) -> int:
        """The number of a port that a file names, -1 where the switch has none of that name."""
        wiring = self.build.wiring
        names = wiring.port_names[int(wiring.node_type[vertex])]
        port = without_mark(port)
        if isinstance(port, int):
            return port if 0 < port <= len(names) else -1
        return names.index(port) + 1 if port in names else -1

    def _folders_of_no_switch(self) -> Iterator[EmittedDifference]:
        """Yield a difference for each folder with files of a switch whose name no switch has.

        A folder has files of a switch if it has a file of the same name as some switch's folder.
        """
        wiring, present = self.build.wiring, self.build.topology.present.tolist()
        names = {name for name, exists in zip(wiring.names, present, strict=True) if exists}
        folders = (self.folder / name for name in wiring.names)
        example = next((folder for folder in folders if folder.is_dir()), None)
        files = {file.name for file in example.glob("*")} if example else set()
        for folder in sorted(self.folder.glob("*")):
            if folder.name not in names and any((folder / file).is_file() for file in files):
                yield EmittedDifference(
                    str(folder), 0, "files of a switch", "there is none of that name"
                )

    def _address_differences(
        self, by_vertex: Mapping[int, CheckedSwitch]
    ) -> Iterator[EmittedDifference]:
        """Yield a difference for each address that two switches have, and each wrong next hop.

        Args:
            by_vertex: the results of switches, by vertex.
        """
        owners: dict[str, list[_OwnedAddress]] = {}
        for vertex, switch in by_vertex.items():
            for stated in switch.addresses:
                owners.setdefault(stated.address, []).append(_OwnedAddress(vertex, stated))
        for address, statements in owners.items():
            if len({owned.vertex for owned in statements}) > 1:
                first, last = statements[0].stated, statements[-1].stated
                says = f"address {address}, which is in {first.file}:{first.line} too"
                yield EmittedDifference(last.file, last.line, says, "one switch has it")
        for vertex, switch in by_vertex.items():
            yield from self._wrong_hops(vertex, switch, by_vertex.keys(), owners)

    def _wrong_hops(
        self,
        vertex: int,
        switch: CheckedSwitch,
        checked_vertices: Collection[int],
        owners: Mapping[str, Sequence[_OwnedAddress]],
    ) -> Iterator[EmittedDifference]:
        """Yield the next hops of a switch that are no addresses of the far ends of their ports.

        Args:
            vertex: the vertex of the switch.
            switch: its result.
            checked_vertices: the vertices of all switches that were checked.
            owners: the switches that have each address.
        """
        wiring = self.build.wiring
        ends = {port: (far, far_port) for port, far, far_port in wiring.links_of(vertex)}
        for hop in switch.next_hops:
            end = ends.get(self.port_number(vertex, hop.port))
            says = f"{hop.address} behind {hop.port or 'no port'}"
            if end is None:
                tables = "no switch there, without that address"
                yield EmittedDifference(hop.file, hop.line, says, tables)
                continue
            far, far_port = end
            if far not in checked_vertices:
                continue  # its addresses were not read
            is_at_far_end = any(
                owned.vertex == far and self._hop_reaches(owned.stated, hop, far, far_port)
                for owned in owners.get(hop.address, ())
            )
            if not is_at_far_end:
                tables = f"{wiring.names[far]} at the other end, without that address"
                yield EmittedDifference(hop.file, hop.line, says, tables)

    def _hop_reaches(self, stated: OwnAddress, hop: NextHop, far: int, far_port: int) -> bool:
        """Whether a next hop leads to its address where the switch at the far end has it.

        Some load-balancing rules mark packets, to have the next switch spread them. Routers give
        marked packets links of their own: each port has a second, virtual port for them. So a next
        hop for marked packets has to lead to an address on such a port. A link-local address has to
        be on the port of the link.

        Args:
            stated: the address, on one of the far switch's ports.
            hop: the next hop, with the same address.
            far: the vertex of the far switch.
            far_port: the port of the far switch at the link.
        """
        if _is_marked(hop.port) is not _is_marked(stated.port):
            return False
        if not hop.address.startswith(LINK_LOCAL):
            return True
        return self.port_number(far, stated.port) == far_port


def _is_marked(port: Port) -> bool:
    """Whether a port is for marked packets."""
    return port != without_mark(port)


def _unreadable(folder: Path, error: Exception) -> EmittedDifference:
    """The difference for a folder that cannot be read.

    Args:
        folder: the folder of a switch.
        error: what the reader raised; see `Reader`.
    """
    if isinstance(error, OSError):
        file = str(error.filename or folder)
        return EmittedDifference(
            file, 0, error.strerror or "cannot be read", "a file of that switch"
        )
    if len(error.args) == 3:
        file, line, text = error.args
        return EmittedDifference(
            str(file), int(line), str(text), "a file that the reader understands"
        )
    return EmittedDifference(str(folder), 0, f"{error}, which is not understood")
