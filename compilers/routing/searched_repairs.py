"""Protection and bounce of egress classes, by a search over the paths of neighbours.

`compilers.routing.choose` calls this with the choices of each class, and says what they mean.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from compilers.routing.class_paths import Bits, ClassPaths
from compilers.routing.link_choices import LinkChoices
from compilers.routing.port_ranking import ORDER, filled_from, ranked
from compilers.wiring.shared_risk import several_modules

TURNS = 2
"""How often bounces are chosen again where several next hops share packets.

What a switch does with packets that come back depends on what its neighbours do with them.
"""


def with_repairs(
    paths: ClassPaths, links: LinkChoices, every_hop: bool, module: NDArray[np.int32] | None
) -> ClassPaths:
    """Add protection and bounce to classes.

    Protection has ports that repair, then ports whose neighbour bounces the packet, then ports
    whose neighbour does not send it back, then ports whose neighbour bounces it so that it does not
    come back. Ports that repair are also the bounce. Where a class has no port of the first two
    kinds, as above the leaves of a tree, packets that bounce first try ports whose paths avoid the
    second switch from here, as the next hop has no link to that.

    Args:
        paths: of tables with classes by choices.
        links: the choices of each class.
        every_hop: whether packets in transit take any shortest path; other next hops repair then.
        module: int32[S, K], the module of its switch that each link is on, where that is known.
            Ports on other modules than the minimal port come first then.
    """
    minimal, wiring, repair, away = paths.classes.port, paths.wiring, links.repair, links.away
    # bool[S, C, 1], the classes with several next hops that share packets.
    several: Bits = np.logical_and(links.alternate.any(axis=2, keepdims=True), every_hop)
    first: Bits | None = None
    if module is not None and several_modules(module):
        first = _on_other_modules(module, wiring.port, minimal)
    order = bounce = ranked(repair, minimal, wiring, ORDER, before=first)
    if every_hop:
        for _ in range(TURNS):
            bounce = _among_next_hops(paths, links.alternate, bounce)
            paths = replace(paths, turns=_turns(paths, several, bounce))
        order = np.where(several, np.uint16(0), order)
    past_hop, past_here = _bouncing_by_class(paths, bounce, repair.shape)
    helped = (repair | past_hop | several).any(axis=2)
    if (_used_classes(paths, repair.shape) & ~helped).any():
        before = paths.by_class(lambda switch: _avoiding_second(paths, switch), repair.shape)[0]
        avoiding_second = ranked(repair, minimal, wiring, ORDER, before=before)
        bounce = np.where(several, bounce, avoiding_second)
        past_hop, past_here = _bouncing_by_class(paths, bounce, repair.shape)
    allowed = ~several
    if every_hop:  # a neighbour that repairs, and sent the packet here, has other next hops
        allowed = allowed & ~repair.any(axis=2, keepdims=True)
    for usable in (past_hop & ~repair, away & ~repair, past_here & ~(past_hop | away | repair)):
        order = filled_from(order, ranked(usable & allowed, minimal, wiring, ORDER, before=first))
    return paths.having(protection=order, bounce=bounce)


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
    """Return the links whose neighbour bounces packets, past the next hop and past here.

    bool[2, S, C, K].
    """
    return paths.by_class(
        lambda switch: np.stack(
            [bouncing_links(paths, switch, bounce, only_link) for only_link in (False, True)]
        ),
        shape,
    )


def _avoiding_second(paths: ClassPaths, switch: int) -> Bits:
    """Return the links whose neighbour's path avoids the second switch from here, bool[1, K, D]."""
    second = paths.after[paths.after[switch], np.arange(len(paths.ends))]
    avoids: Bits = ~paths.meets(paths.near(switch), second) | (second == paths.ends)
    return avoids[None]


def _used_classes(paths: ClassPaths, shape: tuple[int, ...]) -> Bits:
    """Return which classes any destination uses, bool[S, C]."""
    used = np.zeros(shape[:2], np.bool_)
    switch, column = np.nonzero(paths.after != np.arange(len(paths.after))[:, None])
    used[switch, paths.egress[switch, column]] = True
    return used


