"""Orders of repair ports in ER_q with which nothing is lost when a whole module of a switch fails.

A *module* is a line card of a switch: when it fails, all links on it go down at once. What comes in
are tables, wiring and the module of each link. What goes out are the lists `protection` and
`bounce` of every class (`module_orders`). `plane_choices` calls it.

*Words.*

- Vertices of ER_q are vectors, and neighbours are orthogonal. The cross product a×b is the one
  common neighbour of a and b. A *quadric* is orthogonal to itself.
- The *apex* of a link is the switch opposite it in a triangle: the common neighbour of both ends.
- A switch with K links has two classes for each link k, and both leave by it: class k for
  destinations *behind* the neighbour, and the *direct* class K + k for the neighbour itself.
- The *end* is the destination of a direct class.
- A switch *bounces* a packet that came in by the port that it would leave by: it sends it by
  another port, to a switch w.
- The *ring* of d is a cyclic order of the neighbours of d, and a *goal* is the next switch in a
  ring. See *Two failures* below.

*The condition.* When module M of switch u fails, all links u–v on it go down at once. With minimal
routes and one repair for each class, nothing is lost if and only if

1. every class of u has a repair port outside its own module, and a second one where the first may
   be the port that the packet came in on;
2. for each neighbour v of u on M, the sequence v, T(v), T(T(v)), … leaves M. Here T(v) is the last
   switch before u on the path by which v repairs its link to u. If v repairs over the apex of u–v,
   T(v) is the apex. Otherwise a neighbour of v bounces the packets to a switch w, and T(v) is w×u.

The reason for 2: packets of v for u come to T(v). If the link from T(v) to u is on M, it is down,
too, and T(v) repairs it in turn. If the sequence never leaves M, it goes in a circle, and so do the
packets.

For example, switch u = 0 of ER_3 has the neighbours 1, 4, 7 and 10; 0-1-4 and 0-7-10 are triangles.
Let M have the links to 1 and 4. If both repair over the apex, T(1) = 4 and T(4) = 1, and packets
for 0 go to and fro between 1 and 4. So 1 sends its packets to 5, which bounces them to w = 9. They
go 1-5-9-10-0, so T(1) = 10, whose link to 0 is on the other module.

Packets that do not come to u are not affected. For a class behind v every neighbour but v and the
apex repairs (`compilers.routing.plane_choices`), so these orders need no more rows than the orders
for a single link.

*Two failures.* If u and y both lose their link to d, the packets of u must not come to d over y
while those of y come to d over u: they would go in a circle. So the packets of u shall come to d
over the next switch in the ring of d. Of two switches in a ring, only one is next after the other.
For this, a neighbour r of u may have a goal, the switch after u in the ring of d: r bounces the
packets of u so that they come to d over its goal. With these rings no two failed links lose
packets. `compilers.routing.bounce_goals` makes the rings, and has an example.

*The orders.* First come

- for a class behind a neighbour: links on other modules, each on another one as far as possible. If
  the next hop is a quadric, the other quadric comes last;
- for a direct class whose link is in a triangle: the apex, if it is on another module. Then
  neighbours that bounce packets so that they reach the end by a third module: not by the module of
  its link to this switch, and not by the module of its link to the apex;
- for a direct class whose link is in no triangle: links on other modules whose neighbours bounce
  packets so that they reach the end by another module than that of its link to this switch. Links
  that lead over the goal come first;
- for a bounce: the link to the goal, else the link of bounced paths (`_first_links`); then links on
  other modules than that link.

An order is made by *scores*: each link of a switch has a score for each class, and the link with
the least score is taken first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.bounce_goals import BounceGoals
from compilers.routing.link_pairs import in_one_triangle, link_blocks, links_back, other_links
from compilers.tables.intermediate_form import Tables
from compilers.wiring.wiring import Wiring

Bits = NDArray[np.bool_]
Scores = NDArray[np.int32]
"""int32[n, C, K], the score of each link for each class of n switches."""
NEVER = np.int32(1 << 30)
"""The score of a link that is never taken.

