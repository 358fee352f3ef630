"""The intermediate form: the tables of all switches, as arrays over the whole fabric.

In ER_q the alternates and the repair of a packet depend only on the switch and its minimal port
(docs/architecture.md). So a switch has two tables: *routes* lead from a destination prefix to an
egress class, and *classes* say what is done with the packets of a class. These are N + O(q) entries
per switch, where a next-hop group for each destination would take N·q.

Routing and balances make these tables, targets print them, and the proof follows packets through
them. This module imports no other of polarfab. Its values are frozen and their arrays read-only: a
pass makes changed values with `dataclasses.replace`.

Letters in shapes: S switches, R rows of a switch, C classes of a switch, A alternates of a class,
F repair ports (`protection`), B bounce ports, G groups of switches with the same prefixes. The
texts in `Annotated[…]` are the shape of an array, then the range of its values without the end;
"marks" adds the values `local` and `no_route`. `build_codec` checks them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

Egress = NDArray[np.uint8] | NDArray[np.uint16]


def empty_egress(switches: int, rows: int, classes: int) -> Egress:
    """Return an uninitialised array [S, R] of the narrowest type that holds all egress values.

    These are the class numbers, `local` and `no_route`.

    >>> empty_egress(57, 57, 8).dtype, empty_egress(57, 57, 255).dtype
    (dtype('uint8'), dtype('uint16'))
    """
    if classes <= 254:
        return np.empty((switches, rows), np.uint8)
    return np.empty((switches, rows), np.uint16)


def local(egress: Egress) -> int:
    """Return the egress value of a switch's own prefix: deliver to its hosts."""
    return int(np.iinfo(egress.dtype).max)


def no_route(egress: Egress) -> int:
    """Return the egress value of a missing row: there is no route, so drop."""
    return int(np.iinfo(egress.dtype).max) - 1


