"""The repair ports of egress classes, by a search over the paths of neighbours.

`compilers.routing.choose` calls `with_repairs` with the choices of each class: what the neighbour
behind each link can do for its packets (`link_choices`). What goes out are the two lists of repair
ports of each class. `protection` is for packets whose minimal port is down. `bounce` is for packets
that came in by the minimal port (U-turn alternates).

Let u be the switch, v its next hop and r a neighbour:

- r *repairs* if its path comes neither to u nor to v.
- r is *loop-free* if its path does not come to u again.
- r *bounces* a packet if it would send it back over its ingress link, and sends it by another link
  instead.

Where packets take any shortest path at every hop, a class may have several next hops. If one of
them sends a packet back, the packet goes to another one of them (`_among_next_hops`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from compilers.routing.class_paths import Bits, ClassPaths
from compilers.routing.link_choices import LinkChoices
from compilers.routing.port_ranking import MOST_REPAIR_PORTS, filled_from, ranked_ports
from compilers.wiring.shared_risk import uses_several_modules

ROUNDS = 2
"""How often `bounce` is chosen, where several next hops share packets.

The choice of a switch depends on what its neighbours have chosen in the round before.
"""


def with_repairs(
    paths: ClassPaths, links: LinkChoices, every_hop: bool, module: NDArray[np.int32] | None
) -> ClassPaths:
    """Add protection and bounce to classes.

    `protection` has ports of four kinds, in this order:

    1. ports whose neighbour repairs;
    2. ports whose neighbour bounces the packet onto a path that avoids the next hop;
    3. ports whose neighbour is loop-free;
    4. ports whose neighbour bounces the packet so that it does not come back.

    `bounce` has the ports of kind 1. A class may have no port of the first two kinds, as above the
    leaves of a tree. Then those ports come first in `bounce` whose paths avoid the switch after the
    next hop, as the link from the next hop to that switch may have failed.

    Args:
        paths: of tables with classes by choices.
        links: the choices of each class.
        every_hop: whether packets in transit take any shortest path; other next hops repair then.
        module: int32[S, K], the module of its switch that each link is on, where that is known.
            Ports on other modules than the minimal port come first then.
    """
    minimal, port, repair = paths.classes.port, paths.wiring.port, links.repair
    # bool[S, C, 1], the classes with several next hops that share packets.
    has_several_hops: Bits = np.logical_and(links.alternate.any(axis=2, keepdims=True), every_hop)
    preferred: Bits | None = None
    if module is not None and uses_several_modules(module):
        preferred = _on_other_modules(module, port, minimal)

    # Kind 1, which begins both lists.
    repairing = ranked_ports(repair, minimal, port, MOST_REPAIR_PORTS, before=preferred)
    protection = bounce = repairing
    if every_hop:  # classes with several next hops bounce among these, and need no protection
        for _ in range(ROUNDS):
            bounce = _among_next_hops(paths, links.alternate, bounce)
            paths = replace(paths, next_tries=_next_tries(paths, has_several_hops, bounce))
        protection = np.where(has_several_hops, np.uint16(0), protection)

    # Ports whose neighbour bounces. If some class in use has no port of kinds 1 and 2, other ports
    # come first in `bounce`, and so in all classes with one next hop.
    avoiding_next_hop, avoiding_switch = _bouncing_by_class(paths, bounce, repair.shape)
    has_repair = (repair | avoiding_next_hop | has_several_hops).any(axis=2)
    if (_used_classes(paths, repair.shape) & ~has_repair).any():
        avoids = paths.by_class(lambda switch: _avoiding_second(paths, switch), repair.shape)[0]
        avoiding_second = ranked_ports(repair, minimal, port, MOST_REPAIR_PORTS, before=avoids)
        bounce = np.where(has_several_hops, bounce, avoiding_second)
        avoiding_next_hop, avoiding_switch = _bouncing_by_class(paths, bounce, repair.shape)

    # Kinds 2 to 4 fill the places that are left in `protection`.
    # bool[S, C, 1], the classes that have ports of these kinds.
    has_other_kinds = ~has_several_hops
    if every_hop:  # a neighbour that repairs, and sent the packet here, has other next hops
        has_other_kinds = has_other_kinds & ~repair.any(axis=2, keepdims=True)
    kind_2 = avoiding_next_hop & ~repair
    kind_3 = links.loop_free & ~repair
    kind_4 = avoiding_switch & ~(avoiding_next_hop | links.loop_free | repair)
    for usable in (kind_2, kind_3, kind_4):
        ports = ranked_ports(
            usable & has_other_kinds, minimal, port, MOST_REPAIR_PORTS, before=preferred
        )
        protection = filled_from(protection, ports)
    return paths.with_orders(protection=protection, bounce=bounce)


def _on_other_modules(
    module: NDArray[np.int32], port: NDArray[np.int32], minimal: NDArray[np.int32]
) -> Bits:
    """Return the links on other modules than the minimal port of each class, bool[S, C, K].

    Args:
        module: int32[S, K], the module of each link.
        port: int32[S, K], the port of each link.
        minimal: int32[S, C], the minimal port of each class.
    """
    is_minimal = port[:, None] == minimal[..., None]
    minimal_module = np.where(is_minimal, module[:, None], -1).max(axis=2, keepdims=True)
    on_other_module: Bits = module[:, None] != minimal_module
    return on_other_module


def _bouncing_by_class(
    paths: ClassPaths, bounce: NDArray[np.uint16], shape: tuple[int, ...]
) -> Bits:
    """Return the links whose neighbour bounces packets of each class so that they arrive.

    Returns:
        bool[2, S, C, K]: bounced packets avoid the next hop; bounced packets avoid this switch.
    """
    return paths.by_class(
        lambda switch: np.stack(
            (
                bouncing_links(paths, switch, bounce, avoid="next_hop"),
                bouncing_links(paths, switch, bounce, avoid="switch"),
            )
        ),
        shape,
    )


def _avoiding_second(paths: ClassPaths, switch: int) -> Bits:
    """Return the links whose neighbour's path avoids the second switch from here, bool[1, K, D]."""
    second = paths.next_switch[paths.next_switch[switch], np.arange(len(paths.destinations))]
    avoids: Bits = ~paths.meets(paths.neighbours(switch), second) | (second == paths.destinations)
    return avoids[None]


