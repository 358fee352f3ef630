"""Who may be programmed now: a bounded number at a time, first come, first served.

Programs are made when their switch's turn comes, so memory holds a few of them and not all; and
the first switches are done early, instead of all of them late.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Turns:
    """At most `most` keys have their turn; begin is called when a key's turn comes."""

    most: int
    begin: Callable[[Hashable], None]
    _now: set[Hashable] = field(default_factory=set)
    _waiting: dict[Hashable, None] = field(default_factory=dict)

    def ask(self, key: Hashable) -> None:
        """Have a turn, at once or later; asking twice is asking once."""
        if key not in self._now:
            self._waiting[key] = None
            self._fill()

    def end(self, key: Hashable) -> None:
        """Let a key's turn end, or its wait."""
        self._waiting.pop(key, None)
        self._now.discard(key)
        self._fill()

    def _fill(self) -> None:
        while self._waiting and len(self._now) < self.most:
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._now.add(key)
            self.begin(key)
