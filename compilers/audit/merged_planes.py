"""The planes of a fabric merged into one plan, since a plug may be in the wrong plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring


def merged(builds: Sequence[Build]) -> tuple[Wiring, Hardware | None]:
    """One wiring of all planes, their vertices plane by plane.

    Planes have the same node types. Of the hardware, only the names of nodes and ports are merged.
    """
    if len(builds) == 1:
        return builds[0].wiring, builds[0].hardware
    parts = [build.wiring for build in builds]
    first = np.cumsum([0, *(len(part.names) for part in parts)]).tolist()
    far = [np.where(w.far >= 0, w.far + start, -1) for w, start in zip(parts, first, strict=False)]
    wiring = Wiring(
        names=tuple(name for part in parts for name in part.names),
        management=tuple(address for part in parts for address in part.management),
        host_names=tuple(name for part in parts for name in part.host_names),
        datapath_id=np.concatenate([part.datapath_id for part in parts]),
        port=_stacked([part.port for part in parts], 0),
        far=_stacked(far, -1),
        far_port=_stacked([part.far_port for part in parts], 0),
        host_port=_stacked([part.host_port for part in parts], 0),
        node_type=np.concatenate([part.node_type for part in parts]),
        type_names=parts[0].type_names,
        port_names=parts[0].port_names,
    )
    known = [build.hardware for build in builds if build.hardware]
    if len(known) < len(builds):
        return wiring, None
    serial = tuple(text for part in known for text in part.serial)
    guid = tuple(text for part in known for text in part.guid)
    return wiring, replace(known[0], serial=serial, guid=guid)


def _stacked(parts: Sequence[NDArray[np.int32]], beyond: int) -> NDArray[np.int32]:
    """All rows, padded to the widest; a damaged plane may have fewer columns."""
    widest = max(part.shape[1] for part in parts)
    padded = [
        np.pad(part, ((0, 0), (0, widest - part.shape[1])), constant_values=beyond)
        for part in parts
    ]
    return np.concatenate(padded).astype(np.int32)
