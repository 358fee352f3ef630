"""From a build to the program of its switches, in links: what the rule is asked about."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.rule import DELIVER, DROP, Program
from compilers.routing.marked_spread import onward_links, onward_ports
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import local
from compilers.wiring.wiring import Wiring, links_by_port
from inventory.problems import InputError

Egress = NDArray[np.int16]


def program_of(build: Build, only: int | None = None, *, shares: bool = True) -> Program:
    """The program of all switches of a build, or of one, which is number 0 then.

    Ports without a cable are no links; a share is a link with a weight. The links of a single
    switch are the cables 0 to K - 1, and an element K + t is the switch t.

    Args:
        build: its tables and wiring.
        only: the one switch.
        shares: whether it has what hosts' packets choose among: shares, paths at every hop, marks.

    Raises:
        InputError: a link's ends do not name each other, as in an edited build.
    """
    wiring, some = build.wiring, slice(None) if only is None else slice(only, only + 1)
    # A copy: arrays of a folder are read-only, of which numba would make machine code anew.
    far = np.array(wiring.far[some], np.int32, order="C")
    link_at = links_by_port(far, wiring.port[some])
    switches, links = far.shape
    marks = build.forwarding.marks and shares
    onward = np.zeros((switches if marks else 0, links, links), np.bool_)
    if only is None:
        far_link = far_links(wiring, link_at)
        cable, cables = cable_numbers(far, far_link)
        for place, usable in onward_links(wiring) if marks else ():
            onward[place] = usable
    else:
        far_link, cables = np.full((1, links), -1, np.int16), links
        cable = np.arange(links, dtype=np.int32)[None]
        onward[:] = onward_ports(wiring, only) > 0 if marks else False
    classes = build.tables.classes
    port = classes.port[some][..., None]
    order = np.concatenate((port, np.asarray(classes.protection[some])), axis=2)
    shared = np.zeros((0, 0, 0), np.int16)
    if shares:
        ports = np.concatenate((port, np.asarray(classes.alternate[some])), axis=2)
        shared = _links(link_at, ports)
        shared[np.asarray(classes.weight[some]) == 0] = -1
    return Program(
        far=far,
        far_link=far_link,
        cable=cable,
        cables=cables,
        order=_links(link_at, order),
        bounce=_links(link_at, np.asarray(classes.bounce[some])),
        shares=shared,
        every_hop=build.forwarding.every_hop and shares,
        onward=onward,
    )


def egress_classes(build: Build, destinations: NDArray[np.int64], fib: Fib | None = None) -> Egress:
    """int16[D, S]: the egress class of every switch for some destinations, ascending.

    DELIVER at a switch that delivers to its own hosts; DROP where there is no route, or a class
    that is not there. fib: of this build, where it is made already.
    """
    fib = fib or Fib.of(build.tables, build.wiring.cables())
    value = fib.egress(destinations)
    classes = build.tables.classes.port.shape[1]
    number = value.astype(np.int16)
    number[value >= classes] = DROP
    number[value == local(value)] = DELIVER
    return np.ascontiguousarray(number.T)


def far_links(wiring: Wiring, link_at: NDArray[np.int16]) -> NDArray[np.int16]:
    """int16[S, K]: the number of each link at its far end, -1 where there is none.

    link_at: of `links_by_port`.

    Raises:
        InputError: the ends of a link do not name each other.
    """
    switch, link = np.nonzero(wiring.far >= 0)
    far, port = wiring.far[switch, link], wiring.far_port[switch, link]
    there = port < link_at.shape[1]
    number = np.where(there, link_at[far, np.where(there, port, 0)], -1)
    mutual = (number >= 0) & (wiring.far[far, number] == switch)
    mutual &= (wiring.far_port[far, number] == wiring.port[switch, link]) & (far != switch)
    if wrong := np.flatnonzero(~mutual)[:1].tolist():
        raise one_sided(wiring, int(switch[wrong[0]]), int(far[wrong[0]]))
    found = np.full(wiring.far.shape, -1, np.int16)
    found[switch, link] = number
    return found


def one_sided(wiring: Wiring, one: int, other: int) -> InputError:
    """The refusal of a build, edited after it was compiled, in which a link has one end only."""
    given = f"{wiring.names[one]} to {wiring.names[other]}"
    required, todo = "links whose two ends name each other", "compile the build again"
    return InputError.of(required, given, todo, key="wiring")


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


def _links(link_at: NDArray[np.int16], ports: NDArray[Any]) -> NDArray[np.int16]:
    """int16[S, C, n]: the links behind ports, [S, C, n]; -1 where there is none."""
    width = link_at.shape[1]
    links = np.empty(ports.shape, np.int16)
    for switch, of_switch in enumerate(ports):
        known = (of_switch > 0) & (of_switch < width)
        links[switch] = np.where(known, link_at[switch].take(np.where(known, of_switch, 0)), -1)
    return links
