"""What a switch does with a packet: the rule of `Classes`, stated once, for every balance.

All that a switch sees of a packet is its ingress link, its tag, and its destination. The switch
looks up the egress class of the destination, that is its forwarding equivalence class. The class
lists links: `order`, with the *minimal link* first, which is on a shortest path; `bounce`; and
`shares`, the links that load is balanced over. If the class is DELIVER or DROP, the packet is
delivered or dropped. Else these steps are tried in order:

1. A marked packet (balance `spread`) loses its mark and leaves by any link of `onward` that is up;
   `onward` depends on the ingress link. If no such link is up, the packet is dropped. A packet to
   a neighbour is not spread, but forwarded like an unmarked packet.
2. A packet from a host leaves by any link of `shares` that is up. So does a packet in transit where
   paths are shared at every hop (`transit: ecmp`), unless it came in by a link of `shares`. Where
   the balance marks packets, a packet that leaves by another link than the minimal one is marked.
3. Every other packet, and a packet of step 2 if no link of `shares` is up, leaves by the first link
   of a list that is up and is not its ingress link. The list is `bounce` if the packet came in by
   the minimal link, or by any link of `shares` where paths are shared at every hop; else the list
   is `order`.
4. If the list has no such link, a packet that came in by a link of `shares` where paths are shared
   at every hop takes the minimal link, if that is up and is not its ingress link.
5. A packet that is left goes back over its ingress link, if `order` names that link; else it is
   dropped.

A packet on its way to an intermediate (`valiant`) is forwarded like a packet in transit to the
intermediate. From the intermediate on, the rule treats it as a packet from a host there.

`next_links` is the rule, and `transit` its steps 3 to 5; the other functions are its conditions.
All are loops of `machine_code`: plain Python over arrays and numbers, which numba can translate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from compilers.forwarding.machine_code import loop

Array = NDArray[Any]

DELIVER, DROP = -1, -2
"""In place of an egress class, or of a next link."""
HOST, OTHER = -3, -4
"""In place of an ingress link: a host's port; any link that the class does not name."""
PLAIN, MARKED, VIA = 0, 1, 2
"""Tags of packets: none; marked; on the way to the intermediate v, which is VIA + v.

A packet with VIA + v is forwarded like a PLAIN packet to v. `next_links` does not know VIA: its
callers pass PLAIN and the class of v, and take the tag off at v, or at a switch that `gives_up` v.
"""


class Program(NamedTuple):
    """What S switches with K links and C egress classes hold: the tables, in links; -1 for none.

    A link is its number at its switch, 0 to K - 1. An *element* is what can fail: a cable, by its
    number, or a switch s, as `cable_count` + s.
    """

    far: Array
    """int32[S, K], the switch at the far end of each link."""
    far_link: Array
    """int16[S, K], the number of the same link at the far end."""
    cable: Array
    """int32[S, K], the number of the link's cable in the fabric, 0 to E - 1, in the order of its
    smaller and then of its larger switch."""
    cable_count: int
    """E, the number of cables."""
    order: Array
    """int16[S, C, 1 + P], the links that a packet in transit tries: the minimal link, then those of
    `Classes.protection`."""
    bounce: Array
    """int16[S, C, B], the links that a packet in transit tries instead of `order` if it came in by
    the minimal link."""
    shares: Array
    """int16[S, C, 1 + A], the links that packets of hosts choose among, in the places of
    `Classes.weight`."""
    every_hop: bool
    """Whether packets in transit choose among `shares`, too."""
    onward: Array
    """bool[S, K, K], by ingress link the links that a marked packet may leave by; without rows
    where no packets are marked."""


@loop
def is_up(p: Program, s: int, link: int, failed: Array) -> bool:
    """Whether neither a link of switch s nor the switch behind it is among the failed elements."""
    if len(failed) == 0:
        return True
    cable, far = int(p.cable[s, link]), p.cable_count + int(p.far[s, link])
    for element in failed:  # noqa: SIM110 (numba translates no generators)
        if element == cable or element == far:  # noqa: SIM109 (which takes longer)
            return False
    return True