def _freeze(table: Routes | Classes) -> None:
    """Make the arrays of a table read-only."""
    for declared in fields(table):
        array = getattr(table, declared.name)
        if isinstance(array, np.ndarray):
            array.flags.writeable = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Routes:
    """Destination prefix to egress class: rows for longest-prefix match, without priorities."""

    prefix: Annotated[NDArray[np.int32], "G R", "0..prefixes+1"]
    """int32[G, R], the prefix number of each row, ascending.

    Numbers below S are a switch's own prefix: prefix d leads to switch d. Numbers from S on are
    aggregates. A *group* is S/G consecutive switches, which have the same prefixes: those of a
    supernode, or all switches (G = 1).
    """
    egress: Annotated[Egress, "S R", "0..C marks"]
    """uint8 or uint16[S, R], the class of each row, or `local` or `no_route`."""
    aggregate: Annotated[NDArray[np.int32], "S", "-1..prefixes"]
    """int32[S], the aggregate prefix that covers each switch's own, -1 where none does."""

    def __post_init__(self) -> None:
        _freeze(self)

    @classmethod
    def without_aggregates(
        cls, egress: Egress, destinations: NDArray[np.integer] | None = None
    ) -> Routes:
        """Return routes with one row for each destination, in ascending order.

        Args:
            egress: uint8 or uint16[S, R], the class of each switch for each destination.
            destinations: int[R], ascending; all switches where it is left out.
        """
        switches = len(egress)
        prefix = np.arange(switches) if destinations is None else destinations
        return cls(prefix.astype(np.int32)[None], egress, np.full(switches, -1, np.int32))

    def __repr__(self) -> str:
        """`<Routes: 57 switches, 57 rows each>`."""
        return f"<Routes: {len(self.egress):,} switches, {self.prefix.shape[1]:,} rows each>"

    @property
    def exact(self) -> bool:
        """Whether every switch has one row per destination, and column d is destination d."""
        switches = len(self.egress)
        one_group = self.prefix.shape == (1, switches)
        return one_group and bool((self.prefix[0] == np.arange(switches)).all())

    @property
    def aggregated(self) -> bool:
        """Whether any switch has a row for an aggregate."""
        switches = len(self.egress)
        # The last group is looked at first, as looking at all rows of a large fabric takes long.
        # If any group has aggregates, the last one mostly has them, too.
        return any(bool((rows >= switches).any()) for rows in (self.prefix[-1], self.prefix))

    @property
    def group_size(self) -> int:
        """S/G, how many consecutive switches have the same prefixes."""
        return len(self.egress) // len(self.prefix)

    def prefixes(self, switch: int) -> NDArray[np.int32]:
        """Return the prefix number of each row of a switch, int32[R]."""
        rows: NDArray[np.int32] = self.prefix[self.group_of(switch)]
        return rows

    def group_of(self, switch: Any) -> Any:
        """Return the group of a switch, or of each switch of an array."""
        return switch * len(self.prefix) // len(self.egress)

    def of(self, switch: int) -> tuple[NDArray[np.int32], NDArray[np.integer]]:
        """Return the prefix numbers, int32[n], and the classes, int[n], of a switch's routes.

        The row of the switch's own prefix is left out: packets for it are delivered.
        """
        egress = self.egress[switch]
        is_route = egress < no_route(egress)
        return self.prefixes(switch)[is_route], egress[is_route]

    def rows(self) -> NDArray[np.int64]:
        """Count the rows of each switch, int64[S], its own prefix included."""
        if row_counts := getattr(self.egress, "row_counts", None):
            return np.asarray(row_counts())  # a computed array knows the number without its rows
        none = no_route(self.egress)
        # One switch at a time is thirty times faster than counting along an axis.
        return np.array([np.count_nonzero(row != none) for row in self.egress], np.int64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Classes:
    """The egress classes: `Routes.egress` holds k for class k of a switch.

    A = F = B = 0 is minimal routing without protection. A switch does exactly this:

    - A packet from a host may take any port that is up and has a weight. If there is none, it is
      forwarded as in transit.
    - A packet in transit tries the minimal port and then those of `protection`, or those of
      `bounce` if it came in on the minimal port. It takes the first that is up and is not the port
      it came in on. If there is none, it goes back out of the port it came in on, if that is the
      minimal port or one of `protection`; else it is dropped.
    - With shortest paths shared at every hop (`Forwarding.every_hop`) a packet in transit takes any
      port that is up and has a weight, as a packet from a host does. If it came in on a port with a
      weight, it tries the ports of `bounce`, and then the minimal port. A class with several ports
      that have a weight has no ports of `protection`.
    """

    port: Annotated[NDArray[np.int32], "S C", "0..ports+1"]
    """int32[S, C], the minimal port, 0 where the switch has no such class."""
    alternate: Annotated[NDArray[np.uint16], "S C A", "0..ports+1"]
    """uint16[S, C, A], the alternates: ports that share packets of hosts with the minimal port.

    0 stands beyond the last alternate of a class.
    """
    weight: Annotated[NDArray[np.uint16], "S C A+1"]
    """uint16[S, C, A + 1], the weights of the minimal port and of each alternate."""
    protection: Annotated[NDArray[np.uint16], "S C F", "0..ports+1"]
    """uint16[S, C, F], ports to try in order when the minimal port is down."""
    bounce: Annotated[NDArray[np.uint16], "S C B", "0..ports+1"]
    """uint16[S, C, B], ports to try in order for a packet that came in on the minimal port."""

    def __post_init__(self) -> None:
        _freeze(self)

    def __repr__(self) -> str:
        """`<Classes: 57 switches, at most 8 classes each>`."""
        switches, most = self.port.shape
        return f"<Classes: {switches:,} switches, at most {most:,} classes each>"

    @classmethod
    def minimal(cls, port: NDArray[np.int32]) -> Classes:
        """Return classes that use only their minimal ports, int32[S, C]."""
        none = np.zeros((*port.shape, 0), np.uint16)
        weight = np.ones((*port.shape, 1), np.uint16)
        return cls(port=port, alternate=none, weight=weight, protection=none, bounce=none)

    def weighted(self, weights: NDArray[Any]) -> Classes:
        """Return the classes with other weights; weights without a port become 0.

        Args:
            weights: [S, C, A + 1], whole numbers from 0 to 65,535.

        Raises:
            ValueError: the weight of a port is no whole number from 0 to 65,535.
        """
        alternate = np.asarray(self.alternate)
        ports: NDArray[Any] = np.concatenate((self.port[..., None], alternate), axis=2)
        weight = np.where(ports > 0, weights, 0)
        # Classes without a port keep the weight of their minimal port: `minimal` gives them one.
        weight[..., 0] = weights[..., 0]
        stored = weight.astype(np.uint16)
        if (stored != weight).any():
            raise ValueError("weights are whole numbers from 0 to 65,535")
        return replace(self, weight=stored)


@dataclass(frozen=True, slots=True, eq=False)
class AvoidedLinks:
    """The links and switches over which repaired tables send no packets on a detour.

    A balance may send packets on a detour through other switches: marked packets, and packets that
    carry an intermediate.
    """

    links: NDArray[np.bool_]
    """bool[S, K], the links over which marked packets are not spread, as they have failed or lead
    to a drained switch."""
    dead: NDArray[np.bool_]
    """bool[S, K], those of these links that have failed."""
    switches: NDArray[np.bool_]
    """bool[S], the drained switches. Their neighbours send a packet that carries one of them as its
    intermediate on to its destination."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tables:
    """The routes and classes of all S switches of a fabric, in canonical vertex order."""

    routes: Routes
    """Which class each switch uses for each destination prefix."""
    classes: Classes
    """What each switch does with the packets of each class."""
    avoided: AvoidedLinks | None = field(default=None, metadata={"stored": "unless default"})
    """What packets on a detour avoid, of a balance that marks packets or has intermediates; None:
    nothing. Only repaired tables have it, which are not stored."""

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
