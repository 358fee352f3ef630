"""Jellyfish: a random regular graph (Singla et al., NSDI 2012), the same on every machine.

A *stub* is a port without a link yet. Stubs are paired at random. A pair (u, v) that would make a
loop or double a link is replaced by the move of the paper: a random link (x, y) is removed, and
(u, x) and (v, y) are joined. All randomness is the raw output of PCG64, which numpy keeps fixed for
ever (NEP 19), unlike its shuffles.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, diameter
from compilers.topology.family import Design, Family, integers
from compilers.topology.labelled_graph import Parameters, Topology
from extensions.baselines.group_graph import complete
from inventory.problems import Problem

TRIES_PER_LINK = 100
"""The random links that are tried for a pair of stubs, for each link of the graph."""


class JellyfishShape(NamedTuple):
    """The parameters of a Jellyfish as numbers, with their defaults."""

    nodes: int
    """The number of routers."""
    degree: int
    """The links of a router."""
    seed: int
    """The seed of all random numbers."""


def shape(parameters: Parameters) -> JellyfishShape:
    """The parameters nodes, degree and seed as numbers, with the default."""
    seed = int(parameters.get("seed", 0))
    return JellyfishShape(int(parameters["nodes"]), int(parameters["degree"]), seed)


def random_regular(nodes: int, degree: int, generator: np.random.PCG64) -> NDArray[np.int64]:
    """The edges of a random regular graph, int64[nodes·degree / 2, 2].

    A dense graph is made as the complement of a sparse one. In a sparse graph a pair that would
    double a link nearly always finds a move; in a dense one most moves would double another link.

    Args:
        nodes: how many vertices there are; nodes·degree is even.
        degree: how many links each has, less than nodes.
        generator: the generator of random numbers.
    """
    if 2 * degree < nodes:
        edges = None
        while edges is None:
            edges = _pairing(nodes, degree, generator)
        return edges
    complement = random_regular(nodes, nodes - 1 - degree, generator)
    complement.sort(axis=1)
    all_pairs, number_pairs = complete(nodes), [nodes, 1]  # u·nodes + v numbers the pair (u, v)
    return all_pairs[~np.isin(all_pairs @ number_pairs, complement @ number_pairs)]


def _pairing(nodes: int, degree: int, generator: np.random.PCG64) -> NDArray[np.int64] | None:
    """The edges of a random pairing of all stubs; None if a bad pair finds no move (rarely)."""
    shuffled = np.argsort(generator.random_raw(nodes * degree), kind="stable")
    pairs = np.sort((shuffled // degree).reshape(-1, 2), axis=1)
    _, first = np.unique(pairs @ [nodes, 1], return_index=True)
    is_link = np.zeros(len(pairs), np.bool_)
    is_link[first] = True
    is_link &= pairs[:, 0] != pairs[:, 1]
    links = [(u, v) for u, v in pairs[is_link].tolist()]
    return _with_bad_pairs_replaced(links, pairs[~is_link].tolist(), generator)


def _with_bad_pairs_replaced(
    links: list[tuple[int, int]], bad_pairs: list[list[int]], generator: np.random.PCG64
) -> NDArray[np.int64] | None:
    """The edges after each bad pair of stubs has been replaced; None if a pair finds no move.

    Args:
        links: the links of the good pairs; the list is changed.
        bad_pairs: pairs of vertices with free stubs. A link between them would be a loop or double
            another one.
        generator: the generator of random numbers.
    """
    joined = {*links, *((v, u) for u, v in links)}
    for u, v in bad_pairs:
        for _ in range(TRIES_PER_LINK * len(links)):
            # The lowest bit chooses the direction, the other bits choose the link.
            draw = int(generator.random_raw())
            link = draw // 2 % len(links)
            x, y = links[link] if draw % 2 else reversed(links[link])
            if u != x and v != y and (u, x) not in joined and (v, y) not in joined:
                break
        else:
            return None
        joined -= {(x, y), (y, x)}
        joined |= {(u, x), (x, u), (v, y), (y, v)}
        links[link] = (u, x)
        links.append((v, y))
    return np.array(links, np.int64).reshape(-1, 2)


class Jellyfish(Family):
    """The family of random regular graphs, one for each seed."""

    name = "jellyfish"
    place = 10  # in lists of families
    compared = True
    any_links = True
    parameters = ("nodes", "degree", "seed")
    optional = ("seed",)
    defaults = MappingProxyType({"seed": 0})

    def check(self, parameters: Parameters) -> list[Problem]:
        """Problems unless 3 ≤ degree < nodes, and nodes·degree is even."""
        if problems := integers(parameters, {"nodes": 4, "degree": 3, "seed": 0}, self.optional):
            return problems
        nodes, degree, _ = shape(parameters)
        if degree >= nodes:
            required, todo = f"less than nodes = {nodes}", f"the largest is {nodes - 1}"
        elif nodes * degree % 2:
            required, todo = "nodes·degree even", f"the nearest are {degree - 1} and {degree + 1}"
        else:
            return []
        return [Problem(key="degree", required=required, given=str(degree), todo=todo)]

    def order(self, parameters: Parameters) -> int:
        """N = nodes."""
        return shape(parameters).nodes

    def degree(self, parameters: Parameters) -> int:
        """The parameter `degree`."""
        return shape(parameters).degree

    def build(self, parameters: Parameters) -> Topology:
        """The first connected graph that the seed gives; its diameter is found by search."""
        nodes, degree, seed = shape(parameters)
        generator = np.random.PCG64(seed)
        while True:
            graph = Graph.from_edges(nodes, random_regular(nodes, degree, generator))
            if (longest := diameter(graph)) < BEYOND:
                break
        parameters_used = {"nodes": nodes, "degree": degree, "seed": seed}
        return self.direct(
            parameters_used, graph, np.arange(nodes, dtype=np.int32)[:, None], longest
        )

    def designs(self, radix: int) -> Iterator[Design]:  # noqa: ARG002
        """Yield nothing: any number of nodes will do, and no formula gives the diameter."""
        return iter(())
