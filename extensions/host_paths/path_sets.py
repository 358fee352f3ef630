"""Path sets of hosts on PolarFly from switch numbers alone, in pure Python, for hosts to copy.

    fabric = PolarityGraph(31)
    for value, path in enumerate(path_set([fabric] * 8, 10, 19, 128)):
        print(value, carrier(usids(path.nodes, host=0), BLOCK + path.plane))

Path i of a set belongs to entropy value i. First come edge-disjoint paths: the shortest one of each
plane, then a second one of each plane, and so on. Then come paths that use first and last links
equally often. A pair of switches always gets the same set. Pairs begin at different links, so that
short sets load all of them.

Switches are numbered as `polarfab export` numbers them, from 0, for every prime power q up to
1,024; carriers reach to q = 191. `polarfab hosts paths --format library` writes this module as one
file, which needs Python 3.10 and imports nothing of polarfab.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, cycle, islice, pairwise, zip_longest
from typing import NamedTuple, Protocol

from compilers.topology.conway import CONWAY

SWITCH, HOST, DECAPSULATE, ADJACENCY = 0x1000, 0xA000, 0xE000, 0xF000
"""The numbers of uSIDs (RFC 9800, F3216).

- SWITCH + v + 1: switch v.
- HOST + h: host h of any switch.
- ADJACENCY + k: link k of any switch.
- DECAPSULATE: takes the outer header off.
"""
BLOCK = 0xFC000000
"""The first 32 bits of carriers of the first plane, fc00::/32; each other plane has the next."""
CARRIER = 6
"""The most uSIDs of a *carrier*: the IPv6 destination that steers a packet along a path."""
LONGEST = CARRIER - 2
"""The most links of a path whose carrier ends in the uSIDs of a host and of decapsulation."""


class HostPath(NamedTuple):
    """A path of a host's packets."""

    plane: int
    """Its plane, from 0."""
    nodes: tuple[int, ...]
    """The vertices on it, both ends included."""
    disjoint: bool
    """Whether it is one of the edge-disjoint paths."""


class PlaneGraph(Protocol):
    """A graph of switches, and how packets go between them."""

    def neighbours(self, switch: int) -> list[int]:
        """The switches at the other ends of its links, ascending."""

    def shortest(self, source: int, destination: int) -> tuple[int, ...] | None:
        """The switches of the minimal path after the source; () to itself, None where none is."""


class PrimeField:
    """The integers modulo a prime q."""

    def __init__(self, q: int) -> None:
        """Make the field of a prime order.

        Args:
            q: a prime.
        """
        self.q = q

    def add(self, a: int, b: int) -> int:
        """The sum of two elements."""
        return (a + b) % self.q

    def mul(self, a: int, b: int) -> int:
        """The product of two elements."""
        return a * b % self.q

    def neg(self, a: int) -> int:
        """The negative of an element."""
        return -a % self.q

    def inv(self, a: int) -> int:
        """The inverse of an element a, which is not 0."""
        return pow(a, -1, self.q)


