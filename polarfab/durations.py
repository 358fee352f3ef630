"""Durations on the command line: reads words such as 90s, 10m or 2h, and prints seconds."""

from __future__ import annotations

import re

import click

from inventory.problems import InputError

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
"""The seconds of each unit."""
DURATION = re.compile(r"([1-9][0-9]{0,6})([smhd])", re.ASCII)
"""A duration such as `10m`."""
LIMITS = ((2 * 60, 1, "s"), (2 * 3600, 60, "min"), (2 * 86400, 3600, "h"))
"""Of the units in which a duration is printed: below how many seconds it is used, its seconds, and
its word. A larger unit is used from two of it on."""


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """The type of an option that takes a duration with its unit; the value is whole seconds."""

    name = "time"

    def convert(
        self, value: str | int, param: click.Parameter | None, _ctx: click.Context | None
    ) -> int:
        """The seconds of a text such as 10m."""
        if isinstance(value, int):
            return value
        match = DURATION.fullmatch(value)
        if match is None:
            raise InputError.of(
                "a number with s, m, h or d, such as 10m",
                value,
                key="".join(param.opts[:1]) if param else "",
            )
        return int(match[1]) * UNITS[match[2]]


def in_words(seconds: float) -> str:
    """A duration in its largest unit: `42 s`, `3 min`, `5 h`, `9 d`."""
    for limit, unit, word in LIMITS:
        if seconds < limit:
            return f"{seconds // unit:.0f} {word}"
    return f"{seconds // UNITS['d']:.0f} d"
