"""Which position of which trunk each link takes, for few types of cassettes.

A *half* is one end of a link: those of link e are 2e and 2e + 1. A *connector* is what one cassette
has to another: the halves of their links in the order of positions, on one trunk or several.

Of two cassettes one leads, whose lanes take positions in their own order, and the other follows.
The more common kind of cassettes leads; of one kind that whose view of the pair comes first, which
both ends know. Where that is no rule, as both views are the same or cassettes of a kind see
different ones, links to higher front ports come first, those to lower ones last in the mirrored
order, which a trunk with its ends reversed serves. Two links between front ports of one place, as
parallel cables are, have no such order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables

Numbers = NDArray[np.int64]
Bools = NDArray[np.bool_]
BEFORE = -2
"""Less than every value: fills rows, so that of two of which one begins the other it is first."""


@dataclass(frozen=True, slots=True, eq=False)
class Shuffle:
    """How E links run through C cassettes and T trunks. All numbers begin at 0."""

    cluster: Numbers
    """int64[C]: the cluster that each cassette belongs to."""
    kind: Numbers
    """int64[C]: the type of each cassette, an index into `types`."""
    types: tuple[tuple[str, tuple[str, ...]], ...]
    """The name of each type, and a text for each of its front ports with a word for each lane.

    `T1.2` leads to position 2 of the first trunk behind, `F2.8` to lane 8 of the second front port,
    `-` is dark.
    """
    least: int
    """A lower bound: as many types as any numbering of the same clusters needs."""

    panel: Numbers
    """int64[E, 2]: the cassette at both ends of each link."""
    front: Numbers
    """int64[E, 2]: the front port there."""
    lane: Numbers
    """int64[E, 2]: the lane of that front port."""
    ribbon: Numbers
    """int64[E, 2]: the ribbon from the switch to the front port."""
    trunk: Numbers
    """int64[E]: the trunk of each link, -1 for a link inside its cassette."""
    position: Numbers
    """int64[E, 2]: the position on the trunk at both ends, -1 without one."""

    ends: Numbers
    """int64[T, 2]: the two cassettes of each trunk."""
    sockets: Numbers
    """int64[T, 2]: its port behind each of them."""
    turned: Bools
    """bool[T]: whether position k leads to the k-th from the last one used."""


def shuffle(cables: Cables, plug: Numbers, step: Numbers, room: int) -> Shuffle:
    """Cassettes, trunks, and the position of each link.

    Args:
        cables: the links; parallel cables are several.
        plug: int64[E, 2], what orders the lanes of a switch.
        step: int64[S], the expansion that adds each switch. Its links have cassettes of their own.
        room: how many links a trunk holds.
    """
    halves = Halves.of(cables, plug, step)
    connectors = Connectors.of_halves(halves)
    turned, leads = _directions(connectors, halves)
    order = _order(connectors, halves, turned, leads)
    part, position, trunks = _split(connectors, order, turned, room)
    trunk = _trunk_numbers(connectors, part, trunks)
    socket = _sockets(connectors, halves, order, trunks)[connectors.of] + part

    ends, sockets = np.zeros((2, trunk.max(initial=-1) + 1, 2), np.int64)
    backwards = np.zeros(len(ends), np.bool_)
    side = (connectors.near > connectors.far).astype(np.int64)[connectors.of]
    ends[trunk, side] = halves.cassette[connectors.half]
    sockets[trunk, side] = socket
    backwards[trunk] = turned[connectors.of]

    kind, types = _types(connectors, halves, socket * room + position, room)
    trunk_of = np.full(len(halves.cassette), -1)
    position_of = trunk_of.copy()
    trunk_of[connectors.half], position_of[connectors.half] = trunk, position
    switch = cables.ends.ravel().astype(np.int64)
    plugs = np.stack((halves.cassette, halves.front, switch), axis=1)
    return Shuffle(
        cluster=halves.cluster,
        kind=kind,
        types=types,
        least=_least(connectors, halves),
        panel=halves.cassette.reshape(-1, 2),
        front=halves.front.reshape(-1, 2),
        lane=halves.lane.reshape(-1, 2),
        ribbon=_numbered(plugs).reshape(-1, 2),
        trunk=trunk_of[::2],
        position=position_of.reshape(-1, 2),
        ends=ends,
        sockets=sockets,
        turned=backwards,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Where the halves of E links are plugged, at C cassettes of equal front ports."""

    cassette: Numbers
    """int64[2E]: the cassette of each half."""
    front: Numbers
    """int64[2E]: the front port, in the order of rack units."""
    lane: Numbers
    """int64[2E]: the lane of that front port, in the order of `plug`."""
    width: int
    """The lanes of a front port: as many as the switch with most links uses."""
    cluster: Numbers
    """int64[C]: the cluster of each cassette."""

    @classmethod
    def of(cls, cables: Cables, plug: Numbers, step: Numbers) -> Halves:
        """The halves of links at cassettes by expansion and cluster, as for `shuffle`."""
        hardware = cables.hardware
        switch = cables.ends.ravel().astype(np.int64)
        added = np.repeat(step[cables.ends].max(axis=1), 2)
        clusters = len(hardware.cluster_names)
        home, cassette = np.unique(hardware.cluster[switch] + clusters * added, return_inverse=True)

        by_unit = np.lexsort((hardware.unit, hardware.rack, hardware.cluster))
        front = np.empty(len(by_unit), np.int64)
        front[by_unit] = place_in(hardware.cluster[by_unit])

        by_plug = np.lexsort((np.repeat(cables.socket, 2), plug.ravel(), added, switch))
        ribbon = _numbered(np.stack((switch, added), axis=1))
        lane = np.empty(len(switch), np.int64)
        lane[by_plug] = place_in(ribbon[by_plug])
        width = int(lane.max(initial=0)) + 1
        return cls(cassette.ravel(), front[switch], lane, width, home % clusters)

    @property
    def place(self) -> Numbers:
        """int64[2E]: the number of its lane among all lanes of the cassette."""
        return self.front * self.width + self.lane