class ExtensionField:
    """F_q for q = p^n, n > 1: the base-p digits of an element are a polynomial's coefficients.

    x is primitive modulo a Conway polynomial: `power[k]` is x^k and `log` its inverse.
    """

    def __init__(self, q: int, polynomial: tuple[int, ...]) -> None:
        """Make the tables of powers.

        Args:
            q: p^n.
            polynomial: the Conway polynomial, n + 1 coefficients, leading one first.
        """
        self.q = q
        self.p = p = next(d for d in range(2, q) if q % d == 0)
        # The coefficients below the leading one, which is 1, from that of x^0 on.
        lower = polynomial[:0:-1]
        # The coefficients of x^k, for k = 0, 1, …: times x, and reduced by the polynomial.
        digits = [1] + [0] * (len(lower) - 1)
        self.power: list[int] = []
        for _ in range(q - 1):
            self.power.append(sum(digit * p**place for place, digit in enumerate(digits)))
            leading = digits[-1]
            shifted = (0, *digits[:-1])
            digits = [(s - leading * low) % p for s, low in zip(shifted, lower, strict=True)]
        self.log = {element: k for k, element in enumerate(self.power)}
        # -1 is the power (q - 1) / 2 of a primitive element, and 1 itself if p is 2.
        self.log_of_minus_one = 0 if p == 2 else (q - 1) // 2

    def add(self, a: int, b: int) -> int:
        """The sum of two elements: a(1 + b/a), where adding 1 changes the lowest digit."""
        if not (a and b):
            return a or b
        ratio = self.power[(self.log[b] - self.log[a]) % (self.q - 1)]
        one_more = ratio + 1 if ratio % self.p < self.p - 1 else ratio - self.p + 1
        return self.mul(a, one_more)

    def mul(self, a: int, b: int) -> int:
        """The product of two elements."""
        return self.power[(self.log[a] + self.log[b]) % (self.q - 1)] if a and b else 0

    def neg(self, a: int) -> int:
        """The negative of an element."""
        return self.power[(self.log[a] + self.log_of_minus_one) % (self.q - 1)] if a else 0

    def inv(self, a: int) -> int:
        """The inverse of an element a, which is not 0."""
        return self.power[-self.log[a] % (self.q - 1)]


class PolarityGraph:
    """ER_q, the graph of PolarFly: switches are points (x, y, z), joined where x·x' = 0.

    The points are left-normalised vectors over F_q in lexicographic order: switch 0 is (0, 0, 1),
    switches 1 to q are (0, 1, z), and then come q² switches (1, y, z).
    """

    def __init__(self, q: int) -> None:
        """Make the field F_q, from which all neighbours follow.

        Args:
            q: a prime power from 2 to 1,024.

        Raises:
            ValueError: q is no such number.
        """
        prime = q > 1 and all(q % d for d in range(2, int(q**0.5) + 1))
        if not (prime or q in CONWAY) or q > 1024:
            raise ValueError(f"{q} is not a prime power from 2 to 1,024")
        self.q = q
        self.field = PrimeField(q) if prime else ExtensionField(q, CONWAY[q])

    def point(self, switch: int) -> tuple[int, int, int]:
        """The coordinates of a switch.

        Raises:
            ValueError: there is no such switch.
        """
        q = self.q
        if not 0 <= switch <= q * q + q:
            raise ValueError(f"{switch} is not a switch of q = {q}: they are 0..{q * q + q}")
        if switch > q:
            return (1, *divmod(switch - q - 1, q))
        return (0, 1, switch - 1) if switch else (0, 0, 1)

    def _number(self, x: int, y: int, z: int) -> int:
        """The switch of a vector that is not 0: it is divided by its first coordinate but 0."""
        mul, inv, q = self.field.mul, self.field.inv, self.q
        if x:
            inverse = inv(x)
            return 1 + q + mul(y, inverse) * q + mul(z, inverse)
        return 1 + mul(z, inv(y)) if y else 0

    def neighbours(self, switch: int) -> list[int]:
        """The switches whose points are orthogonal to that of this one, without itself."""
        a, b, c = self.point(switch)
        add, mul, q = self.field.add, self.field.mul, self.q
        if c:
            # z = -(a·x + b·y) / c, for (x, y) = (0, 1) and for (1, y).
            minus_inverse = self.field.neg(self.field.inv(c))
            constant, slope = mul(a, minus_inverse), mul(b, minus_inverse)
            orthogonal = [1 + slope]
            orthogonal += [1 + q + y * q + add(constant, mul(slope, y)) for y in range(q)]
        else:
            # (0, 0, 1), and all z with y = -a / b of (1, y, z); without b all z of (0, 1, z).
            first = 1 + q + mul(self.field.neg(a), self.field.inv(b)) * q if b else 1
            orthogonal = [0, *range(first, first + q)]
        return [other for other in orthogonal if other != switch]

    def shortest(self, source: int, destination: int) -> tuple[int, ...]:
        """The minimal path after the source.

        Two switches that are not joined have one common neighbour, the point orthogonal to both:
        their cross product.
        """
        if source == destination:
            return ()
        add, mul, neg = self.field.add, self.field.mul, self.field.neg
        (a, b, c), (x, y, z) = self.point(source), self.point(destination)
        if not add(add(mul(a, x), mul(b, y)), mul(c, z)):
            return (destination,)
        middle = self._number(
            add(mul(b, z), neg(mul(c, y))),
            add(mul(c, x), neg(mul(a, z))),
            add(mul(a, y), neg(mul(b, x))),
        )
        return (middle, destination)


