"""The as-wired check: what differs from the plan, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compilers.audit.cable_moves import Move, components
from compilers.audit.relabel import Cycle, relabelling, renamed
from compilers.audit.resolve import Pairs, PortFinder, Wired
from compilers.wiring.hardware import PortFacts
from compilers.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True)
class WiringAudit:
    """A comparison. Ports are called by the places that nodes stand in, once `rounds` are undone.

    rounds: nodes in each other's places, each in the place of the next. right: the cables that are
    as planned; missing: planned ones with both ports empty; extra: present ones at ports that the
    plan leaves empty; misplaced: present ones at planned ports, but others than planned. absent:
    vertices that nobody sees and that say nothing; unseen: planned cables that nobody can see,
    of absent nodes or between two that say nothing. moves: the fewest that restore the plan.
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
    wired: Wired

    @property
    def good(self) -> bool:
        """Whether all that can be seen is as planned."""
        return not self.moves and not self.rounds and not self.wired.unknown_ports


def check(wiring: Wiring, wired: Wired, types: tuple[PortFacts, ...] = ()) -> WiringAudit:
    """Compare what is cabled with the plan.

    A planned cable counts where one of its nodes at least tells what it sees and neither is absent:
    a node that is not there yet lacks nothing. `types` know of parallel cables.
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
        wired=wired,
    )


def _visible(planned: Pairs, wired: Wired, width: int) -> Pairs:
    """The planned cables between nodes that are there, one of which at least was read."""
    said = wired.reporters
    there = {a // width for pair in wired.cables for a in pair} | said
    nodes = ((pair, {pair[0] // width, pair[1] // width}) for pair in planned)
    return frozenset(p for p, ends in nodes if ends <= there and not said.isdisjoint(ends)) | (
        planned & wired.cables
    )
