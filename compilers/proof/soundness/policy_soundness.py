"""Classes against the policy: shares of traffic, the alternates, the ports that repair.

Where alternates have to be shortest paths, distances are of the graph; the tables only say which
destinations share a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import Bits, Ports, PortUse, Sets, has, packed_alternates
from compilers.proof.soundness.unsound import Unsound, where
from compilers.proof.walks.detours import ANYTHING, BACK, LATER, NEXT_HOP, Detours
from compilers.spec.balances import Balance, balance_named, balance_names, own_balances
from compilers.spec.policy import EVERY_HOP, PROMISED, share
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes
from compilers.tables.packed_alternates import AlternatePorts, AlternateWeights, counts
from compilers.topology import polarity
from compilers.topology.distance import distances, neighbour_table
from inventory.problems import Finding

EQUAL, LARGEST = "equal-cost", 65535
COARSE = Fraction(100)
"""Ratios of weights up to this, and down to its inverse, are fractions of numbers up to it."""


def _balances(name: str) -> list[str]:
    """The balances that are known: polarfab's own, and others only where they are asked for."""
    return own if name in (own := own_balances()) else balance_names()


def _balance(name: str) -> Balance:
    """The balance of a build; of one that is not installed, what all have that say no more."""
    return balance_named(name) if name in _balances(name) else Balance()


def words(build: Build) -> Iterator[Unsound]:
    """Words of a policy that are unknown, or arrays that it does not ask for."""
    c = build.tables.classes
    for path, word, known in (
        ("routing.balance", build.balance, _balances(build.balance)),
        ("routing.protect", build.protect, tuple(PROMISED)),
        ("routing.disjoint", build.policy.get("disjoint", "edge"), ("none", "edge")),
        ("routing.adjacent", build.policy.get("adjacent", "minimal"), ("minimal", "bounce")),
        ("routing.transit", build.policy.get("transit", "minimal"), ("minimal", EVERY_HOP)),
    ):
        if word not in known:
            yield Unsound.one(path, f"one of {', '.join(known)}", f"{word}")
    try:
        _share(build, build.policy.get("minimal_share", EQUAL))
    except (ValueError, AttributeError, TypeError):
        given = str(build.policy["minimal_share"])
        yield Unsound.one("routing.minimal_share", "a number from 0 to 1", given)
    for word, ports, asked in (
        ("alternate", c.alternate, _balance(build.balance).alternates),
        ("protection", c.protection, build.protect != "none"),
        ("bounce", c.bounce, build.protect != "none" or bounces(build)),
    ):
        if asked:
            continue
        yield from where(
            ports != 0,
            lambda s, k, n, word=word, ports=ports: Finding(
                (build.wiring.names[s], word, k, n), "none in this policy", f"port {ports[s, k, n]}"
            ),
        )


def _share(build: Build, text: str) -> Fraction | None:
    q = build.topology.parameters.get("q", 0)
    return None if text == EQUAL else share(text, int(q))


def weights(build: Build) -> Iterator[Unsound]:
    """Weights that do not give the minimal path the share that is promised."""
    c = build.tables.classes
    if "demand" in build.policy:
        yield from _fitted_weights(build)
        return
    wanted = _share(build, build.policy.get("minimal_share", EQUAL))
    count, first, each, good = _shares(c)
    keys = count << 32 | first.astype(np.int64) << 16 | each
    kinds, kind = np.unique(keys, return_inverse=True)
    fits = [_fits(key >> 32, key >> 16 & LARGEST, key & LARGEST, wanted) for key in kinds.tolist()]
    good &= np.array(fits, np.bool_)[kind.reshape(count.shape)]
    promised = "one for each port" if wanted is None else f"a share of {wanted} for the first"

    def finding(s: int, k: int) -> Finding:
        path = (build.wiring.names[s], "weight", k)
        return Finding(path, promised, " ".join(map(str, c.weight[s, k].tolist())))

    yield from where(~good, finding)


def _fitted_weights(build: Build) -> Iterator[Unsound]:
    """Weights by a demand, where a class has none, or one without a port."""
    c = build.tables.classes
    alternate, weight = np.asarray(c.alternate), np.asarray(c.weight)
    there = alternate > 0
    none, some = weight[..., 1:] * ~there, weight.sum(axis=2, dtype=np.int64)
    good: Bits = (none.max(axis=2, initial=0) == 0) & (some > 0)

    def finding(s: int, k: int) -> Finding:
        path = (build.wiring.names[s], "weight", k)
        given = " ".join(map(str, weight[s, k].tolist()))
        return Finding(path, "weights of ports that there are, one above 0", given)

    yield from where(~good, finding)


def _shares(c: Classes) -> tuple[NDArray[np.int64], Ports, Ports, Bits]:
    """[S, C] each: alternates, the minimal port's weight, theirs, whether all have that alone."""
    if isinstance(c.alternate, AlternatePorts) and isinstance(c.weight, AlternateWeights):
        ports, spread = c.alternate.packed, c.weight.packed
        # No port is no alternate, as in the array of ports.
        count = counts(ports.links & np.packbits(ports.port > 0, axis=1)[:, None])
        weighted = np.minimum(counts(spread.links), c.weight.shape[2] - 1)
        each = spread.weight[..., 1] * (weighted > 0)
        good = (each == 0) | (count == weighted)
        return count.astype(np.int64), spread.weight[..., 0], each, good
    count = np.count_nonzero(c.alternate, axis=2)
    rest = c.weight[..., 1:]
    each = rest.max(axis=2, initial=0)
    there = np.arange(rest.shape[2]) < count[..., None]
    return count, c.weight[..., 0], each, (rest == there * each[..., None]).all(axis=2)