@loop
def contains(links: Array, link: int) -> bool:
    """Whether a link is in a list of links."""
    for listed in links:  # noqa: SIM110 (numba translates no generators)
        if listed == link:
            return True
    return False


@loop
def first_up(p: Program, s: int, ingress: int, links: Array, failed: Array) -> int:
    """The first of some links that is up and is not the ingress link; DROP if there is none."""
    for link in links:
        if link >= 0 and link != ingress and is_up(p, s, link, failed):
            return int(link)
    return DROP


@loop
def transit(p: Program, s: int, ingress: int, c: int, failed: Array) -> int:
    """The next link of a packet in transit through switch s, whose class is c; DELIVER or DROP.

    These are steps 3 to 5 of the rule. The last resort is the ingress link, which was up when the
    packet came.
    """
    if c < 0:
        return c
    order = p.order[s, c]
    came_by_shared_link = p.every_hop and contains(p.shares[s, c], ingress)
    bounces = ingress == order[0] or came_by_shared_link
    link = first_up(p, s, ingress, p.bounce[s, c] if bounces else order, failed)
    if link == DROP and came_by_shared_link:
        link = first_up(p, s, ingress, order[:1], failed)
    if link == DROP and ingress >= 0 and contains(order, ingress):
        return ingress
    return link


@loop
def marks(p: Program) -> bool:
    """Whether packets of hosts that leave by another link than the minimal one are marked."""
    return len(p.onward) > 0


@loop
def spreads(p: Program, c: int) -> bool:
    """Whether a switch spreads marked packets of class c: of all classes but direct ones.

    Packets to the switch itself or to a neighbour are not spread: they are forwarded like unmarked
    packets. In tables with marks, the direct classes, which lead to a neighbour only, have the
    numbers K to 2K - 1 (`compilers.routing.split_classes`).
    """
    most_links = p.far.shape[1]
    is_direct = c // most_links == 1
    return c >= 0 and not is_direct


@loop
def next_links(
    p: Program, s: int, ingress: int, tag: int, c: int, failed: Array, link: Array, tags: Array
) -> int:
    """Write the links that a packet may leave by, and its tag on each; returns how many links.

    Args:
        p: what switches hold.
        s: the switch that the packet is in.
        ingress: the ingress link of the packet.
        tag: PLAIN or MARKED.
        c: the egress class of the packet; DELIVER or DROP.
        failed: int64[F], the failed elements.
        link: int64[K + 1], written: the links, or one DELIVER or DROP.
        tags: int64[K + 1], written: PLAIN or MARKED for each.
    """
    n = 0
    if tag == MARKED and spreads(p, c):  # a marked packet comes from a switch: ingress is a link
        for k in range(p.far.shape[1]):
            if p.onward[s, ingress, k] and is_up(p, s, k, failed):
                link[n], tags[n] = k, PLAIN
                n += 1
        return n
    if c >= 0 and (ingress == HOST or (p.every_hop and not contains(p.shares[s, c], ingress))):
        for i in range(p.shares.shape[2]):  # the minimal link is first, then come alternates
            k = p.shares[s, c, i]
            if k >= 0 and is_up(p, s, k, failed):
                link[n], tags[n] = k, MARKED if i > 0 and marks(p) else PLAIN
                n += 1
    if n == 0:
        link[0], tags[0], n = transit(p, s, ingress, c, failed), PLAIN, 1
    return n


@loop
def gives_up(p: Program, s: int, intermediate: int, c: int, failed: Array) -> bool:
    """Whether switch s gives up an intermediate, and forwards its packets as from a host here.

    A switch that repairs failures gives up an intermediate that is its neighbour, if the
    intermediate or the link to it is down.

    Args:
        p: what switches hold.
        s: the switch that the packet is in, not the intermediate.
        intermediate: the intermediate.
        c: the egress class of the intermediate at s.
        failed: int64[n], the failed elements.
    """
    k = p.order[s, c, 0] if c >= 0 else DROP
    repairs = p.order.shape[2] > 1
    return bool(repairs and k >= 0 and p.far[s, k] == intermediate and not is_up(p, s, k, failed))
