"""What several test modules of this folder and of others use."""

from __future__ import annotations

from random import Random

from compilers.update.move_plan import Update
from tests.compilers.update.updates import Moving


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


POLARFLY = "{family: polarfly, q: 3}"


def quadrics_link(whole):
    """A link in no triangle: its ends then go by a neighbour that went by them."""
    near = [set(row[row >= 0].tolist()) for row in whole.wiring.far]
    names = whole.wiring.names
    pairs = ((u, v) for u in range(13) for v in sorted(near[u]) if not near[u] & near[v])
    return [tuple(names[v] for v in next(pairs))]
