"""Detours: the alternates of classes, and the ports that repair, against the paths that there are.

What balances and `protect` promise is asked of them by their names.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compilers.proof.soundness.port_use import Bits, Ports, PortUse, Sets, given_alternates, has
from compilers.proof.soundness.unsound import Unsound, where
from compilers.proof.walks.detours import ANYTHING, BACK, LATER, NEXT_HOP, Detours
from compilers.tables.build import Build
from compilers.tables.packed_alternates import counts
from compilers.topology import polarity
from inventory.problems import Finding


def chooses(build: Build) -> bool:
    """Whether the policy asks for alternates or repair."""
    return build.spreading.alternates or build.protect != "none"


def bounces(build: Build) -> bool:
    """Whether adjacent switches have alternates, which bounce."""
    return build.policy.get("adjacent") == "bounce"


def detours(build: Build, use: PortUse, found: Detours) -> Iterator[Unsound]:
    """Alternates and orders of repair that lack a port, or have one that does not serve.

    A neighbour, which has other alternates or none, shares no class with what lies behind it; nor
    do two destinations, each with a row of its own, that different neighbours serve.

    Of alternates that have to be shortest paths only the repairs are looked at.

    Args:
        build: tables that deliver every pair, by a policy that `chooses`.
        use: of its ports.
        found: its detours.
    """
    c = build.tables.classes
    behind = found.behind & ~found.direct
    yield from where(
        found.behind & found.direct,
        lambda s, k: Finding(
            (build.wiring.names[s], "class", k),
            "rows for the neighbour alone, or none for it",
            "rows for it and for others",
        ),
    )
    yield from _class_numbers(build, found)
    edge = build.policy.get("disjoint", "edge") == "edge"
    balanced = build.spreading.alternates
    if build.tables.routes.exact:
        yield from where(
            found.uneven(LATER if balanced and edge else NEXT_HOP) & behind,
            lambda s, k: Finding(
                (build.wiring.names[s], "class", k),
                "rows for what the same neighbours serve",
                "rows for what others serve, too",
            ),
        )
    if balanced and not build.spreading.shortest:
        serves = found.without(LATER if edge else BACK)
        serves[~behind] = 0
        if build.marks:  # the next switch sends them on by a link that serves
            serves = found.without(ANYTHING)
        allowed = serves
        if bounces(build):
            # Those that bounce depend on how: all do in a whole PolarFly.
            alone, whole = found.direct & ~found.behind, polarity.is_whole(build.topology)
            most = found.without(ANYTHING)
            serves[alone] = most[alone] if whole else found.without(BACK)[alone]
            allowed = np.where(alone[..., None], most, serves)
        given = given_alternates(build, use)
        missing, wrong = serves & ~given, given & ~allowed
        wrong[~found.used] = 0
        if build.spreading.every_alternate:
            yield from wrong_links(build, use, "alternate", missing, "{}", "nothing")
        yield from wrong_links(
            build, use, "alternate", wrong, "a path that the policy allows", "{}"
        )
    repairs = found.without(NEXT_HOP)
    for word, order, rows, asked in (
        ("protection", c.protection, found.used, build.protect != "none"),
        ("bounce", c.bounce, behind, build.protect != "none" or bounces(build)),
    ):
        if asked:
            yield from _repairs(build, use, word, order, rows, repairs)


def alternates(build: Build, use: PortUse, links: Sets) -> Iterator[Unsound]:
    """Alternates that are not these, uint8[S, C, B]."""
    given = given_alternates(build, use)
    yield from wrong_links(build, use, "alternate", links & ~given, "{}", "nothing")
    wrong = given & ~links
    yield from wrong_links(build, use, "alternate", wrong, "a path that the policy allows", "{}")


def _class_numbers(build: Build, found: Detours) -> Iterator[Unsound]:
    """Classes that targets would take for what they are not, by their numbers.

    That of a neighbour itself is the second of its port, from K to 2K where packets are marked.
    """
    port, links = build.tables.classes.port, build.wiring.port.shape[1]
    order = np.argsort(port, axis=1, kind="stable")
    ranked = np.take_along_axis(port, order, axis=1)
    second = np.zeros(port.shape, np.bool_)
    second[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    second[:, 2:] &= ranked[:, 2:] != ranked[:, :-2]
    direct = np.zeros(port.shape, np.bool_)
    np.put_along_axis(direct, order, second, axis=1)
    if build.marks:
        direct &= np.arange(port.shape[1]) // links == 1
    words = {True: "the neighbour alone", False: "what is behind the neighbour"}
    yield from where(
        (found.direct & ~direct) | (found.behind & direct),
        lambda s, k: Finding(
            (build.wiring.names[s], "class", k),
            f"rows for {words[bool(direct[s, k])]}, by its number",
            f"rows for {words[not direct[s, k]]}",
        ),
    )


def wrong_links(
    build: Build, use: PortUse, word: str, wrong: Sets, required: str, given: str
) -> Iterator[Unsound]:
    """Links that a class lacks or should not have."""

    def finding(s: int, k: int, link: int) -> Finding:
        port = use.words(s, int(build.wiring.port[s, link]))
        path = (build.wiring.names[s], word, k)
        return Finding(path, required.format(port), given.format(port))

    if wrong.any():
        count = build.wiring.port.shape[1]
        yield from where(np.unpackbits(wrong, axis=2, count=count).view(np.bool_), finding)


def _repairs(
    build: Build, use: PortUse, word: str, order: Ports, rows: Bits, repairs: Sets
) -> Iterator[Unsound]:
    """Orders that do not begin with ports that repair, as many as there are and it has room for."""
    most = counts(repairs)[..., None]
    serves = has(repairs, use.links(order))
    first = np.arange(order.shape[2]) < most
    yield from where(
        rows[..., None] & first & ~serves,
        lambda s, k, n: Finding(
            (build.wiring.names[s], word, k, n),
            "a port whose neighbour repairs the class",
            use.words(s, int(order[s, k, n])),
        ),
    )