@dataclass(frozen=True, slots=True, eq=False)
class Connectors:
    """The K connectors of all cassettes, and the H halves that leave their cassette."""

    near: Numbers
    """int64[K], ascending: the cassette that a connector belongs to."""
    far: Numbers
    """int64[K]: the cassette that it leads to."""
    links: Numbers
    """int64[K]: how many links it has."""
    half: Numbers
    """int64[H]: halves, of all 2E. The two of a link are side by side."""
    of: Numbers
    """int64[H]: the connector of each of these."""

    @classmethod
    def of_halves(cls, halves: Halves) -> Connectors:
        """The connectors of these halves."""
        away = other_half(halves.cassette)
        half = np.flatnonzero(halves.cassette != away)
        count = len(halves.cluster)
        pairs = halves.cassette[half] * count + away[half]
        number, of = np.unique(pairs, return_inverse=True)
        near, far = np.divmod(number, count)
        return cls(near, far, np.bincount(of, minlength=len(number)), half, of.ravel())


def other_half(values: Numbers) -> Numbers:
    """The value of the other half of each link, where the two halves are side by side."""
    return values.reshape(-1, 2)[:, ::-1].ravel()


def _directions(connectors: Connectors, halves: Halves) -> tuple[Bools, Bools]:
    """bool[K] each: whether trunks of a connector are reversed, and whether its cassette leads."""
    near, far, of = connectors.near, connectors.far, connectors.of
    kind, weight = _kinds(halves)
    view = _views(connectors, halves)
    back = view[np.lexsort((near, far))]
    same = kind[near] == kind[far]
    first_view = (view < back) | ((view == back) & (near < far))
    leads = np.where(same, first_view, weight[near] > weight[far])

    port = halves.front[connectors.half]
    straight_across = np.bincount(of, port == other_half(port), len(near))
    mirrored = (straight_across <= 1) & (connectors.links > 1)
    uneven = _uneven(connectors, kind, view)
    ambiguous = (same & (view == back)) | uneven[kind[near]] | uneven[kind[far]]
    return mirrored & ambiguous, leads


