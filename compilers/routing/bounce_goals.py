"""Bounce links in ER_q with which two failures lose no packets.

A switch *bounces* a packet if the packet came in on the port that it would leave by: then it leaves
by another port. What comes in are minimal tables and wiring. What goes out are the links that come
first in the lists of repair ports (`BounceGoals`). `plane_choices` and `module_orders` call it.

Vertices of ER_q are vectors, and neighbours are orthogonal. So the cross product a×b is the one
common neighbour of a and b. A *quadric* is orthogonal to itself, and so has one link fewer than
other vertices. For even q one vertex, the *nucleus*, is next to all quadrics.

Let u be a neighbour of a quadric d, and let the link u–d fail. Packets of u for d go u–r–w–y–d:

- u sends them to a neighbour r;
- r bounces them to w;
- w sends them to y = w×d, a neighbour of d.

If the link y–d fails as well, y repairs in the same way. Its packets loop if they then come to u.
No other two failures lose packets.

So the neighbours of d are put in a cyclic order, the *ring* of d. Let σ_d(u) be the next switch
after u in the ring. The path shall lead over y = σ_d(u): then the packets of y do not come to u,
as σ_d(y) is not u. This switch is the *goal* of r for packets from u, and r bounces them to
w = r×σ_d(u).

For example, in ER_3 (PolarFly q = 3) the quadric d = 11 has the neighbours 2, 6 and 7. Its ring is
2, 6, 7, and then 2 again. Let the link 7–11 fail. Switch 7 sends packets for 11 to 0. The goal of 0
for packets from 7 is 2, the switch after 7 in the ring. So 0 bounces them to 4, the common
neighbour of 0 and 2, and they go 7–0–4–2–11. If the link 2–11 fails as well, switch 2 sends them
back to 4. The goal of 4 for packets from 2 is 6, so they go on 2–4–1–6–11, and arrive. If the goal
of 4 were 7, they would go back to 7, and in a circle.

Which quadric's ring gives the goal of each r, for q ≥ 3:

- Odd q, u next to two quadrics d and e: both links u–d and u–e may fail, so both rings are needed.
  The other neighbours of u have the goals σ_d(u) and σ_e(u) in turn. Packets for d may go over e,
  so e has the goal σ_d(u) in the ring of d; in the same way d has σ_e(u).
- Odd q, u a quadric: u is in no ring, and no neighbour of u has a goal for its packets. They bounce
  packets of u to a switch next to no quadric.
- Even q: the nucleus n is in no ring.
- Even q, u next to one quadric d: all neighbours of u but d have the goal σ_d(u).
- Even q, u a quadric: all neighbours of u but n have the goal σ_n(u).

`polarfab verify --failures 2` follows the packets of all pairs of failures: none is lost for q from
3 to 16, and with minimal routes for q up to 27.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_pairs import links_back
from compilers.tables.intermediate_form import Tables
from compilers.wiring.wiring import Wiring

Bits = NDArray[np.bool_]
SMALLEST_Q_WITH_GOALS = 3
"""The smallest q with goals; at q = 2 a quadric has two links only."""
SHORTEST_RING_TO_CROSS = 5
"""The shortest odd ring whose last two switches can have other successors (`_ring_successors`); in
a ring of three, two switches would then come after each other."""


@dataclass(frozen=True, slots=True, eq=False)
class BounceGoals:
    """The links that come first in the orders of repair, of S switches with K links."""

    first_bounce: NDArray[np.int16]
    """int16[S, K], by ingress link the link over which packets bounce first: that of r to w, which
    is next to the goal; -1 where there is no goal."""
    leads_to_quadric: Bits
    """bool[S, K], whether the neighbour is a quadric."""
    leads_far_from_quadrics: Bits
    """bool[S, K], whether the neighbour is next to no quadric: packets of quadrics bounce there."""
    next_in_ring: NDArray[np.int32]
    """int32[S, K], the switch after this one in the ring of the neighbour; -1 where this switch is
    in no ring of the neighbour."""
    goal: NDArray[np.int32]
    """int32[S, K], the goal of the neighbour for packets from this switch: goal[u, k] is the goal
    of r = far[u, k] for packets from u; -1 for none."""

    @classmethod
    def of(
        cls, tables: Tables, wiring: Wiring, module: NDArray[np.int32] | None = None
    ) -> BounceGoals:
        """The goals of a whole ER_q.

        Args:
            tables: minimal, with direct classes.
            wiring: the cables.
            module: int32[S, K], the module of its switch that each link is on; None for one module.
                With several, the next in a ring is on another module, and the goals of each
                module's links take turns.
        """
        far = wiring.far
        most_links = far.shape[1]  # K
        q = most_links - 1
        if q < SMALLEST_Q_WITH_GOALS:
            return cls._without_goals(far)
        if module is None:
            module = np.zeros(far.shape, np.int32)
        # A quadric has one link fewer than other vertices, as it is orthogonal to itself.
        quadric = np.count_nonzero(far >= 0, axis=1) < most_links
        leads_to_quadric = quadric[far] & (far >= 0)
        far_from_quadrics = ~quadric & ~leads_to_quadric.any(axis=1)
        nucleus = leads_to_quadric.all(axis=1)
        next_in_ring = _next_in_rings(tables, wiring, module, quadric, nucleus)
        goal = _goals_in_turn(next_in_ring, module)
        return cls(
            first_bounce=_links_to_goals(tables, wiring, goal),
            leads_to_quadric=leads_to_quadric,
            leads_far_from_quadrics=far_from_quadrics[far] & (far >= 0),
            next_in_ring=next_in_ring,
            goal=goal,
        )

    @classmethod
    def _without_goals(cls, far: NDArray[np.int32]) -> BounceGoals:
        """The value for a fabric that is too small for goals: any link will do."""
        none = np.zeros(far.shape, np.bool_)
        no_switch = np.full(far.shape, -1, np.int32)
        return cls(np.full(far.shape, -1, np.int16), none, none, no_switch, no_switch)

    def preferred_bounces(self, switches: slice) -> Bits:
        """bool[n, K, K]: by ingress link of n switches, the links to bounce over first."""
        # In these arrays the first axis is the switch, the second the ingress link, and the third
        # the link to bounce over. Packets that come in from a quadric bounce far from quadrics.
        from_quadric = self.leads_to_quadric[switches][:, :, None]
        to_far_from_quadrics = self.leads_far_from_quadrics[switches][:, None, :]
        preferred = from_quadric & to_far_from_quadrics
        first_bounce = self.first_bounce[switches]
        s, ingress_link = np.nonzero(first_bounce >= 0)
        preferred[s, ingress_link, first_bounce[s, ingress_link]] = True
        return preferred

    def preferred_repairs(self, switches: slice) -> Bits:
        """bool[n, K, K]: by link of n switches, the links that repair its direct class first.

        The goal of their neighbours is the next switch in the ring of the quadric on that link.
        """
        next_in_ring, goal = self.next_in_ring[switches], self.goal[switches]
        preferred = np.zeros((*next_in_ring.shape, next_in_ring.shape[1]), np.bool_)
        s, k = np.nonzero(next_in_ring >= 0)
        preferred[s, k] = next_in_ring[s, k][:, None] == goal[s]
        return preferred


def _minimal_link(
    tables: Tables, wiring: Wiring, switch: NDArray[np.integer], end: NDArray[np.integer]
) -> NDArray[np.intp]:
    """The link of each switch on its minimal path to an end, int[n].

    Args:
        tables: minimal, with direct classes: K classes behind the K links, and K more to the
            neighbours themselves.
        wiring: the cables.
        switch: int[n].
        end: int[n].
    """
    number = tables.routes.egress[switch, end].astype(np.intp)
    link: NDArray[np.intp] = number % wiring.far.shape[1]
    return link


def _next_in_rings(
    tables: Tables, wiring: Wiring, module: NDArray[np.int32], quadric: Bits, nucleus: Bits
) -> NDArray[np.int32]:
    """Return `BounceGoals.next_in_ring`, int32[S, K].

    Args:
        tables: minimal, with direct classes.
        wiring: the cables.
        module: int32[S, K], the module of each link.
        quadric: bool[S], which switches are quadrics: each is the centre of a ring.
        nucleus: bool[S], the nucleus, a centre as well; none where q is odd.
    """
    next_in_ring = np.full(wiring.far.shape, -1, np.int32)
    for centre in np.flatnonzero(quadric | nucleus):
        neighbours = wiring.far[centre]
        in_ring = (neighbours >= 0) & ~nucleus[neighbours]
        ring = neighbours[in_ring]
        to_centre = _minimal_link(tables, wiring, ring, np.full(len(ring), centre))
        next_in_ring[ring, to_centre] = _ring_successors(ring, module[centre, in_ring])
    return next_in_ring


def _ring_successors(ring: NDArray[np.int32], module: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the switch after each one of a ring, int32[n]; no two come after each other.

    Where the links of the centre are on several modules, the link to the next switch is on another
    module if that can be. For example, five switches in the order a, b, c, d, e each have the next
    one as their successor, and e has a. If a and e are on one module, e has b and d has a.

    Args:
        ring: int32[n], the switches of the ring.
        module: int32[n], the module of the centre that the link to each is on.
    """
    uses_several_modules = bool((module != module[0]).any())
    cycle = _modules_apart(ring, module) if uses_several_modules else np.arange(len(ring))
    after = np.roll(cycle, -1)
    is_crossable = len(ring) % 2 == 1 and len(ring) >= SHORTEST_RING_TO_CROSS
    if uses_several_modules and is_crossable and module[cycle[-1]] == module[cycle[0]]:
        # The last switch has the second as its successor, and the last but one has the first.
        after[-1], after[-2] = cycle[1], cycle[0]
    successors = np.empty_like(ring)
    successors[cycle] = ring[after]
    return successors


