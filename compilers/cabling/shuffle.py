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
BEFORE = -2
"""Less than every value: fills rows, so that of two of which one begins the other it is first."""


@dataclass(frozen=True, slots=True, eq=False)
class Shuffle:
    """E links through C cassettes and T trunks; all from 0.

    home: int64[C], the cluster of each, of a patch panel the rack; kind: int64[C], the type of
    each, an index into types. types: by name the words of each front port
    (`inventory.panel_types.CassetteType`). panel, front, lane, cord: int64[E, 2], at both ends of a
    link, -1 where it is a cable by itself; cord: the number of the ribbon or cord. trunk: int64[E],
    -1 inside a cassette; position: int64[E, 2], on the trunk at both ends. ends, sockets:
    int64[T, 2], the cassettes of a trunk and its port behind each. turned: bool[T], position k
    leads to the k-th from the last one used. least: that any numbering of the same clusters needs
    as many types.
    """

    home: Numbers
    panel: Numbers
    front: Numbers
    lane: Numbers
    cord: Numbers
    trunk: Numbers
    position: Numbers
    ends: Numbers
    sockets: Numbers
    turned: NDArray[np.bool_]
    kind: Numbers
    types: tuple[tuple[str, tuple[str, ...]], ...]
    least: int


def shuffle(cables: Cables, plug: Numbers, stage: Numbers, room: int) -> Shuffle:
    """Cassettes, trunks of at most `room` links, and the position of each link.

    plug: int64[E, 2], what orders the lanes of a switch. stage: int64[S], the expansion that adds
    each switch; its links have cassettes of their own.
    """
    home, panel, front, lane = _lanes(cables, plug, stage)
    count, width = len(home), int(lane.max(initial=0)) + 1
    code = front * width + lane
    out = np.flatnonzero(panel != panel[np.arange(len(panel)) ^ 1])
    mate = np.arange(len(out)) ^ 1
    here, own = front[out], code[out]
    there = here[mate]
    connectors, of = np.unique(panel[out] * count + panel[out][mate], return_inverse=True)
    near, far = np.divmod(connectors, count)
    links = np.bincount(of, minlength=len(connectors))
    turned, leads = _directions(near, far, of, here, own, *_kinds(panel, code, count))

    by_code = _ranked(of, own)
    turn = np.sign(here - there)
    ports = np.minimum(here, there), np.maximum(here, there), out // 2
    mirrored = _ranked(of, turn, *(-turn * key for key in ports))
    follow = np.where(leads[of], by_code, by_code[mate])
    order = np.where(turned[of], mirrored, follow)

    trunks = np.zeros(len(connectors), np.int64)
    chunk, position = np.zeros((2, len(out)), np.int64)
    for n, back in sorted({*zip(links.tolist(), turned.tolist(), strict=True)}):
        sizes = chunks(n, room, back)
        alike = (links == n) & (turned == back)
        trunks[alike] = len(sizes)
        which = np.repeat(np.arange(len(sizes)), sizes)
        halves = alike[of]
        chunk[halves] = which[order[halves]]
        position[halves] = place_in(which)[order[halves]]

    low = near < far
    first = np.cumsum(np.where(low, trunks, 0)) - np.where(low, trunks, 0)
    leader = np.where(low[of], np.arange(len(out)), mate)  # the half at the first cassette
    trunk = first[of[leader]] + chunk[leader]
    by = np.lexsort((order, of))
    whole = numbered_rows(_rows(of[by], own[by], len(connectors)))
    sequence = np.lexsort((far, whole, near))
    before = np.cumsum(trunks[sequence]) - trunks[sequence]
    base = np.empty(len(connectors), np.int64)
    base[sequence] = before - before[np.searchsorted(near, near)]
    socket = base[of] + chunk
    ends, sockets = np.zeros((2, int(trunks[low].sum()), 2), np.int64)
    side = (~low[of]).astype(np.int64)
    ends[trunk, side], sockets[trunk, side] = panel[out], socket
    back_to_front = np.zeros(len(ends), np.bool_)
    back_to_front[trunk] = turned[of]

    places = (int(front.max(initial=0)) + 1) * width
    words = np.full((count, places), -1)
    words[panel, code] = code[np.arange(len(code)) ^ 1]
    words[panel[out], own] = places + socket * room + position
    kind, types = types_of(words, width, room)
    on_trunk = np.full((2, len(panel)), -1)
    on_trunk[:, out] = trunk, position
    return Shuffle(
        home=home,
        panel=panel.reshape(-1, 2),
        front=front.reshape(-1, 2),
        lane=lane.reshape(-1, 2),
        cord=numbered_rows(np.stack((panel, front, cables.ends.ravel()), axis=1)).reshape(-1, 2),
        trunk=on_trunk[0, ::2],
        position=on_trunk[1].reshape(-1, 2),
        ends=ends,
        sockets=sockets,
        turned=back_to_front,
        kind=kind,
        types=tuple((f"cassette-{n}", rows) for n, rows in enumerate(types, 1)),
        least=_least(panel, front, near, links, count),
    )


