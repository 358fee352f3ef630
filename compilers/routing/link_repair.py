"""Tables around links that have failed, made from the build's tables with as few changes as can be.

What comes in is a build (`IntactBuild`) and the links that have failed. What goes out are tables
that use none of these links (`RepairedTables`). The controller repairs switches with them, and a
compile of a damaged fabric starts from them (`compilers.routing.damaged_tables`). Without failures
they are the tables of the build.

- **Rows** change only for destinations towards which some row used a failed link. Packets to all
  other destinations keep their paths. A row towards such a destination changes if its next hop has
  failed, or is no longer on a shortest path (`compilers.routing.exact_rows`). In ER_q these are
  O(q) rows for a failed link. The row gets a class that its switch has for the new link: the class
  with most alternates of which none leads packets for this destination back to the switch
  (`compilers.routing.row_repair`).
- **Classes** change only at the ends of failed links (`compilers.routing.class_repair`). Where
  packets are shared at every hop, classes elsewhere also lose next hops that no longer lead nearer.
- Rows for destinations that are **cut off** are removed at the ends of failed links only. Rows of
  other switches still lead packets to these ends, where they are dropped. A switch without links
  keeps its tables.
- **Detours** of a balance avoid failures, too (`Tables.avoided`). Marked packets are not spread
  over failed links or to drained switches (`compilers.routing.marked_spread`), and not sent to a
  switch that has no link left for them. No packet goes by a drained intermediate
  (`compilers.routing.intermediates`).
- A **drained** switch, which may or may not work, gets packets for itself, and none in transit. Its
  own tables change only where a link of its own has failed, for the packets of its hosts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing.class_repair import DamagedFabric, repaired_classes
from compilers.routing.cut_off_pairs import count_cut_off_pairs
from compilers.routing.exact_rows import covered_destinations, with_rows
from compilers.routing.intact_build import IntactBuild
from compilers.routing.marked_spread import dead_ends
from compilers.routing.row_repair import RemainingLinks, without_rows
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import AvoidedLinks, Classes, Tables
from compilers.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True, eq=False)
class RepairedTables:
    """Tables that use no failed link, and where they differ from those of the build."""

    tables: Tables
    """The repaired tables."""
    fib: Fib
    """The repaired tables joined with all cables."""
    changed_rows: NDArray[np.int64]
    """int64[n, 2], the switch and the prefix number of each row that changed."""
    changed_classes: NDArray[np.int64]
    """int64[m, 2], the switch and the number of each class that changed."""
    diameter: int
    """The most links of a shortest path that is left, and at least the diameter before failures."""
    cut_off_pairs: int = 0
    """How many pairs of a switch and a destination no path joins any more, as `cut_off_pairs`."""
    switch_at_port: NDArray[np.int32] | None = None
    """`Wiring.far_by_port()` if packets are shared at every hop; else None, as nobody reads it."""

    @property
    def switches(self) -> NDArray[np.int64]:
        """The switches whose programs differ, ascending."""
        return np.union1d(
            np.union1d(self.changed_rows[:, 0], self.changed_classes[:, 0]), self.avoiding_switches
        )

    @property
    def avoiding_switches(self) -> NDArray[np.int64]:
        """The switches next to what packets on a detour avoid (`Tables.avoided`), ascending."""
        avoided = self.tables.avoided
        if avoided is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(avoided.links.any(axis=1))


def repair_tables(
    intact: IntactBuild, dead: NDArray[np.bool_], drained: NDArray[np.bool_] | None = None
) -> RepairedTables:
    """Return the tables around failed links.

    Rows are repaired first, then classes, whose repairs depend on the paths of the new rows.

    Args:
        intact: the build.
        dead: bool[S, K], links that carry nothing, marked at both ends.
        drained: bool[S], switches that shall pass nothing on; their own tables change only where
            they have failed links, or neighbours that shall pass nothing on either.
    """
    far = intact.wiring.far
    is_drained = np.zeros(len(far), np.bool_) if drained is None else drained
    avoided = avoided_links(far, dead, is_drained)
    live = (far >= 0) & ~avoided
    # bool[S], the switches whose tables may change.
    repairable = (np.count_nonzero(live, axis=1) > 0) & (~is_drained | avoided.any(axis=1))
    at_failures = np.flatnonzero(avoided.any(axis=1) & repairable)
    cables = intact.switch_at_port if intact.every_hop else None
    cut_off = count_cut_off_pairs(far, intact.endpoints, dead, is_drained)
    if not len(at_failures):
        none = np.zeros((0, 2), np.int64)
        return RepairedTables(
            tables=intact.tables,
            fib=intact.fib,
            changed_rows=none,
            changed_classes=none,
            diameter=intact.diameter,
            cut_off_pairs=cut_off,
            switch_at_port=cables,
        )

    # Rows.
    routes, removed = without_rows(intact, avoided, dead, at_failures)
    affected = covered_destinations(routes, removed[:, 1])
    remaining = RemainingLinks.of(
        intact, routes=routes, avoided=avoided, live=live, repairable=repairable, drained=is_drained
    )
    rows = remaining.new_rows(affected[intact.endpoints[affected]])
    routes = with_rows(routes, rows.switch, rows.destination, rows.new_class)

    # Classes.
    avoided_by_detours = AvoidedLinks(avoided, dead, is_drained) if intact.has_detours else None
    tables = replace(intact.tables, routes=routes, avoided=avoided_by_detours)
    damaged = DamagedFabric(
        tables=tables,
        fib=intact.fib_of(routes),
        wiring=intact.wiring,
        is_live=live,
        is_dead=dead,
        affected_switches=at_failures,
        destinations=np.flatnonzero(intact.endpoints),
        depth=rows.depth,
    )
    classes, changed = repaired_classes(damaged, intact.class_parts)
    if intact.every_hop:
        classes, farther = remaining.without_farther_hops(classes, damaged.fib, affected)
        changed = distinct_pairs(np.concatenate((changed, farther)))
    if intact.marks and avoided_by_detours:
        classes, spared = _without_dead_ends(intact.wiring, classes, avoided_by_detours)
        changed = distinct_pairs(np.concatenate((changed, spared)))

    added = np.column_stack((rows.switch, rows.destination))
    return RepairedTables(
        tables=replace(tables, classes=classes),
        fib=damaged.fib,
        changed_rows=distinct_pairs(np.concatenate((removed, added))),
        changed_classes=changed,
        diameter=rows.depth,
        cut_off_pairs=cut_off,
        switch_at_port=cables,
    )


def _without_dead_ends(
    wiring: Wiring, classes: Classes, avoided: AvoidedLinks
) -> tuple[Classes, NDArray[np.int64]]:
    """Remove alternates to neighbours that have no link left for marked packets from this switch.

    Args:
        wiring: all cables.
        classes: after the repair of the ends of failed links.
        avoided: the links that marked packets are not to use.

    Returns:
        The classes, and int64[m, 2], the switch and number of each class that changed.
    """
    removed = np.zeros(classes.alternate.shape, np.bool_)
    for switch, link in dead_ends(wiring, avoided).tolist():
        neighbour, port = wiring.far[switch, link], wiring.far_port[switch, link]
        removed[neighbour] |= classes.alternate[neighbour] == port
    changed = np.argwhere(removed.any(axis=2))
    if not len(changed):
        return classes, changed
    alternate = np.where(removed, np.uint16(0), classes.alternate)
    weight = np.array(classes.weight)
    weight[..., 1:][removed] = 0
    return replace(classes, alternate=alternate, weight=weight), changed


def avoided_links(
    far: NDArray[np.int32], dead: NDArray[np.bool_], drained: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the links that no packet in transit takes, bool[S, K]: dead, or to a drained switch.

    Links between two drained switches are among them.

    Args:
        far: int32[S, K], the neighbour at each link, -1 where there is none.
        dead: bool[S, K], links that carry nothing.
        drained: bool[S], the drained switches.
    """
    return dead | ((far >= 0) & drained[far])


def distinct_pairs(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return pairs, int64[n, 2] and none negative, each once and in order, int64[m, 2].

    >>> distinct_pairs(np.array([[2, 1], [0, 5], [2, 1]])).tolist()
    [[0, 5], [2, 1]]
    """
    width = int(pairs.max(initial=0)) + 1
    keys = np.sort(pairs[:, 0] * width + pairs[:, 1])  # np.unique hashes: 50 times as slow here
    is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    return np.column_stack(np.divmod(keys[is_first], width))
