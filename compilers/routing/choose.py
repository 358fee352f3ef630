"""Alternates, protection and bounce of every egress class, by what neighbours do with its packets.

At switch u, let v be the next hop towards d. What a neighbour r of u can do for packets to d
depends on its own minimal path to d:

- r is an *alternate* for d if its path does not meet u. It is an *edge-disjoint* alternate if its
  path also shares no link with the minimal path of u.
- r *repairs* d if its path meets neither u nor v: r helps whether the link u–v or the switch v has
  failed.

Rows of a switch with the same next hop, alternates and repairs form one class, so that a switch
needs no groups for single destinations. In PolarStar there are 4 to 6 classes per link.

Where too few neighbours repair, others can still help, in this order:

1. a neighbour r whose own next hop is u, but which *bounces* the packet: r sends it to a neighbour
   t of its own whose path meets neither r nor u. This is a *U-turn* alternate, as the packet would
   otherwise turn round at r:

       d ──── v ──╳── u      the minimal path of r is r, u, v, d
       │              │      the packet of u takes u, r, t, d
       └───── t ───── r

2. a neighbour whose path meets v: it helps if only the link has failed. If v has failed, the switch
   before v on that path has to repair the packet as u did;
3. a neighbour that bounces the packet onto a path that meets v.

With bounced paths (`Forwarding.bounces`) a destination next to u has alternates, too: neighbours
whose path does not meet u, and neighbours that bounce packets of u.

Where packets in transit take any shortest path, a class with several next hops needs no other
repair: packets that came in by one of them try the others (`searched_repairs`).

The *choices* of a class are its alternates and repairs. `search_choices` finds them by a search
over the paths, which works in any graph. A family may construct them by its algebra instead
(`Family.choices`), with the ports in the same order (`compilers.routing.port_ranking`). `compile`
calls `choices`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing.alternate_weights import with_alternates
from compilers.routing.class_paths import Bits, ClassPaths
from compilers.routing.link_choices import split_by_choices
from compilers.routing.port_ranking import ranked_ports
from compilers.routing.searched_repairs import bouncing_links, with_repairs
from compilers.routing.split_classes import split_direct
from compilers.spec.forwarding import Forwarding
from compilers.spec.policy import LARGEST_SEARCH
from compilers.tables.intermediate_form import Tables
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, Refused


def choices(
    tables: Tables,
    topology: Topology,
    wiring: Wiring,
    forwarding: Forwarding,
    *,
    whole: bool = True,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Add the alternates and the protection that `forwarding` asks for to minimal tables.

    Args:
        tables: minimal, with a class for each link.
        topology: the fabric, or what is left of it after damage.
        wiring: the cables of the same fabric.
        forwarding: what the tables shall mean.
        whole: whether nothing is missing; a family's construction holds only then.
        module: int32[S, K], the module of its switch that each link is on, where that is known. Of
            ports that are equally good, those on other modules than the minimal port come first.
    """
    if not forwarding.has_alternates and not forwarding.repairs:
        return tables
    if whole:
        family = family_of(topology.family)
        constructed: Tables | None = family.choices(tables, topology, wiring, forwarding, module)
        if constructed is not None:
            return constructed
    # Direct classes are split off first: an adjacent switch has other alternates, or none, and
    # other repairs than the switches behind it.
    return search_choices(split_direct(tables, wiring), topology, wiring, forwarding, module)


def require_searchable(topology: Topology, forwarding: Forwarding, balance: str) -> None:
    """Pass if the choices of a damaged fabric can be searched.

    No family constructs them for a damaged fabric, and a search knows no marks.

    Args:
        topology: what is left of the fabric.
        forwarding: what the tables shall mean.
        balance: its name, for the message.

    Raises:
        Refused: the fabric has more than `LARGEST_SEARCH` switches, or packets are to be marked.
    """
    order, needs_search = topology.graph.order, forwarding.has_alternates or forwarding.repairs
    if forwarding.marks:
        path: tuple[str, ...] = ("routing", "balance")
        required, given = "a balance without marks in a damaged fabric", balance
        todo = "write compact-valiant, or repair the fabric"
    elif order > LARGEST_SEARCH and needs_search:
        path = ("routing",)
        required = (
            "minimal routes without protection in a damaged fabric of more than "
            f"{LARGEST_SEARCH:,} switches"
        )
        given = f"alternates or protection for {order:,} switches"
        todo = (
            "remove `balance` and `protect`, or repair the fabric: only in a whole "
            "PolarFly or PolarStar they need no search"
        )
    else:
        return
    raise Refused(Finding(path, required, given, todo))


def search_choices(
    tables: Tables,
    topology: Topology,
    wiring: Wiring,
    forwarding: Forwarding,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Search alternates, protection and bounce of all classes, by following minimal paths.

    Without protection, a balance that bounces packets still needs one `bounce` port a class.

    Args:
        tables: minimal, with separate direct classes (`compilers.routing.split_classes`).
        topology: says which switches have hosts, and the diameter.
        wiring: the cables.
        forwarding: what the tables shall mean.
        module: as for `choices`.

    Returns:
        Tables with a class for each next hop and set of choices.
    """
    minimal = ClassPaths.of(tables, wiring, topology, forwarding.every_hop)
    paths, links = split_by_choices(minimal, forwarding)
    if forwarding.repairs:
        paths = with_repairs(paths, links, forwarding.every_hop, module)
    elif forwarding.bounces:
        paths = paths.with_orders(
            bounce=ranked_ports(links.repair, paths.classes.port, wiring.port, 1)
        )
    if not forwarding.has_alternates:
        return paths.tables
    alternate = links.alternate
    if forwarding.bounces:
        alternate = alternate | _bouncing_to_adjacent(paths, alternate.shape)
    packed = np.packbits(alternate, axis=2)
    classes = with_alternates(paths.classes, wiring, packed, forwarding.minimal_share)
    return replace(paths.tables, classes=classes)


def _bouncing_to_adjacent(paths: ClassPaths, shape: tuple[int, ...]) -> Bits:
    """The links whose neighbour bounces the packets of a class to an adjacent switch.

    A destination is adjacent if it is the next switch on the minimal path.

    Args:
        paths: with the bounce ports of each class.
        shape: S, C, K.

    Returns:
        bool[S, C, K], by switch, class and link. False for classes with other destinations.
    """

    def bounces(switch: int) -> Bits:
        """bool[1, K, D], by link and destination whether this holds at a switch."""
        is_adjacent: Bits = paths.next_switch[switch] == paths.destinations  # bool[D]
        links = bouncing_links(paths, switch, paths.classes.bounce, avoid="next_hop")  # bool[K, D]
        return links[None] & is_adjacent

    bouncing: Bits = paths.by_class(bounces, shape)[0]
    return bouncing
