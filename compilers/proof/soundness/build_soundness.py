"""A build checked against itself, before and after its pairs are walked.

Walks tell where packets get to; they cannot tell that two hosts have one address, that a port of
repair is a host's, or that a weight has no port. Every value is looked at for what it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness import forwarding_soundness, value_soundness
from compilers.proof.soundness.port_use import PortUse
from compilers.proof.soundness.unsound import Unsound, where
from compilers.proof.walks.detours import Detours
from compilers.tables.build import Build
from compilers.tables.build_parts import classes_of, switch_blocks
from compilers.topology.families import family_of
from inventory.problems import Finding


def walkable(build: Build) -> Unsound:
    """What is wrong with the cables and prefixes, without which no packet can be followed."""
    for checks in (_types, _cables):
        if (found := Unsound.of(checks(build))).count:
            return found
    return Unsound()


def _types(build: Build) -> Iterator[Unsound]:
    yield from value_soundness.node_types(build)
    yield from value_soundness.graph(build)
    yield from value_soundness.prefixes(build)


def _cables(build: Build) -> Iterator[Unsound]:
    use = PortUse.of(build.wiring)
    yield from value_soundness.ports(build, use)
    yield from value_soundness.cables(build, use)


def unsound(build: Build, rows: bool = True) -> Unsound:
    """All else that is wrong with a build whose packets can be followed.

    Args:
        build: see above.
        rows: False where all rows are proved to lead to their destinations.
    """
    return Unsound.of(_values(build, rows))


def _values(build: Build, rows: bool) -> Iterator[Unsound]:
    use = PortUse.of(build.wiring)
    yield from value_soundness.family(build)
    if rows:
        yield from value_soundness.rows(build)
    for some in switch_blocks(build):
        part = classes_of(build, some)
        yield from value_soundness.classes(part, use.part(some))
        yield from value_soundness.weights(part)
    yield from value_soundness.names(build)
    yield from value_soundness.datapath_ids(build)
    yield from value_soundness.mac_addresses(build)
    yield from value_soundness.blocks(build)


def broken_claims(build: Build, constructed: bool = False) -> Unsound:
    """What `build.forwarding` says and the tables do not keep, in a sound build that delivers.

    Args:
        build: see above.
        constructed: whether to compare alternates with those that are constructed, where the
            family has a construction; its repairs are then judged by failures alone.
    """
    return Unsound.of(_broken_claims(build, constructed))


def _broken_claims(build: Build, constructed: bool) -> Iterator[Unsound]:
    forwarding, use = build.forwarding, PortUse.of(build.wiring)
    links = constructed_alternates(build) if constructed else None
    paths = None
    if links is not None:
        yield from direct_rows(build)
    elif forwarding.has_alternates or forwarding.repairs:
        paths = Detours.of(build)
    for some in switch_blocks(build):
        part, ports = classes_of(build, some), use.part(some)
        yield from forwarding_soundness.weights(part)
        if not forwarding.has_alternates:
            yield from forwarding_soundness.no_alternates(part, ports)
        if links is not None:
            yield from forwarding_soundness.constructed_alternates(part, ports, links[some])
        if paths:
            yield from _by_paths(part, ports, paths.part(some))


def _by_paths(build: Build, use: PortUse, paths: Detours) -> Iterator[Unsound]:
    """Claims about some switches that the paths of their neighbours prove."""
    forwarding = build.forwarding
    if not forwarding.every_hop:  # else walks judge the repairs: any shortest path may be taken
        yield from forwarding_soundness.class_rows(build, paths)
        yield from forwarding_soundness.repairs(build, use, paths)
    if forwarding.has_alternates:
        yield from forwarding_soundness.alternates(build, use, paths)


def constructed_alternates(build: Build) -> NDArray[np.uint8] | None:
    """uint8[S, C, B]: the links of alternates that are constructed for what the build says.

    None where the fabric has no construction.
    """
    forwarding, classes = build.forwarding, build.tables.classes.port.shape[1]
    if forwarding.alternates == "shortest":
        return None
    family = family_of(build.topology.family)
    links: NDArray[np.uint8] | None = family.constructed_alternates(
        build.topology, build.wiring, classes, forwarding
    )
    return np.zeros_like(links) if links is not None and not forwarding.has_alternates else links


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
