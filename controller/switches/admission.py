"""Admission of switches to programming: a bounded number at a time, first come, first served.

A program is computed when its switch is admitted, so memory holds only a few programs, and the
first switches are ready early.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

SWITCHES_AT_ONCE, ADMITTED_ROWS = 1024, 1_200_000
"""Switches that are read and programmed at the same time, and about how many rows they hold.

Both bound the memory used, and how long the answer of one waits behind those of others. Not fewer
switches: one ovs-vswitchd with a thousand bridges takes at most 50 messages of a connection in each
iteration, and an iteration costs the same for one bridge as for all.
"""


def most_at_once(switches: int) -> int:
    """The switches of a fabric that are read at the same time: each has a row for about each."""
    return min(SWITCHES_AT_ONCE, 1 + ADMITTED_ROWS // max(switches, 1))


@dataclass(slots=True)
class Admission:
    """At most `most` keys are admitted at once; begin is called with a key when it is admitted."""

    most: int
    begin: Callable[[Hashable], None]
    _now: set[Hashable] = field(default_factory=set)
    _waiting: dict[Hashable, None] = field(default_factory=dict)

    def ask(self, key: Hashable) -> None:
        """Admit a key, at once or later; a second request has no effect."""
        if key not in self._now:
            self._waiting[key] = None
            self._fill()

    def end(self, key: Hashable) -> None:
        """Release an admitted key, or drop a waiting one."""
        self._waiting.pop(key, None)
        self._now.discard(key)
        self._fill()

    def _fill(self) -> None:
        while self._waiting and len(self._now) < self.most:
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._now.add(key)
            self.begin(key)
