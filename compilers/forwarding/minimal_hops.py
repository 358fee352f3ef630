"""Packets of all pairs followed by the minimal ports, while nothing is down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.fib import LOOPED, MISDELIVERED, MOST_HOPS, Fib


def minimal_hops(fib: Fib, destinations: NDArray[np.int64]) -> NDArray[np.int8]:
    """int8[S, D]: links that a packet from every switch to each destination takes.

    LOST, UNCABLED, LOOPED or MISDELIVERED where it does not arrive; 0 from a switch to itself.
    All packets step together: each cell of `after` holds the flat index of the cell that its
    packet moves to, so one look-up per hop moves every packet. Below the last switch there is
    one row per fault, whose cells point to themselves.
    """
    order, count = len(fib.step), len(destinations)
    column = np.arange(count)
    after = np.empty((order - MISDELIVERED, count), np.int64)
    after[:order] = fib.next_switch(destinations)
    after[order:] = np.arange(order, len(after))[:, None]
    after[after < 0] += len(after)
    after *= count
    after += column
    home = destinations * count + column

    at = after[:order]
    away = at != np.arange(order)[:, None] * count + column
    hops: NDArray[np.int8] = away.astype(np.int8)
    delivers = bool((after[destinations, column] == home).all())
    for _ in range(MOST_HOPS):
        if delivers and (at == home).all():
            return hops
        moved = after.take(at)
        moving = moved != at
        if not moving.any():
            break
        hops += moving
        at = moved
    else:
        hops[moving] = LOOPED
    return _classify(hops, at // count, destinations, order)


def _classify(
    hops: NDArray[np.int8], at: NDArray[np.int64], destinations: NDArray[np.int64], order: int
) -> NDArray[np.int8]:
    """Replace the hops by the fault for packets that stopped anywhere but at their destination."""
    strayed = (at != destinations) & (hops != LOOPED)
    hops[strayed] = np.where(at < order, MISDELIVERED, at - order + MISDELIVERED)[strayed]
    return hops