def _fits(alternates: int, first: int, each: int, wanted: Fraction | None) -> bool:
    """Whether the minimal port's weight and that of each alternate make the share."""
    if not alternates or wanted is None:
        return (first, each) == (1, 1 if alternates else 0)
    if wanted in (0, 1):
        return (first, each) == (int(wanted), 1 - int(wanted))
    ratio = wanted * alternates / (1 - wanted)
    if ratio > COARSE:
        return each == 1 and abs(min(ratio, Fraction(LARGEST)) - first) <= Fraction(1, 2)
    if ratio < 1 / COARSE:
        return first == 1 and abs(min(1 / ratio, Fraction(LARGEST)) - each) <= Fraction(1, 2)
    return 0 < each <= COARSE and abs(ratio * each - first) <= 1 / COARSE


def chooses(build: Build) -> bool:
    """Whether the policy asks for alternates or repair."""
    return _balance(build.balance).alternates or build.protect != "none"


def bounces(build: Build) -> bool:
    """Whether adjacent switches have alternates, which bounce."""
    return build.policy.get("adjacent") == "bounce"


def detours(build: Build, use: PortUse, found: Detours) -> Iterator[Unsound]:
    """Alternates and orders of repair that lack a port, or have one that does not serve.

    A neighbour, which has other alternates or none, shares no class with what lies behind it; nor
    do two destinations, each with a row of its own, that different neighbours serve.

    Alternates that have to be shortest paths are looked at by `shortest_paths`.

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
    balanced = _balance(build.balance).alternates
    if build.tables.routes.exact:
        yield from where(
            found.uneven(LATER if balanced and edge else NEXT_HOP) & behind,
            lambda s, k: Finding(
                (build.wiring.names[s], "class", k),
                "rows for what the same neighbours serve",
                "rows for what others serve, too",
            ),
        )
    if balanced and not _balance(build.balance).shortest:
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
        if _balance(build.balance).every_alternate:
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


def given_alternates(build: Build, use: PortUse) -> Sets:
    """The links of the alternates of each class."""
    if spread := packed_alternates(build, use):
        return spread.links
    ports = np.asarray(build.tables.classes.alternate)
    order, classes, _ = ports.shape
    width = build.wiring.port.shape[1] + 1
    result = np.zeros(order * classes * width, np.bool_)
    # What is no link, -1, is the last place of the row before, which belongs to no switch.
    row = np.arange(0, len(result), width).reshape(order, classes, 1)
    result[use.links(ports) + row] = True
    return np.packbits(result.reshape(order, classes, width)[..., :-1], axis=2)


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


SHORTEST_CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class ShortestPaths:
    """The links that shortest paths of S switches with C classes take, of K links each.

    used: bool[S, C], classes by which some destination is reached. every, some: bool[S, C, K], the
    link is on a shortest path to every destination of the class, or to some.
    """

    used: Bits
    every: Bits
    some: Bits

    @classmethod
    def of(cls, build: Build) -> ShortestPaths:
        """Look from every neighbour of every switch."""
        shape = (*build.tables.classes.port.shape, build.wiring.far.shape[1])
        result = cls(
            used=np.zeros(shape[:2], np.bool_),
            every=np.ones(shape, np.bool_),
            some=np.zeros(shape, np.bool_),
        )
        fib = Fib.of(build.tables, build.wiring.cables())
        table = neighbour_table(build.topology.graph)
        ends = np.flatnonzero(build.topology.endpoints)
        step = max(1, SHORTEST_CELLS_AT_ONCE // build.tables.switches)
        for first in range(0, len(ends), step):
            part = ends[first : first + step]
            result._add(fib.egress(part), distances(table, part), build.wiring.far)
        result.every[~result.used] = False
        return result

    def _add(
        self, egress: NDArray[np.unsignedinteger], links: NDArray[np.uint8], far: NDArray[np.int32]
    ) -> None:
        """Some destinations: [S, D], the class of each; uint8[D, S], how many links it is there."""
        order = np.argsort(egress, axis=1, kind="stable")
        count = np.count_nonzero(egress < self.used.shape[1], axis=1)
        for s in np.flatnonzero(count).tolist():
            columns = order[s, : count[s]]
            classes, first = np.unique(egress[s, columns], return_index=True)
            nearer = links[columns][:, far[s]] + 1 == links[columns, s][:, None]
            nearer &= far[s] >= 0
            self.used[s, classes] = True
            self.every[s, classes] &= np.logical_and.reduceat(nearer, first)
            self.some[s, classes] |= np.logical_or.reduceat(nearer, first)


def shortest_paths(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Alternates that lack a shortest path, or have a longer one.

    Args:
        build: tables that deliver every pair, of `balance: ecmp`.
        use: of its ports.
    """
    found, port = ShortestPaths.of(build), build.tables.classes.port
    if build.tables.routes.exact:  # a row that serves a supernode has the paths of all its switches
        yield from where(
            (found.every != found.some).any(axis=2),
            lambda s, k: Finding(
                (build.wiring.names[s], "class", k),
                "rows with the same shortest paths",
                "rows with others, too",
            ),
        )
    other = build.wiring.port[:, None] != port[..., None]
    given = given_alternates(build, use)
    wanted = np.packbits(found.every & other, axis=2)
    given[~found.used] = 0
    yield from wrong_links(build, use, "alternate", wanted & ~given, "{}", "nothing")
    wrong = given & ~wanted
    yield from wrong_links(build, use, "alternate", wrong, "a shortest path", "{}")
