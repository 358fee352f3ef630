"""What has to be moved at panels between two builds of a fabric: cords, ribbons, trunks, cables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.panel_plan import CORD_COLUMNS, PanelPlan

KEPT, PULLED, PLUGGED = "kept", "pulled", "plugged"
PLUGS = ("kind", "a", "a_port", "b", "b_port")
MAKES = [CORD_COLUMNS.index(word) for word in (*PLUGS, "turned", "type", "length_m")]
Cords = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class PanelMoves:
    """The moves from one plan of panels to another.

    kinds: what is plugged, as `CORD_COLUMNS` says it. kept, pulled, plugged: rows of that; a cord
    is kept that is the same between the same plugs, and at no panel that is replaced. replaced,
    added: the names of panels, replaced where front ports lead elsewhere. interrupted: the number
    of links that stay, but not all of their cords.
    """

    kinds: tuple[str, ...]
    kept: Cords
    pulled: Cords
    plugged: Cords
    replaced: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    interrupted: int = 0

    @classmethod
    def of(cls, before: PanelPlan, after: PanelPlan) -> PanelMoves:
        """The moves at a fabric in which switches keep their numbers and names."""
        old, new = _types(before), _types(after)
        replaced = {name for name, rows in old.items() if new.get(name, rows) != rows}
        there, wanted = ({_physical(row): row for row in plan.cords()} for plan in (before, after))
        stays = {
            cord for cord in there.keys() & wanted.keys() if replaced.isdisjoint((cord[1], cord[3]))
        }
        paths, later = (_paths(plan, replaced) for plan in (before, after))
        return cls(
            (after.words[1], "trunk", "cable"),
            [row for cord, row in wanted.items() if cord in stays],
            [row for cord, row in there.items() if cord not in stays],
            [row for cord, row in wanted.items() if cord not in stays],
            tuple(name for name in old if name in replaced),
            tuple(name for name in new if name not in old),
            sum(not later[e] or later[e] != paths[e] for e in paths.keys() & later.keys()),
        )

    @classmethod
    def of_rest(cls, plan: PanelPlan, installed: NDArray[np.bool_]) -> PanelMoves:
        """What a partly installed fabric lacks; installed: bool[E], the links that are there.

        Panels are there in each rack that is.
        """
        there = installed[plan.first_cables((~installed).astype(np.int64))]
        rows = [*plan.cords()]
        kept, plugged = ([*compress(rows, chosen.tolist())] for chosen in (there, ~there))
        racks = plan.cables.hardware.rack[plan.cables.ends[installed]]
        added = tuple(compress(plan.names, (~np.isin(plan.rack, racks)).tolist()))
        return cls((plan.words[1], "trunk", "cable"), kept, [], plugged, added=added)

    def facts(self) -> dict[str, Any]:
        """The counts by kind, and the names of panels."""
        counts = {
            f"{kind}s_{word}": _counted(rows)[kind]
            for kind in self.kinds
            for word, rows in ((KEPT, self.kept), (PULLED, self.pulled), (PLUGGED, self.plugged))
        }
        panels = {"panels_added": list(self.added), "panels_replaced": list(self.replaced)}
        return {**counts, "links_interrupted": self.interrupted, **panels}

    def as_dict(self) -> dict[str, Any]:
        """What is pulled and plugged, for JSON."""
        rows = {PULLED: self.pulled, PLUGGED: self.plugged}
        return {w: [dict(zip(CORD_COLUMNS, r, strict=True)) for r in rows[w]] for w in rows}


def _counted(rows: Iterable[tuple[Any, ...]]) -> Counter[str]:
    return Counter(row[MAKES[0]] for row in rows)


def _types(plan: PanelPlan) -> dict[str, tuple[str, ...]]:
    """By the name of each panel where its front ports lead."""
    rows = [front for _, front in plan.types]
    return {name: rows[kind] for name, kind in zip(plan.names, plan.kind.tolist(), strict=True)}


def _physical(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """What makes a cord another one: its plugs, and how it is made."""
    return tuple(row[at] for at in MAKES)


def _paths(plan: PanelPlan, replaced: set[str]) -> dict[tuple[int, ...], tuple[Any, ...]]:
    """Of each link, by its switches and socket, ports and plugs; () through a replaced panel."""
    found = {}
    columns = (plan.cables.ends, plan.cables.ports, plan.panel, plan.front, plan.lane)
    each = np.stack([column.astype(np.int64) for column in columns], axis=2).tolist()
    for halves, socket in zip(each, plan.cables.socket.tolist(), strict=True):
        path = tuple(
            (port, plan.names[panel] if panel >= 0 else "", front, lane)
            for _, port, panel, front, lane in sorted(halves)
        )
        dark = any(name in replaced for _, name, _, _ in path)
        found[*sorted(half[0] for half in halves), socket] = () if dark else path
    return found
