"""Classes at the ends of failed links: ports that are gone leave, neighbours that repair come.

A port that is gone is an alternate no more and has no weight. In an order of repair the ports that
are left keep their order; a neighbour takes an empty place if its paths to every destination of the
class avoid the switch and the next hop, as in `compilers.routing.choose`. A class whose own link is
gone stays as it is: no row leads to it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from mmap import ACCESS_COPY, mmap
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from compilers.routing.choose import in_turn, ranked
from compilers.routing.split_classes import deciding_rows
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Tables
from compilers.wiring.wiring import Wiring

Numbers = NDArray[Any]
NOWHERE = -2


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """What is left of a fabric: tables whose routes use no dead link, joined with the cables.

    live: bool[S, K], the links that are left. hurt: int64[h], the switches whose classes lose some.
    ends: int64[D], destinations. depth: the links that no path exceeds.
    """

    tables: Tables
    fib: Fib
    wiring: Wiring
    live: NDArray[np.bool_]
    hurt: NDArray[np.int64]
    ends: NDArray[np.int64]
    depth: int


@dataclass(frozen=True, slots=True, eq=False)
class ClassParts:
    """What changes of a fabric's classes, to be copied for every repair."""

    alternate: CopyOnWrite
    weight: CopyOnWrite
    protection: CopyOnWrite
    bounce: CopyOnWrite

    @classmethod
    def of(cls, classes: Classes) -> ClassParts:
        """Prepare classes; that takes as long as a copy."""
        return cls(**{part.name: CopyOnWrite(getattr(classes, part.name)) for part in fields(cls)})


def refilled(left: Left, parts: ClassParts) -> tuple[Classes, NDArray[np.int64]]:
    """Classes without ports that are gone; int64[m, 2], switch and number of those that changed."""
    old, wiring, hurt = left.tables.classes, left.wiring, left.hurt
    missing = (wiring.far >= 0) & ~left.live
    gone = np.zeros((len(hurt), int(wiring.port.max()) + 1), np.bool_)
    which, link = np.nonzero(missing[hurt])
    gone[which, wiring.port[hurt[which], link]] = True
    here = np.arange(len(hurt))[:, None]
    used = ~gone[here, old.port[hurt]][..., None]

    lost = gone[here[..., None], old.alternate[hurt]] & used
    alternate, weight = parts.alternate.copy(), parts.weight.copy()
    alternate[hurt] = np.where(lost, 0, alternate[hurt])
    weight[hurt, :, 1:] = np.where(lost, 0, weight[hurt, :, 1:])

    protection, bounce = parts.protection.copy(), parts.bounce.copy()
    short = np.zeros(lost.shape[:2], np.bool_)
    for order in (protection, bounce):
        dead = gone[here[..., None], order[hurt]] & used
        short |= dead.any(axis=2)
        kept = np.where(dead, np.uint16(0), order[hurt])
        order[hurt] = in_turn(kept, np.zeros_like(kept))
    for place in np.flatnonzero(short.any(axis=1)).tolist():
        switch, numbers = int(hurt[place]), np.flatnonzero(short[place])
        serves = _repairs(left, switch, numbers)
        for order in (protection, bounce):
            order[switch, numbers] = _filled(left, switch, numbers, order[switch, numbers], serves)
    which, number = np.nonzero(short | lost.any(axis=2))
    classes = replace(old, alternate=alternate, weight=weight, protection=protection, bounce=bounce)
    return classes, np.column_stack((hurt[which], number))


def _repairs(left: Left, switch: int, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[n, K]: the links whose neighbours repair all destinations of these classes."""
    routes, far = left.tables.routes, left.wiring.far[switch]
    row, known = deciding_rows(routes, switch, left.ends)
    member = routes.egress[switch, row].astype(np.int64)
    some = known & np.isin(member, numbers)
    member, ends = member[some], left.ends[some]
    after = left.fib.next_switch(ends)
    column, hop = np.arange(len(ends)), after[switch]
    at = np.broadcast_to(far[:, None], (len(far), len(ends)))
    serves = left.live[switch][:, None] & (at != hop)
    past = switch, np.where(hop == ends, NOWHERE, hop)
    serves &= arrives(after, at, column, ends, past, left.depth)
    return np.array([serves[:, member == number].all(axis=1) for number in numbers])


def arrives(
    after: NDArray[np.int32],
    at: Numbers,
    column: Numbers,
    ends: Numbers,
    past: tuple[Any, ...],
    links: int,
) -> NDArray[np.bool_]:
    """Whether packets from switches arrive within so many links, past these other switches.

    Args:
        after: int32[S, D], the next switches.
        at: int, the switches, -1 for none, of any shape that the others go with.
        column: of each one's destination in `after`.
        ends: the destinations.
        past: switches, each an array or a number.
        links: no path is longer.
    """
    good = np.ones(at.shape, np.bool_)
    for _ in range(links):
        for switch in past:
            good &= at != switch
        at = np.where(at >= 0, after[at, column], at)
    there: NDArray[np.bool_] = good & (at == ends)
    return there


def _filled(
    left: Left, switch: int, numbers: NDArray[np.int64], order: Numbers, serves: NDArray[np.bool_]
) -> NDArray[np.uint16]:
    """uint16[n, P]: the orders of these classes, empty places filled with ports that repair."""
    one = slice(switch, switch + 1)
    port = left.wiring.port[one]
    new = serves & ~(port[..., None] == order[:, None, :]).any(axis=2)
    minimal = left.tables.classes.port[one, numbers]
    wiring = replace(left.wiring, port=port)
    whole = in_turn(order[None], ranked(new[None], minimal, wiring, order.shape[1]))
    return whole.reshape(order.shape)


class CopyOnWrite:
    """An array whose copies cost what is changed in them, not what it holds.

    It is in a file in memory (memfd_create(2)), and every copy is a private mapping of that. A
    process that may open no more files gets copies of its own.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._shape, self._dtype, self._whole = array.shape, array.dtype, array
        self._file: int | None = None
        with suppress(OSError):
            file = os.memfd_create("array")
            finalize(self, os.close, file)
            os.ftruncate(file, max(array.nbytes, 1))  # of an empty file nothing can be mapped
            self._whole = self._over(mmap(file, 0))
            self._whole[...] = array
            self._file = file
        if self._file is None:
            self._whole = array.copy()

    def copy(self) -> NDArray[Any]:
        """A copy that can be written to, independent of others."""
        if self._file is not None:
            with suppress(OSError):  # a mapping takes a file descriptor, too
                return self._over(mmap(self._file, 0, access=ACCESS_COPY))
        return self._whole.copy()

    def _over(self, memory: mmap) -> NDArray[Any]:
        return np.ndarray(self._shape, self._dtype, memory)
