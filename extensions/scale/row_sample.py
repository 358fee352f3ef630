"""Some computed rows, chosen by chance, judged by nothing but prefixes, ports and cables.

They belong to a proof of the program that rows are computed from (`extensions.scale.star_program`):
rows that are decoded otherwise than the proof takes them to be are found here.
"""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route

SUPERNODES = 8
"""Supernodes looked at, in addition to the first and the last of each kind of switches."""
MEMBERS = 3
HERE, NO_LINK = -1, -2


def sampled_rows_minimal(build: Build, seed: int) -> bool:
    """Whether all rows of some switches lead to their destinations over shortest paths.

    Args:
        build: sound cables and prefixes, S switches with hosts in supernodes of h.
        seed: chooses the supernodes, and switches in each.
    """
    h, order = build.topology.hierarchy, len(build.wiring.far)
    chance = Random(seed)  # noqa: S311
    chosen = {*chance.sample(range(order // h), min(SUPERNODES, order // h))}
    for kind in np.unique(build.topology.kind).tolist():
        some = np.flatnonzero(build.topology.kind == kind)
        chosen |= {int(some[0]) // h, int(some[-1]) // h}
    return all(
        _minimal(build, x * h + member)
        for x in sorted(chosen)
        for member in chance.sample(range(h), min(MEMBERS, h))
    )


def _minimal(build: Build, switch: int) -> bool:
    """Whether each row of a switch takes a link to a neighbour closer to what it serves."""
    far = build.wiring.far
    link, links = _served(build, switch), _up_to(2, build, switch, np.full(len(far), 3, np.int8))
    order = np.argsort(link, kind="stable")
    ends = np.searchsorted(link[order], np.arange(far.shape[1] + 1))
    if not np.array_equal(order[: ends[0]], [switch]) or link[switch] != HERE:
        return False
    distance = np.full(len(far), 3, np.int8)
    for place in np.flatnonzero(np.diff(ends)).tolist():
        neighbour = int(far[switch, place])
        served = order[ends[place] : ends[place + 1]]
        _up_to(int(links[served].max()) - 1, build, neighbour, distance)
        if (distance[served] >= links[served]).any():
            return False
        distance[:] = 3
    return True


def _up_to(most: int, build: Build, switch: int, links: NDArray[np.int8]) -> NDArray[np.int8]:
    """The array, int8[S], with 0 to `most`, 2 at most, where switches are so many links away."""
    far = build.wiring.far
    near = far[switch][far[switch] >= 0]
    if most == 2:
        beyond = far[near]
        links[beyond[beyond >= 0]] = 2
    if most:
        links[near] = 1
    links[switch] = 0
    return links


def _served(build: Build, switch: int) -> NDArray[np.int16]:
    """int16[S]: the link that a switch takes to each, by longest prefix; HERE to its own hosts."""
    routes, h, order = build.tables.routes, build.topology.hierarchy, len(build.wiring.far)
    egress, prefix = routes.egress[switch], routes.prefixes(switch)
    port = build.tables.classes.port[switch]
    some = slice(switch, switch + 1)
    links = PortUse.of(build.wiring).part(some).links(port[None])[0]
    forwards = egress < min(len(port), no_route(routes.egress))
    link = np.where(forwards, links[np.where(forwards, egress, 0)], NO_LINK).astype(np.int16)
    link[egress == local(routes.egress)] = HERE
    has_row = egress != no_route(routes.egress)
    served = np.full((order // h, h), NO_LINK, np.int16)
    if prefix[has_row].max(initial=0) >= order + order // h:  # a row for no switch
        return served.ravel()
    whole = has_row & (prefix >= order)
    served[prefix[whole] - order] = link[whole][:, None]
    single = has_row & (prefix < order)
    served.ravel()[prefix[single]] = link[single]
    return served.ravel()
