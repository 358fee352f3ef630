"""Claims: connections that name the datapath id of a switch that is connected already. No I/O.

The switch that has the place keeps it until it is dead: until its connection has ended, or until it
has not answered a probe. A switch that returns may come before its old connection is known to be
dead; one that was given another's datapath id comes while that one lives.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

PROBE_PATIENCE = 5.0
"""Seconds that a switch may take to answer a probe; then its place goes to the claim."""
DUPLICATE_TOLD = 10.0
"""Seconds without another claim after which a duplicate counts as gone; Open vSwitch tries again
after 8 s."""


@dataclass(slots=True)
class Claims:
    """At most one claim a vertex. duplicates: a message for each whose switch has answered."""

    clock: Callable[[], float]
    duplicates: dict[int, str] = field(default_factory=dict)
    _claims: dict[int, tuple[Hashable, float]] = field(default_factory=dict)
    _answered: dict[int, float] = field(default_factory=dict)

    def add(self, vertex: int, key: Hashable) -> bool:
        """A connection claims a place; False if another one does already."""
        if vertex in self._claims:
            return False
        self._claims[vertex] = key, self.clock()
        return True

    def take(self, vertex: int) -> Hashable | None:
        """The connection that claims this place, if any; the claim is over."""
        return self._claims.pop(vertex, (None, 0.0))[0]

    def ended(self, key: Hashable) -> None:
        """A connection has ended, and with it its claim."""
        for vertex in [v for v, (other, _) in self._claims.items() if other == key]:
            del self._claims[vertex]

    def answered(self, vertex: int, text: str) -> bool:
        """The switch that has the place is alive; whether this is news."""
        news = vertex not in self.duplicates
        self.duplicates[vertex], self._answered[vertex] = text, self.clock()
        return news

    def unanswered(self) -> list[int]:
        """Places whose switches have not answered in time; forgets duplicates that are gone."""
        now = self.clock()
        for vertex in [v for v, at in self._answered.items() if now - at > DUPLICATE_TOLD]:
            del self._answered[vertex], self.duplicates[vertex]
        return [v for v, (_, since) in self._claims.items() if now - since > PROBE_PATIENCE]

    def clear(self) -> None:
        """Forget all."""
        for kept in (self.duplicates, self._claims, self._answered):
            kept.clear()
