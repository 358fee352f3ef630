"""What several test modules of this folder and of others use."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from compilers.tables.build import Build
from compilers.update.move_plan import Update
from tests.compilers.update.updates import Moving, named


def walked(update: Update, seed: int, generation: int = 0) -> tuple[Moving, list[str], int]:
    """Carry all rounds out in an order by chance: what is lost on the way, the longest path."""
    moving, chance, lost, longest = Moving(update, generation), Random(seed), [], 0  # noqa: S311
    for round in range(update.rounds):
        nodes = chance.sample(moving.nodes, len(moving.nodes))
        stops = {chance.randrange(len(nodes)), len(nodes) - 1}
        for place, node in enumerate(nodes):
            moving.advance(node, round)
            if place in stops:
                most, wrong = moving.worst()
                lost, longest = lost + wrong, max(longest, most)
    return moving, lost, longest


def replugged(build: Build, switch: int, link: int) -> Build:
    """A cable is in another port of a switch: the links, classes and far ends say so."""
    w, c = build.wiring, build.tables.classes
    far, old, new = int(w.far[switch, link]), int(w.port[switch, link]), 12

    def other(ports: np.ndarray) -> np.ndarray:
        ports = np.array(ports)
        ports[switch] = np.where(ports[switch] == old, new, ports[switch])
        return ports

    far_port = w.far_port.copy()
    far_port[far, w.far[far] == switch] = new
    words = ("port", "alternate", "protection", "bounce")
    classes = replace(c, **{word: other(getattr(c, word)) for word in words})
    wiring = replace(w, port=other(w.port), far_port=far_port)
    tables = replace(build.tables, classes=classes)
    return named(replace(build, wiring=wiring, tables=tables), "7" * 16)


POLARFLY = "{family: polarfly, q: 3}"


def quadrics_link(whole):
    """A link in no triangle: its ends then go by a neighbour that went by them."""
    near = [set(row[row >= 0].tolist()) for row in whole.wiring.far]
    names = whole.wiring.names
    pairs = ((u, v) for u in range(len(near)) for v in sorted(near[u]) if not near[u] & near[v])
    return [tuple(names[v] for v in next(pairs))]