Other scores are sums of the summands from here to `LAST_CHOICE`, and of the number of places that
the link lies after that of the class (`_cyclic_distance_or_never`). The summands are powers of two
so far apart that a larger one always decides before the smaller ones.
"""
ON_OWN_MODULE = np.int32(1 << 27)
"""The link is on the module of the class's own link."""
WORSE_PATH = np.int32(1 << 24)
"""For each step by which the link's path to the end is worse (`_ranks_of_paths`)."""
MODULE_IN_ORDER = np.int32(1 << 18)
"""For each link of the same module that the order has already."""
LAST_CHOICE = np.int32(1 << 17)
"""The link leads to the other quadric, or is on the apex's module."""
FIRST = -ON_OWN_MODULE
"""The score of a link that comes before all others: less than any sum."""

NO_LINK = -1
"""In place of a link, or of the switch at its far end: there is none."""
NO_MODULE = -2
"""In place of the module of `NO_LINK`. It differs from every module, and from the -1 of a missing
cable, so that comparisons with it are False."""
NOT_BOUNCED = 3
"""The rank of a link whose neighbour does not bounce (`_ranks_of_paths`), worse than all others."""


def module_orders(
    tables: Tables,
    wiring: Wiring,
    module: NDArray[np.int32],
    apex: NDArray[np.int16],
    bounce_links: NDArray[np.int16] | None,
    count: int,
) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return protection and bounce of a whole ER_q, uint16[S, 2K, count] each.

    Args:
        tables: minimal, or with alternates, with direct classes.
        wiring: the cables.
        module: int32[S, K], the module of its switch that each link is on.
        apex: int16[S, K], the link to the apex of the triangle on each link, of
            `compilers.routing.link_pairs.apex_links_of`.
        bounce_links: int16[S, K], the links of bounced paths, which come first where no goal is
            set; None without bounced paths.
        count: the ports of an order.
    """
    fabric = _Fabric(
        tables=tables,
        wiring=wiring,
        module=module,
        apex_link=apex,
        far_link=links_back(wiring.far),
        is_quadric=np.count_nonzero(wiring.far >= 0, axis=1) < wiring.far.shape[1],
        goals=BounceGoals.of(tables, wiring, module),
    )
    switch_count, most_links = wiring.far.shape
    bounce = _bounce_links(fabric, _first_links(fabric, bounce_links), count)
    protection = np.full((switch_count, 2 * most_links, count), NO_LINK, np.int16)
    for switches in link_blocks(wiring):
        behind = _scores_behind(fabric, switches)
        protection[switches, :most_links] = _take_least(behind, module[switches], count)
        direct = _scores_direct(fabric, switches, bounce)
        protection[switches, most_links:] = _take_least(direct, module[switches], count)
    # The direct class of a link bounces like its other class.
    bounce_of_classes = np.tile(bounce, (1, 2, 1))
    return _ports(wiring, protection), _ports(wiring, bounce_of_classes)


@dataclass(frozen=True, slots=True, eq=False)
class _Fabric:
    """A whole ER_q with direct classes, whose switches have K links on several modules."""

    tables: Tables
    """Minimal tables, with or without alternates."""
    wiring: Wiring
    """The cables."""
    module: NDArray[np.int32]
    """int32[S, K], the module of its switch that each link is on."""
    apex_link: NDArray[np.int16]
    """int16[S, K], the link to the apex of the triangle on each link, negative for none."""
    far_link: NDArray[np.intp]
    """int[S, K], the number of each link at its other end."""
    is_quadric: Bits
    """bool[S], the quadrics."""
    goals: BounceGoals
    """The links that come first for two failures."""


def _bounce_links(fabric: _Fabric, first_links: NDArray[np.int16], count: int) -> NDArray[np.int16]:
    """Return the links by which packets bounce, int16[S, K, count], -1 beyond the last.

    Args:
        fabric: the fabric.
        first_links: int16[S, K], the first link for packets of each link, -1 for any.
        count: the links of an order.
    """
    far, module = fabric.wiring.far, fabric.module
    bounce = np.full((*far.shape, count), NO_LINK, np.int16)
    for switches in link_blocks(fabric.wiring):
        score = _cyclic_distance_or_never(far[switches], fabric.apex_link[switches])
        s, k = np.nonzero(first_links[switches] >= 0)
        first = first_links[switches][s, k]
        usable = score[s, k, first] < NEVER
        score[s[usable], k[usable], first[usable]] = FIRST
        bounce[switches] = _take_least(score, module[switches], count)
    return bounce


def _scores_behind(fabric: _Fabric, switches: slice) -> Scores:
    """Return scores for destinations behind each neighbour, int32[n, K, K]."""
    return _scores_by_module(fabric, switches) + LAST_CHOICE * _both_quadrics(fabric, switches)


def _scores_by_module(fabric: _Fabric, switches: slice) -> Scores:
    """Return scores that are low on other modules than a link's own, int32[n, K, K]."""
    module = fabric.module[switches]
    distance = _cyclic_distance_or_never(fabric.wiring.far[switches], fabric.apex_link[switches])
    is_on_own_module = module[:, :, None] == module[:, None, :]
    return distance + np.where(is_on_own_module, ON_OWN_MODULE, np.int32(0))


