"""How many pairs of switches have no path left after failures and drains, by search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.distance import components, table_of


def cut_off_pairs(
    far: NDArray[np.int32],
    endpoints: NDArray[np.bool_],
    dead: NDArray[np.bool_],
    drained: NDArray[np.bool_],
) -> int:
    """Count the ordered pairs of a switch and a destination that no path joins any more.

    Packets of a drained switch's hosts start and end there, and none passes through it. A
    destination is a switch with hosts. Switches without links are not counted, nor are drained
    switches whose links lead to drained switches only, and on to no other: they are gone.

    Args:
        far: int32[S, K], the neighbour at each link, -1 where there is none.
        endpoints: bool[S], the switches with hosts.
        dead: bool[S, K], links that carry nothing, marked at both ends.
        drained: bool[S], the switches that pass nothing on.
    """
    passes, works = ~drained, (far >= 0) & ~dead
    onward = works & passes[far]
    part = components(table_of(np.where(onward & passes[:, None], far, -1)))
    # Where drained switches pass packets on, which parts there are with one that is not drained.
    wired = components(table_of(np.where(works, far, -1)))
    remains = works.any(axis=1) & np.isin(wired, wired[passes])
    destination = endpoints & remains
    source = destination | (passes & onward.any(axis=1))

    sources_of_part = np.bincount(part[source & passes], minlength=len(far))
    ends_of_part = np.bincount(part[destination & passes], minlength=len(far))
    joined = int(sources_of_part @ ends_of_part)
    aside = np.flatnonzero(destination & drained)
    row, link = np.nonzero(onward[aside])
    touched, number = np.unique(part[far[aside[row], link]], return_inverse=True)
    # bool[n, P], the parts, most often one, that each drained switch has a link to.
    touches = np.zeros((len(aside), len(touched)), np.bool_)
    touches[row, number] = True
    pairs_with_part = (sources_of_part + ends_of_part)[touched]
    for switch, parts in zip(aside.tolist(), touches, strict=True):
        joined += int(pairs_with_part[parts].sum())
        by_part = (touches & parts).any(axis=1)
        by_link = np.isin(aside, far[switch, works[switch]]) | (aside == switch)
        joined += int(np.count_nonzero(by_part | by_link))
    return int(np.count_nonzero(source) * np.count_nonzero(destination)) - joined
