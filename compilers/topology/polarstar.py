"""PolarStar: the star product of ER_q with a supernode (PolarStar paper, §4 to §6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.topology import polarfly, supernodes
from compilers.topology.field import prime_power
from compilers.topology.graph import Graph
from compilers.topology.labelled_graph import Design, Parameters, Topology
from compilers.topology.supernodes import SUPERNODE_KINDS, Supernode, shape
from inventory.problems import Problem, did_you_mean

LARGEST_DEGREE = 255
DESIGNED = ("inductive-quad", "paley", "complete")


def star_product(structure: Graph, quadric: NDArray[np.bool_], supernode: Supernode) -> Graph:
    """A copy of the supernode for every structure vertex, f between the copies of neighbours.

    Vertex (x, x') is numbered x·k + x'. Along an arc from the smaller x to the larger y, x' is
    joined to f(x'), against it to f⁻¹(x'). For an involution a quadric's self-loop becomes the
    links (x, x')–(x, f(x')). Time and memory grow with the number of links.
    """
    k = supernode.order
    around = structure.padded()
    own = np.arange(structure.order, dtype=np.int32)[:, None]
    width = around.shape[1] + 1 + supernode.degree
    table = np.full((structure.order, k, width), -1, np.int32)

    image = np.where(own < around, 0, 1)
    images = np.stack((supernode.forward, supernode.backward))
    far = around[:, None, :] * k + images[image].transpose(0, 2, 1)
    table[:, :, : around.shape[1]] = np.where(around[:, None, :] >= 0, far, -1)

    loops = supernode.loops()
    at = np.flatnonzero(quadric)[:, None]
    table[at, loops, around.shape[1]] = own[at[:, 0]] * k + supernode.forward[loops]

    inside = supernode.graph.padded()
    within = own[:, :, None] * k + inside
    table[:, :, around.shape[1] + 1 :] = np.where(inside >= 0, within, -1)
    rows = table.reshape(-1, width)
    rows.sort(axis=1)
    return Graph.from_padded(rows)


def is_whole(topology: Topology) -> bool:
    """Whether a topology has all vertices and links of a PolarStar, and no more."""
    if topology.family != PolarStar.name:
        return False
    q, kind, degree = (topology.parameters[name] for name in PolarStar.parameters)
    found = shape(str(kind), int(degree))
    if found is None:
        return False
    whole = _design(int(q) + 1 + int(degree), int(q), str(kind), found)
    return (topology.graph.order, topology.graph.size) == (whole.nodes, whole.links)


class PolarStar:
    """The family of ER_q * supernode, diameter 3."""

    name = "polarstar"
    parameters: tuple[str, ...] = ("q", "supernode", "degree")

    def check(self, parameters: Parameters) -> list[Problem]:
        """The order q must be a prime power, and the supernode must exist with this degree."""
        problems = polarfly.check_q(parameters["q"])
        kind, degree = parameters["supernode"], parameters["degree"]
        if kind not in SUPERNODE_KINDS:
            todo = did_you_mean(str(kind), SUPERNODE_KINDS)
            known = f"one of {', '.join(SUPERNODE_KINDS)}"
            problems.append(Problem(key="supernode", required=known, given=str(kind), todo=todo))
        else:
            problems += _check_degree(str(kind), degree)
        return problems

    def order(self, parameters: Parameters) -> int:
        """N = (q² + q + 1)·k for a supernode of order k."""
        found = shape(str(parameters["supernode"]), int(parameters["degree"]))
        return polarfly.order(int(parameters["q"])) * (found.order if found else 0)

    def build(self, parameters: Parameters) -> Topology:
        """The star product; a vertex has the kind of its structure vertex.

        Coordinates, int32[N, 4], are those of the structure vertex and the member.
        """
        q, kind = int(parameters["q"]), str(parameters["supernode"])
        degree = int(parameters["degree"])
        supernode = supernodes.supernode(kind, degree)
        structure = polarfly.PolarFly().build({"q": q})
        k = supernode.order
        member = np.tile(np.arange(k, dtype=np.int32), structure.graph.order)
        return Topology(
            family=self.name,
            parameters={"q": q, "supernode": kind, "degree": degree},
            graph=star_product(structure.graph, structure.kind == 0, supernode),
            kinds=structure.kinds,
            kind=np.repeat(structure.kind, k),
            coordinates=np.column_stack((np.repeat(structure.coordinates, k, axis=0), member)),
            endpoints=np.ones(len(member), np.bool_),
            diameter=3,
            hierarchy=k,
        )

    def designs(self, radix: int) -> Iterator[Design]:
        """Every q and d' ≥ 1 of the kinds `DESIGNED` with q + 1 + d' = radix.

        Inductive-Quad of degree 0 gives the family `pn`. BDF and Cayley supernodes can be built,
        but give the largest fabric at no radix.
        """
        for q in range(2, min(radix - 2, polarfly.LARGEST_Q) + 1):
            if not prime_power(q):
                continue
            for kind in DESIGNED:
                found = shape(kind, radix - 1 - q)
                if found is not None:
                    yield _design(radix, q, kind, found)


def _design(radix: int, q: int, kind: str, supernode: supernodes.SupernodeShape) -> Design:
    vertices, edges = polarfly.order(q), q * (q + 1) ** 2 // 2
    bundles = edges * supernode.order
    return Design(
        family=PolarStar.name,
        radix=radix,
        nodes=vertices * supernode.order,
        links=bundles + vertices * supernode.links + (q + 1) * supernode.loops,
        diameter=3,
        q=q,
        supernode=kind,
        supernode_degree=radix - 1 - q,
        supernode_order=supernode.order,
    )


def _check_degree(kind: str, degree: int | str) -> list[Problem]:
    number = degree if type(degree) is int else -1
    if number <= LARGEST_DEGREE and supernodes.exists(kind, number):
        return []
    required = f"{SUPERNODE_KINDS[kind].requirement}, at most {LARGEST_DEGREE}, for {kind}"
    near = supernodes.degrees_near(kind, min(number, LARGEST_DEGREE + 1))
    usable = [str(d) for d in near if d <= LARGEST_DEGREE]
    todo = f"the nearest {'are' if len(usable) > 1 else 'is'} {' and '.join(usable)}"
    return [Problem(key="degree", required=required, given=str(degree), todo=todo)]
