"""Carriers of SRv6 uSIDs followed through the rows of the switches, all of a host at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compilers.readers.text_lines import Integers
from extensions.host_paths.segment_text import (
    CROSS,
    DECAPSULATE,
    END,
    USIDS,
    SegmentTable,
    Usids,
)

LONGEST = 16
"""Switches on a path, beyond which it has no end."""
WIDTH = 16
"""Bits of a uSID."""
ENDS, SHIFTS, TAKES_OFF, TO_HOST, LEADS = 1, 2, 4, 8, 16
"""What a row does with a packet: shifts and looks again, shifts, takes the header off, sends it to
a host, sends it over a cable."""


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """Where n carriers lead."""

    switches: Integers
    """int64[n, LONGEST], the switches after the first, -1 behind the last."""
    reached: Integers
    """int64[n], the place in `names` of the prefix at which the carrier ends; 0 where it ends at
    none."""


class SegmentPaths:
    """The rows of all switches, by the vertex and one or two uSIDs.

    Args:
        tables: of the switches.
        far: int64[S, P], the vertex behind each port, -1: none.
        port: of a switch, by interface.
        hosts: interfaces that lead to hosts, by vertex.
        block: the prefix of the hosts of each vertex.
    """

    def __init__(
        self,
        tables: Mapping[int, SegmentTable],
        far: Integers,
        port: list[dict[str, int]],
        hosts: Mapping[int, str],
        block: list[str],
    ) -> None:
        self.names = [""]
        number: dict[str, int] = {}

        def named(text: str) -> int:
            if text not in number:
                number[text] = len(self.names)
                self.names.append(text)
            return number[text]

        keys: list[int] = []
        rows: list[tuple[int, int, int]] = []
        for vertex, table in tables.items():
            for usids, row in table.rows.items():
                keys.append(_key(vertex, usids))
                shift = SHIFTS * (row.action == CROSS)
                at = port[vertex].get(row.interface, 0)
                if row.action == END:
                    rows.append((ENDS, -1, 0))
                elif row.action == DECAPSULATE:
                    rows.append((TAKES_OFF, -1, named(block[vertex])))
                elif at and far[vertex, at] >= 0:
                    rows.append((LEADS | shift, int(far[vertex, at]), 0))
                elif row.interface == hosts.get(vertex):
                    rows.append((TO_HOST | shift, -1, named(f"{row.address}/128")))
                else:
                    rows.append((0, -1, 0))
        order = np.argsort(np.array(keys, np.int64), kind="stable")
        self.keys = np.append(np.array(keys, np.int64)[order], np.iinfo(np.int64).max)
        what = np.array(rows, np.int64).reshape(-1, 3)[order]
        self.does, self.far, self.name = np.append(what, [[0, -1, 0]], axis=0).T

    def follow(self, vertex: int, usids: Integers, own: Usids) -> Paths:
        """Follow carriers from a switch on.

        Args:
            vertex: where they come in.
            usids: int64[n, USIDS + 1], zeros behind the last one.
            own: what takes the header off at a host: only then a header may reach one.
        """
        count = len(usids)
        wide = np.pad(usids, ((0, 0), (0, USIDS + 2)))
        at, place = np.full(count, vertex), np.zeros(count, np.int64)
        switches = np.full((count, LONGEST), -1, np.int64)
        length, reached = np.zeros(count, np.int64), np.zeros(count, np.int64)
        some, behind = np.arange(count), np.array([*own[1:], 0])
        while len(some):
            row = self._row(at[some], wide[some, place[some]], wide[some, place[some] + 1])
            does = self.does[row]
            place[some] += (does & (ENDS | SHIFTS)) > 0
            off = some[does == TAKES_OFF]
            reached[off] = self.name[row[does == TAKES_OFF]]
            to = some[(does & TO_HOST) > 0]
            # A header goes to a host only if that takes it off, by its own uSID behind.
            left = wide[to[:, None], place[to][:, None] + np.arange(1, len(behind) + 1)]
            kept = (left == behind).all(axis=1) & (len(own) > 1)
            reached[to] = np.where(kept, self.name[row[(does & TO_HOST) > 0]], 0)
            leads = (does & LEADS) > 0
            over = some[leads]
            at[over] = self.far[row[leads]]
            switches[over, length[over]] = at[over]
            length[over] += 1
            some = some[leads & (length[some] < LONGEST) | (does == ENDS)]
        return Paths(switches, reached)

    def _row(self, at: Integers, first: Integers, second: Integers) -> Integers:
        """The row that n packets meet: that of two uSIDs before that of one; the last one: none."""
        one = at << 2 * WIDTH | first << WIDTH
        row = np.full(len(at), len(self.does) - 1)
        for key in (one, one | second):
            place = np.searchsorted(self.keys, key)
            row = np.where(self.keys[place] == key, place, row)
        return row


def _key(vertex: int, usids: Usids) -> int:
    first, second = (*usids, 0)[:2]
    return vertex << 2 * WIDTH | first << WIDTH | second
