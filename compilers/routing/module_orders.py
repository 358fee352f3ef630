"""Orders of repair in ER_q that hold when a whole module of a switch dies.

When module M of switch u dies, all links u–v with v behind M go down at once. With minimal routes
and one repair a class, nothing is lost if and only if

1. every class of u has a port outside its own module (a second one where the first may be the port
   in), and
2. for each v behind M, the sequence v, T(v), T(T(v)), … leaves M, where T(v) is the last switch
   before u that v's repair towards u comes to: the apex of the triangle on u–v where that is the
   repair, else w×u, with w the bounce of the repairing neighbour.

Packets that meet no link of u keep away from it: for a class behind v every neighbour but v and the
apex serves (`compilers.routing.plane_choices`). So the orders below need no more rows than those
for one link; they put first

- behind a neighbour: links of other modules, no two of one module while there are others, and the
  other quadric last where the next hop is one;
- to a neighbour over a triangle: its apex, if on another module; then neighbours whose bounce
  comes to the end by a module of neither of the two links there;
- to a neighbour without one: links of other modules whose bounce comes by another module of the
  end, those of the goal first (`compilers.routing.plane_bounces`);
- in a bounce: after the first, links of other modules than that one's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_pairs import apexes, link_blocks, other_links
from compilers.routing.plane_bounces import BounceGoals
from compilers.tables.intermediate_form import Tables
from compilers.wiring.wiring import Wiring

Scores = NDArray[np.int32]
LAST = np.int32(1 << 30)
OWN, RANK, AGAIN, NEXT = (np.int32(1 << bits) for bits in (27, 24, 18, 17))
"""What a link of the class's own module is put back by; a worse path to the end, each step; a
module that the order has already; the last of the keys, above the turn round the switch."""


def module_orders(
    tables: Tables,
    wiring: Wiring,
    module: NDArray[np.int32],
    apex: NDArray[np.int16],
    bounced: NDArray[np.int16] | None,
    count: int,
) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Protection and bounce, uint16[S, 2K, count] each, of a whole ER_q.

    Args:
        tables: minimal, or with alternates, with direct classes.
        wiring: the cables.
        module: int32[S, K], the module of its switch that each link is on.
        apex: of its links (`compilers.routing.plane_choices.apex_of`).
        bounced: int16[S, K], the links of bounced paths, which come first where no goal does.
        count: ports of an order.
    """
    goals = BounceGoals.of(tables, wiring, module)
    far, (order, links) = wiring.far, wiring.far.shape
    quadric = np.count_nonzero(far >= 0, axis=1) < links
    wanted = _wanted(tables, wiring, module, goals, quadric, bounced)
    bounce = np.full((order, links, count), -1, np.int16)
    for some in link_blocks(wiring):
        score = _turn(far[some], apex[some])
        s, k = np.nonzero(wanted[some] >= 0)
        first = wanted[some][s, k]
        usable = score[s, k, first] < LAST
        score[s[usable], k[usable], first[usable]] = -OWN
        bounce[some] = _dealt(score, module[some], count)
    back = _links_back(far)
    protection = np.full((order, 2 * links, count), -1, np.int16)
    for some in link_blocks(wiring):
        near, here = far[some], module[some]
        own = here[:, :, None] == here[:, None, :]
        both = (quadric[near] & (near >= 0))[:, :, None] & quadric[near][:, None, :]
        score = _turn(near, apex[some]) + OWN * own + NEXT * both
        protection[some, :links] = _dealt(score, here, count)

        # Where a repair over the j-th neighbour bounces to, and by which link that comes to an end.
        over = bounce[near, back[some], 0]
        to = np.where(over >= 0, far[near, np.maximum(over, 0)], -1)
        end = np.maximum(near, 0)[:, :, None]
        comes = tables.routes.egress[end, np.maximum(to, 0)[:, None, :]].astype(np.intp) % links
        comes = np.where((to < 0)[:, None, :] | (to[:, None, :] == end), -1, comes)
        arrives = np.where(comes >= 0, module[end, np.maximum(comes, 0)], -2)
        there = np.take_along_axis(module[near], back[some][..., None].astype(np.intp), 2)
        corner_there = apex[near, back[some]].astype(np.intp)[..., None]
        corner = np.take_along_axis(module[near], np.maximum(corner_there, 0), 2)
        over_apex = (apex[some] >= 0)[..., None]
        bad = (arrives == there) | (over_apex & (arrives == corner))
        away = (goals.following[some] >= 0)[..., None] & (
            goals.following[some][..., None] != goals.goal[some][:, None, :]
        )
        rank = np.where(over_apex, bad, 2 * bad + (away & ~bad)) + 0
        rank[np.broadcast_to((to < 0)[:, None, :], rank.shape)] = 3
        rank = rank.astype(np.int32)
        score = _turn(near, apex[some]) + OWN * own + RANK * rank + NEXT * both
        s, k = np.nonzero(apex[some] >= 0)
        j = apex[some][s, k]
        score[s, k] += NEXT * (here[s] == here[s, j][:, None])
        score[s, k, j] = np.where(here[s, j] == here[s, k], OWN, -1)
        protection[some, links:] = _dealt(score, here, count)
    port = wiring.port[:, None, :]
    ports = [
        np.where(
            each >= 0,
            np.take_along_axis(
                port, np.maximum(each, 0).reshape(order, 1, -1).astype(np.intp), 2
            ).reshape(each.shape),
            0,
        ).astype(np.uint16)
        for each in (protection, np.tile(bounce, (1, 2, 1)))
    ]
    return ports[0], ports[1]


