"""Supernodes: the small graphs that PolarStar puts in place of a structure vertex (§5.1, §6.2).

What comes in is a kind and a degree. What goes out is a `Supernode`, or its size by formula. The
family PolarStar calls `supernode` and `shape`.

Neighbouring copies of a supernode are joined by a bijection f of its members. The star product with
ER_q has diameter 3 if f has one of two properties. Every supernode is checked for its property:

- Property R*, where f is its own inverse (an involution): for all members x', y' one of these
  holds: y' = x', y' = f(x'), x' is joined to y', f(x') is joined to f(y');
- Property R1, for other f: every pair of members is an edge, or the image of one under f.

The degree of a supernode is called d'. `SUPERNODE_KINDS` has the five kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.field import field, powers, prime_power


@dataclass(frozen=True, slots=True)
class Supernode:
    """A graph of k members, and the bijection f that joins two copies of the graph.

    >>> paley = supernode("paley", 2)
    >>> paley.order, paley.degree, paley.involution
    (5, 2, False)
    """

    name: str
    """The kind of supernode."""
    graph: Graph
    """The links between members."""
    forward: NDArray[np.int32]
    """int32[k], f, used along an arc: from the smaller structure vertex to the larger."""
    backward: NDArray[np.int32]
    """int32[k], the inverse of f, used from the larger to the smaller vertex."""

    def __post_init__(self) -> None:
        """Check the property.

        Raises:
            ValueError: f does not have it.
        """
        self.forward.flags.writeable = False
        self.backward.flags.writeable = False
        if not self.has_property():
            raise ValueError(f"{self.name} lacks Property {'R*' if self.involution else 'R1'}")

    @property
    def order(self) -> int:
        """The number of members, k."""
        return self.graph.order

    @property
    def degree(self) -> int:
        """The largest degree of a member, d'."""
        return int(self.graph.degrees.max(initial=0))

    @property
    def involution(self) -> bool:
        """Whether f is its own inverse, so that arcs need no direction."""
        return bool(np.array_equal(self.forward, self.backward))

    def loops(self) -> NDArray[np.int32]:
        """Return the members with a loop link in the supernode of a quadric, int32[L].

        The self-loop of a quadric joins a member x' to f(x') of the same copy, if f is an
        involution and the two are different and not joined already.
        """
        members: NDArray[np.int32] = np.arange(self.order, dtype=np.int32)
        joined = self.adjacency()[members, self.forward] | (members == self.forward)
        with_loop: NDArray[np.int32] = members[~joined & self.involution]
        return with_loop

    def adjacency(self) -> NDArray[np.bool_]:
        """Return which members are joined, bool[k, k]."""
        table = np.zeros((self.order, self.order), np.bool_)
        table[self.graph.tails(), self.graph.targets] = True
        return table

    def has_property(self) -> bool:
        """Whether f has Property R* if it is an involution, else Property R1."""
        edges = self.adjacency()
        joined = edges | edges[np.ix_(self.forward, self.forward)]
        members = np.arange(self.order)
        joined[members, members] = True
        if self.involution:
            joined[members, self.forward] = True
        return bool(joined.all())


class SupernodeShape(NamedTuple):
    """The size of a supernode, by formula."""

    order: int
    """The number of members."""
    links: int
    """The number of links between them."""
    loops: int
    """The number of loop links in the supernode of a quadric."""


@dataclass(frozen=True, slots=True)
class SupernodeKind:
    """A kind of supernode."""

    requirement: str
    """The degrees for which there is one, in words."""
    shape: Callable[[int], SupernodeShape | None]
    """Returns the size for a degree, None where there is no such supernode."""
    make: Callable[[int], Supernode]
    """Makes the supernode of a degree."""


def supernode(name: str, degree: int) -> Supernode:
    """Return the supernode of kind `name` and degree d'.

    Raises:
        ValueError: there is none of this degree.
    """
    if not exists(name, degree):
        raise ValueError(
            f"no {name} supernode of degree {degree}: {SUPERNODE_KINDS[name].requirement}"
        )
    return _make(name, degree)


@lru_cache(maxsize=8)
def _make(name: str, degree: int) -> Supernode:
    """Make the supernode of a kind and degree, once for all callers."""
    return SUPERNODE_KINDS[name].make(degree)


def exists(name: str, degree: int) -> bool:
    """Whether there is a supernode of kind `name` and degree d'."""
    return shape(name, degree) is not None


