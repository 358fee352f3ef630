"""Parts of a build: a range of its switches, or only the routes to a few destinations.

The proof looks at some switches at a time, so that its memory does not grow with the fabric, and
follows packets to a few destinations in a build that has routes to no others.
"""

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
"""About how many pairs of a class and a link a range of switches has."""


def switch_blocks(build: Build) -> Iterator[slice]:
    """Yield ranges of switches that together cover all, each of about the same memory.

    A range has about half a million pairs of a class and a link; where alternates are packed, eight
    times as many, as a pair is a bit.
    """
    weight, protection = build.tables.classes.weight, build.tables.classes.protection
    switches, classes, shares = weight.shape
    entries = classes * shares
    if shares > 1 or protection.shape[2]:  # alternates and repair ports are looked up by link
        entries = classes * max(shares, build.wiring.far.shape[1])
    if isinstance(weight, AlternateArray):
        entries //= 8  # a bit in place of a byte
    step = max(1, CLASS_ENTRIES_AT_ONCE // max(1, entries))
    for first in range(0, switches, step):
        yield slice(first, min(first + step, switches))


def classes_of(build: Build, switches: slice) -> Build:
    """Return a build with the names, links and classes of a range of switches only.

    Everything else, such as the routes, is that of all switches.
    """
    wiring, tables = build.wiring, build.tables
    if switches == slice(0, tables.switches):
        return build
    links = {name: getattr(wiring, name)[switches] for name in ("names", "port", "far", "far_port")}
    classes: dict[str, Any] = {}
    for field in fields(Classes):
        array = getattr(tables.classes, field.name)
        packed = isinstance(array, AlternateArray)
        classes[field.name] = array.part(switches) if packed else array[switches]
    return replace(
        build,
        wiring=replace(wiring, **links),
        tables=replace(tables, classes=Classes(**classes)),
    )


def towards(build: Build, destinations: NDArray[np.int64]) -> Build:
    """Return a build in which packets to these destinations do what they do in the whole build.

    It has a class of its own for each destination, and rows for no other. The whole build is
    returned where that is no smaller, and where packets are marked: what switches do with marked
    packets depends on the numbers of classes.

    Args:
        build: the whole build.
        destinations: int64[D], ascending.
    """
    tables, count = build.tables, len(destinations)
    classes = tables.classes.port.shape[1]
    if not 0 < count < classes or build.forwarding.marks:
        return build
    # [S, D], the class of each switch for each destination.
    whole_egress = Fib.of(tables, build.wiring.far_by_port()).egress(destinations)
    egress = empty_egress(len(whole_egress), count, count)
    egress[...] = np.where(whole_egress < classes, np.arange(count), no_route(egress))
    egress[whole_egress == local(whole_egress)] = local(egress)
    routes = Routes.without_aggregates(egress, destinations)
    # [S, D], the class whose fields are copied. `local` and `no_route` name no class: the last
    # class stands in for them, and no row leads to the copy.
    class_number = np.minimum(whole_egress, classes - 1).astype(np.intp)
    switch = np.arange(len(whole_egress))[:, None]
    class_fields = {
        field.name: getattr(tables.classes, field.name)[switch, class_number]
        for field in fields(Classes)
    }
    return replace(build, tables=Tables(routes, Classes(**class_fields)))
