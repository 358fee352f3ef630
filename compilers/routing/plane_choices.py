"""Alternates and protection in a whole ER_q, by construction instead of by a search.

**Alternates** are the ports that share a switch's ingress traffic.

Compact Valiant (PolarFly paper, §VII-B) sends a packet to a neighbour of its source and minimally
from there. In ER_q the set of alternates of a pair depends on the source s and the minimal port
alone: with the minimal path s–x–d, every other neighbour r of s gives s–r–(r×d)–d, exactly 3 links,
never through s again, and the alternates are internally disjoint. So they are a property of the
class. If neither s nor x is a quadric, the alternate through the apex r = s×x shares the last link
x–d.

Between adjacent switches the paper uses the minimal path only. With bounces every other neighbour
is an alternate there, too: over the apex in 2 links, over any other neighbour r in 4, as r bounces
packets from s (`compilers.routing.conic_bounces`).

**Protection** has the ports that take over when a class's minimal port is down.

No state per destination is needed. With the minimal path u–v–d, one neighbour r of u serves all the
destinations behind v by plain minimal forwarding, whether the link u–v or the switch v has failed:
in ER_q any r but v and the apex of the triangle on u–v, since r×d is then neither u nor v. The
neighbour v itself is reached over that apex. Where there is none (a quadric's link), the next hop
of every r is u; a packet that r received from u must then *bounce*: r sends it to a neighbour w
other than u and the apex of r–u, from where w×v leads to v.

Each class has an order of ports, because a switch sends a packet back only as its last choice. At
q = 2 quadrics have two links, so sending back is all they can do, and the neighbour's bounce takes
the packet on. Which neighbours come first matters when a second element fails
(`compilers.routing.bounce_goals`), or a whole module (`compilers.routing.module_orders`).

Classes are those of `compilers.routing.split_classes`: K classes that lead behind the K neighbours
of a switch, then K direct classes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.routing.alternate_weights import with_alternates
from compilers.routing.bounce_goals import BounceGoals
from compilers.routing.link_pairs import apex_of, apexes, link_blocks, other_links
from compilers.routing.module_orders import module_orders
from compilers.routing.port_ranking import ORDER, ranked
from compilers.spec.forwarding import Forwarding
from compilers.tables.intermediate_form import Tables
from compilers.wiring.shared_risk import uses_several_modules
from compilers.wiring.wiring import Wiring

LEAST_LINKS = 4
"""The links of a switch in ER_3: too few for orders that keep modules separate."""


def compact_valiant(tables: Tables, wiring: Wiring, forwarding: Forwarding) -> Tables:
    """Give every class behind a neighbour the other neighbours as alternates.

    Args:
        tables: with separate direct classes (`compilers.routing.split_classes`).
        wiring: the cables.
        forwarding: says which alternates are left out, and the minimal port's share.
    """
    packed = alternate_links(wiring, forwarding)
    classes = with_alternates(tables.classes, wiring, packed, forwarding.minimal_share)
    return replace(tables, classes=classes)


def alternate_links(wiring: Wiring, forwarding: Forwarding) -> NDArray[np.uint8]:
    """Return the links of alternates as bits, uint8[S, 2K, ⌈K/8⌉], as in `AlternateLinks`.

    Direct classes have alternates only where packets bounce or are marked.
    """
    order, links = wiring.port.shape
    packed = np.zeros((order, 2 * links, (links + 7) // 8), np.uint8)
    apex = apex_of(wiring)
    for switches in link_blocks(wiring):
        usable = other_links(wiring.far[switches])
        if forwarding.bounces or forwarding.marks:
            packed[switches, links:] = np.packbits(usable, axis=2)
        if forwarding.disjoint:
            usable &= ~apexes(apex[switches])
        packed[switches, :links] = np.packbits(usable, axis=2)
    return packed


def polarfly(
    tables: Tables,
    wiring: Wiring,
    bounced: NDArray[np.int16] | None = None,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Add protection and bounce to the classes of a whole ER_q.

    Args:
        tables: minimal, or with alternates.
        wiring: the cables.
        bounced: int16[S, K], the links of bounced paths, which come first where no goal is set.
        module: int32[S, K], the module of its switch that each link is on; None for one module.
    """
    apex = apex_of(wiring)
    if module is not None and uses_several_modules(module) and wiring.far.shape[1] > LEAST_LINKS:
        protection, bounce = module_orders(tables, wiring, module, apex, bounced, ORDER)
        classes = replace(tables.classes, protection=protection, bounce=bounce)
        return replace(tables, classes=classes)
    goals = BounceGoals.of(tables, wiring)
    order, links = wiring.port.shape
    protection = np.zeros((order, 2 * links, ORDER), np.uint16)
    bounce = np.zeros((order, 2 * links, ORDER), np.uint16)
    for switches in link_blocks(wiring):
        block = replace(wiring, port=wiring.port[switches])
        to_apex = apex[switches]
        allowed = other_links(wiring.far[switches]) & ~apexes(to_apex)
        order_of = partial(ranked, minimal=block.port, wiring=block, count=ORDER)
        protection[switches, :links] = order_of(allowed)
        direct = order_of(allowed, before=goals.repairing(switches))
        apex_port = np.take_along_axis(block.port, np.maximum(to_apex, 0).astype(np.intp), axis=1)
        has_apex = (to_apex >= 0)[..., None]
        over_apex = np.dstack((apex_port, direct[..., :-1]))
        protection[switches, links:] = np.where(has_apex, over_apex, direct)
        first = goals.bouncing(switches)
        if bounced is not None:
            first |= _only_link(bounced[switches]) & ~first.any(axis=2, keepdims=True)
        bounce[switches] = np.tile(order_of(allowed, before=first), (1, 2, 1))
    classes = replace(tables.classes, protection=protection, bounce=bounce)
    return replace(tables, classes=classes)


def with_bounces(tables: Tables, wiring: Wiring, bounced: NDArray[np.int16]) -> Tables:
    """Add a bounce of one port to the classes of a whole ER_q, and no protection.

    Args:
        tables: minimal, or with alternates.
        wiring: the cables.
        bounced: int16[S, K], the link by which packets of each link bounce; for -1 the first link
            that can bounce them.
    """
    order, links = bounced.shape
    bounce = np.zeros((order, 2 * links, 1), np.uint16)
    apex = apex_of(wiring)
    for switches in link_blocks(wiring):
        block = replace(wiring, port=wiring.port[switches])
        usable = other_links(wiring.far[switches]) & ~apexes(apex[switches])
        first = ranked(usable, block.port, block, 1, before=_only_link(bounced[switches]))
        bounce[switches] = np.tile(first, (1, 2, 1))
    return replace(tables, classes=replace(tables.classes, bounce=bounce))


def _only_link(link: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Return sets of one link each, bool[n, K, K], from int16[n, K]; no link for -1."""
    is_link: NDArray[np.bool_] = link[..., None] == np.arange(link.shape[1])
    return is_link
