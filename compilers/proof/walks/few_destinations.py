"""A build as packets to a few destinations see it: their rows, and a class for each."""

from __future__ import annotations

from dataclasses import fields, replace

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
    if not 0 < count < classes or build.marks:
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
