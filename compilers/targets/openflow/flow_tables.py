"""The OpenFlow tables as numbers: tables, priorities, kinds of rows, cookies and metadata.

The *program* of a switch is all its flows and groups; a *row* is a flow. The dispatch table takes
packets to the gateway, the MAC address that hosts send to. The table of routes writes the egress
class of the destination into metadata; an egress class is a forwarding equivalence class with its
next hops. The table of classes leads the packet to a group of the class (`class_groups`).

Some balances, that is load-balancing rules, *mark* packets of hosts in the MAC address, for the
next switch to *spread* them over its other links. Others let a packet carry an *intermediate*
switch there, to which it goes first (Valiant's routing).

`pipeline` says which rows a switch has. The controller recognises the rows and groups of polarfab
by the numbers here. docs/targets/openflow.md explains the tables row by row.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build

GENERATIONS = 2
"""A program comes in two generations of class and group numbers, so that two builds can be in
one switch side by side while it moves from one to the other (docs/how-to/move.md)."""
GROUP_SPACE = 1024
"""The group numbers of a generation: generation 0 has 1 to 1,024, generation 1 has 1,025 to 2,048.
"""
OUR_GROUPS = GENERATIONS * GROUP_SPACE
"""Groups 1 to 2,048 of a switch are polarfab's; the controller deletes those that are not of the
build."""

CLASS_MASK, INGRESS_BIT = 0xFFFF, 0x10000
"""The bits of metadata for the egress class, and the bit of packets that came from a host."""
GENERATION_BIT = 0x8000
"""Set in the metadata of the classes of generation 1; a switch has fewer classes than that."""
DIRECT_BIT = 0x4000
"""Set in the metadata of *direct* classes, which lead to a neighbour itself, where a balance marks
packets."""
MARKED_BIT = 0x20000
"""Set in the metadata of packets that came with a mark."""
SPREAD_MASK = MARKED_BIT | GENERATION_BIT | DIRECT_BIT
"""The bits of metadata that select the packets to spread over other links: those of a generation
that came with a mark, and whose class is not direct."""
MOST_BASIS = 0xFFFF
"""The largest seed (basis) of a hash. The number of the switch is the seed, so that neighbours hash
differently."""
NO_DIRECT_CLASSES = 1 << 16
"""In place of the number of the first direct class, where there is none: it is above the number of
any class."""

ND_ANSWER_FLAGS = 0xE0000000
"""The flags of a neighbour advertisement: router, solicited, override (RFC 4861, §4.4)."""


class Table(IntEnum):
    """The tables, in the order a packet passes them; ND rewrites the answer to a solicitation."""

    DISPATCH, ROUTES, CLASSES, ND = range(4)


class FlowPriority(IntEnum):
    """Priorities in the dispatch table. In the table of routes, the priority is a prefix length."""

    MARKER = 0
    """Packets that no other row takes. Their row is the marker of the build (`RowKind.MARKER`)."""
    FORWARD = 1
    """Packets for the gateway, marked or not, from any port."""
    GUARD = 2
    """All other packets from a host's port, which are dropped."""
    ENTER = 3
    """Packets for the gateway from a host's port."""
    SAME_SWITCH = 4
    """Packets for the gateway to a host of the same switch, which get no intermediate."""
    ANSWER = 5
    """Requests of ARP and neighbour discovery that the switch answers."""
    OWN = 6
    """A host's requests for its own address, and LLDP."""


class ClassPriority(IntEnum):
    """Priorities in the table of classes."""

    ANY_PORT = 1
    """Packets of a class from any port."""
    ONE_INGRESS = 2
    """Packets of a class from one port, or from hosts."""
    MARKED = 3
    """Packets that came in with a mark."""
    PORT_DOWN = 4
    """Packets whose intermediate is a neighbour behind a port that is down."""


