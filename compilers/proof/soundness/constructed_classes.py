"""Large whole fabrics: classes against the construction, which small ones are searched for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.policy_soundness import bounces
from compilers.proof.soundness.unsound import Unsound, where
from compilers.tables.build import Build
from compilers.topology.families import family_of
from inventory.problems import Finding


def constructed_alternates(build: Build) -> NDArray[np.uint8] | None:
    """uint8[S, C, B]: the links of alternates that are constructed for the policy.

    None where the fabric has no construction; no links where the policy asks for no alternates.
    """
    topology, wiring = build.topology, build.wiring
    family, classes = family_of(topology.family), build.tables.classes.port.shape[1]
    edge = build.policy.get("disjoint", "edge") == "edge"
    also = bounces(build) or build.marks
    found: NDArray[np.uint8] | None
    found = family.constructed_alternates(topology, wiring, classes, edge, also)
    return np.zeros_like(found) if found is not None and not build.spreading.alternates else found


def direct_rows(build: Build) -> Iterator[Unsound]:
    """Rows for a neighbour that lead there by a class that serves others, or the other way round.

    Class K + k serves the neighbour over link k itself, in both constructions.
    """
    egress, far = build.tables.routes.egress, build.wiring.far
    if not build.tables.routes.exact or not isinstance(egress, np.ndarray):
        return  # computed rows have it so
    links = far.shape[1]
    wrong = np.zeros(far.shape, np.bool_)
    for s, row in enumerate(egress):
        near = far[s] >= 0
        direct = row[np.maximum(far[s], 0)] == links + np.arange(links)
        count = np.count_nonzero((row >= links) & (row < 2 * links))
        wrong[s] = near & (~direct if count == near.sum() else True)
    yield from where(
        wrong,
        lambda s, k: Finding(
            (build.wiring.names[s], "class", links + k),
            "rows for the neighbour alone, by its number",
            "rows for others, or none for it",
        ),
    )