def _modules_apart(ring: NDArray[np.int32], module: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return a cyclic order of a ring's switches in which those of one module are apart.

    The switches, those of the largest module first, fill every other place of the order, and then
    the places in between.

    Args:
        ring: int32[n], the switches of the ring.
        module: int32[n], the module of each.

    Returns:
        int[n], indices into `ring`.
    """
    _, group, sizes = np.unique(module, return_inverse=True, return_counts=True)
    largest_first = np.lexsort((ring, module, -sizes[group]))
    place = np.arange(len(ring))
    every_other = np.concatenate((place[::2], place[1::2]))
    order = np.empty_like(largest_first)
    order[every_other] = largest_first
    return order


def _goals_in_turn(next_in_ring: NDArray[np.int32], module: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return `BounceGoals.goal`, int32[S, K]: the rules at the end of the module's text.

    For example, switch 2 of ER_3 has links to 3, 4, 9 and 11, of which 9 and 11 are quadrics. Its
    row of `next_in_ring` is -1, -1, 5, 6. So 3 and 4 have the goals 5 and 6 in turn, 9 has the goal
    6 in the ring of 11, and 11 has the goal 5 in the ring of 9. The row of goals is 5, 6, 6, 5.

    Args:
        next_in_ring: int32[S, K], of `BounceGoals`: a switch is in one ring, two or none.
        module: int32[S, K], the module of each link; the links of each take turns.
    """
    # bool[S, K], the neighbours that are centres of a ring that the switch is in.
    is_centre = next_in_ring >= 0
    # int32[S, 1] each, the next switch in the first and in the second ring; -1 without such a ring.
    links_to_centres = np.argsort(~is_centre, axis=1, kind="stable")[:, :2]
    next_in_rings = np.take_along_axis(next_in_ring, links_to_centres, axis=1)
    next_in_first, next_in_second = np.hsplit(next_in_rings, 2)
    # Even q: all neighbours but the centre have the same goal. Where the switch is in no ring, as
    # the quadrics of odd q and the nucleus are, `next_in_first` is -1, which is no goal.
    goal_with_one_ring = np.where(is_centre, np.int32(-1), next_in_first)
    # Odd q: each centre has the goal in the ring of the other one, and other neighbours take turns.
    is_first_centre = is_centre & (np.cumsum(is_centre, axis=1) == 1)
    is_odd_turn = _turns(~is_centre, module) % 2 == 1
    is_in_second = np.where(is_centre, is_first_centre, is_odd_turn)
    goal_with_two_rings = np.where(is_in_second, next_in_second, next_in_first)
    is_in_two_rings = np.count_nonzero(is_centre, axis=1)[:, None] == 2
    return np.where(is_in_two_rings, goal_with_two_rings, goal_with_one_ring)


def _turns(takes_turns: Bits, module: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the turn of each link, int64[S, K]: how many links of its module come before it.

    Args:
        takes_turns: bool[S, K], the links that are counted; the turns of others have no meaning.
        module: int32[S, K], the module of each link.
    """
    turn = np.zeros(module.shape, np.int64)
    for module_number in range(int(module.max(initial=0)) + 1):
        on_module = module == module_number
        turn_on_module = np.cumsum(on_module & takes_turns, axis=1) - 1
        turn[on_module] = turn_on_module[on_module]
    return turn


def _links_to_goals(tables: Tables, wiring: Wiring, goal: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return `BounceGoals.first_bounce`, int16[S, K]: from r to r×σ_d(u), by r and its link to u.

    Args:
        tables: minimal, with direct classes.
        wiring: the cables.
        goal: int32[S, K], of `BounceGoals`.
    """
    first_bounce = np.full(wiring.far.shape, -1, np.int16)
    # Each switch r and its link to u, and the goal of r for packets from u.
    r, link_to_u = np.nonzero(wiring.far >= 0)
    u = wiring.far[r, link_to_u]
    goal_of_r = goal[u, links_back(wiring.far)[r, link_to_u]]
    has_goal = goal_of_r >= 0
    r, link_to_u, goal_of_r = r[has_goal], link_to_u[has_goal], goal_of_r[has_goal]
    first_bounce[r, link_to_u] = _minimal_link(tables, wiring, r, goal_of_r)
    return first_bounce
