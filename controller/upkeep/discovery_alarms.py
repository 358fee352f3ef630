"""The alarms of link discovery: links that it doubts, and cables that are plugged in elsewhere.

`controller.upkeep.link_state` passes what discovery finds (`controller.upkeep.discovery`) once a
second, and reports the events that are returned. No I/O; the caller passes the time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from compilers.audit.cable_moves import CableMove
from compilers.audit.socket_numbers import SocketNumbers
from compilers.audit.wiring_audit import WiringAudit
from compilers.wiring.wiring import Wiring
from controller.switches import events
from controller.switches.events import Event
from inventory.problems import first_names

MOST_NAMED = 3
"""Links or switches that an alarm names."""
LinkNames = Callable[[NDArray[np.bool_]], list[str]]
"""The names of links, bool[E]."""


class DiscoveryAlarms:
    """The alarms of a fabric's discovery, each reported once. There are E links.

    Args:
        wiring: the planned cables.
        links: how many links there are.
        link_names: gives links names.

    Attributes:
        doubtful: bool[E], the links that discovery doubts, and that stay in use.
        reported_miswires: the misplaced cables that were reported last, a sentence for each plug to
            move.
    """

    def __init__(self, wiring: Wiring, links: int, link_names: LinkNames) -> None:
        self.doubtful = np.zeros(links, np.bool_)
        self.reported_miswires: tuple[str, ...] = ()
        self._link_names, self._ports = link_names, SocketNumbers(wiring)
        self._latest_miswires: tuple[str, ...] = ()
        """The misplaced cables that were found last, in the same form as `reported_miswires`."""
        self._miswires_since = 0.0
        """Since when exactly these have been found."""

    def doubt(self, doubtful: NDArray[np.bool_]) -> list[Event]:
        """Take the doubtful links.

        Returns:
            An event if a link has become doubtful, or if none is doubtful any more.
        """
        before, self.doubtful = self.doubtful, doubtful
        if (doubtful & ~before).any():
            names = self._link_names(doubtful)
            return [events.LinksDoubtful(len(names), first_names(names, MOST_NAMED))]
        if before.any() and not doubtful.any():
            return [events.LinksCertain()]
        return []

    def miswire(self, miswired: WiringAudit | None, turn: float, now: float) -> list[Event]:
        """Take the misplaced cables. They count once they were found for a turn of all switches.

        Before that, discovery may have seen only some of several moved cables.

        Args:
            miswired: the misplaced cables; None if there are none.
            turn: the seconds in which every switch has sent its frames.
            now: the time.

        Returns:
            If they are others than those reported last: an event for each plug to move, or one that
            says that all cables are right.
        """
        moves = miswired.moves if miswired else ()
        miswires = tuple(move.sentence(self._ports) for move in moves)
        if miswires != self._latest_miswires:
            self._latest_miswires, self._miswires_since = miswires, now
        if miswires == self.reported_miswires or now - self._miswires_since < turn:
            return []
        self.reported_miswires = miswires
        if not miswired or not miswires:
            return [events.CablesRight()]
        misplaced = len(miswired.misplaced)
        return [
            events.CableMisplaced(misplaced, sentence, *self._plug_of(move))
            for move, sentence in zip(moves, miswires, strict=True)
        ]

    def _plug_of(self, move: CableMove) -> tuple[str, ...]:
        """What kind of move it is, and the node and port at both ends, as the event has them."""
        node, name = self._ports.node, self._ports.name
        return move.kind, node(move.a), name(move.a), node(move.b), name(move.b)