def _used_classes(paths: ClassPaths, shape: tuple[int, ...]) -> Bits:
    """Return which classes any destination uses, bool[S, C]."""
    used = np.zeros(shape[:2], np.bool_)
    switch, column = np.nonzero(paths.next_switch != np.arange(len(paths.next_switch))[:, None])
    used[switch, paths.egress_class[switch, column]] = True
    return used


def _next_tries(
    paths: ClassPaths, has_several_hops: Bits, bounce: NDArray[np.uint16]
) -> NDArray[np.int32]:
    """Return `ClassPaths.next_tries`, int32[B + 1, S, D], for classes with several next hops.

    These are the switches behind the B ports of `bounce`, then the minimal next hop.

    Args:
        paths: any shortest paths.
        has_several_hops: bool[S, C, 1], the classes with several next hops.
        bounce: uint16[S, C, B], the bounce ports.
    """
    switch = np.arange(len(paths.next_switch))[:, None]
    class_number = np.minimum(paths.egress_class, bounce.shape[1] - 1)
    has_several = has_several_hops[switch, class_number, 0] & (paths.egress_class < bounce.shape[1])
    cables = paths.wiring.far_by_port()
    bounced_to = (
        np.where(port > 0, cables[switch, port], -1)
        for port in bounce[switch, class_number].transpose(2, 0, 1)
    )
    return np.where(has_several, np.stack((*bounced_to, paths.next_switch)), np.int32(-1))