def _both_quadrics(fabric: _Fabric, switches: slice) -> Bits:
    """Return whether the k-th and the j-th neighbour are both quadrics, bool[n, K, K]."""
    neighbour = fabric.wiring.far[switches]
    is_quadric = fabric.is_quadric[neighbour] & (neighbour >= 0)
    both: Bits = is_quadric[:, :, None] & is_quadric[:, None, :]
    return both


def _scores_direct(fabric: _Fabric, switches: slice, bounce: NDArray[np.int16]) -> Scores:
    """Return scores for each neighbour itself as the destination, int32[n, K, K].

    Args:
        fabric: the fabric.
        switches: a range of n switches.
        bounce: int16[S, K, count], the bounce of all switches.
    """
    module, apex = fabric.module[switches], fabric.apex_link[switches]
    score = _scores_behind(fabric, switches)
    score += WORSE_PATH * _ranks_of_paths(fabric, switches, bounce)
    s, k = np.nonzero(apex >= 0)
    to_apex = apex[s, k]
    score[s, k] += np.where(module[s] == module[s, to_apex][:, None], LAST_CHOICE, 0)
    # `_scores_behind` gives NEVER to the link to the apex. Here it comes before all others (-1). On
    # the module of link k it comes after all links on other modules.
    score[s, k, to_apex] = np.where(module[s, to_apex] == module[s, k], ON_OWN_MODULE, -1)
    return score


def _ranks_of_paths(fabric: _Fabric, switches: slice, bounce: NDArray[np.int16]) -> Scores:
    """Return how bad the repair of a direct class over each other link is, int32[n, K, K].

    Entry [s, k, j]: packets to the k-th neighbour, the end, go to the j-th neighbour, which bounces
    them. They come to the end by some link: the *arrival* (`_arrival_modules`). If it is on the
    *same module* of the end as the end's link to s, or as that to the apex if there is one, then
    this module breaks this path, too, when it fails.

    ============ ================ ====================== =============
    apex of s–end another module   another, goal missed   same module
    ============ ================ ====================== =============
    none          0                1                      2
    exists        0                0                      1
    ============ ================ ====================== =============

    If the j-th neighbour does not bounce, the rank is `NOT_BOUNCED`.
    """
    apex, goals, back = fabric.apex_link[switches], fabric.goals, fabric.far_link[switches]
    neighbour = fabric.wiring.far[switches]
    w = _bounced_to(fabric, switches, bounce)
    arrival_module = _arrival_modules(fabric, neighbour, w)

    # int[n, K, 1], the modules of the end's links to s and to the apex.
    modules_of_end = fabric.module[neighbour]
    back_module = np.take_along_axis(modules_of_end, back[..., None].astype(np.intp), 2)
    apex_at_end = fabric.apex_link[neighbour, back].astype(np.intp)[..., None]
    apex_module = np.take_along_axis(modules_of_end, np.maximum(apex_at_end, 0), 2)
    has_apex = (apex >= 0)[..., None]
    same_module = (arrival_module == back_module) | (has_apex & (arrival_module == apex_module))

    # bool[n, K, K], whether packets come to the end over another switch than the next in its ring.
    next_in_ring = goals.next_in_ring[switches][..., None]
    misses_goal = (next_in_ring >= 0) & (next_in_ring != goals.goal[switches][:, None, :])

    # The table above.
    rank_without_apex = 2 * same_module + (misses_goal & ~same_module)
    rank = np.where(has_apex, same_module.astype(np.int64), rank_without_apex)
    rank[np.broadcast_to((w == NO_LINK)[:, None, :], rank.shape)] = NOT_BOUNCED
    ranks: Scores = rank.astype(np.int32)
    return ranks


