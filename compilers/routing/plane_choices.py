"""Alternates and repair ports in a whole ER_q, by construction instead of by a search.

What comes in are minimal tables with two classes for each of the K links of a switch
(`compilers.routing.split_classes`): class k leads to destinations behind the k-th neighbour, and
the direct class K + k to the neighbour itself. What goes out are the same classes with alternates,
protection and bounce. The family PolarFly calls these functions.

In what follows, r×d is the common neighbour of r and d, and the *apex* of a link is the common
neighbour of its two ends, if there is one.

**Alternates** are ports that share packets of hosts with the minimal port.

Compact Valiant (PolarFly paper, §VII-B) sends a packet to a neighbour of its source, and from there
minimally. Let s–x–d be the minimal path. Then every other neighbour r of s gives the path
s–r–(r×d)–d. It has exactly 3 links, and does not lead over s again. Two alternates have no switch
in common but s and d. So the alternates of s depend on x only, and are the same for all
destinations of the class. If neither s nor x is a quadric, the alternate over the apex r = s×x
shares the last link x–d with the minimal path.

Between adjacent switches the paper uses the minimal path only. With bounces every other neighbour
is an alternate there, too. The path over the apex has 2 links. The path over any other neighbour r
has 4, as r bounces packets from s (`compilers.routing.conic_bounces`).

**Protection** has the ports that take over when the minimal port of a class is down.

Let u–v–d be the minimal path, and let the link u–v or the switch v fail. Any neighbour r of u but v
and the apex of u–v repairs all destinations behind v by plain minimal forwarding, because r×d is
neither u nor v. Packets for v itself go over the apex of u–v. A quadric's link has no apex: there
the next hop of every r is u. So r must *bounce* a packet that it got from u: it sends the packet to
a neighbour w other than u and the apex of r–u. From there w×v leads to v.

The ports of a class have an order, because a switch sends a packet back only as its last choice. At
q = 2 quadrics have two links. They can only send packets back, and the neighbour bounces them. The
order matters when a second element fails (`compilers.routing.bounce_goals`), or a whole module
(`compilers.routing.module_orders`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.routing.alternate_weights import with_alternates
from compilers.routing.bounce_goals import BounceGoals
from compilers.routing.link_pairs import apex_links_of, in_one_triangle, link_blocks, other_links
from compilers.routing.module_orders import module_orders
from compilers.routing.port_ranking import MOST_REPAIR_PORTS, ranked_ports
from compilers.spec.forwarding import Forwarding
from compilers.tables.intermediate_form import Tables
from compilers.wiring.shared_risk import uses_several_modules
from compilers.wiring.wiring import Wiring

LINKS_OF_ER_3 = 4
"""The links of a switch in ER_3. `module_orders` needs more than 4 links a switch."""


def with_plane_alternates(tables: Tables, wiring: Wiring, forwarding: Forwarding) -> Tables:
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
    switch_count, most_links = wiring.port.shape
    packed = np.zeros((switch_count, 2 * most_links, (most_links + 7) // 8), np.uint8)
    apex = apex_links_of(wiring)
    for switches in link_blocks(wiring):
        usable = other_links(wiring.far[switches])
        if forwarding.bounces or forwarding.marks:
            packed[switches, most_links:] = np.packbits(usable, axis=2)
        if forwarding.disjoint:
            usable &= ~in_one_triangle(apex[switches])
        packed[switches, :most_links] = np.packbits(usable, axis=2)
    return packed


def with_plane_repairs(
    tables: Tables,
    wiring: Wiring,
    bounce_links: NDArray[np.int16] | None = None,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Add protection and bounce to the classes of a whole ER_q.

    Args:
        tables: minimal, or with alternates.
        wiring: the cables.
        bounce_links: int16[S, K], the links of `conic_bounces`, which come first where
            `BounceGoals` has no goal; None without bounced paths.
        module: int32[S, K], the module of its switch that each link is on; None for one module.
    """
    apex = apex_links_of(wiring)
    if module is not None and uses_several_modules(module) and wiring.far.shape[1] > LINKS_OF_ER_3:
        protection, bounce = module_orders(
            tables,
            wiring=wiring,
            module=module,
            apex=apex,
            bounce_links=bounce_links,
            count=MOST_REPAIR_PORTS,
        )
    else:
        protection, bounce = _plane_orders(tables, wiring, apex, bounce_links)
    classes = replace(tables.classes, protection=protection, bounce=bounce)
    return replace(tables, classes=classes)


