"""The OpenFlow pipeline: which tables, priorities and cookies, and which rows a switch has.

Both renderings, wire messages and text for ovs-ofctl, are made from this. docs/openflow.md explains
the pipeline row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from compilers.build import Build
from compilers.tables import no_route
from compilers.targets.capabilities import Capabilities

GROUP_SPACE = 256
"""Groups 1 to 256 of a switch are ours; a push deletes them all."""

CAPABILITIES = Capabilities(target="openflow", groups=GROUP_SPACE)
CLASS_MASK = 0xFFFF
"""The bits of metadata that carry the egress class."""

IPV6_LENGTH = 64
ND_ANSWER_FLAGS = 0xE0000000
"""Router, solicited, override (RFC 4861, §4.4)."""


class Table(IntEnum):
    """The tables, in the order a packet passes them; ND rewrites the answer to a solicitation."""

    DISPATCH, ROUTES, CLASSES, ND = range(4)


class Priority(IntEnum):
    """Priorities in the dispatch table; a route's priority is its prefix length."""

    MARKER, FORWARD, ANSWER, OWN = range(4)


class Kind(IntEnum):
    """Kinds of rows and messages: the lower 48 bits of a cookie, the upper 8 of a message's xid."""

    OWN = 1
    ANSWER = 2
    FORWARD = 3
    ROUTE = 4
    HOST = 5
    CLASS = 6
    MARKER = 7
    GROUP = 8
    CLEAR = 9
    OPEN = 10
    BARRIER = 11
    COMMIT = 12


COOKIE, COOKIE_MASK = 0x5046 << 48, 0xFFFE << 48
"""Cookies of ours begin with 0x5046 ("PF"), the marker's with 0x5047; this mask takes both."""


def cookie(kind: Kind) -> int:
    """The cookie of a row."""
    return COOKIE | kind


def marker_cookie(build: Build) -> int:
    """0x5047 and the first 48 of the 64 bits of the build's identity.

    Raises:
        ValueError: the build has not been saved, so it has no identity.
    """
    return 0x5047 << 48 | int(build.identity, 16) >> 16


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The rows of every switch of a build, as numbers; ipv6 tells whether it has an IPv6 pool."""

    build: Build

    @property
    def ipv6(self) -> bool:
        """Whether there are rows for IPv6."""
        return self.build.addressing.ipv6 is not None

    def routes(self, vertex: int) -> tuple[NDArray[np.int32], NDArray[np.integer]]:
        """Prefix numbers and egress classes of a switch's routes; its own prefix is no route."""
        routes = self.build.tables.routes
        egress = routes.egress[vertex]
        kept = egress < no_route(egress)
        return routes.prefixes(vertex)[kept], egress[kept]

    def hosts(self, vertex: int) -> NDArray[np.int64]:
        """The numbers, from 0, of the hosts of a switch."""
        return np.flatnonzero(self.build.wiring.host_port[vertex] > 0)

    def classes(self, vertex: int) -> NDArray[np.int64]:
        """The egress classes of a switch; class k goes through group k + 1."""
        return np.flatnonzero(self.build.tables.classes.port[vertex] > 0)

    def rows(self, vertex: int) -> int:
        """How many flows a switch has when it is programmed."""
        fixed, families = (6, 2) if self.ipv6 else (3, 1)
        routes = len(self.routes(vertex)[0]) + 2 * len(self.hosts(vertex))
        return fixed + families * routes + len(self.classes(vertex))