def _turn(far: NDArray[np.int32], apex: NDArray[np.int16]) -> Scores:
    """int32[n, K, K]: links of a switch by their turn after another; `LAST` those of no use.

    Of no use are the link itself, that to the apex of its triangle, and links that are not there.
    """
    number = np.arange(far.shape[1], dtype=np.int32)
    turn = (number - number[:, None]) % np.int32(len(number))
    usable = other_links(far) & ~apexes(apex)
    return np.where(usable, turn, LAST)


def _dealt(score: Scores, module: NDArray[np.int32], count: int) -> NDArray[np.int16]:
    """int16[n, C, count]: the links of least score, -1 beyond the last.

    Each one that is taken puts back the others of its module. The scores are used up.
    """
    row, column = np.indices(score.shape[:2])
    found = np.full((*score.shape[:2], count), -1, np.int16)
    for rank in range(min(count, score.shape[2])):
        link = score.argmin(axis=2)
        there = score[row, column, link] < LAST
        found[..., rank] = np.where(there, link, -1)
        if rank + 1 < count:
            same = module[:, None, :] == module[row, link][..., None]
            score += np.where(same, AGAIN, np.int32(0))
            score[row, column, link] = LAST
    return found


def _links_back(far: NDArray[np.int32]) -> NDArray[np.intp]:
    """int[S, K]: the place of each link at its other end, 0 where there is none."""
    switch, link = np.nonzero(far >= 0)
    back = np.zeros(far.shape, np.intp)
    # The links of a switch are in the order of its neighbours, so these are sorted alike.
    there = np.lexsort((switch, far[switch, link]))
    back[switch[there], link[there]] = link
    return back


def _wanted(
    tables: Tables,
    wiring: Wiring,
    module: NDArray[np.int32],
    goals: BounceGoals,
    quadric: NDArray[np.bool_],
    bounced: NDArray[np.int16] | None,
) -> NDArray[np.int16]:
    """int16[S, K]: the link by which a switch bounces first what comes in by another; -1: any.

    That of the goal; what comes from a switch whose links have no triangles, and which is in no
    ring, goes where it comes to most ends by another module than that of the link to the sender.
    """
    far, links = wiring.far, wiring.far.shape[1]
    wanted = goals.bounced.copy()
    if bounced is not None:
        wanted = np.where(wanted >= 0, wanted, bounced)
    back = _links_back(far)
    for v in np.flatnonzero(
        (quadric | goals.quadrics.all(axis=1)) & (goals.following < 0).all(axis=1)
    ):
        k = np.flatnonzero(far[v] >= 0)
        r, here = far[v, k], back[v, k]
        w = far[r]
        end, to = r[:, None, None], w[None]
        comes = (
            tables.routes.egress[
                np.broadcast_to(end, (len(k), *w.shape)), np.broadcast_to(to, (len(k), *w.shape))
            ].astype(np.intp)
            % links
        )
        other = module[end, comes] != module[r, here][:, None, None]
        other &= (np.arange(len(k))[:, None] != np.arange(len(k)))[:, :, None]
        count = np.where((w >= 0) & (w != v), other.sum(axis=0), -1)
        lonely = goals.lonely[r]
        count += np.where(lonely, 2 * links, 0) * (w != v)
        turn = (np.arange(links) - here[:, None]) % links
        wanted[r, here] = (count * links - turn).argmax(axis=1)
    return wanted