def _views(connectors: Connectors, halves: Halves) -> Numbers:
    """int64[K]: the rank of what a cassette sees of another: its lanes and those they lead to."""
    own = halves.place[connectors.half]
    by = np.lexsort((own, connectors.of))
    seen = np.stack((own[by], other_half(own)[by]), axis=1).ravel()
    return _numbered(_rows(np.repeat(connectors.of[by], 2), seen, len(connectors.near)))


def _uneven(connectors: Connectors, kind: Numbers, view: Numbers) -> Bools:
    """bool: of each kind of cassettes whether these see different views of others of their kind."""
    near = connectors.near
    inner = np.flatnonzero(kind[near] == kind[connectors.far])
    inner = inner[np.lexsort((view[inner], near[inner]))]
    views = _numbered(_rows(near[inner], view[inner], len(kind)))
    several: Bools = np.bincount(np.unique(np.stack((kind, views)), axis=1)[0]) > 1
    return several


def _kinds(halves: Halves) -> tuple[Numbers, Numbers]:
    """Of each cassette its kind, and how it ranks: the kind of most cassettes leads.

    Cassettes of a kind have the same lanes and links inside, whatever trunks they have.
    """
    count, place = len(halves.cluster), halves.place
    inside = np.flatnonzero(halves.cassette == other_half(halves.cassette))
    pairs = np.sort(np.stack((place, other_half(place))), axis=0)[:, inside]
    first, last = pairs
    # A cassette's row: its lanes, -1, and the two lanes of each link inside.
    group = np.concatenate((halves.cassette, np.arange(count), halves.cassette[inside]))
    part = np.repeat([0, 1, 2], (len(place), count, len(inside)))
    key = np.concatenate((place, np.zeros(count, np.int64), 2 * first + (place[inside] == last)))
    value = np.concatenate((place, np.full(count, -1), place[inside]))
    by = np.lexsort((key, part, group))
    kind = _numbered(_rows(group[by], value[by], count))
    cassettes = np.bincount(kind)
    rank = np.lexsort((np.arange(len(cassettes)), cassettes))
    return kind, np.argsort(rank)[kind]


