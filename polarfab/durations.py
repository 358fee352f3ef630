"""Durations in words."""

from __future__ import annotations


def in_words(seconds: float) -> str:
    """A duration in its largest unit: `42 s`, `3 min`, `5 h`, `9 d`."""
    for limit, unit, word in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds // unit:.0f} {word}"
    return f"{seconds // 86400:.0f} d"
