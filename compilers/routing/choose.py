"""Alternates, protection and bounce of every egress class, by what neighbours do with its packets.

At switch u, let v be the next hop towards d. What a neighbour r of u can do for packets to d
depends on its own minimal path to d:

- r is an *alternate* for d if its path does not meet u; an *edge-disjoint* one if it also shares no
  link with the minimal path of u.
- r *repairs* d if its path meets neither u nor v: r helps whether the link u–v or the switch v has
  failed.

Rows of a switch with the same next hop, alternates and repairs form one class, so that no state per
destination is needed. In PolarStar that makes 4 to 6 classes per link.

Where too few neighbours repair, others can still help, in this order:

1. a neighbour r whose own next hop is u, but which *bounces* the packet: r sends it to a neighbour
   of its own whose path meets neither r nor u (a U-turn alternate);
2. a neighbour whose path meets v: it helps if only the link has failed, or if v repairs in turn;
3. a neighbour that bounces the packet onto a path that meets v.

With bounced paths (`Forwarding.bounces`) a destination next to u has alternates, too: neighbours
whose path does not meet u, and neighbours that bounce packets of u.

Where packets in transit take any shortest path, a class with several next hops needs no other
repair: packets that came in by one of them try the others (`_among_next_hops`).

All this is found by a search over the paths (`searched`), which works in any graph. Families whose
algebra describes it construct it instead (`Family.choices`), in the same orders of ports
(`compilers.routing.port_ranking`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.routing.alternate_weights import with_alternates
from compilers.routing.class_paths import Bits, ClassPaths, Numbers, grouped
from compilers.routing.port_ranking import ORDER, in_turn, ranked
from compilers.routing.split_classes import deciding_rows, split_direct
from compilers.spec.forwarding import Forwarding
from compilers.spec.policy import LARGEST_SEARCH
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Tables, empty_egress, local, no_route
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.wiring.shared_risk import several_modules
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, Refused

TURNS = 2
"""How often bounces are chosen again where several next hops share packets.

What a switch does with packets that come back depends on what its neighbours do with them.
"""


def choices(
    tables: Tables,
    topology: Topology,
    wiring: Wiring,
    forwarding: Forwarding,
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
    # Direct classes first: an adjacent switch has other alternates or none, and another repair.
    return searched(split_direct(tables, wiring), topology, wiring, forwarding, module)


def require_searchable(topology: Topology, forwarding: Forwarding, balance: str) -> None:
    """Pass unless a damaged fabric is too large for a search, or packets are to be marked in it.

    Args:
        topology: what is left of the fabric.
        forwarding: what the tables shall mean.
        balance: its name, for the message.

    Raises:
        Refused: the fabric has more than `LARGEST_SEARCH` switches, or packets are to be marked.
    """
    order, searches = topology.graph.order, forwarding.has_alternates or forwarding.repairs
    if forwarding.marks:
        path: tuple[str, ...] = ("routing", "balance")
        required, given = "a balance without marks in a damaged fabric", balance
        todo = "write compact-valiant, or repair the fabric"
    elif order > LARGEST_SEARCH and searches:
        path = ("routing",)
        required = "minimal routes without protection in a damaged fabric of more than "
        required += f"{LARGEST_SEARCH:,} switches"
        given = f"alternates or protection for {order:,} switches"
        todo = "remove `balance` and `protect`, or repair the fabric: only in a whole "
        todo += "PolarFly or PolarStar they need no search"
    else:
        return
    raise Refused(Finding(path, required, given, todo))


def searched(
    tables: Tables,
    topology: Topology,
    wiring: Wiring,
    forwarding: Forwarding,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Search alternates, protection and bounce of all classes, by following minimal paths.

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
    paths, links = _split_by_choices(minimal, forwarding)
    if forwarding.repairs:
        paths = _protected(paths, links, forwarding.every_hop, module)
    elif forwarding.bounces:
        paths = paths.having(bounce=ranked(links.repair, paths.classes.port, wiring, 1))
    alternate = links.alternate
    if forwarding.bounces:
        bounce = paths.classes.bounce

        def bounces_direct(switch: int) -> Bits:
            """The links that bounce packets to an adjacent switch, bool[1, K, D]."""
            direct: Bits = paths.after[switch] == paths.ends
            return _bounced(paths, switch, bounce)[None] & direct

        alternate = alternate | paths.by_class(bounces_direct, alternate.shape)[0]
    if not forwarding.has_alternates:
        return paths.tables
    packed = np.packbits(alternate, axis=2)
    classes = with_alternates(paths.classes, wiring, packed, forwarding.minimal_share)
    return replace(paths.tables, classes=classes)


class LinkChoices(NamedTuple):
    """What the neighbour at each link can do: bool[S, C, K] of classes, bool[K, D] at a switch."""

    repair: Bits
    """The neighbour's path meets neither this switch nor the next hop."""
    alternate: Bits
    """The neighbour may share the traffic that enters here."""
    away: Bits
    """The neighbour does not send packets back to this switch."""


