"""The tables of a build against what it says of them (`compilers.spec.forwarding.Forwarding`).

Alternates, shares and the ports that repair are compared with the paths that there are, whatever
balance made them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compilers.proof.soundness.port_use import Bits, Ports, PortUse, Sets, given_alternates, has
from compilers.proof.soundness.unsound import Unsound, where
from compilers.proof.walks.detours import ANYTHING, BACK, LATER, NEXT_HOP, Detours
from compilers.routing.choose import weight_pairs
from compilers.tables.build import Build
from compilers.tables.packed_alternates import AlternatePorts, AlternateWeights, counts
from compilers.topology import polarity
from inventory.problems import Finding


def weights(build: Build) -> Iterator[Unsound]:
    """Shares that are not as the build says; of alternates, those that have any.

    Weights that are fitted, or the balance's own, may be any.
    """
    forwarding, c = build.forwarding, build.tables.classes
    if forwarding.weights in ("fitted", "any") or not c.alternate.shape[2]:
        return
    if isinstance(c.alternate, AlternatePorts) and isinstance(c.weight, AlternateWeights):
        ports, packed = c.alternate.packed, c.weight.packed
        count = counts(ports.links & np.packbits(ports.port > 0, axis=1)[:, None])
        weighted = counts(packed.links)
        minimal, weight = packed.weight[..., 0], packed.weight[..., 1]
        least, most = weight * (weighted >= count), weight * (weighted > 0)
    else:
        there, weight = np.asarray(c.alternate) > 0, np.asarray(c.weight)
        count, minimal, others = np.count_nonzero(there, axis=2), weight[..., 0], weight[..., 1:]
        least = np.where(there, others, np.iinfo(np.uint16).max).min(axis=2)
        most = np.where(there, others, 0).max(axis=2)
    required = weight_pairs(count, forwarding.minimal_share).astype(np.int64)
    right = (least == most) & (minimal * required[..., 1] == most * required[..., 0])

    def finding(s: int, k: int) -> Finding:
        words = f"{required[s, k, 0]} to {required[s, k, 1]}, the minimal port to each alternate"
        path = (build.wiring.names[s], "weight", k)
        return Finding(path, words, " ".join(map(str, c.weight[s, k].tolist())))

    yield from where(~right & (count > 0), finding)


def class_rows(build: Build, paths: Detours) -> Iterator[Unsound]:
    """Classes with rows for destinations that need different ones.

    A neighbour, which has other alternates or none, shares no class with what lies behind it; nor
    do two destinations, each with a row of its own, that different neighbours serve.

    Args:
        build: tables that deliver every pair, with alternates or repair.
        paths: of its classes.
    """
    forwarding, behind = build.forwarding, paths.behind & ~paths.direct
    yield from where(
        paths.behind & paths.direct,
        lambda s, k: Finding(
            (build.wiring.names[s], "class", k),
            "rows for the neighbour alone, or none for it",
            "rows for it and for others",
        ),
    )
    yield from _class_numbers(build, paths)
    if build.tables.routes.exact:
        disjoint = forwarding.has_alternates and forwarding.disjoint
        yield from _mixed_rows(build, paths.uneven(LATER if disjoint else NEXT_HOP) & behind)


def alternates(build: Build, use: PortUse, paths: Detours) -> Iterator[Unsound]:
    """Alternates that a class lacks, or that are not as the build says.

    Args:
        build: tables that deliver every pair.
        use: of its ports.
        paths: of its classes.
    """
    forwarding = build.forwarding
    given = given_alternates(build, use)
    required, allowed = _alternates_by_paths(build, paths)
    if forwarding.alternates == "some":
        required = np.zeros_like(required)
    wrong = given & ~allowed
    wrong[~paths.used] = 0
    yield from _wrong_links(build, use, required & ~given, "{}", "nothing")
    yield from _wrong_links(build, use, wrong, "a path that the policy allows", "{}")
    if forwarding.alternates == "shortest" and build.tables.routes.exact:
        yield from _mixed_rows(build, paths.unevenly_shorter())


def _alternates_by_paths(build: Build, paths: Detours) -> tuple[Sets, Sets]:
    """The links of alternates that classes must have where they have all, and of those allowed."""
    forwarding = build.forwarding
    loop_free = paths.without(LATER if forwarding.disjoint else BACK)
    if forwarding.alternates == "shortest":
        shortest = np.packbits(paths.shorter, axis=2)
        shortest &= loop_free
        return shortest, shortest
    if forwarding.marks:  # the next switch sends them on by a link that serves
        loop_free = paths.without(ANYTHING)
    else:
        loop_free[~(paths.behind & ~paths.direct)] = 0
    if not forwarding.bounces:
        return loop_free, loop_free
    # Those that bounce depend on how: all do in a whole PolarFly.
    alone, whole = paths.direct & ~paths.behind, polarity.is_whole(build.topology)
    most = paths.without(ANYTHING)
    required = loop_free.copy()
    required[alone] = most[alone] if whole else paths.without(BACK)[alone]
    return required, np.where(alone[..., None], most, required)


def constructed_alternates(build: Build, use: PortUse, links: Sets) -> Iterator[Unsound]:
    """Alternates other than these, uint8[S, C, B], or where it has only some, beyond these."""
    given = given_alternates(build, use)
    if build.forwarding.alternates != "some":
        yield from _wrong_links(build, use, links & ~given, "{}", "nothing")
    yield from _wrong_links(build, use, given & ~links, "a path that the policy allows", "{}")


def no_alternates(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Alternates of a build that says it has none."""
    if build.tables.classes.alternate.shape[2]:
        given = given_alternates(build, use)
        yield from _wrong_links(build, use, given, "no alternates", "{}")


def repairs(build: Build, use: PortUse, paths: Detours) -> Iterator[Unsound]:
    """Orders of repair that lack a port, or have one that does not serve.

    Args:
        build: tables that deliver every pair, in which packets in transit have one port.
        use: of its ports.
        paths: of its classes.
    """
    forwarding, c = build.forwarding, build.tables.classes
    serving = paths.without(NEXT_HOP)
    if forwarding.repairs:
        yield from _repairs(build, use, "protection", c.protection, paths.used, serving)
    if forwarding.repairs or forwarding.bounces:
        behind = paths.behind & ~paths.direct
        yield from _repairs(build, use, "bounce", c.bounce, behind, serving)


def _mixed_rows(build: Build, mixed: Bits) -> Iterator[Unsound]:
    """Classes whose destinations are not all served by the same neighbours."""
    yield from where(
        mixed,
        lambda s, k: Finding(
            (build.wiring.names[s], "class", k),
            "rows for what the same neighbours serve",
            "rows for what others serve, too",
        ),
    )


def _class_numbers(build: Build, paths: Detours) -> Iterator[Unsound]:
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
    if build.forwarding.marks:
        direct &= np.arange(port.shape[1]) // links == 1
    words = {True: "the neighbour alone", False: "what is behind the neighbour"}
    yield from where(
        (paths.direct & ~direct) | (paths.behind & direct),
        lambda s, k: Finding(
            (build.wiring.names[s], "class", k),
            f"rows for {words[bool(direct[s, k])]}, by its number",
            f"rows for {words[not direct[s, k]]}",
        ),
    )


def _wrong_links(
    build: Build, use: PortUse, wrong: Sets, required: str, given: str
) -> Iterator[Unsound]:
    """Alternates that a class lacks or should not have; {} in a text is the link's port."""

    def finding(s: int, k: int, link: int) -> Finding:
        port = use.words(s, int(build.wiring.port[s, link]))
        path = (build.wiring.names[s], "alternate", k)
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
