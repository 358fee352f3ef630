"""Alternates and protection in a whole ER_q, by construction: no destination is looked at.

**Alternates**, the ports that share a switch's ingress traffic.

Compact Valiant (PolarFly paper, §VII-B) sends a packet to a neighbour of its source and minimally
from there. In ER_q the set of alternates of a pair depends on the source s and the minimal port
alone: with the minimal path s–x–d, every other neighbour r of s gives s–r–(r×d)–d, exactly 3 links,
never through s again, and the alternates are internally disjoint. So they are a property of the
class. If neither s nor x is a quadric, the one through the apex r = s×x shares the last link x–d.

Between adjacent switches the paper has the minimal path alone. With bounces every other neighbour
serves them, too: over the apex in 2 links, else in 4, as r bounces what comes from s
(`compilers.routing.plane_bounces`).

**Protection**, the ports that take over when a class's minimal port is down.

No state per destination is needed. With the minimal path u–v–d, one neighbour r of u serves all the
destinations behind v by plain minimal forwarding, whether the link u–v or the switch v has failed:
in ER_q any r but v and the apex of the triangle on u–v, since r×d is then neither u nor v. The
neighbour v itself is reached over that apex. Where there is none (a quadric's link), the next hop
of every r is u; a packet that r received from u must then *bounce*: r sends it to a neighbour w
other than u and the apex of r–u, from where w×v leads to v.

Each class has an order of ports, because a switch sends a packet back only as its last choice. At
q = 2 quadrics have two links, so sending back is all they can do, and the neighbour's bounce takes
the packet on. Which neighbours come first decides about a second failure
(`compilers.routing.plane_bounces`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.routing.choose import ORDER, ranked, spread
from compilers.routing.link_pairs import apex_of, apexes, link_blocks, other_links
from compilers.routing.module_orders import module_orders
from compilers.routing.plane_bounces import BounceGoals
from compilers.spec.forwarding import Forwarding
from compilers.tables.intermediate_form import Tables
from compilers.wiring.shared_risk import several_modules
from compilers.wiring.wiring import Wiring

LEAST_LINKS = 4
"""Of a switch in ER_3, whose orders are too short to keep modules separate."""


def compact_valiant(tables: Tables, wiring: Wiring, forwarding: Forwarding) -> Tables:
    """Give every class behind a neighbour the other neighbours as alternates.

    Args:
        tables: with separate direct classes (`compilers.routing.split_classes`).
        wiring: the cables.
        forwarding: which alternates are left out, and the shares.
    """
    packed = alternate_links(wiring, forwarding)
    classes = spread(tables.classes, wiring, packed, forwarding.minimal_share)
    return replace(tables, classes=classes)


def alternate_links(wiring: Wiring, forwarding: Forwarding) -> NDArray[np.uint8]:
    """uint8[S, 2K, ⌈K/8⌉]: the links of alternates, as in `AlternateLinks`.

    Classes that lead to a neighbour itself have some where packets bounce or are marked.
    """
    order, links = wiring.port.shape
    packed = np.zeros((order, 2 * links, (links + 7) // 8), np.uint8)
    apex = apex_of(wiring)
    for some in link_blocks(wiring):
        usable = other_links(wiring.far[some])
        if forwarding.bounces or forwarding.marks:
            packed[some, links:] = np.packbits(usable, axis=2)
        if forwarding.disjoint:
            usable &= ~apexes(apex[some])
        packed[some, :links] = np.packbits(usable, axis=2)
    return packed


def polarfly(
    tables: Tables,
    wiring: Wiring,
    bounced: NDArray[np.int16] | None = None,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Protection and bounce by construction; classes are those of `split_classes`.

    Args:
        tables: minimal, or with alternates.
        wiring: the cables.
        bounced: int16[S, K], the links of bounced paths, which come first where no goal does.
        module: int32[S, K], the module of its switch that each link is on; None: all on one.
    """
    apex = apex_of(wiring)
    if module is not None and several_modules(module) and wiring.far.shape[1] > LEAST_LINKS:
        protection, bounce = module_orders(tables, wiring, module, apex, bounced, ORDER)
        classes = replace(tables.classes, protection=protection, bounce=bounce)
        return replace(tables, classes=classes)
    goals = BounceGoals.of(tables, wiring)
    order, links = wiring.port.shape
    protection, bounce = (np.zeros((order, 2 * links, ORDER), np.uint16) for _ in range(2))
    for some in link_blocks(wiring):
        part = replace(wiring, port=wiring.port[some])
        allowed = other_links(wiring.far[some]) & ~apexes(apex[some])
        order_of = partial(ranked, minimal=part.port, wiring=part, count=ORDER)
        protection[some, :links] = order_of(allowed)
        direct = order_of(allowed, before=goals.repairing(some))
        corner = np.take_along_axis(part.port, np.maximum(apex[some], 0).astype(np.intp), axis=1)
        over = (apex[some] >= 0)[..., None]
        protection[some, links:] = np.where(over, np.dstack((corner, direct[..., :-1])), direct)
        first = goals.bouncing(some)
        if bounced is not None:
            first |= _single(bounced[some]) & ~first.any(axis=2, keepdims=True)
        bounce[some] = np.tile(order_of(allowed, before=first), (1, 2, 1))
    classes = replace(tables.classes, protection=protection, bounce=bounce)
    return replace(tables, classes=classes)


def with_bounces(tables: Tables, wiring: Wiring, bounced: NDArray[np.int16]) -> Tables:
    """Bounce alone, over these links, int16[S, K]; where one is -1, over the first that serves."""
    order, links = bounced.shape
    bounce = np.zeros((order, 2 * links, 1), np.uint16)
    apex = apex_of(wiring)
    for some in link_blocks(wiring):
        part = replace(wiring, port=wiring.port[some])
        usable = other_links(wiring.far[some]) & ~apexes(apex[some])
        first = ranked(usable, part.port, part, 1, before=_single(bounced[some]))
        bounce[some] = np.tile(first, (1, 2, 1))
    return replace(tables, classes=replace(tables.classes, bounce=bounce))


def _single(link: NDArray[np.int16]) -> NDArray[np.bool_]:
    """bool[n, K, K]: the one link of each, none where it is -1."""
    found: NDArray[np.bool_] = link[..., None] == np.arange(link.shape[1])
    return found
