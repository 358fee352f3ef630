"""Check that the tables of a build are as its `Forwarding` says, whatever balance made them.

A build says which alternates its classes have, how traffic is shared, and which failures switches
repair (`compilers.spec.forwarding`). Each function here yields the values that contradict one of
these statements. What alternates and repairs there can be follows from the minimal paths of the
neighbours (`loop_free_alternates`); `build_soundness` calls the functions.

In the findings, s is a switch, k a class of it, and n a place in an order of ports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Bits, Sets, alternate_sets, has
from compilers.proof.soundness.port_use import Ports, PortUse
from compilers.proof.soundness.unsound import Unsound, unsound_where
from compilers.proof.walks.loop_free_alternates import Conflict, NeighbourPaths
from compilers.routing.alternate_weights import weight_pairs
from compilers.tables.build import Build
from compilers.tables.packed_alternates import AlternatePorts, AlternateWeights, counts
from compilers.topology import polarity
from inventory.problems import Finding


def weights(build: Build) -> Iterator[Unsound]:
    """Classes whose weights do not divide traffic as the build says.

    An alternate may also have weight 0. Nothing is required of weights that are fitted, or that are
    the balance's own (`any`).
    """
    forwarding, c = build.forwarding, build.tables.classes
    if forwarding.weights in ("fitted", "any") or not c.alternate.shape[2]:
        return
    w = _class_weights(build)
    required = weight_pairs(w.alternates, forwarding.minimal_share).astype(np.int64)
    right = (w.least == w.most) & (w.minimal * required[..., 1] == w.most * required[..., 0])

    def finding(s: int, k: int) -> Finding:
        """The finding for class k of a switch."""
        words = f"{required[s, k, 0]} to {required[s, k, 1]}, the minimal port to each alternate"
        path = (build.wiring.names[s], "weight", k)
        return Finding(path, words, " ".join(map(str, c.weight[s, k].tolist())))

    yield from unsound_where(~right & (w.alternates > 0), finding)


class _ClassWeights(NamedTuple):
    """The weights of all classes, int[S, C] each."""

    alternates: NDArray[Any]
    """How many alternates the class has."""
    minimal: NDArray[Any]
    """The weight of the minimal port."""
    least: NDArray[Any]
    """The least weight of an alternate."""
    most: NDArray[Any]
    """The greatest weight of an alternate."""


def _class_weights(build: Build) -> _ClassWeights:
    """The weights of all classes of a build with alternates."""
    c = build.tables.classes
    if isinstance(c.alternate, AlternatePorts) and isinstance(c.weight, AlternateWeights):
        ports, packed = c.alternate.packed, c.weight.packed
        count = counts(ports.links & np.packbits(ports.port > 0, axis=1)[:, None])
        weighted = counts(packed.links)
        weight = packed.weight[..., 1]  # one weight for all alternates that have any
        least = np.where(weighted >= count, weight, 0)
        most = np.where(weighted > 0, weight, 0)
        return _ClassWeights(count, packed.weight[..., 0], least, most)
    is_port, weight = np.asarray(c.alternate) > 0, np.asarray(c.weight)
    alternates = weight[..., 1:]
    least = np.where(is_port, alternates, np.iinfo(np.uint16).max).min(axis=2)
    most = np.where(is_port, alternates, 0).max(axis=2)
    return _ClassWeights(np.count_nonzero(is_port, axis=2), weight[..., 0], least, most)


def class_rows(build: Build, paths: NeighbourPaths) -> Iterator[Unsound]:
    """Classes that have rows for destinations which need different classes.

    A neighbour has other alternates than the switches behind it, so it has a class of its own. Two
    destinations for which different neighbours can serve as alternates need two classes; this is
    looked at if each destination has a row of its own.

    Args:
        build: its tables deliver every pair, and have alternates or repairs.
        paths: the paths of the neighbours of its switches.
    """
    forwarding, behind = build.forwarding, paths.behind & ~paths.direct
    yield from unsound_where(
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
        limit = Conflict.LATER if disjoint else Conflict.NEXT_HOP
        yield from _mixed_rows(build, paths.partly_served(limit) & behind)


def alternates(build: Build, use: PortUse, paths: NeighbourPaths) -> Iterator[Unsound]:
    """Alternates that a class lacks, and alternates that the build's statement does not allow.

    Args:
        build: its tables deliver every pair.
        use: the use of its ports.
        paths: the paths of the neighbours of its switches.
    """
    forwarding = build.forwarding
    present = alternate_sets(build, use)
    required, allowed = _alternates_by_paths(build, paths)
    if forwarding.alternates == "some":
        required = np.zeros_like(required)
    wrong = present & ~allowed
    wrong[~paths.used] = 0
    yield from _wrong_links(build, use, required & ~present, "{}", "nothing")
    yield from _wrong_links(build, use, wrong, "a path that the policy allows", "{}")
    if forwarding.alternates == "shortest" and build.tables.routes.exact:
        yield from _mixed_rows(build, paths.partly_downstream())


def _alternates_by_paths(build: Build, paths: NeighbourPaths) -> tuple[Sets, Sets]:
    """The alternates that classes must have, unless they have only some, and those they may
    have.
    """
    forwarding = build.forwarding
    loop_free = paths.candidates_below(Conflict.LATER if forwarding.disjoint else Conflict.BACK)
    if forwarding.alternates == "shortest":
        downstream = np.packbits(paths.downstream_for_all, axis=2)
        downstream &= loop_free
        return downstream, downstream
    if forwarding.marks:  # the next switch forwards marked packets by a link that serves
        loop_free = paths.candidates_below(Conflict.ANY)
    else:
        loop_free[~(paths.behind & ~paths.direct)] = 0
    if not forwarding.bounces:
        return loop_free, loop_free
    # A neighbour can also be reached over links whose far end bounces packets. In a whole PolarFly
    # every neighbour bounces; elsewhere only loop-free ones are required.
    to_neighbour, whole = paths.direct & ~paths.behind, polarity.is_whole(build.topology)
    any_link = paths.candidates_below(Conflict.ANY)
    required = loop_free.copy()
    to_neighbours = any_link if whole else paths.candidates_below(Conflict.BACK)
    required[to_neighbour] = to_neighbours[to_neighbour]
    return required, np.where(to_neighbour[..., None], any_link, required)


def constructed_alternates(build: Build, use: PortUse, links: Sets) -> Iterator[Unsound]:
    """Alternates that differ from those that the family constructs.

    Args:
        build: its alternates are compared. If it says that it has only some, it may lack others.
        use: the use of its ports.
        links: uint8[S, C, ⌈K/8⌉], the links of the constructed alternates.
    """
    present = alternate_sets(build, use)
    if build.forwarding.alternates != "some":
        yield from _wrong_links(build, use, links & ~present, "{}", "nothing")
    yield from _wrong_links(build, use, present & ~links, "a path that the policy allows", "{}")


def no_alternates(build: Build, use: PortUse) -> Iterator[Unsound]:
    """All alternates, in a build that says it has none."""
    if build.tables.classes.alternate.shape[2]:
        present = alternate_sets(build, use)
        yield from _wrong_links(build, use, present, "no alternates", "{}")


def repairs(build: Build, use: PortUse, paths: NeighbourPaths) -> Iterator[Unsound]:
    """Classes whose ports for repairs do not begin with ports that serve.

    Args:
        build: its tables deliver every pair, and packets in transit have one next hop.
        use: the use of its ports.
        paths: the paths of the neighbours of its switches.
    """
    forwarding, c = build.forwarding, build.tables.classes
    serving = paths.candidates_below(Conflict.NEXT_HOP)
    if forwarding.repairs:
        yield from _repairs(build, use, "protection", c.protection, paths.used, serving)
    if forwarding.repairs or forwarding.bounces:
        behind = paths.behind & ~paths.direct
        yield from _repairs(build, use, "bounce", c.bounce, behind, serving)


def _mixed_rows(build: Build, mixed: Bits) -> Iterator[Unsound]:
    """Findings for `mixed` classes: their destinations are not served by the same neighbours."""
    yield from unsound_where(
        mixed,
        lambda s, k: Finding(
            (build.wiring.names[s], "class", k),
            "rows for what the same neighbours serve",
            "rows for what others serve, too",
        ),
    )


def _class_numbers(build: Build, paths: NeighbourPaths) -> Iterator[Unsound]:
    """Classes whose number says something else than their rows.

    Targets tell by the number whether a class leads to a neighbour alone: it is the second class
    with the port of this neighbour, and from K to 2K - 1 where packets are marked.
    """
    port, links = build.tables.classes.port, build.wiring.port.shape[1]
    order = np.argsort(port, axis=1, kind="stable")
    ranked = np.take_along_axis(port, order, axis=1)
    is_second = np.zeros(port.shape, np.bool_)  # the second class of a port, not the third
    is_second[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    is_second[:, 2:] &= ranked[:, 2:] != ranked[:, :-2]
    direct = np.zeros(port.shape, np.bool_)
    np.put_along_axis(direct, order, is_second, axis=1)
    if build.forwarding.marks:
        direct &= np.arange(port.shape[1]) // links == 1
    words = {True: "the neighbour alone", False: "what is behind the neighbour"}
    yield from unsound_where(
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
    """Findings for the links in `wrong`, which a class lacks or should not have as alternates.

    {} in `required` or `given` stands for the port of the link.
    """

    def finding(s: int, k: int, link: int) -> Finding:
        """The finding for a link of class k of a switch."""
        port = use.words(s, int(build.wiring.port[s, link]))
        path = (build.wiring.names[s], "alternate", k)
        return Finding(path, required.format(port), given.format(port))

    if wrong.any():
        count = build.wiring.port.shape[1]
        yield from unsound_where(np.unpackbits(wrong, axis=2, count=count) > 0, finding)


def _repairs(
    build: Build, use: PortUse, word: str, order: Ports, rows: Bits, repairs: Sets
) -> Iterator[Unsound]:
    """Classes whose order of ports does not begin with ports that repair.

    Args:
        build: its names are in the findings.
        use: the use of its ports.
        word: the name of the order, `protection` or `bounce`.
        order: int[S, C, n], its ports.
        rows: bool[S, C], the classes that are looked at.
        repairs: uint8[S, C, ⌈K/8⌉], the links that repair. All of them come first in the order, or
            n of them if it has room for n.
    """
    serves = has(repairs, use.links(order))
    first = np.arange(order.shape[2]) < counts(repairs)[..., None]
    yield from unsound_where(
        rows[..., None] & first & ~serves,
        lambda s, k, n: Finding(
            (build.wiring.names[s], word, k, n),
            "a port whose neighbour repairs the class",
            use.words(s, int(order[s, k, n])),
        ),
    )
