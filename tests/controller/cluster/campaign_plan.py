"""The events of a campaign of faults: a pure function of a seed.

How they meet what the controller is doing just then is up to the machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from compilers.tables.build import Build

MOST_DARK, MOST_CUT = 2, 3


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens."""

    kind: str
    """One of `KINDS`, or `OUTAGE`."""
    vertex: int = -1
    """The switch that it happens to."""
    link: tuple[int, int] = (-1, -1)
    """The link that it happens to."""
    chance: int = 0
    """A number for all else that is chosen."""
    pause: float = 0.0
    """Seconds until the next event."""
    away: tuple[int, ...] = ()
    """The switches without management, of an outage."""
    seconds: int = 0
    """How long an outage lasts."""


KINDS: Mapping[str, float] = {
    "port flaps": 3,
    "cable cut": 3,
    "cable mended": 2,
    "switch killed": 1.5,
    "switch returns": 1,
    "switch reboots": 1,
    "Open vSwitch killed": 0.5,
    "controller killed": 1,
    "controller ended": 0.7,
    "controller killed in a move": 1,
    "journal damaged": 0.5,
    "build changed": 1.5,
    "row deleted": 1,
    "row altered": 1,
    "row of ours added": 1,
    "row that ends by itself": 0.7,
    "rows all deleted": 0.5,
    "group altered": 1,
    "group deleted": 0.7,
    "group of ours added": 0.7,
    "host forges its source": 1,
    "table limited": 1,
    "port set to drop": 1,
    "foreign row added": 1,
    "foreign row over ours": 1,
    "idle connections": 0.7,
    "impostor": 1,
    "stolen certificate": 1,
    "thread killed": 0.4,
    "cable silent one way": 1,
    "connection slow": 1.5,
    "connection cut": 1.5,
    "connection hung": 1.5,
    "message truncated": 1,
    "bytes flipped": 1.5,
    "message swallowed": 1,
    "request refused": 3,
}
"""How often each kind of event comes, in proportion."""
OUTAGE = "management away"
"""The kind of an outage of management, which comes first in a round: all is well before, and
nothing else explains a loss."""
LONGEST_OUTAGE, SOME = 30, 4
"""Outages last 1 s to so many; and switches that an outage of some is about."""
LATER_OUTAGES = 4
"""Once an outage of each length has been, every so many rounds begin with one."""
BY_HAND = [kind for kind in KINDS if kind.startswith(("row", "group", "foreign"))]
FAULTS = {
    "connection slow": "slow",
    "connection cut": "cut",
    "connection hung": "hang",
    "message truncated": "truncate",
    "bytes flipped": "flip",
    "message swallowed": "swallow",
    "request refused": "refuse",
}


UNBOUNDED = {*FAULTS, "journal damaged", "thread killed", "foreign row over ours"} - {
    "connection hung",
    "connection cut",
}
"""Kinds while which no time is stated in which packets pass again."""


def plan(
    build: Build, seed: int, events: int, together: int = 6, endured: bool = False
) -> list[list[Event]]:
    """So many events in rounds of up to `together`; each can happen when those before it have.

    Each of the first rounds begins with an outage of management, of all lengths in any order.

    endured: every second round has only events around which packets pass soon.
    """
    chance = random.Random(seed)  # noqa: S311
    far = build.wiring.far
    links = [(int(u), int(far[u, k])) for u, k in np.argwhere(far >= 0) if far[u, k] > u]
    rounds: list[list[Event]] = []
    outages = _outages(chance, range(len(far)))
    while events > 0:
        count = min(events, chance.randint(2, together))
        kinds = {*KINDS} - (UNBOUNDED if endured and len(rounds) % 2 else set())
        begins = len(rounds) < LONGEST_OUTAGE or len(rounds) % LATER_OUTAGES == 0
        first = [next(outages)] if begins else []
        rest = _round(chance, links, len(far), count - len(first), kinds)
        rounds.append([*first, *rest])
        events -= count
    return rounds


def _outages(chance: random.Random, switches: Sequence[int]) -> Iterator[Event]:
    """Outages of all lengths in any order, then again; each third is about all, some, or one."""
    while True:
        lengths = chance.sample(range(1, LONGEST_OUTAGE + 1), LONGEST_OUTAGE)
        sizes = chance.sample([len(switches), SOME, 1] * (LONGEST_OUTAGE // 3), LONGEST_OUTAGE)
        for seconds, size in zip(lengths, sizes, strict=True):
            yield Event(OUTAGE, away=tuple(chance.sample(switches, size)), seconds=seconds)


def _round(
    chance: random.Random,
    links: list[tuple[int, int]],
    switches: int,
    count: int,
    allowed: Set[str],
) -> Iterator[Event]:
    dark: set[int] = set()
    cut: set[tuple[int, int]] = set()
    silent: set[tuple[int, int]] = set()  # with a bridge in the cable, whose ends have to stay
    for _ in range(count):
        possible = {
            "cable cut": len(cut) < MOST_CUT,
            "cable mended": bool(cut),
            "switch killed": len(dark) < MOST_DARK,
            "switch returns": bool(dark),
            "switch reboots": len(dark) < MOST_DARK,
        }
        kinds = [kind for kind in KINDS if kind in allowed and possible.get(kind, True)]
        kind = chance.choices(kinds, [KINDS[kind] for kind in kinds])[0]
        kept = dark.union(*silent)
        vertex = chance.choice([v for v in range(switches) if v not in kept])
        whole = [link for link in links if link not in cut | silent and not dark & set(link)]
        link = chance.choice(whole)
        if kind == "switch returns":
            vertex = chance.choice(sorted(dark))
        elif kind == "cable mended":
            link = chance.choice(sorted(cut))
        cut ^= {link} if kind in ("cable cut", "cable mended") else set()
        silent |= {link} if kind == "cable silent one way" else set()
        dark ^= {vertex} if kind in ("switch killed", "switch returns") else set()
        pause = chance.choice((0, 0.05, 0.3, 1.2))
        yield Event(kind, vertex, link, chance.randrange(1 << 30), pause)
