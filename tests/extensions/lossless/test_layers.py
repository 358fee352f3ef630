"""Layers: every pair has one, and no layer's waits close a circle (checked by networkx)."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from compilers.tables.build import Build
from compilers.tables.fib import Fib
from extensions.lossless.layers import Layers, deadlock_free_layers
from tests.compilers.routed import routed

IQ = {"family": "polarstar", "supernode": "inductive-quad"}
PALEY = {"family": "polarstar", "supernode": "paley"}
CASES = [
    *(({"family": "polarfly", "q": q}, 2) for q in (2, 3, 4, 5)),
    ({**IQ, "q": 3, "degree": 3}, 4),
    ({**PALEY, "q": 3, "degree": 2}, 4),
    ({"family": "pn", "q": 4}, 5),
    ({"family": "oft", "q": 3}, 1),
]


def circle(build: Build, found: Layers) -> list[tuple[int, int]]:
    """Links of one layer that wait for each other in a circle, or []."""
    order = build.tables.switches
    after = Fib.of(build.tables, build.wiring.far_by_port()).next_switch(np.arange(order))
    ends = np.flatnonzero(build.topology.endpoints)
    at, to = (side.ravel() for side in np.meshgrid(ends, ends))
    layer = found.layer[at, to].astype(np.int64)
    edges = set[tuple[int, ...]]()
    while len(at):
        over, then = after[at, to], after[after[at, to], to]
        onward = (over != to) & (at != to)
        at, to, layer, over = at[onward], to[onward], layer[onward], over[onward]
        edges |= set(map(tuple, np.stack([layer, at, over, then[onward]], 1).tolist()))
        at = over
    for number in range(found.count):
        waits = [((a, b), (b, c)) for layer_of, a, b, c in edges if layer_of == number]
        graph: networkx.DiGraph[tuple[int, int]] = networkx.DiGraph(waits)
        if not networkx.is_directed_acyclic_graph(graph):
            return [edge[0] for edge in networkx.find_cycle(graph)]
    return []


@pytest.mark.parametrize(("parameters", "count"), CASES, ids=lambda case: str(case))
def test_no_layer_has_a_circle(parameters: dict[str, int | str], count: int) -> None:
    build = routed(**parameters)
    found = deadlock_free_layers(build)
    assert found.count == count
    assert int(found.layer.max()) == count - 1
    assert not circle(build, found)


def test_one_layer_would_deadlock() -> None:
    """The check above can fail: PolarFly's paths in one layer wait in circles."""
    build = routed(q=3)
    one = Layers(np.zeros_like(deadlock_free_layers(build).layer), 1)
    assert circle(build, one)