class RowKind(IntEnum):
    """The kind of a message of a program. A row has the kind of the message that adds it.

    The messages of the kinds GROUP, CLEAR, OPEN, BARRIER and COMMIT add no row.

    The kind is in the upper 8 bits of the xid of a message, and in the lower 48 bits of the cookie
    of a row.
    """

    OWN = 1
    """A host's request for its own address, which is dropped."""
    ANSWER = 2
    """An answer to ARP or neighbour discovery."""
    FORWARD = 3
    """Packets to the gateway, in the dispatch table."""
    ROUTE = 4
    """The route to a prefix."""
    HOST = 5
    """The route to a host of the switch."""
    CLASS = 6
    """An egress class, in the table of classes."""
    MARKER = 7
    """The marker of the build, a row whose cookie names the build. It has nothing to do with the
    marks of packets."""
    GROUP = 8
    """A message that adds or changes a group."""
    CLEAR = 9
    """A message that deletes what a build does not have."""
    OPEN = 10
    """The message that opens a bundle."""
    BARRIER = 11
    """A barrier request."""
    COMMIT = 12
    """The message that commits a bundle."""
    DISCOVERY = 13
    """LLDP frames, which go to the controller."""
    SPREAD = 14
    """Marked packets, which are spread over other links."""
    CARRIED = 15
    """Packets that carry an intermediate switch in their MAC address."""
    GUARD = 16
    """All other packets from a host's port, which are dropped."""


COOKIE_SHIFT = 48
"""How far the upper 16 bits of a cookie are shifted. The lower 48 bits tell the kind of the row; in
the cookie of a *marker*, the last row of a program, they tell the build."""
COOKIE = 0x5046 << COOKIE_SHIFT
"""The upper 16 bits of the cookie of a row: "PF"."""
MARKERS = 0x5047 << COOKIE_SHIFT, 0x5045 << COOKIE_SHIFT
"""The upper 16 bits of the marker's cookie, by generation."""
COOKIE_MASK = 0xFFFC << COOKIE_SHIFT
"""The bits that all cookies of polarfab share, those of rows and those of markers."""
OURS = 0x5044 << COOKIE_SHIFT
"""The value of the bits of `COOKIE_MASK` in all cookies of polarfab."""


def cookie(kind: RowKind) -> int:
    """The cookie of a row."""
    return COOKIE | kind


def class_numbers(
    egress: NDArray[np.integer], generation: int, first_direct: int = NO_DIRECT_CLASSES
) -> NDArray[np.int64]:
    """int64[n]: the metadata that routes write for these egress classes.

    Args:
        egress: int[n], the classes.
        generation: 0 or 1.
        first_direct: the number k of the first direct class. The direct classes have the numbers k
            to 2k - 1, k being the most links of a switch.
    """
    number = egress.astype(np.int64)
    is_direct = (number >= first_direct) & (number < 2 * first_direct)
    number[is_direct] |= DIRECT_BIT
    return number | (GENERATION_BIT if generation else 0)


def class_metadata(
    egress: NDArray[np.int64],
    from_hosts: bool,
    generation: int = 0,
    first_direct: int = NO_DIRECT_CLASSES,
) -> tuple[NDArray[np.int64], int]:
    """The metadata that packets of these egress classes have: int64[n], and its mask.

    Args:
        egress: int64[n], the classes.
        from_hosts: whether only packets from hosts match, not packets from any port.
        generation: 0 or 1.
        first_direct: the number of the first direct class (`class_numbers`).
    """
    number = class_numbers(egress, generation, first_direct)
    if from_hosts:
        return number | INGRESS_BIT, CLASS_MASK | INGRESS_BIT
    return number, CLASS_MASK


def marker_cookie(build: Build, generation: int = 0) -> int:
    """The cookie of the build's marker.

    It has 16 bits for the generation, and the first 48 of the 64 bits of the build's identity.

    Raises:
        ValueError: the build has not been saved, so it has no identity.
    """
    return MARKERS[generation] | int(build.identity, 16) >> 16


def generation_of(marker: int | None) -> int:
    """The generation in a marker's cookie; 0 if the switch has no marker."""
    return int(marker is not None and marker >> COOKIE_SHIFT == MARKERS[1] >> COOKIE_SHIFT)
