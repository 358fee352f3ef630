"""From a build to the program of its switches, in links: what the rule is asked about."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import Library
from compilers.forwarding.rule import DELIVER, DROP, NO_MARKS, PROGRAM_TYPES, Program
from compilers.routing.marked_spread import ONE_SIDE, onward_links, sides
from compilers.spec.policy import MARKED
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local
from compilers.tables.walk import Walker
from compilers.wiring.wiring import Wiring

Egress = NDArray[np.int16]

LOOPS = Library(
    "forwarding",
    (
        "compilers.forwarding.rule",
        "compilers.forwarding.tabulation",
        "compilers.forwarding.single_failures",
        "compilers.forwarding.failure_sets",
    ),
    "Program",
    PROGRAM_TYPES,
)


def program_of(build: Build) -> Program:
    """The program of all switches of a build.

    Ports without a cable are no links; a share is a link with a weight.
    """
    wiring, classes = build.wiring, build.tables.classes
    far = wiring.far.astype(np.int32)
    link_at = links_by_port(wiring)
    there = far >= 0
    far_link = np.where(there, link_at[np.maximum(far, 0), wiring.far_port], -1).astype(np.int16)
    cable, cables = cable_numbers(wiring.far, far_link)
    order = np.concatenate((classes.port[..., None], np.asarray(classes.protection)), axis=2)
    shares = np.concatenate((classes.port[..., None], np.asarray(classes.alternate)), axis=2)
    linked = _links(link_at, shares)
    linked[np.asarray(classes.weight) == 0] = -1
    marks = build.balance == MARKED
    switches, links = far.shape
    onward = np.zeros((switches if marks else 0, links, links), np.bool_)
    for some, usable in onward_links(wiring) if marks else ():
        onward[some] = usable
    side = sides(build.topology)
    return Program(
        far=np.ascontiguousarray(far),
        far_link=far_link,
        cable=cable,
        cables=cables,
        order=_links(link_at, order),
        bounce=_links(link_at, np.asarray(classes.bounce)),
        shares=linked,
        every_hop=build.every_hop,
        first_marked=int(side[0] == ONE_SIDE) if marks else NO_MARKS,
        onward=onward,
        side=np.ascontiguousarray(side.astype(np.int8)),
    )


def egress_classes(
    build: Build, destinations: NDArray[np.int64], walker: Walker | None = None
) -> Egress:
    """int16[D, S]: the egress class of every switch for some destinations, ascending.

    DELIVER at a switch that delivers to its own hosts; DROP where there is no route, or a class
    that is not there. walker: of this build, where it is made already.
    """
    walker = walker or Walker.of(build.tables, build.wiring.cables())
    value = walker.egress(destinations)
    classes = build.tables.classes.port.shape[1]
    number = value.astype(np.int16)
    number[value >= classes] = DROP
    number[value == local(value)] = DELIVER
    return np.ascontiguousarray(number.T)


def links_by_port(wiring: Wiring) -> NDArray[np.int16]:
    """int16[S, ports + 1]: the link at each port number, -1 without a cable."""
    table = np.full((len(wiring.far), int(wiring.port.max(initial=0)) + 1), -1, np.int16)
    switch, link = np.nonzero(wiring.far >= 0)
    table[switch, wiring.port[switch, link]] = link
    return table


def cable_numbers(far: NDArray[Any], far_link: NDArray[np.int16]) -> tuple[NDArray[np.int32], int]:
    """int32[S, K], the number of each link in the fabric, -1 where there is none; and E."""
    number = np.full(far.shape, -1, np.int32)
    there = far >= 0
    forth = there & (far > np.arange(len(far))[:, None])
    count = int(np.count_nonzero(forth))
    number[forth] = np.arange(count, dtype=np.int32)
    switch, link = np.nonzero(there & ~forth)
    number[switch, link] = number[far[switch, link], far_link[switch, link]]
    return number, count


def cable_ends(far: NDArray[Any]) -> NDArray[np.int64]:
    """int64[E, 2]: the switches that each cable joins, the smaller first, by its number."""
    switch, link = np.nonzero(far > np.arange(len(far))[:, None])
    return np.stack((switch, far[switch, link]), axis=1).astype(np.int64)


def _links(link_at: NDArray[np.int16], ports: NDArray[Any]) -> NDArray[np.int16]:
    """int16[S, C, n]: the links behind ports, [S, C, n]; -1 where there is none."""
    width = link_at.shape[1]
    links = np.empty(ports.shape, np.int16)
    for switch, of_switch in enumerate(ports):
        known = (of_switch > 0) & (of_switch < width)
        links[switch] = np.where(known, link_at[switch].take(np.where(known, of_switch, 0)), -1)
    return links
