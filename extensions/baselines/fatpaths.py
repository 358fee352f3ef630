"""Layers of FatPaths (Besta et al., SC20, §V): random parts of the links, minimal paths in each.

As in the authors' OpenSM (github.com/spcl/opensm, `osm_ucast_rues.c`): the first layer has all
links. Each other one keeps a link, in both directions, with a certain probability, and is drawn
again until it is connected.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.distance import BEYOND, distances, table_of

LAYERS, KEPT = 9, 0.6
"""How many layers, and the probability of a link in all but the first."""
MOST_DRAWN = 1_000
"""Parts that are drawn until one is connected."""


def layers(
    far: NDArray[np.int32], count: int = LAYERS, kept: float = KEPT, seed: int = 0
) -> NDArray[np.int16]:
    """int16[count, S, S]: the link from each switch to each other one in each layer; K to itself.

    Of several minimal paths of a layer one is drawn.

    Args:
        far: int32[S, K], the switch behind each link of a connected network, -1 for none.
        count: layers.
        kept: the probability of a link.
        seed: of everything that is drawn.
    """
    random = np.random.default_rng(seed)
    found = np.full((count, len(far), len(far)), far.shape[1], np.int16)
    for layer, part in zip(found, (1.0, *[kept] * (count - 1)), strict=True):
        links, distance = _connected(far, part, random)
        best = np.zeros(distance.shape)
        for link, there in enumerate(links.T):
            nearer = (distance - 1.0 == distance[there].T) & (there >= 0)
            chance = nearer * (1.0 - random.random(distance.shape))
            layer.T[chance > best] = link
            best = np.maximum(best, chance)
    return found


def _connected(
    far: NDArray[np.int32], kept: float, random: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """A connected part of the links, as `far`, and the distances in it."""
    every = np.arange(len(far))
    for _ in range(MOST_DRAWN):
        drawn = np.triu(random.random((len(far), len(far))) < kept)
        links = np.where((drawn | drawn.T)[every[:, None], far], far, -1)
        distance = distances(table_of(links), every)
        if distance.max() < BEYOND:
            return links, distance
    raise ValueError(f"no connected part of {kept:g} of the links in {MOST_DRAWN} draws")
