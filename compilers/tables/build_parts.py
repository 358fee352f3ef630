"""A build in part: some switches at a time, or as packets to a few destinations see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import (
    Classes,
    Routes,
    Tables,
    empty_egress,
    local,
    no_route,
)
from compilers.tables.packed_alternates import AlternateArray

CLASS_ENTRIES_AT_ONCE = 1 << 19


def switch_blocks(build: Build) -> Iterator[slice]:
    """Ranges of switches with half a million pairs or so of a class and a link or alternate.

    Of links that are packed, there are eight times as many.
    """
    weight, repair = build.tables.classes.weight, build.tables.classes.protection
    switches, classes, options = weight.shape
    entries = classes * options
    if options > 1 or repair.shape[2]:  # what serves a class is looked at by link
        entries = classes * max(options, build.wiring.far.shape[1])
    if isinstance(weight, AlternateArray):
        entries //= 8
    step = max(1, CLASS_ENTRIES_AT_ONCE // max(1, entries))
    for first in range(0, switches, step):
        yield slice(first, min(first + step, switches))


def classes_of(build: Build, some: slice) -> Build:
    """A build with the names, the links and the classes of some switches; all else is whole."""
    w, tables = build.wiring, build.tables
    if some == slice(0, tables.switches):
        return build
    links = {word: getattr(w, word)[some] for word in ("names", "port", "far", "far_port")}
    arrays = {each.name: getattr(tables.classes, each.name) for each in fields(Classes)}
    part: dict[str, Any] = {
        name: array.part(some) if isinstance(array, AlternateArray) else array[some]
        for name, array in arrays.items()
    }
    return replace(
        build,
        wiring=replace(w, **links),
        tables=replace(tables, classes=Classes(**part)),
    )


def towards(build: Build, destinations: NDArray[np.int64]) -> Build:
    """The build with the rows of these destinations only; itself where that is no smaller.

    Packets to them do what they do in the whole build. Itself, too, where packets are marked: what
    switches do with them goes by the numbers of classes.

    Args:
        build: any.
        destinations: int64[D], ascending.
    """
    tables, count = build.tables, len(destinations)
    classes = tables.classes.port.shape[1]
    if not 0 < count < classes or build.forwarding.marks:
        return build
    value = Fib.of(tables, build.wiring.cables()).egress(destinations)
    number = np.minimum(value, classes - 1).astype(np.intp)
    here = np.arange(len(value))[:, None]
    egress = empty_egress(len(value), count, count)
    egress[...] = np.where(value < classes, np.arange(count), no_route(egress))
    egress[value == local(value)] = local(egress)
    routes = Routes.without_aggregates(egress, destinations)
    some = {part.name: getattr(tables.classes, part.name)[here, number] for part in fields(Classes)}
    return replace(build, tables=Tables(routes, Classes(**some)))
