"""Follows carriers of SRv6 uSIDs through the segment routes of switches, all of a host at once.

A *carrier* is the IPv6 destination whose uSIDs (SRv6 micro-SIDs, RFC 9800) steer a packet along a
path. A *segment route* of a switch says what it does with packets whose carrier begins with one or
two given uSIDs. Here the segment routes of all switches are the *rows* of a few arrays.
`carrier_check` passes the routes that `switch_segment_text` has read, and compares where carriers
lead with the tables of the build.

For example, the carrier `fc00:0:1001:a000:e000::` comes to switch 3, a neighbour of switch 0:

- The row of switch 3 for 0x1001, the uSID of switch 0, sends the packet over the cable to switch 0.
- The row of switch 0 for 0x1001 removes this uSID, and the switch looks the carrier up again.
- The row of switch 0 for 0xa000, the uSID of its first host, sends the packet to that host.
- The host decapsulates by 0xa000 and 0xe000, after which the carrier ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.text_lines import Integers
from extensions.host_paths.carrier_parts import MOST_USIDS, USID_BITS, Usids
from extensions.host_paths.switch_segment_text import (
    CROSS,
    DECAPSULATE,
    END,
    Segment,
    SegmentTable,
)

MOST_SWITCHES = 16
"""The most switches on a path after the first; a longer one is a loop."""
LOOKS_AGAIN, SHIFTS, DECAPSULATES, TO_HOST, OVER_CABLE = 1, 2, 4, 8, 16
"""What a row does with a packet, as bits.

- LOOKS_AGAIN: removes the first uSID of the carrier, and looks the next one up at the same switch.
- SHIFTS: removes the first uSID of the carrier. It comes together with TO_HOST or OVER_CABLE.
- DECAPSULATES: removes the outer header (decapsulation).
- TO_HOST: sends the packet to a host.
- OVER_CABLE: sends the packet over a cable.

A row without any of these bits drops the packet.
"""
NOT_REACHED = 0
"""The index in `SegmentPaths.prefixes` that stands for no prefix."""


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The paths of n carriers."""

    switches: Integers
    """int64[n, MOST_SWITCHES]: the switches after the first one, then -1."""
    reached: Integers
    """int64[n]: the index in `SegmentPaths.prefixes` of the prefix where the carrier ends;
    `NOT_REACHED` for a carrier that is lost."""


class _Row(NamedTuple):
    """A segment route as a row of the arrays."""

    actions: int
    """What it does with a packet, bits from `LOOKS_AGAIN` on."""
    far: int = -1
    """The switch to which it sends packets, -1: none."""
    prefix_number: int = NOT_REACHED
    """The index in `SegmentPaths.prefixes` of the prefix that packets reach, or `NOT_REACHED`."""


_DROP = _Row(actions=0)
"""The row of a packet that is lost."""