def shape(name: str, degree: int) -> SupernodeShape | None:
    """Return the size of the supernode of kind `name` and degree d', None where there is none."""
    return SUPERNODE_KINDS[name].shape(degree) if degree >= 0 else None


def degrees_near(name: str, degree: int) -> list[int]:
    """Return the nearest degrees of a kind: the largest below `degree`, the smallest above it.

    >>> degrees_near("inductive-quad", 6)
    [4, 7]
    """
    below = next((d for d in range(degree - 1, -1, -1) if exists(name, d)), None)
    above = next(d for d in range(max(degree, -1) + 1, 4 * max(degree, 2) + 4) if exists(name, d))
    return [above] if below is None else [below, above]


def _involutive(name: str, order: int, edges: NDArray[np.int64]) -> Supernode:
    """Return a supernode whose members are pairs 2i, 2i+1 that f swaps."""
    swap = np.arange(order, dtype=np.int32) ^ 1
    return Supernode(name, Graph.from_edges(order, edges), swap, swap)


def _iq_shape(degree: int) -> SupernodeShape | None:
    """Return the size of the Inductive-Quad of a degree, None where there is none."""
    pairs = degree + 1
    return SupernodeShape(2 * pairs, pairs * degree, pairs) if degree % 4 in (0, 3) else None


def _inductive_quad(degree: int) -> Supernode:
    """Make the Inductive-Quad of §6.2.1: from degree 0 or 3, add four pairs at a time."""
    quad = _dominations([(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)])
    edges = [quad] if degree % 4 else []
    pairs = 4 if degree % 4 else 1
    while pairs < degree + 1:
        # Of each old pair, one member is joined to two new pairs, the other to the other two.
        first_members = 2 * np.arange(pairs)
        new = 2 * pairs + np.arange(8)
        edges += [
            quad + 2 * pairs,
            _between(first_members, new[:4]),
            _between(first_members + 1, new[4:]),
        ]
        pairs += 4
    all_edges = np.concatenate(edges) if edges else np.empty((0, 2), np.int64)
    return _involutive("inductive-quad", 2 * pairs, all_edges)


