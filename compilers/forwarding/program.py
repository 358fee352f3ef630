"""Lower the tables of a build from ports to links: from a `Build` to the `Program` of the rule.

Tables name ports, and packets move over cables. So `program_of` joins the tables with the wiring:
each port becomes the link behind it, each link gets its far end and the number of its cable.
`egress_classes` looks up the class of every switch for some destinations. All walks begin with
these two.

For each class of a switch, a program has three lists of links (`rule.Program`):

- `order`, which a packet in transit tries from first to last: the minimal link, and repairs;
- `bounce`, which it tries instead if it came in by the minimal link, so that it was sent back;
- `shares`, over which packets of hosts are spread: the minimal link, and alternates.

For each ingress link it has `onward`: the links over which a marked packet is spread (balance
`spread`). Where no packets are marked, `onward` has no rows.

Letters: S switches, K links of a switch, C classes of a switch, D destinations; P, A and B are the
lengths of the lists of repairs, alternates and `bounce`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.rule import DELIVER, DROP, Program
from compilers.routing.marked_spread import onward_links, onward_ports, without_links
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, local
from compilers.wiring.wiring import Wiring, links_by_port
from inventory.problems import InputError

Egress = NDArray[np.int16]
"""int16[D, S], the class of each switch for each destination, as `egress_classes` returns it."""


def program_of(build: Build, switch: int | None = None, *, shares: bool = True) -> Program:
    """The program of all switches of a build, or of one switch.

    A port without a cable is no link, and only links with a weight are shares. In the program of
    one switch, that switch is number 0, its links are the cables 0 to K - 1, and the element K + t
    is the switch t of the fabric.

    Args:
        build: its tables and wiring.
        switch: the number of the one switch; None: all.
        shares: whether the program has shares and marks. Without them it forwards as if the balance
            were minimal.

    Raises:
        InputError: a link's ends do not name each other, as in an edited build.
    """
    wiring, rows = build.wiring, slice(None) if switch is None else slice(switch, switch + 1)
    # A copy: arrays of a folder are read-only, of which numba would make machine code anew.
    far = np.array(wiring.far[rows], np.int32, order="C")
    link_at = links_by_port(far, wiring.port[rows])
    most_links = far.shape[1]
    if switch is None:
        far_link = far_links(wiring, link_at)
        cable, cable_count = cable_numbers(far, far_link)
    else:
        far_link, cable_count = np.full((1, most_links), -1, np.int16), most_links
        cable = np.arange(most_links, dtype=np.int32)[None]
    onward = np.zeros((0, most_links, most_links), np.bool_)
    if build.forwarding.marks and shares:
        onward = _onward(build, switch)
    classes = build.tables.classes
    return Program(
        far=far,
        far_link=far_link,
        cable=cable,
        cable_count=cable_count,
        order=_order(classes, rows, link_at),
        bounce=_links(link_at, np.asarray(classes.bounce[rows])),
        shares=_shares(classes, rows, link_at) if shares else np.zeros((0, 0, 0), np.int16),
        every_hop=build.forwarding.every_hop and shares,
        onward=onward,
    )


def with_classes(program: Program, build: Build, switches: NDArray[np.int64]) -> Program:
    """The program of a build whose classes differ from those of another one at some switches only.

    Args:
        program: of the other build, which has the same cables.
        build: its classes.
        switches: int64[n], where classes differ.
    """
    link_at = links_by_port(program.far[switches], build.wiring.port[switches])
    classes = build.tables.classes
    order, bounce, shares = program.order.copy(), program.bounce.copy(), program.shares.copy()
    order[switches] = _order(classes, switches, link_at)
    bounce[switches] = _links(link_at, np.asarray(classes.bounce[switches]))
    shares[switches] = _shares(classes, switches, link_at)
    return program._replace(order=order, bounce=bounce, shares=shares)


def _order(
    classes: Classes, switches: slice | NDArray[np.int64], link_at: NDArray[np.int16]
) -> NDArray[np.int16]:
    """int16[n, C, 1 + P], `Program.order` for n switches, whose links are at ports of `link_at`."""
    ports = np.concatenate(
        (classes.port[switches][..., None], classes.protection[switches]), axis=2
    )
    return _links(link_at, ports)


def _shares(
    classes: Classes, switches: slice | NDArray[np.int64], link_at: NDArray[np.int16]
) -> NDArray[np.int16]:
    """int16[n, C, 1 + A], `Program.shares` for n switches, as `_order`."""
    ports = np.concatenate((classes.port[switches][..., None], classes.alternate[switches]), axis=2)
    links = _links(link_at, ports)
    links[np.asarray(classes.weight[switches]) == 0] = -1
    return links


def _onward(build: Build, switch: int | None) -> NDArray[np.bool_]:
    """bool[S, K, K], `Program.onward` of all switches; bool[1, K, K] of one."""
    wiring, avoided = build.wiring, build.tables.avoided
    switches, most_links = wiring.far.shape
    if switch is not None:
        ports = onward_ports(wiring, switch, avoided)
        return np.broadcast_to(ports > 0, (1, most_links, most_links)).copy()
    onward = np.zeros((switches, most_links, most_links), np.bool_)
    for block, usable in onward_links(wiring):
        onward[block] = usable
        if avoided is not None:
            onward[block] = without_links(usable, avoided.links[block], avoided.dead[block])
    return onward


def egress_classes(build: Build, destinations: NDArray[np.int64], fib: Fib | None = None) -> Egress:
    """The egress class of every switch for some destinations.

    Args:
        build: its routes are looked up.
        destinations: int64[D], ascending.
        fib: of this build, if it is made already.

    Returns:
        int16[D, S]: the class; DELIVER at the switch that delivers to its own hosts; DROP where
        there is no route, or where the route names a class that the switch does not have.
    """
    fib = fib or Fib.of(build.tables, build.wiring.far_by_port())
    value = fib.egress(destinations)  # [S, D]
    class_count = build.tables.classes.port.shape[1]
    number = value.astype(np.int16)
    # Values that are no classes: no route, delivery, and wrong ones of an edited build.
    number[value >= class_count] = DROP
    number[value == local(value)] = DELIVER
    return np.ascontiguousarray(number.T)


def far_links(wiring: Wiring, link_at: NDArray[np.int16]) -> NDArray[np.int16]:
    """The number that each link has at its far end.

    Args:
        wiring: its links name the port at their far end.
        link_at: int16[S, ports], of `links_by_port`.

    Returns:
        int16[S, K]; -1 where there is no link.

    Raises:
        InputError: the ends of a link do not name each other.
    """
    switch, link = np.nonzero(wiring.far >= 0)
    far, port = wiring.far[switch, link], wiring.far_port[switch, link]
    exists = port < link_at.shape[1]
    number = np.where(exists, link_at[far, np.where(exists, port, 0)], -1)
    mutual = (number >= 0) & (wiring.far[far, number] == switch)
    mutual &= (wiring.far_port[far, number] == wiring.port[switch, link]) & (far != switch)
    if wrong := np.flatnonzero(~mutual)[:1].tolist():
        raise one_sided(wiring, int(switch[wrong[0]]), int(far[wrong[0]]))
    far_link = np.full(wiring.far.shape, -1, np.int16)
    far_link[switch, link] = number
    return far_link


def one_sided(wiring: Wiring, switch: int, far: int) -> InputError:
    """The error for a link whose far end does not name it, as in an edited build."""
    link = f"{wiring.names[switch]} to {wiring.names[far]}"
    required, todo = "links whose two ends name each other", "compile the build again"
    return InputError.of(required, link, todo, key="wiring")


def cable_numbers(far: NDArray[Any], far_link: NDArray[np.int16]) -> tuple[NDArray[np.int32], int]:
    """The number of each link's cable, in the order of its smaller and then of its larger switch.

    Args:
        far: int[S, K], the switch at the far end of each link; -1 where there is none.
        far_link: int16[S, K], of `far_links`.

    Returns:
        int32[S, K], -1 where there is no link; and E, the number of cables.
    """
    number = np.full(far.shape, -1, np.int32)
    cabled = far >= 0
    from_smaller = cabled & (far > np.arange(len(far))[:, None])
    count = int(np.count_nonzero(from_smaller))
    number[from_smaller] = np.arange(count, dtype=np.int32)
    switch, link = np.nonzero(cabled & ~from_smaller)
    number[switch, link] = number[far[switch, link], far_link[switch, link]]
    return number, count


def _links(link_at: NDArray[np.int16], ports: NDArray[Any]) -> NDArray[np.int16]:
    """The links behind ports, int16[S, C, n]; -1 where there is none.

    Args:
        link_at: int16[S, ports], of `links_by_port`.
        ports: int[S, C, n], 0 for none.
    """
    width = link_at.shape[1]
    links = np.empty(ports.shape, np.int16)
    for switch, port in enumerate(ports):  # [C, n]; all switches at once would take much memory
        exists = (port > 0) & (port < width)
        links[switch] = np.where(exists, link_at[switch].take(np.where(exists, port, 0)), -1)
    return links