def _among_next_hops(
    paths: ClassPaths, other_hops: Bits, bounce: NDArray[np.uint16]
) -> NDArray[np.uint16]:
    """Return `bounce`, uint16[S, C, B], where classes with several next hops bounce among them.

    A packet comes back from a next hop v if v itself has a single next hop, and that is down. Call
    this single next hop of v its *only hop*. The packet then goes

    1. to a next hop whose only hop is not the only hop of the minimal next hop;
    2. if there is none, over a link from which no path meets an only hop;
    3. else to any next hop.

    Args:
        paths: any shortest paths.
        other_hops: bool[S, C, K], the next hops of each class other than the minimal one.
        bounce: the bounce of classes with one next hop.
    """
    minimal, wiring, destinations = paths.classes.port, paths.wiring, paths.destinations
    column, switches = np.arange(len(destinations)), np.arange(len(paths.next_switch))[:, None]
    class_number = np.minimum(paths.egress_class, other_hops.shape[1] - 1)
    # bool[S, C], by class whether it has a single next hop; bool[S, D], by destination.
    class_has_single_hop: Bits = np.equal(other_hops.any(axis=2), False)
    has_single_hop = class_has_single_hop[switches, class_number]
    # int32[S, D], the only hop of each switch, unless that is the destination; else -1.
    only_hop = np.where(
        has_single_hop & (paths.next_switch != destinations), paths.next_switch, np.int32(-1)
    )

    def links_of_kinds(switch: int) -> Bits:
        """bool[2, K, D]: next hops with another only hop; links whose paths meet no only hop."""
        neighbours, next_hop = paths.neighbours(switch), paths.next_switch[switch]
        is_next_hop = np.equal(
            paths.distance[neighbours, destinations] + 1, paths.distance[switch, destinations]
        )
        # int32[K, D], the only hop of the next hop behind each link, -1 for none.
        only_hops = np.asarray(np.where(is_next_hop, only_hop[neighbours, column], -1))
        differs = (only_hops < 0) | (only_hops != only_hop[next_hop, column])
        # int32[K, D], where packets go on from a neighbour: from one that would send them back, to
        # the switch that it tries instead; -1 if there is none.
        turn = paths.u_turn(switch, neighbours)
        start = np.where(turn.is_returned, turn.next_switch, neighbours)
        meets_none = ~is_next_hop & (start >= 0)
        for only_hop_of_link in only_hops:
            meets_none &= ~paths.meets(start, only_hop_of_link) | (only_hop_of_link < 0)
        both: Bits = np.stack((is_next_hop & differs, meets_none)) & (neighbours != next_hop)
        return both

    has_other_only_hop, meets_no_only_hop = paths.by_class(links_of_kinds, other_hops.shape)
    first_kind = other_hops & has_other_only_hop
    has_first_kind = first_kind.any(axis=2, keepdims=True)
    second_kind = meets_no_only_hop & ~other_hops & ~has_first_kind
    third_kind = other_hops & ~has_first_kind
    among = ranked_ports(first_kind, minimal, wiring.port, bounce.shape[2])
    # One port is enough: after it packets go to the minimal next hop, which has another only hop.
    among[..., 1:] = 0
    for usable in (second_kind, third_kind):
        among = filled_from(among, ranked_ports(usable, minimal, wiring.port, bounce.shape[2]))
    return np.where(other_hops.any(axis=2, keepdims=True), among, bounce)


def bouncing_links(
    paths: ClassPaths, switch: int, bounce: NDArray[np.uint16], avoid: Literal["next_hop", "switch"]
) -> Bits:
    """Return the links whose neighbour bounces packets of this switch so that they arrive.

    Args:
        paths: with classes as numbered in `bounce`.
        switch: where packets come from.
        bounce: uint16[S, C, B], the bounce ports.
        avoid: what bounced packets have to avoid: the next hop of this switch, which may be dead;
            or only this switch, so that they do not come back to the failed link.

    Returns:
        bool[K, D].
    """
    neighbours, next_hop = paths.neighbours(switch), paths.next_switch[switch]
    flat_neighbours = neighbours[:, 0]
    cables = paths.wiring.far_by_port()
    # [K, D]: the first bounce port of the neighbour behind each link, and the switch behind it.
    class_number = np.minimum(paths.egress_class[flat_neighbours], bounce.shape[1] - 1)
    port = bounce[neighbours, class_number, 0]
    bounced_to = cables[neighbours, port]
    sends_back = paths.next_switch[flat_neighbours] == switch  # by the neighbour's own minimal path
    bounces: Bits = sends_back & (port > 0) & (neighbours != next_hop)
    if paths.shared_at_every_hop:
        # A neighbour with several next hops tries another one, and so does the switch behind it.
        bounces &= paths.u_turn(switch, neighbours).next_switch < 0
        turn = paths.u_turn(neighbours, bounced_to)
        bounced_to = np.where(turn.is_returned, turn.next_switch, bounced_to)
        bounces &= bounced_to >= 0
    if avoid == "switch":
        avoids: Bits = ~paths.meets(bounced_to, switch)
    else:  # a next hop that is the destination cannot be avoided
        avoids = ~paths.meets(bounced_to, next_hop) | (next_hop == paths.destinations)
    return bounces & avoids