def _lanes(
    cables: Cables, plug: Numbers, stage: Numbers
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Cassettes by stage and cluster, and of each half the cassette, front port and lane.

    Lanes go by `plug`, front ports by the order of units.
    """
    known, switch = cables.hardware, cables.ends.ravel().astype(np.int64)
    step = np.repeat(stage[cables.ends].max(axis=1), 2)
    clusters = len(known.cluster_names)
    home, panel = np.unique(known.cluster[switch] + clusters * step, return_inverse=True)
    seat = np.lexsort((known.unit, known.rack, known.cluster))
    place = np.empty(len(seat), np.int64)
    place[seat] = place_in(known.cluster[seat])
    line = np.lexsort((np.repeat(cables.socket, 2), plug.ravel(), step, switch))
    lane = np.empty(len(switch), np.int64)
    lane[line] = place_in(np.unique(np.stack((switch, step)), axis=1, return_inverse=True)[1][line])
    return (home % clusters).astype(np.int64), panel.ravel(), place[switch], lane


def _directions(
    near: Numbers,
    far: Numbers,
    of: Numbers,
    here: Numbers,
    own: Numbers,
    kind: Numbers,
    weight: Numbers,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each connector whether its trunks are reversed, and whether its cassette leads.

    near, far: the cassettes of each connector. of, here, own: the connector, front port and lane of
    each half, a link's side by side. kind, weight: of each cassette.
    """
    mate = np.arange(len(of)) ^ 1
    opposite = np.lexsort((near, far))
    by = np.lexsort((own, of))
    seen = np.stack((own[by], own[mate[by]]), axis=1).ravel()
    view = numbered_rows(_rows(np.repeat(of[by], 2), seen, len(near)))
    first = (view < view[opposite]) | ((view == view[opposite]) & (near < far))
    same = kind[near] == kind[far]
    leads = np.where(same, first, weight[near] > weight[far])

    inner = np.flatnonzero(same)
    inner = inner[np.lexsort((view[inner], near[inner]))]
    views = numbered_rows(_rows(near[inner], view[inner], len(kind)))
    uneven = np.bincount(np.unique(np.stack((kind, views)), axis=1)[0]) > 1
    fixed = np.bincount(of, here == here[mate], len(near))
    mirrored = (fixed <= 1) & (np.bincount(of, minlength=len(near)) > 1)
    ambiguous = (same & (view == view[opposite])) | uneven[kind[near]] | uneven[kind[far]]
    return mirrored & ambiguous, leads


def _kinds(panel: Numbers, code: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """Of each cassette its kind, and how it ranks: the kind of most cassettes leads.

    Cassettes of a kind have the same lanes and links inside, whatever trunks they have.
    """
    mate = np.arange(len(code)) ^ 1
    inside = np.flatnonzero(panel == panel[mate])
    first, last = np.sort(np.stack((code, code[mate])), axis=0)[:, inside]
    group = np.concatenate((panel, np.arange(count), panel[inside]))
    part = np.repeat([0, 1, 2], (len(panel), count, len(inside)))
    key = np.concatenate((code, np.zeros(count, np.int64), 2 * first + (code[inside] == last)))
    value = np.concatenate((code, np.full(count, -1), code[inside]))
    by = np.lexsort((key, part, group))
    kind = numbered_rows(_rows(group[by], value[by], count))
    rank = np.lexsort((np.arange(int(kind.max(initial=-1)) + 1), np.bincount(kind)))
    return kind, np.argsort(rank)[kind]


def _least(panel: Numbers, front: Numbers, near: Numbers, links: Numbers, count: int) -> int:
    """How many cassettes differ in what no numbering changes: switches, links inside and out."""
    ports = np.unique(np.stack((panel, front)), axis=1)[0]
    inside = np.bincount(panel, panel == panel[np.arange(len(panel)) ^ 1], count)
    by = np.lexsort((links, near))
    outside = _rows(near[by], links[by], count)
    return int(numbered_rows(np.column_stack((np.bincount(ports), inside, outside))).max()) + 1


def types_of(words: Numbers, width: int, room: int) -> tuple[Numbers, tuple[tuple[str, ...], ...]]:
    """The type of each cassette, in the order in which they come, and the words of each type."""
    _, first, which = np.unique(words, axis=0, return_index=True, return_inverse=True)
    kind = np.argsort(np.argsort(first))[which.ravel()]
    places = words.shape[1]

    def word(value: int) -> str:
        if value < 0:
            return "-"
        start, n, base = ("F", value, width) if value < places else ("T", value - places, room)
        return f"{start}{n // base + 1}.{n % base + 1}"

    types = []
    for row in words[np.sort(first)]:
        table = row[: (int(np.flatnonzero(row >= 0).max(initial=0)) // width + 1) * width]
        lanes = (
            each[: int(np.flatnonzero(each >= 0).max(initial=0)) + 1]
            for each in table.reshape(-1, width)
        )
        types.append(tuple(" ".join(map(word, each.tolist())) for each in lanes))
    return kind, tuple(types)


def chunks(links: int, room: int, turned: bool) -> list[int]:
    """The links of each trunk, even and the same from either end."""
    count = -(-links // room)
    count += turned and links % 2 == 1 and count % 2 == 0
    least, more = divmod(links, count)
    sizes = [least] * count
    sizes[count // 2] += more % 2
    for i in range(more // 2):
        sizes[i] += 1
        sizes[-1 - i] += 1
    return sizes


def _ranked(of: Numbers, *keys: Numbers) -> Numbers:
    """The place of each half in its connector, by the first key and then the others."""
    by, place = np.lexsort((*keys[::-1], of)), np.empty(len(of), np.int64)
    place[by] = place_in(of[by])
    return place


def place_in(group: NDArray[np.integer]) -> Numbers:
    """int64[n]: the place of each in its group, where these come one after the other."""
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    return np.arange(len(group)) - np.repeat(starts, np.diff([*starts, len(group)]))


def _rows(group: Numbers, value: Numbers, count: int) -> Numbers:
    """int64[count, n]: the values of each group, which come one after the other, in a row."""
    place = place_in(group)
    table = np.full((count, int(place.max(initial=0)) + 1), BEFORE)
    table[group, place] = value
    return table


def numbered_rows(rows: Numbers) -> Numbers:
    """int64[n]: the number of each row among the different ones, in ascending order."""
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()
