"""The as-wired check: differences from the plan, and the moves that repair them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compilers.audit.cable_moves import Move, components
from compilers.audit.relabel import Cycle, relabelling, renamed
from compilers.audit.resolve import Pairs, PortFinder, Wired
from compilers.wiring.hardware import PortFacts
from compilers.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True)
class WiringAudit:
    """The present cables compared with the plan, with ports numbered as if `rounds` were undone.

    rounds: cycles of swapped nodes, each in the place of the next. right: cables as planned.
    missing: planned cables with both ports empty. extra: present cables at ports that the plan
    leaves empty. misplaced: present cables at planned ports, but not as planned. absent: vertices
    that report nothing and that no neighbour sees. unseen: planned cables without neighbour data,
    at absent nodes or between two that report nothing. moves: the fewest that restore the plan.
    foreign: of a port that sees a device of no plan, the port that its cable should lead to.
    """

    planned: int
    rounds: tuple[Cycle, ...]
    right: Pairs
    missing: Pairs
    extra: Pairs
    misplaced: Pairs
    absent: tuple[int, ...]
    unseen: Pairs
    moves: tuple[Move, ...]
    foreign: Mapping[int, int]
    wired: Wired

    @property
    def good(self) -> bool:
        """Whether all cables with neighbour data are as planned."""
        as_planned = not self.moves and not self.rounds and not self.foreign
        return as_planned and not self.wired.unknown_ports


def check(wiring: Wiring, wired: Wired, types: tuple[PortFacts, ...] = ()) -> WiringAudit:
    """Compare the present cables with the plan; `types` are for parallel cables.

    A planned cable is checked if one of its nodes reports neighbours and neither is absent: planned
    nodes without neighbour data are not reported as missing.
    """
    ports = PortFinder(wiring, types)
    planned, width = ports.planned(), ports.width
    visible = _visible(planned, wired, width)
    rounds = relabelling(visible, wired, width, wiring.node_type.tolist())
    wired = renamed(wired, rounds, width)
    visible = _visible(planned, wired, width)
    parts = components(visible, wired.cables)
    right = visible & wired.cables
    lacking = {p for pair in visible - wired.cables for p in pair}
    surplus = {p for pair in wired.cables - visible for p in pair}
    linked = np.flatnonzero((wiring.far >= 0).any(axis=1))
    present = {a // width for pair in wired.cables for a in pair} | wired.reporters
    ends = {end: other for a, b in planned - right for end, other in ((a, b), (b, a))}
    foreign = {port: ends[port] for port, _ in wired.strangers if port in ends}
    return WiringAudit(
        planned=len(planned),
        rounds=rounds,
        right=right,
        missing=frozenset(p for p in visible - wired.cables if surplus.isdisjoint(p)),
        extra=frozenset(p for p in wired.cables - visible if lacking.isdisjoint(p)),
        misplaced=frozenset(p for p in wired.cables - visible if not lacking.isdisjoint(p)),
        absent=tuple(v for v in linked.tolist() if v not in present),
        unseen=planned - visible - wired.cables,
        moves=tuple(move for part in parts for move in part.moves(ports.vertex)),
        foreign=foreign,
        wired=wired,
    )


def _visible(planned: Pairs, wired: Wired, width: int) -> Pairs:
    """The planned cables between present nodes, at least one of which was read."""
    read = wired.reporters
    present = {a // width for pair in wired.cables for a in pair} | read
    nodes = ((pair, {pair[0] // width, pair[1] // width}) for pair in planned)
    return frozenset(p for p, ends in nodes if ends <= present and not read.isdisjoint(ends)) | (
        planned & wired.cables
    )
