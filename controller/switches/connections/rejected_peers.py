"""Rejected peers: each failure is counted, and told without flooding the log. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from controller.switches.events import Event, PeerEvent

RETELL = 60.0
"""Seconds between two lines about the same host and reason; the second says how often since."""
MOST_REASONS = 1000
"""Hosts and reasons that are told apart in that time; further ones share a line."""
OTHERS = "other hosts"

_Key = tuple[type[PeerEvent], str, str]


@dataclass(slots=True)
class RejectedPeers:
    """Peers that were turned away, by kind of event, host and reason."""

    tell: Callable[[Event], None]
    clock: Callable[[], float]
    total: int = 0
    _since: dict[_Key, float] = field(default_factory=dict)
    _more: dict[_Key, int] = field(default_factory=dict)

    def add(self, kind: type[PeerEvent], host: str, reason: str) -> None:
        """A peer on this host was turned away; the first time it is told at once."""
        self.total += 1
        key = kind, host, reason
        if key not in self._since and len(self._since) >= MOST_REASONS:
            key = kind, OTHERS, "too many hosts and reasons to tell them apart"
        if key in self._since:
            self._more[key] = self._more.get(key, 0) + 1
            return
        self._since[key] = self.clock()
        self.tell(kind(*key[1:], 1))

    def tick(self) -> None:
        """Time passes: tell what has happened again meanwhile, and forget what has not."""
        now = self.clock()
        for key in [key for key, since in self._since.items() if now - since >= RETELL]:
            if times := self._more.pop(key, 0):
                self._since[key] = now
                self.tell(key[0](*key[1:], times))
            else:
                del self._since[key]