def path_set(
    planes: Sequence[PlaneGraph],
    source: int,
    destination: int,
    count: int,
    longest: int = LONGEST,
) -> list[HostPath]:
    """The first `count` paths from a switch to another over all planes; fewer if there are no more.

    Args:
        planes: the graph of every plane; a graph may occur again.
        source: a switch.
        destination: another switch.
        count: how many paths.
        longest: the most links of a path.
    """
    return list(islice(every_path(planes, source, destination, longest), count))


def every_path(
    planes: Sequence[PlaneGraph], source: int, destination: int, longest: int = LONGEST
) -> Iterator[HostPath]:
    """All paths that sets are taken from, in the order of `path_set`.

    Raises:
        ValueError: source and destination are the same.
    """
    if source == destination:
        raise ValueError(f"{source} is both ends of the path: hosts of one switch need none")
    first = (source + destination) % len(planes)
    order = [*range(first, len(planes)), *range(first)]
    # Planes with the same graph have the same paths, which are searched once.
    graphs = list({id(graph): graph for graph in planes}.values())
    graph_of_plane = [(plane, graphs.index(planes[plane])) for plane in order]
    pairs = [PairPaths(graph, source, destination, longest) for graph in graphs]
    # In each round, the next path of every graph; None for a graph that has no more.
    for disjoint, rounds in (
        (True, zip_longest(*(pair.disjoint() for pair in pairs))),
        (False, zip_longest(*(pair.further() for pair in pairs))),
    ):
        for path_of_graph in rounds:
            for plane, graph in graph_of_plane:
                if nodes := path_of_graph[graph]:
                    yield HostPath(plane, nodes, disjoint)


class PairPaths:
    """The paths of a pair of switches in one plane."""

    def __init__(self, graph: PlaneGraph, source: int, destination: int, longest: int) -> None:
        """List the first and last links of paths, in the order of this pair.

        Args:
            graph: the graph of the plane.
            source: a switch.
            destination: another switch.
            longest: the most links of a path.
        """
        self.graph, self.ends, self.longest = graph, (source, destination), longest
        # The turns depend on the pair, so that pairs begin at different links.
        self.first = _turned(graph.neighbours(source), source + destination)
        """The neighbours of the source: the second switch of a path."""
        self.last = _turned(graph.neighbours(destination), source + 2 * destination)
        """The neighbours of the destination: the last but one of a path."""
        self.used: set[tuple[int, int]] = set()
        """The links of the edge-disjoint paths so far."""
        self.yielded: set[tuple[int, ...]] = set()
        """The paths so far."""

    def disjoint(self) -> Iterator[tuple[int, ...]]:
        """The minimal path, then one through each other neighbour of the source.

        None shares a link with another. A neighbour from which the minimal path does not do so is
        tried again with a minimal path to each neighbour of the destination that is free. On
        PolarFly there are as many paths as the lower degree of both ends: no set of edge-disjoint
        paths is larger.
        """
        source, destination = self.ends
        minimal = (source, *(self.graph.shortest(source, destination) or ()))
        if self._take(minimal):
            yield minimal
        without_path = []
        for near in self.first:
            if near not in minimal[1:2]:
                path = self._path(near, destination)
                if self._take(path):
                    yield path
                else:
                    without_path.append(near)
        for near in without_path:
            for far in self.last:
                if _link(far, destination) not in self.used:
                    path = self._path(near, far)
                    if self._take(path):
                        yield path
                        break

    def further(self) -> Iterator[tuple[int, ...]]:
        """Paths that share links.

        Each round takes every first link with another last link. So all of them occur equally
        often, as far as there are such paths.
        """
        for shift in range(len(self.last)):
            for i, near in enumerate(self.first):
                path = self._path(near, self.last[(i + shift) % len(self.last)])
                if path and path not in self.yielded:
                    self.yielded.add(path)
                    yield path

    def _path(self, near: int, far: int) -> tuple[int, ...]:
        """The path that begins with one neighbour and ends with another; () where it is none."""
        source, destination = self.ends
        shortest = self.graph.shortest(near, far)
        if shortest is None:
            return ()
        path = (source, near, *shortest, *((destination,) if far != destination else ()))
        return path if len(set(path)) == len(path) <= self.longest + 1 else ()

    def _take(self, path: tuple[int, ...]) -> bool:
        """Mark the links of a path as used, and return True; return False if the path is not taken.

        A path is taken if it has a link, no more than `longest`, and none that is used already.
        """
        links = links_of(path)
        is_free = bool(links) and len(links) <= self.longest and self.used.isdisjoint(links)
        if is_free:
            self.used.update(links)
            self.yielded.add(path)
        return is_free


