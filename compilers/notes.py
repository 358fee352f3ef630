"""Notes of long work to whoever waits for it; the command line listens on a terminal."""

from __future__ import annotations

from collections.abc import Callable

listeners: list[Callable[[str], None]] = []


def note(text: str) -> None:
    """Tell all listeners."""
    for listener in listeners:
        listener(text)
