"""The wiring of all planes of a fabric as one, so that an audit sees plugs in the wrong plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring


def merge_planes(builds: Sequence[Build]) -> tuple[Wiring, Hardware | None]:
    """The wiring of all planes as one, since a plug may be in the wrong plane.

    Vertices are numbered plane by plane. Planes have the same node types. Of the hardware only the
    names of nodes and ports are merged; it is None where a plane has none.
    """
    if len(builds) == 1:
        return builds[0].wiring, builds[0].hardware
    wirings = [build.wiring for build in builds]
    first_vertices = accumulate((len(wiring.names) for wiring in wirings[:-1]), initial=0)
    far = [
        np.where(wiring.far >= 0, wiring.far + first, -1)
        for wiring, first in zip(wirings, first_vertices, strict=True)
    ]
    merged = Wiring(
        names=tuple(name for wiring in wirings for name in wiring.names),
        management=tuple(address for wiring in wirings for address in wiring.management),
        host_names=tuple(name for wiring in wirings for name in wiring.host_names),
        datapath_id=np.concatenate([wiring.datapath_id for wiring in wirings]),
        port=_stack_rows([wiring.port for wiring in wirings], fill=0),
        far=_stack_rows(far, fill=-1),
        far_port=_stack_rows([wiring.far_port for wiring in wirings], fill=0),
        host_port=_stack_rows([wiring.host_port for wiring in wirings], fill=0),
        node_type=np.concatenate([wiring.node_type for wiring in wirings]),
        type_names=wirings[0].type_names,
        port_names=wirings[0].port_names,
    )
    hardware = [build.hardware for build in builds if build.hardware]
    if len(hardware) < len(builds):
        return merged, None
    serial = tuple(text for of_plane in hardware for text in of_plane.serial)
    guid = tuple(text for of_plane in hardware for text in of_plane.guid)
    return merged, replace(hardware[0], serial=serial, guid=guid)


def _stack_rows(arrays: Sequence[NDArray[np.int32]], fill: int) -> NDArray[np.int32]:
    """The rows of all arrays, padded with a value: a damaged plane may have fewer columns."""
    widest = max(array.shape[1] for array in arrays)
    padded = [
        np.pad(array, ((0, 0), (0, widest - array.shape[1])), constant_values=fill)
        for array in arrays
    ]
    return np.concatenate(padded).astype(np.int32)
