"""Classes against the policy: shares of traffic, the alternates, the ports that repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from compilers.proof.detours import BACK, LATER, NEXT_HOP, Bits, Detours
from compilers.proof.port_use import Ports, PortUse
from compilers.proof.unsound import Unsound, where
from compilers.spec.policy import PROMISED
from compilers.spec.share import share
from compilers.tables.build import Build
from inventory.problems import Finding

BALANCES = ("minimal", "compact-valiant", "valiant", "ugal-pf")
EQUAL, LARGEST = "equal-cost", 65535
COARSE = Fraction(100)
"""Ratios of weights up to this, and down to its inverse, are fractions of numbers up to it."""


def words(build: Build) -> Iterator[Unsound]:
    """Words of a policy that nobody knows, or arrays that it does not ask for."""
    c = build.tables.classes
    for path, word, known in (
        ("routing.balance", build.balance, BALANCES),
        ("routing.protect", build.protect, tuple(PROMISED)),
        ("routing.disjoint", build.policy.get("disjoint", "edge"), ("none", "edge")),
    ):
        if word not in known:
            yield Unsound.one(path, f"one of {', '.join(known)}", f"{word}")
    for path in ("minimal_share", "threshold"):
        try:
            _share(build, build.policy.get(path, EQUAL))
        except (ValueError, AttributeError, TypeError):
            yield Unsound.one(f"routing.{path}", "a number from 0 to 1", str(build.policy[path]))
    for word, ports, asked in (
        ("alternate", c.alternate, build.balance != "minimal"),
        ("protection", c.protection, build.protect != "none"),
        ("bounce", c.bounce, build.protect != "none"),
    ):
        yield from where(
            (ports != 0) & ~np.bool_(asked),
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
    wanted = _share(build, build.policy.get("minimal_share", EQUAL))
    count = np.count_nonzero(c.alternate, axis=2)
    first, rest = c.weight[..., 0], c.weight[..., 1:]
    each = rest.max(axis=2, initial=0).astype(np.int64)
    there = np.arange(rest.shape[2]) < count[..., None]
    good = (rest == np.where(there, each[..., None], 0)).all(axis=2)
    keys = count << 32 | first.astype(np.int64) << 16 | each
    kinds, kind = np.unique(keys, return_inverse=True)
    fits = [_fits(key >> 32, key >> 16 & LARGEST, key & LARGEST, wanted) for key in kinds.tolist()]
    good &= np.array(fits, np.bool_)[kind.reshape(count.shape)]
    promised = "one for each port" if wanted is None else f"a share of {wanted} for the first"

    def finding(s: int, k: int) -> Finding:
        path = (build.wiring.names[s], "weight", k)
        return Finding(path, promised, " ".join(map(str, c.weight[s, k].tolist())))

    yield from where(~good, finding)


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


def detours(
    build: Build, use: PortUse, find: Callable[[Build], Detours] = Detours.of
) -> Iterator[Unsound]:
    """Alternates and orders of repair that lack a port, or have one that does not serve.

    A neighbour, which has no alternates, shares no class with what lies behind it; nor do two
    destinations, each with a row of its own, that different neighbours serve.

    Args:
        build: tables that deliver every pair.
        use: of its ports.
        find: its detours.
    """
    if build.balance == "minimal" and build.protect == "none":
        return
    found = find(build)
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
    edge = build.policy.get("disjoint", "edge") == "edge"
    balanced = build.balance != "minimal"
    if build.tables.routes.exact:
        yield from where(
            found.uneven(LATER if balanced and edge else NEXT_HOP) & behind,
            lambda s, k: Finding(
                (build.wiring.names[s], "class", k),
                "rows for what the same neighbours serve",
                "rows for what others serve, too",
            ),
        )
    if balanced:
        serves = found.without(LATER if edge else BACK) & behind[..., None]
        given = _by_link(build, use, c.alternate)
        missing, wrong = serves & ~given, given & ~serves & found.used[..., None]
        yield from _links(build, use, "alternate", missing, "{}", "nothing")
        yield from _links(build, use, "alternate", wrong, "a way that the policy allows", "{}")
    if build.protect != "none":
        repairs = found.without(NEXT_HOP)
        for word, order, rows in (
            ("protection", c.protection, found.used),
            ("bounce", c.bounce, behind),
        ):
            yield from _repairs(build, use, word, order, rows, repairs)


def _by_link(build: Build, use: PortUse, ports: Ports) -> Bits:
    """bool[S, C, K]: the links whose ports a class has."""
    order, classes, _ = ports.shape
    result = np.zeros((order, classes, build.wiring.port.shape[1]), np.bool_)
    link = use.links(ports)
    s, k, n = np.nonzero(link >= 0)
    result[s, k, link[s, k, n]] = True
    return result


def _links(
    build: Build, use: PortUse, word: str, wrong: Bits, required: str, given: str
) -> Iterator[Unsound]:
    """Links that a class lacks or should not have."""

    def finding(s: int, k: int, link: int) -> Finding:
        port = use.words(s, int(build.wiring.port[s, link]))
        path = (build.wiring.names[s], word, k)
        return Finding(path, required.format(port), given.format(port))

    yield from where(wrong, finding)


def _repairs(
    build: Build, use: PortUse, word: str, order: Ports, rows: Bits, repairs: Bits
) -> Iterator[Unsound]:
    """Orders that do not begin with ports that repair, as many as there are and it has room for."""
    most = np.count_nonzero(repairs, axis=2)[..., None]
    link = use.links(order)
    serves = np.take_along_axis(repairs, np.maximum(link, 0), axis=2) & (link >= 0)
    first = np.arange(order.shape[2]) < most
    yield from where(
        rows[..., None] & first & ~serves,
        lambda s, k, n: Finding(
            (build.wiring.names[s], word, k, n),
            "a port whose neighbour repairs the class",
            use.words(s, int(order[s, k, n])),
        ),
    )