@dataclass(frozen=True, slots=True, eq=False)
class _SplitRows:
    """The R rows of a switch, with classes by next hop and choices."""

    row: Numbers
    """int64[R], the rows."""
    number: Numbers
    """int64[R], the class of each row."""
    port: Numbers
    """int32[C], the minimal port of each class."""
    links: Bits
    """bool[R, 3, K], the choices of each row, in the order of `LinkChoices`."""


def _split_by_choices(paths: ClassPaths, forwarding: Forwarding) -> tuple[ClassPaths, LinkChoices]:
    """Split the classes so that all rows of a class have the same next hop and choices.

    The first class of each next hop keeps its number.

    Returns:
        The paths with the new classes, and the choices of each class.
    """
    tables, links = paths.tables, paths.wiring.far.shape[1]
    parts = {switch: _split_rows(paths, switch, forwarding) for switch in paths.present()}
    most = max(len(part.port) for part in parts.values())
    egress = empty_egress(tables.switches, tables.routes.egress.shape[1], most)
    egress[...] = no_route(egress)
    port = np.zeros((tables.switches, most), np.int32)
    choices_of_class = np.zeros((3, tables.switches, most, links), np.bool_)
    for switch, part in parts.items():
        egress[switch, part.row] = part.number
        egress[switch, tables.routes.egress[switch] == local(tables.routes.egress)] = local(egress)
        port[switch, : len(part.port)] = part.port
        of_rows = part.links.transpose(1, 0, 2)
        choices_of_class[:, switch, part.number, : of_rows.shape[2]] = of_rows
    routes = replace(tables.routes, egress=egress)
    split = Tables(routes=routes, classes=Classes.minimal(port))
    number = Fib.of(split, paths.wiring.cables()).egress(paths.ends)
    new_paths = replace(paths, tables=split, egress=np.ascontiguousarray(number))
    return new_paths, LinkChoices(*choices_of_class)


def _split_rows(paths: ClassPaths, switch: int, forwarding: Forwarding) -> _SplitRows:
    """Return the rows of a switch with their classes and choices.

    The choices of a row are those that all destinations of the row have.
    """
    old_ports, routed = paths.classes.port[switch], paths.routed(switch)
    row_of_end = deciding_rows(paths.tables.routes, switch, paths.ends)[0][routed]
    rows = grouped(row_of_end)
    of_ends = np.stack(_choices_at(paths, switch, forwarding))[..., routed[rows.order]]
    links = np.logical_and.reduceat(of_ends, rows.starts, axis=2).transpose(2, 0, 1)
    if forwarding.every_hop:  # a class with several next hops needs no other repair
        repair, alternate, away = (LinkChoices._fields.index(name) for name in LinkChoices._fields)
        several = links[:, alternate].any(axis=1)
        links[several, repair] = links[several, away] = False
    old_class = paths.tables.routes.egress[switch, rows.keys]
    keys = np.column_stack((old_class, np.packbits(links.reshape(len(rows.keys), -1), axis=1)))
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    # The first new class of each old one has its number; the others follow after all old ones.
    base = distinct[:, 0].astype(np.int64)
    is_first = np.r_[True, base[1:] != base[:-1]]
    number = np.where(is_first, base, len(old_ports) - 1 + np.cumsum(~is_first))
    return _SplitRows(
        row=rows.keys,
        number=number[inverse.ravel()],
        port=np.concatenate((old_ports, old_ports[base[~is_first]])),
        links=links,
    )


