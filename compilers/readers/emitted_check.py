"""The check of what was emitted: the text of every switch against the tables, and every pair.

Each switch is compared by itself (`switch_check`). Next hops are looked up in the addresses that
the switch at the other end has by its own files. Where every switch tries the ports that the tables
try, in that order, packets go where the tables lead them, whatever fails; no pair is followed.

Own prefixes and aggregates are numbered as in `Routes`, those of IPv6 behind those of IPv4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from compilers.readers.emitted_forwarding import (
    EmittedDifference,
    EmittedSwitch,
    OwnAddress,
    Port,
    without_mark,
)
from compilers.readers.emitted_report import EXAMPLES, EmittedReport
from compilers.readers.expected_forwarding import ALL, Ability
from compilers.readers.switch_check import CheckedSwitch, SwitchCheck
from compilers.tables.build import Build

LINK_LOCAL = "fe80", "169.254."
"""How addresses begin that a switch has on several ports, and answers for on the one asked."""
Reader = Callable[[Path], EmittedSwitch]
"""Reads the folder of a switch.

It raises OSError where a file is not there, and ValueError(file, line, text) where a line makes no
sense at all.
"""


class EmittedCheck:
    """The check of one plane's files.

    Args:
        build: ports named as the system names them.
        folder: that of all switches.
        reader: of the target.
        accept: see `DifferenceList`.
        able: what each switch can do of the tables, by its vertex; all where that is not given.
    """

    def __init__(
        self,
        build: Build,
        folder: Path,
        reader: Reader,
        accept: tuple[str, ...] = (),
        able: Sequence[Ability] = (),
    ) -> None:
        self.accept, self.able = accept, able
        self.build, self.folder, self.reader = build, folder, reader
        a = build.addressing
        self.blocks = len(a.ipv4_prefixes()[0])
        texts = chain.from_iterable(a.prefix_texts())
        self.numbers = {text: number for number, text in enumerate(texts)}
        self.families = 1 + (a.ipv6 is not None)

    def switch(self, vertex: int) -> CheckedSwitch:
        """Read the files of a switch and compare them with its tables."""
        folder = self.folder / self.build.wiring.names[vertex]
        try:
            emitted = self.reader(folder)
        except (OSError, ValueError, RecursionError) as error:
            return CheckedSwitch(vertex, 1, (_unreadable(folder, error),))
        known = self.build, vertex, emitted, self.numbers, str(folder), self.accept
        return SwitchCheck(*known, self.able[vertex] if self.able else ALL).result()

    def report(
        self, target: str, checked: Iterable[CheckedSwitch], whole: bool = True
    ) -> EmittedReport:
        """Put together what was found at every switch.

        Args:
            target: whose files they are.
            checked: the switches, in any order.
            whole: whether they are all switches, so that pairs are counted.
        """
        by_vertex = {each.vertex: each for each in sorted(checked, key=lambda s: s.vertex)}
        count = sum(each.differences for each in by_vertex.values())
        # Files that cannot be read are first: others may be wrong for want of them.
        ordered = sorted(by_vertex.values(), key=lambda each: each.right is not None)
        examples = [example for each in ordered for example in each.examples]
        for difference in (*(self._strangers() if whole else ()), *self._neighbours(by_vertex)):
            count += 1
            examples.append(difference)
        elsewhere = sum(each.elsewhere.count for each in by_vertex.values())
        if elsewhere and count:
            # What packets do follows from all that is wrong: to tell it, too, would bury the cause.
            count += 1
            text = f"{elsewhere:,} more, of where packets go: they may follow from the others"
            examples = [*examples[: EXAMPLES - 1], EmittedDifference(str(self.folder), 0, text)]
        elif elsewhere:
            count += elsewhere
            examples += (one for each in by_vertex.values() for one in each.elsewhere.examples)
        pairs = delivered = 0
        if whole:
            w, topology = self.build.wiring, self.build.topology
            ends = np.flatnonzero(topology.endpoints & (w.host_port > 0).any(axis=1)).tolist()
            pairs = len(ends) * max(len(ends) - 1, 0)
            delivered = sum(by_vertex[end].right or 0 for end in ends if end in by_vertex)
        return EmittedReport(
            target,
            len(by_vertex),
            pairs,
            delivered,
            count,
            tuple(examples[:EXAMPLES]),
            sum(each.accepted for each in by_vertex.values()),
            shares={vertex: each.shares for vertex, each in by_vertex.items() if each.shares},
        )

    def port_number(self, vertex: int, port: Port) -> int:
        """The number of a port that a text names, -1 where the switch has none of that name."""
        w = self.build.wiring
        names = w.port_names[int(w.node_type[vertex])]
        port = without_mark(port)
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
                says = f"address {address}, which is in {where} too"
                yield EmittedDifference(other.file, other.line, says, "one switch has it")
        for vertex, each in checked.items():
            ends = {port: (far, far_port) for port, far, far_port in w.ends(vertex)}
            for hop in each.next_hops:
                far, far_port = ends.get(self.port_number(vertex, hop.port), (-1, 0))
                if far >= 0 and far not in checked:
                    continue
                there = [
                    own
                    for v, own in owned.get(hop.address, ())
                    if v == far
                    and (hop.port == without_mark(hop.port)) is (own.port == without_mark(own.port))
                    and (
                        not hop.address.startswith(LINK_LOCAL)
                        or self.port_number(far, own.port) == far_port
                    )
                ]
                if not there:
                    name = f"{w.names[far]} at the other end" if far >= 0 else "no switch there"
                    says = f"{hop.address} behind {hop.port or 'no port'}"
                    yield EmittedDifference(
                        hop.file, hop.line, says, f"{name}, without that address"
                    )


def _unreadable(folder: Path, error: Exception) -> EmittedDifference:
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
