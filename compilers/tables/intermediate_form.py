"""The intermediate form: the tables of all switches, as arrays over the whole fabric.

One insight shapes it (docs/architecture.md): in ER_q the alternates and the repair depend only on
the switch and its minimal port, so a switch's program is *routes* (destination prefix to egress
class) and *classes* (what a class does): N + O(q) entries per switch, never N·q.

This module imports no other of polarfab. Its values are frozen and their arrays read-only; a pass
makes changed values with `dataclasses.replace`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

Egress = NDArray[np.uint8] | NDArray[np.uint16]


def empty_egress(switches: int, rows: int, classes: int) -> Egress:
    """[S, R] of the narrowest type that holds the class numbers, `local` and `no_route`."""
    if classes <= 254:
        return np.empty((switches, rows), np.uint8)
    return np.empty((switches, rows), np.uint16)


def local(egress: Egress) -> int:
    """The egress value of a switch's own prefix: deliver to the hosts."""
    return int(np.iinfo(egress.dtype).max)


def no_route(egress: Egress) -> int:
    """The egress value of a missing row."""
    return int(np.iinfo(egress.dtype).max) - 1


def _freeze(value: Any) -> None:
    for field in fields(value):
        array = getattr(value, field.name)
        if isinstance(array, np.ndarray):
            array.flags.writeable = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Routes:
    """Destination prefix to egress class: rows for longest-prefix match, without priorities.

    prefix: int32[G, R], the prefix number of each row, ascending. Numbers below S are a switch's
        own prefix (prefix d leads to switch d); from S on they are aggregates. S/G consecutive
        switches have the same prefixes: a supernode, or all of them (G = 1).
    egress: uint8 or uint16[S, R], the class, or `local` or `no_route`.
    aggregate: int32[S], the aggregate prefix that covers each switch's own, -1 where none does.
    """

    prefix: Annotated[NDArray[np.int32], "G R", "0..prefixes+1"]
    egress: Annotated[Egress, "S R", "0..C marks"]
    aggregate: Annotated[NDArray[np.int32], "S", "-1..prefixes"]

    def __post_init__(self) -> None:
        _freeze(self)

    @classmethod
    def without_aggregates(
        cls, egress: Egress, destinations: NDArray[np.integer] | None = None
    ) -> Routes:
        """One row a destination, ascending: `destinations`, or all."""
        order = len(egress)
        prefix = np.arange(order) if destinations is None else destinations
        return cls(prefix.astype(np.int32)[None], egress, np.full(order, -1, np.int32))

    def __repr__(self) -> str:
        """`<Routes: 57 switches, 57 rows each>`."""
        return f"<Routes: {len(self.egress):,} switches, {self.prefix.shape[1]:,} rows each>"

    @property
    def exact(self) -> bool:
        """Whether every switch has one row per destination, and column d is destination d."""
        order = len(self.egress)
        shared = self.prefix.shape == (1, order)
        return shared and bool((self.prefix[0] == np.arange(order)).all())

    @property
    def aggregated(self) -> bool:
        """Whether there are aggregate rows."""
        order = len(self.egress)
        # The last switches mostly have them; all rows of a large fabric take long.
        return any(bool((rows >= order).any()) for rows in (self.prefix[-1], self.prefix))

    def prefixes(self, switch: int) -> NDArray[np.int32]:
        """int32[R]: the prefix number of each row of a switch."""
        rows: NDArray[np.int32] = self.prefix[switch * len(self.prefix) // len(self.egress)]
        return rows

    def of(self, switch: int) -> tuple[NDArray[np.int32], NDArray[np.integer]]:
        """int32[n], int[n]: prefix numbers and classes of a switch; its own prefix is no route."""
        egress = self.egress[switch]
        kept = egress < no_route(egress)
        return self.prefixes(switch)[kept], egress[kept]

    def rows(self) -> NDArray[np.int64]:
        """int64[S]: the number of rows of each switch, its own prefix included."""
        if routed := getattr(self.egress, "routed", None):
            return np.asarray(routed())  # rows that are computed, counted without that
        none = no_route(self.egress)
        # One switch at a time is thirty times faster than counting along an axis.
        return np.array([np.count_nonzero(row != none) for row in self.egress], np.int64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Classes:
    """The egress classes: `Routes.egress` holds k for class k of a switch.

    port: int32[S, C], the minimal port, 0 where the switch has no such class.
    alternate: uint16[S, C, A], ports that share the class's ingress traffic, 0 beyond the last.
    weight: uint16[S, C, A + 1], shares of the minimal port and of each alternate.
    protection: uint16[S, C, F], ports to try in order when the minimal port is down.
    bounce: uint16[S, C, B], the same for a packet that arrived on the port the class would use.

    A = F = B = 0 is minimal routing without protection. A target does exactly this:

    - A packet from a host may take any port that is up and has a weight. If there is none, it is
      forwarded as in transit.
    - A packet in transit tries the minimal port and then those of `protection`, or those of
      `bounce` if it came in on the minimal port. It takes the first that is up and is not the port
      it came in on. If there is none, it goes back out of the port it came in on, if that is the
      minimal port or one of `protection`; else it is dropped.
    - With shortest paths shared at every hop (`Forwarding.every_hop`) a packet in transit takes any
      port that is up and has a weight, as one from a host does; one that came in on such a port
      tries those of `bounce`, and then the minimal one. A class with several such ports has no
      others that protect it.
    """

    port: Annotated[NDArray[np.int32], "S C", "0..ports+1"]
    alternate: Annotated[NDArray[np.uint16], "S C A", "0..ports+1"]
    weight: Annotated[NDArray[np.uint16], "S C A+1"]
    protection: Annotated[NDArray[np.uint16], "S C F", "0..ports+1"]
    bounce: Annotated[NDArray[np.uint16], "S C B", "0..ports+1"]

    def __post_init__(self) -> None:
        _freeze(self)

    def __repr__(self) -> str:
        """`<Classes: 57 switches, at most 8 classes each>`."""
        switches, most = self.port.shape
        return f"<Classes: {switches:,} switches, at most {most:,} classes each>"

    @classmethod
    def minimal(cls, port: NDArray[np.int32]) -> Classes:
        """Classes that use their minimal port only."""
        none = np.zeros((*port.shape, 0), np.uint16)
        weight = np.ones((*port.shape, 1), np.uint16)
        return cls(port=port, alternate=none, weight=weight, protection=none, bounce=none)

    def weighted(self, weights: NDArray[Any]) -> Classes:
        """The classes with other weights; those of ports that are not there become 0.

        Args:
            weights: [S, C, A + 1], whole numbers from 0 to 65,535.

        Raises:
            ValueError: a weight of a port is no such number.
        """
        alternate = np.asarray(self.alternate)
        ports: NDArray[Any] = np.concatenate((self.port[..., None], alternate), axis=2)
        weight = np.where(ports > 0, weights, 0)
        weight[..., 0] = weights[..., 0]  # as classes that are not there have one
        whole = weight.astype(np.uint16)
        if (whole != weight).any():
            raise ValueError("weights are whole numbers from 0 to 65,535")
        return replace(self, weight=whole)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tables:
    """The programs of all S switches of a fabric; `switches` in canonical vertex order."""

    routes: Routes
    classes: Classes

    def __repr__(self) -> str:
        """`<Tables: 57 switches, 57 rows each, at most 8 classes each>`."""
        rows, classes = self.routes.prefix.shape[1], self.classes.port.shape[1]
        return (
            f"<Tables: {self.switches:,} switches, {rows:,} rows each, "
            f"at most {classes:,} classes each>"
        )

    @property
    def switches(self) -> int:
        """S, the number of switches."""
        return len(self.routes.egress)