def _choices_at(paths: ClassPaths, switch: int, forwarding: Forwarding) -> LinkChoices:
    """Return what each neighbour of a switch can do for packets to each destination, bool[K, D]."""
    minimal = paths.walk(np.array([switch]))
    near = paths.near(switch)
    steps = paths.walk(near)
    hop = minimal[1]
    direct = hop == paths.ends
    away = near != hop
    if len(paths.distance):
        turn = paths.u_turn(switch, near)
        away &= ~turn.returns | (turn.onward >= 0)
        avoids = ~paths.meets(np.where(turn.returns, turn.onward, near), hop) | direct
    else:
        away &= ~paths.meets(near, switch, steps)
        avoids = ~paths.meets(near, hop, steps) | direct
    # An adjacent switch is reached minimally only (PolarFly paper, §VII), but for bounced paths.
    alternate = away if forwarding.bounces else away & ~direct
    if forwarding.marks:
        # Even if a marked packet comes back: the next switch spreads it once more.
        alternate = np.broadcast_to(near != hop, away.shape)
    if forwarding.alternates == "shortest":
        links_left = np.sum([switches != paths.ends for switches in steps], axis=0)
        minimal_links = np.sum([switches != paths.ends for switches in minimal], axis=0)
        alternate = alternate & (links_left < minimal_links)
    if forwarding.disjoint:
        alternate = alternate & ~_shares_link(steps, minimal)
    return LinkChoices(repair=away & avoids, alternate=alternate, away=away)


def _shares_link(walks: list[Numbers], minimal: list[Numbers]) -> Bits:
    """Whether walks cross a link of the minimal path, in either direction, bool[K, D]."""
    shared: Bits = np.zeros(walks[0].shape, np.bool_)
    for a, b in pairwise(walks):
        for u, v in pairwise(minimal):
            same = (a == u) & (b == v) | (a == v) & (b == u)
            shared |= same & (a != b)
    return shared


def _protected(
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
        module: as for `choices`.
    """
    minimal, wiring, shape = paths.classes.port, paths.wiring, links.repair.shape
    # bool[S, C, 1], the classes with several next hops that share packets.
    several: Bits = np.logical_and(links.alternate.any(axis=2, keepdims=True), every_hop)
    first: Bits | None = None
    if module is not None and several_modules(module):
        first = _on_other_modules(module, wiring.port, minimal)
    order = bounce = ranked(links.repair, minimal, wiring, ORDER, before=first)
    if every_hop:
        for _ in range(TURNS):
            bounce = _among_next_hops(paths, links.alternate, bounce)
            paths = replace(paths, turns=_turns(paths, several, bounce))
        order = np.where(several, np.uint16(0), order)
    past_hop, past_here = _bouncing_links(paths, bounce, shape)
    helped = (links.repair | past_hop | several).any(axis=2)
    if (_used_classes(paths, shape) & ~helped).any():
        before = paths.by_class(lambda switch: _avoiding_second(paths, switch), shape)[0]
        again = ranked(links.repair, minimal, wiring, ORDER, before=before)
        bounce = np.where(several, bounce, again)
        past_hop, past_here = _bouncing_links(paths, bounce, shape)
    allowed = ~several
    if every_hop:  # a neighbour that repairs, and sent the packet here, has other next hops
        allowed = allowed & ~links.repair.any(axis=2, keepdims=True)
    repair, away = links.repair, links.away
    for usable in (past_hop & ~repair, away & ~repair, past_here & ~(past_hop | away | repair)):
        order = in_turn(order, ranked(usable & allowed, minimal, wiring, ORDER, before=first))
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


def _bouncing_links(paths: ClassPaths, bounce: NDArray[np.uint16], shape: tuple[int, ...]) -> Bits:
    """Return the links whose neighbour bounces packets, past the next hop and past here.

    bool[2, S, C, K].
    """
    return paths.by_class(
        lambda switch: np.stack(
            [_bounced(paths, switch, bounce, only_link) for only_link in (False, True)]
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
    return np.where(others.any(axis=2, keepdims=True), reduce(in_turn, further, first), bounce)


def _bounced(
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