def _bounced_to(fabric: _Fabric, switches: slice, bounce: NDArray[np.int16]) -> NDArray[np.int32]:
    """Return the switch w to which each neighbour bounces packets of n switches first, int32[n, K].

    NO_LINK where the neighbour does not bounce.
    """
    far = fabric.wiring.far
    bounce_link = bounce[far[switches], fabric.far_link[switches], 0]
    w = far[far[switches], np.maximum(bounce_link, 0)]
    return np.where(bounce_link >= 0, w, NO_LINK)


def _arrival_modules(
    fabric: _Fabric, neighbour: NDArray[np.int32], w: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the module of each end by which packets from each switch w arrive, int32[n, K, K].

    NO_MODULE where there is no w, or where w is the end itself.

    Args:
        fabric: the fabric.
        neighbour: int32[n, K], the ends; -1 where there is no link.
        w: int32[n, K], of `_bounced_to`.
    """
    end, from_w = np.maximum(neighbour, 0)[:, :, None], w[:, None, :]
    # ER_q has one minimal path between two switches, so packets from w arrive by the link that the
    # end's own route to w leaves by.
    class_to_w = fabric.tables.routes.egress[end, np.maximum(from_w, 0)]
    arrival = _link_of_class(class_to_w, fabric.wiring.far.shape[1])
    does_arrive = (from_w != NO_LINK) & (from_w != end)
    return np.where(does_arrive, fabric.module[end, np.where(does_arrive, arrival, 0)], NO_MODULE)


def _link_of_class(egress_class: NDArray[Any], most_links: int) -> NDArray[np.intp]:
    """Return the links of classes: class k and the direct class K + k both leave by link k."""
    return egress_class.astype(np.intp) % most_links


def _ports(wiring: Wiring, links: NDArray[np.int16]) -> NDArray[np.uint16]:
    """Return the ports of links, uint16[S, C, count], 0 where a link is -1."""
    flat = np.maximum(links, 0).reshape(len(links), 1, -1).astype(np.intp)
    port = np.take_along_axis(wiring.port[:, None, :], flat, 2).reshape(links.shape)
    return np.where(links >= 0, port, 0).astype(np.uint16)


def _cyclic_distance_or_never(far: NDArray[np.int32], apex: NDArray[np.int16]) -> Scores:
    """Return how many places link j of a switch lies after its link k, int32[n, K, K] by k and j.

    The links of a switch are counted cyclically: of five links, link 1 lies two places after link
    4. So a link that fails is repaired by the next ones after it, and repairs are spread over all
    links. `NEVER` where link j never repairs link k, nor bounces its packets: it is link k itself,
    the link to the apex of its triangle, or does not exist.
    """
    number = np.arange(far.shape[1], dtype=np.int32)
    distance = (number - number[:, None]) % np.int32(len(number))
    usable = other_links(far) & ~in_one_triangle(apex)
    return np.where(usable, distance, NEVER)


def _take_least(score: Scores, module: NDArray[np.int32], count: int) -> NDArray[np.int16]:
    """Take the links with the least scores, int16[n, C, count], -1 beyond the last.

    When a link is taken, the other links of its module get a higher score. The scores are
    overwritten.

    Args:
        score: int32[n, C, K].
        module: int32[n, K], the module of each link.
        count: how many links are taken for a class.

    >>> score, module = np.array([[[0, 1, 2]]], np.int32), np.array([[7, 7, 8]], np.int32)
    >>> _take_least(score, module, 2).tolist()  # link 2 before link 1, on the module of link 0
    [[[0, 2]]]
    """
    row, column = np.indices(score.shape[:2])
    least = np.full((*score.shape[:2], count), NO_LINK, np.int16)
    for rank in range(min(count, score.shape[2])):
        link = score.argmin(axis=2)
        usable = score[row, column, link] < NEVER
        least[..., rank] = np.where(usable, link, NO_LINK)
        if rank + 1 < count:
            same = module[:, None, :] == module[row, link][..., None]
            score += np.where(same, MODULE_IN_ORDER, np.int32(0))
            score[row, column, link] = NEVER
    return least


def _first_links(fabric: _Fabric, bounce_links: NDArray[np.int16] | None) -> NDArray[np.int16]:
    """Return the first link by which packets of each link bounce, int16[S, K], -1 for any.

    This is the link to the goal; without a goal, the link of bounced paths. A switch v that is in
    no triangle and in no ring has no apex and no goal to repair over. There the modules alone
    decide, so packets of v get the links of `_best_bounces`.
    """
    goals = fabric.goals
    first_links = goals.first_bounce.copy()
    if bounce_links is not None:
        first_links = np.where(first_links >= 0, first_links, bounce_links)
    in_no_triangle = fabric.is_quadric | goals.leads_to_quadric.all(axis=1)
    in_no_ring = (goals.next_in_ring < 0).all(axis=1)
    for v in np.flatnonzero(in_no_triangle & in_no_ring).tolist():
        link = np.flatnonzero(fabric.wiring.far[v] >= 0)
        neighbour, link_to_v = fabric.wiring.far[v, link], fabric.far_link[v, link]
        first_links[neighbour, link_to_v] = _best_bounces(fabric, v, neighbour, link_to_v)
    return first_links


def _best_bounces(
    fabric: _Fabric, v: int, neighbour: NDArray[np.int32], link_to_v: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the best link of each neighbour of v by which it bounces packets of v, int[n].

    An *end* is another neighbour of v, the destination. A switch w behind a link of the bouncing
    neighbour is good for an end if packets come from w to the end by another module than that of
    the end's link to v. The best link leads to a switch w next to no quadric, if there is one, as
    packets of quadrics bounce there with two failures, too (`BounceGoals.leads_far_from_quadrics`).
    Of these, it is good for the most ends. Of equal ones it is the first after the link to v.

    Args:
        fabric: the fabric.
        v: the switch.
        neighbour: int32[n], its neighbours.
        link_to_v: int[n], the number of each link to v at the neighbour.
    """
    far, module = fabric.wiring.far, fabric.module
    most_links, w = far.shape[1], far[neighbour]
    # By end, bouncing neighbour and its link: the link by which packets come to the end.
    shape = (len(neighbour), *w.shape)
    end = np.broadcast_to(neighbour[:, None, None], shape)
    class_to_w = fabric.tables.routes.egress[end, np.broadcast_to(w[None], shape)]
    arrival = _link_of_class(class_to_w, most_links)
    is_good = module[end, arrival] != module[neighbour, link_to_v][:, None, None]
    number = np.arange(len(neighbour))
    is_good &= (number[:, None] != number)[:, :, None]  # a neighbour is no end of its own packets
    # int[n, K], by neighbour and link: for how many ends the link is good; -1 for no link and for
    # that to v. 2K is more than any such number: a switch w next to no quadric comes first.
    good_ends = np.where((w >= 0) & (w != v), is_good.sum(axis=0), -1)
    good_ends += np.where(
        fabric.goals.leads_far_from_quadrics[neighbour] & (w != v), 2 * most_links, 0
    )
    # Fewer than K places, so that one more end outweighs all of them.
    places_after = (np.arange(most_links) - link_to_v[:, None]) % most_links
    best: NDArray[np.intp] = (good_ends * most_links - places_after).argmax(axis=1)
    return best