def _turned(switches: list[int], turn: int) -> list[int]:
    """The switches in a cyclic order that begins so many places on."""
    cut = turn % len(switches) if switches else 0
    return switches[cut:] + switches[:cut]


def links_of(nodes: Iterable[int]) -> list[tuple[int, int]]:
    """The links of a path, each with its smaller switch first."""
    return [_link(switch, next_switch) for switch, next_switch in pairwise(nodes)]


def _link(first: int, second: int) -> tuple[int, int]:
    """The link between two switches, the smaller one first."""
    return (first, second) if first < second else (second, first)


def usids(nodes: Sequence[int], host: int | None = None) -> list[int]:
    """The uSIDs of a path: its switches after the first, the host unless None, decapsulation.

    Raises:
        ValueError: the number of a switch does not fit into a uSID.
    """
    last = HOST - SWITCH - 2
    if (largest := max(nodes[1:], default=0)) > last:
        raise ValueError(f"switch {largest} has no uSID: the last with one is {last}")
    hosts = [] if host is None else [HOST + host]
    return [*(SWITCH + node + 1 for node in nodes[1:]), *hosts, DECAPSULATE]


def carrier(numbers: Sequence[int], block: int = BLOCK) -> str:
    """The IPv6 address that takes a packet along uSIDs, none of them 0.

    Raises:
        ValueError: there are more than six.
    """
    if len(numbers) > CARRIER:
        raise ValueError(f"{len(numbers)} uSIDs, of which a carrier has room for {CARRIER}")
    groups = ":".join(f"{part:x}" for part in (block >> 16, block & 0xFFFF, *numbers))
    return groups if len(numbers) == CARRIER else f"{groups}::"


def crosses(path: HostPath, plane: int, dead: Sequence[int]) -> bool:
    """Whether a path needs a link or a switch of a plane.

    Args:
        path: the path.
        plane: the plane of the link or switch.
        dead: the two switches of the link, or the switch alone.
    """
    if path.plane != plane:
        return False
    return dead[0] in path.nodes if len(dead) == 1 else _link(*dead) in links_of(path.nodes)


def repaired(
    paths: Sequence[HostPath], candidates: Iterable[HostPath], lost: Callable[[HostPath], bool]
) -> list[HostPath]:
    """The set with another path in the place of each that is lost; all others keep their place.

    Where no other path is left, those that live take the places in turn; [] where none lives.

    Args:
        paths: the set that is in use.
        candidates: paths of the pair in the order of `every_path`; those of the set do not count.
        lost: whether a path crosses what has failed.
    """
    live = [path for path in paths if not lost(path)]
    spare_paths = (path for path in candidates if path not in paths and not lost(path))
    spare = chain(spare_paths, cycle(live))
    places = (next(spare, None) if lost(path) else path for path in paths)
    return [path for path in places if path]
