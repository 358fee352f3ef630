"""A note before work that takes minutes: how many, by `compilers.estimates`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polarfab.output.verb_output import say

if TYPE_CHECKING:
    from compilers.estimates import Size


def say_time(size: Size, *works: str, part: float = 1) -> None:
    """Say how long each of these works takes, if that is over a minute and memory holds it.

    Args:
        size: of what is worked on.
        works: keys of `compilers.estimates.WORKS`.
        part: how much of each is to be done.
    """
    from compilers.estimates import WORKS, fits, long

    for work in works:
        if (time := long(work, size, part)) and fits(size, work):
            say(f"{WORKS[work].what} takes {time} on one processor; Ctrl-C ends it")
