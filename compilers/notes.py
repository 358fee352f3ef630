"""Notes about the progress of long work; the command line shows them on a terminal."""

from __future__ import annotations

from collections.abc import Callable

listeners: list[Callable[[str], None]] = []
"""Functions that get each note."""


def note(text: str) -> None:
    """Pass a note to all listeners."""
    for listener in listeners:
        listener(text)
