"""What several test modules of this folder and of others use."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from tests.compilers.routed import routed

HYPERX = {"family": "hyperx", "sides": "3x3x2"}


TREE = {"family": "fat-tree", "k": 4}


Topology = dict[str, int | str]


def compiled(topology: Topology, **routing: str) -> Build:
    words = {"balance": "ecmp", "transit": "ecmp", **routing}
    return compile_fabric(load_fabric({"name": "lab", "topology": topology, "routing": words}))


def graph_of(build: Build) -> nx.Graph:
    return nx.Graph(build.topology.graph.edges().tolist())


def links_of(build: Build) -> list[tuple[int, int]]:
    """Every link once, as vertex and place."""
    far = build.wiring.far
    return [(u, k) for u, k in np.argwhere(far >= 0).tolist() if far[u, k] > u]


def some(things: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """At most so many, spread over all."""
    return things[:: -(-len(things) // most)]


Hops = tuple[int, ...]


def marked(q: int, protect: str = "none", hosts: int = 1, family: str = "polarfly") -> Build:
    return routed(family, q=q, spread=True, marks=True, protect=protect, hosts=hosts)


@cache
def paths_by_hand(family: str, q: int) -> dict[tuple[int, int], dict[Hops, Fraction]]:
    """The paths of every pair and their shares, from the neighbours of each switch alone."""
    build = routed(family, q=q)
    near = [set(row[row >= 0].tolist()) for row in build.wiring.far]
    ends = np.flatnonzero(build.topology.endpoints).tolist()
    found: dict[tuple[int, int], dict[Hops, Fraction]] = defaultdict(dict)

    def to(w: int, d: int) -> Hops:
        if w == d or d in near[w]:
            return (w, d)[w == d :]
        common = near[w] & near[d]
        # Leaves of an OFT with the same point have q + 1 spines: the one that its rows choose.
        return (w, common.pop() if len(common) == 1 else explain(build, w, d).minimal[1], d)

    for s, d in product(ends, ends):
        for r in near[s] if s != d else ():
            share = Fraction(1, len(near[s]))
            if r == d or d in near[r]:
                found[s, d][s, *to(r, d)] = share
                continue
            onward = {w for w in near[r] - near[s] - {s} if near[w] != near[s]}
            for w in onward:
                found[s, d][s, r, *to(w, d)] = share / len(onward)
    return found


def loads_by_hand(family: str, q: int) -> dict[tuple[int, int], NDArray[np.float64]]:
    """By link, float64[S, S]: the part of what s sends to d that crosses it."""
    order = routed(family, q=q).tables.switches
    load: dict[tuple[int, int], NDArray[np.float64]] = defaultdict(lambda: np.zeros((order, order)))
    for pair, paths in paths_by_hand(family, q).items():
        for path, share in paths.items():
            for link in pairwise(path):
                load[link][pair] += float(share)
    return load