def _turns(paths: ClassPaths, several: Bits, bounce: NDArray[np.uint16]) -> NDArray[np.int32]:
    """Return `ClassPaths.turns`, int32[B + 1, S, D]: the bounce of classes with several next hops.

    After the ports of the bounce comes the minimal next hop.
    """
    switch = np.arange(len(paths.after))[:, None]
    number = np.minimum(paths.egress, bounce.shape[1] - 1)
    shares = several[switch, number, 0] & (paths.egress < bounce.shape[1])
    cables = paths.wiring.cables()
    bounced_to = (
        np.where(port > 0, cables[switch, port], -1)
        for port in bounce[switch, number].transpose(2, 0, 1)
    )
    return np.where(shares, np.stack((*bounced_to, paths.after)), np.int32(-1))


def _among_next_hops(
    paths: ClassPaths, others: Bits, bounce: NDArray[np.uint16]
) -> NDArray[np.uint16]:
    """Return the bounce, uint16[S, C, B], where classes with several next hops bounce among these.

    A packet comes in on a next hop's link if that neighbour's only own next hop is down. So it goes
    to a next hop that has another only next hop than the minimal one has; if there is none, to a
    link behind which no such switch is met; else to any next hop.

    Args:
        paths: any shortest paths.
        others: bool[S, C, K], the next hops of each class other than the minimal one.
        bounce: the bounce of classes with one next hop.
    """
    minimal, wiring, ends = paths.classes.port, paths.wiring, paths.ends
    column, switches = np.arange(len(ends)), np.arange(len(paths.after))[:, None]
    has_one: Bits = np.equal(others.any(axis=2), False)
    has_one = has_one[switches, np.minimum(paths.egress, others.shape[1] - 1)]
    # int32[S, D], the next hop where a switch has only one that is not the destination, else -1.
    only_hop = np.where(has_one & (paths.after != ends), paths.after, np.int32(-1))

    def next_hops(switch: int) -> Bits:
        """bool[2, K, D]: next hops with another only hop; links that meet no only hop."""
        near, hop = paths.near(switch), paths.after[switch]
        nearer = np.equal(paths.distance[near, ends] + 1, paths.distance[switch, ends])
        behind = np.asarray(np.where(nearer, only_hop[near, column], -1))
        differs = (behind < 0) | (behind != only_hop[hop, column])
        turn = paths.u_turn(switch, near)
        start = np.where(turn.returns, turn.onward, near)
        clear = ~nearer & (start >= 0)
        for switch_behind in behind:
            clear &= ~paths.meets(start, switch_behind) | (switch_behind < 0)
        both: Bits = np.stack((nearer & differs, clear)) & (near != hop)
        return both

    disjoint, clear = paths.by_class(next_hops, others.shape)
    has_disjoint = (others & disjoint).any(axis=2, keepdims=True)
    sets = others & disjoint, clear & ~others & ~has_disjoint, others & ~has_disjoint
    first, *further = (ranked(usable, minimal, wiring, bounce.shape[2]) for usable in sets)
    first[..., 1:] = 0  # to the minimal next hop then, which has another one
    return np.where(others.any(axis=2, keepdims=True), reduce(filled_from, further, first), bounce)


def bouncing_links(
    paths: ClassPaths, switch: int, bounce: NDArray[np.uint16], only_link: bool = False
) -> Bits:
    """Return the links whose neighbour bounces packets of this switch so that they arrive.

    Args:
        paths: with classes as numbered in `bounce`.
        switch: where packets come from.
        bounce: uint16[S, C, B], the bounce ports.
        only_link: the bounced packet must avoid this switch, so that only the failed link is
            avoided; otherwise it must avoid the next hop.

    Returns:
        bool[K, D].
    """
    near, hop = paths.near(switch), paths.after[switch]
    cables = paths.wiring.cables()
    port = bounce[near, np.minimum(paths.egress[near[:, 0]], bounce.shape[1] - 1), 0]
    over = cables[near, port]
    sent_back = paths.after[near[:, 0]] == switch
    serves: Bits = sent_back & (port > 0) & (near != hop)
    if len(paths.distance):
        serves &= paths.u_turn(switch, near).onward < 0
        turn = paths.u_turn(near, over)
        over = np.where(turn.returns, turn.onward, over)
        serves &= over >= 0
    met = paths.meets(over, switch if only_link else hop)
    return serves & ~met if only_link else serves & (~met | (hop == paths.ends))