def _plane_orders(
    tables: Tables,
    wiring: Wiring,
    apex: NDArray[np.int16],
    bounce_links: NDArray[np.int16] | None,
) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return `protection` and `bounce` of the classes where modules do not matter.

    Args:
        tables: minimal, or with alternates.
        wiring: the cables.
        apex: int16[S, K], the link of the same switch to the apex of each link; -1 without apex.
        bounce_links: as in `with_plane_repairs`.
    """
    goals = BounceGoals.of(tables, wiring)
    switch_count, most_links = wiring.port.shape
    protection = np.zeros((switch_count, 2 * most_links, MOST_REPAIR_PORTS), np.uint16)
    bounce = np.zeros((switch_count, 2 * most_links, MOST_REPAIR_PORTS), np.uint16)
    for switches in link_blocks(wiring):
        port, to_apex = wiring.port[switches], apex[switches]
        rank = partial(ranked_ports, minimal=port, port=port, count=MOST_REPAIR_PORTS)
        # bool[n, K, K], by minimal link the links that can repair it.
        usable = other_links(wiring.far[switches]) & ~in_one_triangle(to_apex)
        protection[switches, :most_links] = rank(usable)
        ports = rank(usable, before=goals.preferred_repairs(switches))
        protection[switches, most_links:] = _apex_first(ports, port, to_apex)
        preferred = _preferred_bounces(goals, switches, bounce_links)
        # The direct class of a link bounces like its other class.
        bounce[switches] = np.tile(rank(usable, before=preferred), (1, 2, 1))
    return protection, bounce


def _apex_first(
    ports: NDArray[np.uint16], port: NDArray[np.int32], to_apex: NDArray[np.int16]
) -> NDArray[np.uint16]:
    """Return lists of ports for direct classes: the port to the apex first, where there is one.

    Args:
        ports: uint16[n, K, count], the lists without the port to the apex.
        port: int32[n, K], the port of each link.
        to_apex: int16[n, K], the link to the apex; -1 without apex.
    """
    apex_port = np.take_along_axis(port, np.maximum(to_apex, 0).astype(np.intp), axis=1)
    has_apex = (to_apex >= 0)[..., None]
    with_apex = np.dstack((apex_port, ports[..., :-1]))
    return np.where(has_apex, with_apex, ports).astype(np.uint16)


def _preferred_bounces(
    goals: BounceGoals, switches: slice, bounce_links: NDArray[np.int16] | None
) -> NDArray[np.bool_]:
    """Return the links that bounce first, bool[n, K, K]: to a goal, else that of bounced paths."""
    preferred = goals.preferred_bounces(switches)
    if bounce_links is not None:
        has_preferred = preferred.any(axis=2, keepdims=True)
        preferred |= _only_link(bounce_links[switches]) & ~has_preferred
    return preferred


def with_plane_bounces(tables: Tables, wiring: Wiring, bounce_links: NDArray[np.int16]) -> Tables:
    """Add a bounce of one port to the classes of a whole ER_q, and no protection.

    Args:
        tables: minimal, or with alternates.
        wiring: the cables.
        bounce_links: int16[S, K], the link by which packets of each link bounce; for -1 the first
            link that can bounce them.
    """
    switch_count, most_links = bounce_links.shape
    bounce = np.zeros((switch_count, 2 * most_links, 1), np.uint16)
    apex = apex_links_of(wiring)
    for switches in link_blocks(wiring):
        port = wiring.port[switches]
        usable = other_links(wiring.far[switches]) & ~in_one_triangle(apex[switches])
        preferred = _only_link(bounce_links[switches])
        ports = ranked_ports(usable, port, port, 1, before=preferred)
        bounce[switches] = np.tile(ports, (1, 2, 1))
    return replace(tables, classes=replace(tables.classes, bounce=bounce))


def _only_link(link: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Return sets of one link each, bool[n, K, K], from int16[n, K]; no link for -1."""
    is_link: NDArray[np.bool_] = link[..., None] == np.arange(link.shape[1])
    return is_link
