"""What a switch does with a packet: the rule of `Classes`, stated once, for every balance.

A packet in a switch is known by its ingress link, its tag, and its destination. The switch looks
the egress class of the destination up, and the class says:

- a packet from a host leaves by any link with a share that is up (`minimal`: there is one);
- if there is none, or if it is in transit, it leaves by the first link of the class's `order` that
  is up and is not its ingress link; by the first of `bounce` where it came in by the first of
  `order`. If there is none, it goes back where it came from, if `order` names that link; else it
  is dropped;
- where paths are shared at every hop (`transit: ecmp`), a packet in transit takes a link with a
  share, too, unless it came in by one;
- where hosts' packets are marked (`spread`), one that leaves by another link than the minimal one
  is; a marked packet leaves by any link of `onward`, which depends on its ingress link, and its
  mark ends there;
- a packet on its way to an intermediate (`valiant`) is forwarded to that one as others in transit
  are, and from there on it is one of a host's.

The functions are loops of `machine_code`: plain Python over arrays and numbers.
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
"""Tags; VIA + a switch is that intermediate."""


class Program(NamedTuple):
    """What S switches with K links and C egress classes hold, in links; -1 where there is none.

    far: int32[S, K], the switch at the far end of each link. far_link: int16[S, K], the number of
    the same link there. cable: int32[S, K], its number in the fabric, 0 to E - 1, in the order of
    the smaller and then the larger switch. cables: E. An *element*, which can fail, is a cable, or
    E + a switch.
    order: int16[S, C, 1 + P], the minimal link, then those of protection. bounce: int16[S, C, B].
    shares: int16[S, C, 1 + A], the links with a share of hosts' packets, in the places of
    `Classes.weight`.
    every_hop: whether paths are shared in transit, too. onward: bool[S, K, K], the links of marked
    packets, by their ingress link; no row where none is marked.
    """

    far: Array
    far_link: Array
    cable: Array
    cables: int
    order: Array
    bounce: Array
    shares: Array
    every_hop: bool
    onward: Array


@loop
def is_up(p: Program, s: int, link: int, dead: Array) -> bool:
    """Whether a link and the switch behind it are none of the elements that are down."""
    if len(dead) == 0:
        return True
    cable, far = int(p.cable[s, link]), p.cables + int(p.far[s, link])
    for element in dead:  # noqa: SIM110 (numba translates no generators)
        if element == cable or element == far:  # noqa: SIM109 (which takes longer)
            return False
    return True


@loop
def contains(links: Array, link: int) -> bool:
    """Whether a list of links has one."""
    for each in links:  # noqa: SIM110 (numba translates no generators)
        if each == link:
            return True
    return False


@loop
def first_up(p: Program, s: int, came: int, links: Array, dead: Array) -> int:
    """The first link that is up and is not the ingress link; DROP."""
    for link in links:
        if link >= 0 and link != came and is_up(p, s, link, dead):
            return int(link)
    return DROP


@loop
def transit(p: Program, s: int, came: int, c: int, dead: Array) -> int:
    """The next link of a packet in transit, of an egress class; DELIVER or DROP.

    A packet may go back by its ingress link, which was up when it came.
    """
    if c < 0:
        return c
    order = p.order[s, c]
    shared = p.every_hop and contains(p.shares[s, c], came)
    bounces = came == order[0] or shared
    link = first_up(p, s, came, p.bounce[s, c] if bounces else order, dead)
    if link == DROP and shared:
        link = first_up(p, s, came, order[:1], dead)
    if link == DROP and came >= 0 and contains(order, came):
        return came
    return link


@loop
def marks(p: Program) -> bool:
    """Whether packets of hosts that leave by another link than the minimal one are marked."""
    return len(p.onward) > 0


@loop
def spreads(p: Program, c: int) -> bool:
    """Whether a switch spreads marked packets of a class.

    Those to itself and to its neighbours, whose classes are the second K, go as others in transit.
    """
    return c >= 0 and c // p.far.shape[1] != 1


@loop
def next_links(
    p: Program, s: int, came: int, tag: int, c: int, dead: Array, link: Array, tags: Array
) -> int:
    """Write the links that a packet may leave by, and its tag on each; how many they are.

    Args:
        p: what switches hold.
        s: the switch that the packet is in.
        came: its ingress link.
        tag: PLAIN or MARKED.
        c: its egress class.
        dead: int64[n], the elements that are down.
        link: int64[K + 1], written: links, or one DELIVER or DROP.
        tags: int64[K + 1], written.
    """
    n = 0
    if tag == MARKED and spreads(p, c):
        for k in range(p.far.shape[1]):
            if p.onward[s, came, k] and is_up(p, s, k, dead):
                link[n], tags[n] = k, PLAIN
                n += 1
        return n
    if c >= 0 and (came == HOST or (p.every_hop and not contains(p.shares[s, c], came))):
        for i in range(p.shares.shape[2]):
            k = p.shares[s, c, i]
            if k >= 0 and is_up(p, s, k, dead):
                link[n], tags[n] = k, MARKED if i > 0 and marks(p) else PLAIN
                n += 1
    if n == 0:
        link[0], tags[0], n = transit(p, s, came, c, dead), PLAIN, 1
    return n


@loop
def gives_up(p: Program, s: int, via: int, c: int, dead: Array) -> bool:
    """Whether a packet to an intermediate, which is another switch, is one of a host's here.

    It is where the link to the intermediate is down, if the switch repairs at all. c: the egress
    class of the intermediate.
    """
    k = p.order[s, c, 0] if c >= 0 else DROP
    repairs = p.order.shape[2] > 1
    return bool(repairs and k >= 0 and p.far[s, k] == via and not is_up(p, s, k, dead))