def _order(connectors: Connectors, halves: Halves, turned: Bools, leads: Bools) -> Numbers:
    """int64[H]: the place of each half in its connector."""
    of, half = connectors.of, connectors.half
    by_lane = _ranked(of, halves.place[half])
    straight = np.where(leads[of], by_lane, other_half(by_lane))

    here = halves.front[half]
    there = other_half(here)
    turn = np.sign(here - there)
    low, high = np.minimum(here, there), np.maximum(here, there)
    mirrored = _ranked(of, turn, -turn * low, -turn * high, -turn * (half // 2))
    return np.where(turned[of], mirrored, straight)


def _split(
    connectors: Connectors, order: Numbers, turned: Bools, room: int
) -> tuple[Numbers, Numbers, Numbers]:
    """The trunk of a connector that each half takes, int64[H], and its position there, int64[H].

    Third, the number of trunks of each connector, int64[K].
    """
    trunks = np.zeros(len(connectors.links), np.int64)
    part, position = np.zeros((2, len(order)), np.int64)
    for links, back in sorted({*zip(connectors.links.tolist(), turned.tolist(), strict=True)}):
        sizes = chunks(links, room, back)
        number = np.repeat(np.arange(len(sizes)), sizes)
        alike = (connectors.links == links) & (turned == back)
        trunks[alike] = len(sizes)
        halves = alike[connectors.of]
        part[halves] = number[order[halves]]
        position[halves] = place_in(number)[order[halves]]
    return part, position, trunks


def chunks(links: int, room: int, turned: bool) -> list[int]:
    """The links of each trunk, even and the same from either end."""
    count = -(-links // room)
    if turned and links % 2 == 1 and count % 2 == 0:
        count += 1
    least, more = divmod(links, count)
    sizes = [least] * count
    sizes[count // 2] += more % 2
    for i in range(more // 2):
        sizes[i] += 1
        sizes[-1 - i] += 1
    return sizes


def _trunk_numbers(connectors: Connectors, part: Numbers, trunks: Numbers) -> Numbers:
    """int64[H]: the trunk of each half. Trunks are numbered in the order of their cassettes."""
    of = connectors.of
    leading = connectors.near < connectors.far
    own = np.where(leading, trunks, 0)
    number = (np.cumsum(own) - own)[of] + part
    return np.where(leading[of], number, other_half(number))


def _sockets(connectors: Connectors, halves: Halves, order: Numbers, trunks: Numbers) -> Numbers:
    """int64[K]: the port behind of a connector's first trunk.

    At each cassette connectors come in the order of the lanes that they take.
    """
    near, of = connectors.near, connectors.of
    by = np.lexsort((order, of))
    lanes = _numbered(_rows(of[by], halves.place[connectors.half][by], len(near)))
    sequence = np.lexsort((connectors.far, lanes, near))
    before = np.cumsum(trunks[sequence]) - trunks[sequence]
    first = np.empty(len(near), np.int64)
    first[sequence] = before - before[np.searchsorted(near, near)]
    return first


def _types(
    connectors: Connectors, halves: Halves, behind: Numbers, room: int
) -> tuple[Numbers, tuple[tuple[str, tuple[str, ...]], ...]]:
    """The type of each cassette, in the order in which they come, and the words of each type.

    behind: int64[H], the number of the position behind that each half takes, `room` a port.
    """
    width, half = halves.width, connectors.half
    lanes = (int(halves.front.max(initial=0)) + 1) * width
    leads = np.full((len(halves.cluster), lanes), -1)
    """Where each lane leads: to another lane, from `lanes` on to a position behind, or nowhere."""
    leads[halves.cassette, halves.place] = other_half(halves.place)
    leads[halves.cassette[half], halves.place[half]] = lanes + behind
    _, first, which = np.unique(leads, axis=0, return_index=True, return_inverse=True)
    kind = np.argsort(np.argsort(first))[which.ravel()]

    def word(value: int) -> str:
        if value < 0:
            return "-"
        if value < lanes:
            return f"F{value // width + 1}.{value % width + 1}"
        return f"T{(value - lanes) // room + 1}.{(value - lanes) % room + 1}"

    types = []
    for number, row in enumerate(leads[np.sort(first)], 1):
        ports = _without_dark_end(row.reshape(-1, width), (row.reshape(-1, width) >= 0).any(axis=1))
        texts = (_without_dark_end(port, port >= 0) for port in ports)
        fronts = tuple(" ".join(map(word, text.tolist())) for text in texts)
        types.append((f"cassette-{number}", fronts))
    return kind, tuple(types)


def _without_dark_end(values: Numbers, lit: Bools) -> Numbers:
    """The values up to the last one that is lit, and the first one in any case."""
    return values[: int(np.flatnonzero(lit).max(initial=0)) + 1]


def _least(connectors: Connectors, halves: Halves) -> int:
    """How many cassettes differ in what no numbering changes: switches, links inside and out."""
    cassette, count = halves.cassette, len(halves.cluster)
    ports = np.unique(np.stack((cassette, halves.front)), axis=1)[0]
    inside = np.bincount(cassette, cassette == other_half(cassette), count)
    by = np.lexsort((connectors.links, connectors.near))
    outside = _rows(connectors.near[by], connectors.links[by], count)
    facts = np.column_stack((np.bincount(ports, minlength=count), inside, outside))
    return int(_numbered(facts).max()) + 1


def _ranked(of: Numbers, *keys: Numbers) -> Numbers:
    """The place of each half in its connector, by the first key and then the others."""
    by = np.lexsort((*reversed(keys), of))
    place = np.empty(len(of), np.int64)
    place[by] = place_in(of[by])
    return place


def place_in(group: NDArray[np.integer]) -> Numbers:
    """int64[n]: the place of each in its group, where those of a group come one after the other."""
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    return np.arange(len(group)) - np.repeat(starts, np.diff([*starts, len(group)]))


def _rows(group: Numbers, value: Numbers, count: int) -> Numbers:
    """int64[count, n]: a row of values for each group, whose values come one after the other."""
    place = place_in(group)
    table = np.full((count, int(place.max(initial=0)) + 1), BEFORE)
    table[group, place] = value
    return table


def _numbered(rows: Numbers) -> Numbers:
    """int64[n]: the number of each row among the different ones, in ascending order."""
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()