class SegmentPaths:
    """The segment routes of all switches as arrays, sorted by the vertex and one or two uSIDs.

    Args:
        tables: the routes of each switch, by vertex.
        far: int64[S, ports + 1], the switch at the other end of each port's cable, -1: none. Ports
            are numbered from 1; column 0 is for interfaces that are no ports, and is -1.
        port_number: the number of each port, by vertex and interface.
        host_interface: the interface to hosts, by vertex.
        host_prefixes: the prefix of the hosts of each vertex; [] where hosts decapsulate
            themselves.
    """

    def __init__(
        self,
        tables: Mapping[int, SegmentTable],
        far: Integers,
        port_number: list[dict[str, int]],
        host_interface: Mapping[int, str],
        host_prefixes: list[str],
    ) -> None:
        self.prefixes = [""]
        """The prefixes that packets reach, after one for `NOT_REACHED`."""
        self._prefix_numbers: dict[str, int] = {}
        rows: dict[int, _Row] = {}
        for vertex, table in tables.items():
            for usids, segment in table.rows.items():
                port = port_number[vertex].get(segment.interface, 0)
                row = self._encoded(
                    segment,
                    far_switch=int(far[vertex, port]),
                    is_to_host=segment.interface == host_interface.get(vertex),
                    host_prefix=host_prefixes[vertex] if host_prefixes else "",
                )
                rows.setdefault(_key(vertex, usids), row)
        keys = np.array(list(rows), np.int64)
        by_key = np.argsort(keys, kind="stable")
        columns = np.array(list(rows.values()), np.int64).reshape(-1, 3)[by_key]
        # The last row is for packets that no route matches; no packet has its key.
        self.keys = np.append(keys[by_key], np.iinfo(np.int64).max)
        """int64[rows], the `_key` of each row, ascending."""
        self.actions, self.far, self.prefix_number = np.append(columns, [_DROP], axis=0).T
        """int64[rows] each, the columns of `_Row`."""

    def _encoded(
        self, segment: Segment, *, far_switch: int, is_to_host: bool, host_prefix: str
    ) -> _Row:
        """A segment route as a row.

        Args:
            segment: the route.
            far_switch: the switch at the other end of its interface's cable, -1: none.
            is_to_host: whether the interface leads to hosts.
            host_prefix: the prefix of the switch's hosts.
        """
        shifts = SHIFTS if segment.action == CROSS else 0
        if segment.action == END:
            return _Row(LOOKS_AGAIN)
        if segment.action == DECAPSULATE:
            return _Row(DECAPSULATES, prefix_number=self._prefix_number(host_prefix))
        if far_switch >= 0:
            return _Row(OVER_CABLE | shifts, far=far_switch)
        if is_to_host:
            prefix_number = self._prefix_number(f"{segment.address}/128")
            return _Row(TO_HOST | shifts, prefix_number=prefix_number)
        return _DROP

    def _prefix_number(self, prefix: str) -> int:
        """The index of a prefix in `prefixes`, to which it is added if it is new."""
        if prefix not in self._prefix_numbers:
            self._prefix_numbers[prefix] = len(self.prefixes)
            self.prefixes.append(prefix)
        return self._prefix_numbers[prefix]

    def follow(self, vertex: int, usids: Integers, host_usids: Usids) -> Paths:
        """Follow carriers from a switch on.

        Args:
            vertex: the switch where they come in.
            usids: int64[n, MOST_USIDS + 1], the uSIDs of each carrier, then zeros.
            host_usids: the uSIDs by which hosts decapsulate, () where they do not: then no outer
                header may reach a host.
        """
        count = len(usids)
        # Zeros follow each carrier, so that uSIDs after its last one can be read.
        padded = np.pad(usids, ((0, 0), (0, MOST_USIDS + 2)))
        # By carrier, the switch where it is, and the index of its first uSID.
        switch, position = np.full(count, vertex), np.zeros(count, np.int64)
        # By carrier, the switches that it came to, how many, and what it has reached.
        switches, length = np.full((count, MOST_SWITCHES), -1, np.int64), np.zeros(count, np.int64)
        reached = np.full(count, NOT_REACHED)
        # The indices of the carriers that have not arrived and are not lost.
        travelling = np.arange(count)
        while len(travelling):
            # Each travelling packet meets one row. `row`, `actions` and all bool[m] are by
            # travelling packet.
            first = padded[travelling, position[travelling]]
            second = padded[travelling, position[travelling] + 1]
            row = self._matching_rows(switch[travelling], first, second)
            actions = self.actions[row]
            position[travelling] += (actions & (LOOKS_AGAIN | SHIFTS)) > 0
            # Packets that a switch decapsulates have reached the prefix of its hosts.
            decapsulated = actions == DECAPSULATES
            reached[travelling[decapsulated]] = self.prefix_number[row[decapsulated]]
            # Packets to a host have reached its prefix if the host decapsulates them.
            to_host = (actions & TO_HOST) > 0
            arriving = travelling[to_host]
            host_takes_it = _decapsulates(padded[arriving], position[arriving], host_usids)
            prefix_number = self.prefix_number[row[to_host]]
            reached[arriving] = np.where(host_takes_it, prefix_number, NOT_REACHED)
            # Packets over a cable come to the next switch.
            over_cable = (actions & OVER_CABLE) > 0
            crossing = travelling[over_cable]
            switch[crossing] = self.far[row[over_cable]]
            switches[crossing, length[crossing]] = switch[crossing]
            length[crossing] += 1
            # They travel on, as do those that are looked up again, a row that does nothing else.
            is_short_enough = over_cable & (length[travelling] < MOST_SWITCHES)
            travelling = travelling[is_short_enough | (actions == LOOKS_AGAIN)]
        return Paths(switches, reached)

    def _matching_rows(self, switch: Integers, first: Integers, second: Integers) -> Integers:
        """int64[n]: the rows that match packets at switches, by the first two uSIDs of each.

        A row for two uSIDs goes before a row for one: it is the longest-prefix match. The last row
        is for packets that no route matches.
        """
        key_of_one = switch << 2 * USID_BITS | first << USID_BITS
        row = np.full(len(switch), len(self.actions) - 1)
        for key in (key_of_one, key_of_one | second):
            index = np.searchsorted(self.keys, key)
            row = np.where(self.keys[index] == key, index, row)
        return row


def _decapsulates(padded: Integers, position: Integers, host_usids: Usids) -> NDArray[np.bool_]:
    """Whether a host decapsulates packets, bool[m].

    The first uSID of each is the one that selected its row. After it have to come the others by
    which the host decapsulates, and then 0, which ends the carrier.

    Args:
        padded: int64[m, …], the uSIDs of each carrier, then zeros.
        position: int64[m], the index of the first uSID of each.
        host_usids: those by which hosts decapsulate, as of `SegmentPaths.follow`.
    """
    expected = np.array([*host_usids[1:], 0])
    following = position[:, None] + np.arange(1, len(expected) + 1)
    has_expected = (np.take_along_axis(padded, following, axis=1) == expected).all(axis=1)
    decapsulates: NDArray[np.bool_] = has_expected & (len(host_usids) > 1)
    return decapsulates


def _key(vertex: int, usids: Usids) -> int:
    """The number by which rows are sorted: the vertex, the first uSID, and the second one or 0."""
    second = usids[1] if len(usids) > 1 else 0
    return vertex << 2 * USID_BITS | usids[0] << USID_BITS | second