def _between(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join every member on the left to every member on the right: edges, int64[n, 2]."""
    return np.stack(np.meshgrid(left, right), axis=-1).reshape(-1, 2)


def _dominations(dominated: list[tuple[int, int]]) -> NDArray[np.int64]:
    """Return the edges by which pairs of members dominate other pairs, int64[n, 2].

    If pair i dominates pair j, one member of i is joined to both members of j. The two members of i
    take turns at this. No other two links between two pairs give Property R*.

    Args:
        dominated: (i, j) for each pair j that a pair i dominates.
    """
    turn: dict[int, int] = {}  # by pair, which of its members is next: 0 or 1
    edges = []
    for i, j in dominated:
        member = 2 * i + turn.get(i, 0)
        turn[i] = 1 - turn.get(i, 0)
        edges += [(member, 2 * j), (member, 2 * j + 1)]
    return np.array(edges, np.int64).reshape(-1, 2)


def _bdf_shape(degree: int) -> SupernodeShape | None:
    """Return the size of the supernode that `_bdf` makes, None where there is none."""
    if degree < 1:
        return None
    matched = degree % 4 == 1
    return SupernodeShape(2 * degree, degree * (degree - 1 + matched), 0 if matched else degree)


def _bdf(degree: int) -> Supernode:
    """Make a supernode with 2d' members for any d', as many as BDF has in Table 2.

    The construction is our own: a rotational tournament of d' pairs, where the two members of a
    pair take turns at the pairs that it dominates. Where that leaves all degrees at d'-1, the
    members of each pair are joined as well.
    """
    dominated = [
        (i, (i + step) % degree)
        for i in range(degree)
        for step in range(1, degree // 2 + 1)
        if 2 * step < degree or i < degree // 2
    ]
    edges = _dominations(dominated)
    if degree % 4 == 1:
        edges = np.concatenate((edges, np.arange(2 * degree).reshape(-1, 2)))
    return _involutive("bdf", 2 * degree, edges)


def _complete_shape(degree: int) -> SupernodeShape | None:
    """Return the size of the complete graph of a degree, None for degree 0."""
    return SupernodeShape(degree + 1, degree * (degree + 1) // 2, 0) if degree >= 1 else None


def _complete(degree: int) -> Supernode:
    """Make the complete graph K_(d'+1), with the identity as f."""
    edges = np.stack(np.triu_indices(degree + 1, 1), axis=1)
    identity = np.arange(degree + 1, dtype=np.int32)
    return Supernode("complete", Graph.from_edges(degree + 1, edges), identity, identity)


def _paley_shape(degree: int) -> SupernodeShape | None:
    """Return the size of the Paley graph of a degree, None where there is none."""
    order = 2 * degree + 1
    exists_for_order = order % 4 == 1 and prime_power(order)
    return SupernodeShape(order, order * degree // 2, 0) if exists_for_order else None


def _paley(degree: int) -> Supernode:
    """Make the Paley graph: field elements, joined where they differ by a square.

    f(x) = νx with the smallest non-square ν.
    """
    gf = field(2 * degree + 1)
    squares = np.unique(np.diag(gf.mul)[1:])
    smallest_non_square = int(np.setdiff1d(np.arange(1, gf.q), squares)[0])
    return _cayley_graph("paley", gf.q, squares, smallest_non_square)


def _cayley_order(degree: int) -> int | None:
    """Return the largest order 2d'+δ, δ in 1, 0, -1, that is a prime power ≡ δ modulo 4."""
    candidates = ((2 * degree + delta, delta) for delta in (1, 0, -1))
    return next((k for k, delta in candidates if prime_power(k) and _residue(k) == delta), None)


def _cayley_shape(degree: int) -> SupernodeShape | None:
    """Return the size of the Cayley graph of a degree, None where there is none."""
    order = _cayley_order(degree)
    return SupernodeShape(order, order * degree // 2, 0) if order else None


def _residue(order: int) -> int:
    """Return δ of a prime power: -1, 0 or 1, its residue modulo 4, with 0 for 2."""
    return {0: 0, 1: 1, 2: 0, 3: -1}[order % 4]


def _cayley(degree: int) -> Supernode:
    """Make the largest Cayley supernode of a degree."""
    return cayley(_cayley_order(degree) or 0)


def cayley(order: int) -> Supernode:
    """Make the Cayley graph of McKay, Miller and Širáň of an order, a prime power.

    Two elements of the field are joined if their difference is in the connection set X. With the
    least primitive element ξ, X ∪ ξX is the whole field without 0, and f(x) = ξx.
    """
    xi = powers(order)
    exponents = np.arange(0, order - 1, 2)
    if _residue(order) == -1:
        half = (order - 3) // 2
        exponents = np.concatenate((np.arange(0, half + 1, 2), np.arange(half + 1, order - 1, 2)))
    return _cayley_graph("cayley", order, xi[exponents], int(xi[1 % len(xi)]))


def _cayley_graph(name: str, q: int, connection: NDArray[np.int32], factor: int) -> Supernode:
    """Return the Cayley graph Cay(F_q, X) of a connection set X, with f(x) = factor·x.

    Args:
        name: the kind of supernode.
        q: the order of the field.
        connection: int32[n], X, the differences of elements that are joined, closed under negation.
        factor: the factor of f.
    """
    gf = field(q)
    tails, heads = np.repeat(np.arange(q), len(connection)), gf.add[:, connection].ravel()
    ascending = np.flatnonzero(tails < heads)
    edges: NDArray[np.int64] = np.stack((tails[ascending], heads[ascending]), axis=1)
    forward, backward = gf.mul[factor].copy(), gf.mul[gf.inv[factor]].copy()
    return Supernode(name, Graph.from_edges(q, edges), forward, backward)


SUPERNODE_KINDS: dict[str, SupernodeKind] = {
    "inductive-quad": SupernodeKind("degree ≡ 0 or 3 modulo 4", _iq_shape, _inductive_quad),
    "paley": SupernodeKind("2·degree+1 a prime power ≡ 1 modulo 4", _paley_shape, _paley),
    "complete": SupernodeKind("degree at least 1", _complete_shape, _complete),
    "bdf": SupernodeKind("degree at least 1", _bdf_shape, _bdf),
    "cayley": SupernodeKind(
        "2·degree+1 a prime power ≡ 1 modulo 4, 2·degree a power of 2, "
        "or 2·degree-1 a prime power ≡ 3 modulo 4",
        _cayley_shape,
        _cayley,
    ),
}
