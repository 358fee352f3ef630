"""Cassettes of given types: which one each is of, so that few types, trunks and permutations serve.

Front ports are in the order of units and lanes in that of ports (`compilers.cabling.shuffle`), so a
type fixes the trunk and the position that each link takes at its cassette. Two types serve two
cassettes if every trunk between these joins equal positions (straight), or, where links fill it,
mirrored ones (reversed). To choose is an integer program, which HiGHS solves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.shuffle import Numbers, Shuffle
from inventory.problems import InputError, install_extra

Given = Sequence[tuple[str, tuple[str, ...]]]
Bools = NDArray[np.bool_]


def from_stock(found: Shuffle, given: Given, stage: Numbers, room: int) -> Shuffle:
    """The same links through cassettes of given types, and of as few that `found` makes as serve.

    Args:
        found: cassettes made for the fabric; their types serve where no given ones do.
        given: the types in stock, by name their words.
        stage: int64[C], the expansion that adds each cassette; those of one are chosen together.
        room: how many links a trunk holds.

    Raises:
        InputError: there is something to choose, and scipy is not installed.
    """
    words = {rows: name for name, rows in reversed(given)}
    own = [each for each in found.types if each[1] not in words]
    stock = [(name, rows) for name, rows in given if words[rows] == name]
    types = [*stock, *((f"{n}-new" if n in words.values() else n, rows) for n, rows in own)]
    exits = _Exits.of(found, types, room)
    kind = np.full(len(found.home), -1)
    taken = np.zeros(len(types), np.bool_)
    for step in np.unique(stage):
        here = stage == step
        kind[here] = _chosen(exits, here, taken, len(stock))[here]
        taken[kind[here]] = True
    return exits.through(found, kind, types)


@dataclass(frozen=True, slots=True, eq=False)
class _Exits:
    """What T types do with the N links between C cassettes.

    panel: int64[N, 2]. pair: int64[N], the pair of cassettes of each link, an index into
    pairs: int64[P, 2]. link: int64[N], its number in the fabric. socket, position: int64[T, N, 2],
    where it leaves both cassettes, if these are of the type. fits: bool[T, C], the type alone
    serves the cassette; trunks: int64[T, C], how many it would have.
    """

    panel: Numbers
    pairs: Numbers
    pair: Numbers
    link: Numbers
    socket: Numbers
    position: Numbers
    fits: Bools
    trunks: Numbers

    @classmethod
    def of(cls, found: Shuffle, types: Given, room: int) -> _Exits:
        link = np.flatnonzero(found.trunk >= 0)
        flip = found.panel[link, 0] > found.panel[link, 1]
        ends = np.where(flip[:, None], [1, 0], [0, 1])
        panel, front, lane = (
            np.take_along_axis(each[link], ends, axis=1)
            for each in (found.panel, found.front, found.lane)
        )
        pairs, pair = np.unique(panel, axis=0, return_inverse=True)
        inside = np.flatnonzero(found.trunk < 0)
        count, shape = len(found.home), (len(types), len(found.home))
        fits, trunks = np.ones(shape, np.bool_), np.zeros(shape, np.int64)
        socket, position = np.full((2, len(types), *panel.shape), -1)
        for t, (_, rows) in enumerate(types):
            leads, number, place = _tables(rows, found)
            socket[t], position[t] = number[front, lane], place[front, lane]
            bad = leads[front, lane] | (socket[t] < 0) | (position[t] >= room)
            fits[t, panel[bad]] = False
            near, far = (each[inside] for each in (found.front, found.lane))
            back = leads[near, far] & (number[near, far] == near[:, ::-1])
            fits[t, found.panel[inside][~(back & (place[near, far] == far[:, ::-1]))]] = False
            plugs = np.stack((panel, socket[t], panel[:, ::-1]), axis=-1).reshape(-1, 3)
            plugs = np.unique(plugs, axis=0)  # a trunk behind leads to one cassette
            twice = (plugs[1:, :2] == plugs[:-1, :2]).all(axis=1)
            fits[t, plugs[1:][twice, 0]] = False
            trunks[t] = np.bincount(plugs[:, 0], minlength=count)
        return cls(panel, pairs, pair.ravel(), link, socket, position, fits, trunks)

    def joined(self, one: int, other: int) -> tuple[Bools, Bools]:
        """bool[P], bool[2, P]: pairs of cassettes of these types that trunks join, by which."""
        n, count = np.arange(len(self.pair)), len(self.pairs)
        here, there = self.socket[one, :, 0], self.socket[other, :, 1]
        near, far = self.position[one, :, 0], self.position[other, :, 1]
        trunk = np.stack((self.pair, here, there), axis=1)
        plugs, of = np.unique(trunk, axis=0, return_inverse=True)
        of = of.ravel()
        sides = (np.unique(plugs[:, [0, k]], axis=0)[:, 0] for k in (1, 2))
        number = np.bincount(plugs[:, 0], minlength=count)
        whole = [np.bincount(side, minlength=count) == number for side in sides]
        links = np.bincount(of, minlength=len(plugs))
        straight, mirrored = np.ones((2, len(plugs)), np.bool_)
        straight[of[n[near != far]]] = False
        mirrored[of[n[near + far != links[of] - 1]]] = False
        good = whole[0] & whole[1]
        good[plugs[~(straight | mirrored), 0]] = False
        used = np.zeros((2, count), np.bool_)
        used[0, plugs[straight, 0]] = used[1, plugs[~straight, 0]] = True
        return good, used

    def through(self, found: Shuffle, kind: Numbers, types: Given) -> Shuffle:
        """The links through cassettes of these types; trunks in the order of `found`."""
        of_link, side = kind[self.panel], np.arange(2)
        each = np.arange(len(self.link))[:, None]
        socket, position = (x[of_link, each, side] for x in (self.socket, self.position))
        before = found.trunk[self.link]
        plugs = np.column_stack((self.pair, socket))
        _, first, of = np.unique(plugs, axis=0, return_index=True, return_inverse=True)
        of = of.ravel()
        least = np.full(len(first), len(found.ends))
        np.minimum.at(least, of, before)
        order = np.lexsort((socket[first, 0], least))
        trunk = np.argsort(order)[of]
        first = first[order]
        ends = found.ends[before[first]]
        flip = (ends[:, 0] != self.panel[first, 0]).astype(np.int64)[:, None]
        turned = np.zeros(len(first), np.bool_)
        turned[trunk[position[:, 0] != position[:, 1]]] = True
        number, places = found.trunk.copy(), found.position.copy()
        number[self.link] = trunk
        back = found.panel[self.link, 0] > found.panel[self.link, 1]
        places[self.link] = np.where(back[:, None], position[:, ::-1], position)
        _, at = np.unique(kind, return_index=True)
        used = kind[np.sort(at)]
        again = np.zeros(len(types), np.int64)
        again[used] = np.arange(len(used))
        return replace(
            found,
            trunk=number,
            position=places,
            ends=ends,
            sockets=np.take_along_axis(socket[first], np.array([[0, 1]]) ^ flip, axis=1),
            turned=turned,
            kind=again[kind],
            types=tuple(types[t] for t in used.tolist()),
        )


def _tables(rows: tuple[str, ...], found: Shuffle) -> tuple[Bools, Numbers, Numbers]:
    """bool, int64, int64[F, L]: whether a lane leads to another, and to which port and place of it.

    -1 where it is dark. F and L have room for the type and for what is plugged.
    """
    words = [text.split() for text in rows]
    fronts = max(len(rows), int(found.front.max(initial=0)) + 1)
    lanes = max(*map(len, words), int(found.lane.max(initial=0)) + 1)
    leads = np.zeros((fronts, lanes), np.bool_)
    port, place = np.full((2, fronts, lanes), -1)
    for f, row in enumerate(words):
        for k, word in enumerate(row):
            if word != "-":
                leads[f, k] = word[0] == "F"
                port[f, k], place[f, k] = (int(n) - 1 for n in word[1:].split("."))
    return leads, port, place


def _chosen(exits: _Exits, here: Bools, taken: Bools, given: int) -> Numbers:
    """int64[C]: the type of each cassette of a stage.

    The fewest types that are not in stock, then types, trunks, and permutations of trunks; of equal
    choices the first types at the first cassettes.
    """
    fits = exits.fits & here
    kind: Numbers = np.argmax(fits, axis=0)
    if (fits.sum(axis=0)[here] == 1).all():
        return kind
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array
    except ImportError:
        required = "scipy to choose among panels.types"
        raise InputError.of(required, "none", install_extra("placement"), key="panels") from None
    types, count = fits.shape
    at = np.arange(types * count).reshape(fits.shape)  # is type t at cassette c
    kinds = types * count + np.arange(types)  # is type t used; then: straight, reversed trunks
    goals = np.zeros((4 + count, types * count + types + 2))
    goals[0, kinds[given:]] = 1
    goals[1, kinds[~taken]] = 1
    goals[2, : at.size] = np.where(fits, exits.trunks, 0).ravel()
    goals[3, -2:] = 1
    goals[4 + np.arange(count), at] = np.arange(types)[:, None]
    rules = list(_rules(exits, fits, at, kinds))
    chosen: Numbers = np.zeros(goals.shape[1], np.int64)
    for goal in goals[np.append(np.ones(4, np.bool_), fits.sum(axis=0) > 1)]:
        row = np.repeat(np.arange(len(rules)), [len(columns) for columns, _, _ in rules])
        column, value = (np.concatenate([rule[i] for rule in rules]) for i in (0, 1))
        entries = row.astype(np.int32), column.astype(np.int32)  # scipy 1.12 takes no int64
        matrix = coo_array((value, entries), shape=(len(rules), len(goal)))
        found = milp(
            goal,
            integrality=np.ones_like(goal),
            bounds=Bounds(0, np.append(fits.ravel(), np.ones(types + 2))),
            constraints=LinearConstraint(matrix.tocsr(), lb=[rule[2] for rule in rules]),
            options={"mip_rel_gap": 0},
        )
        chosen = np.round(found.x).astype(np.int64)
        some = np.flatnonzero(goal)
        rules.append((some, -goal[some].astype(np.int64), -int(goal @ chosen)))
    kind[:] = np.argmax(chosen[at], axis=0)
    return kind


def _rules(
    exits: _Exits, fits: Bools, at: Numbers, kinds: Numbers
) -> Iterator[tuple[Numbers, Numbers, int]]:
    """Columns, their factors, and what their sum is at least."""
    for c in np.flatnonzero(fits.any(axis=0)).tolist():
        able = np.flatnonzero(fits[:, c])
        yield at[able, c], np.ones_like(able), 1
        yield at[able, c], -np.ones_like(able), -1
        for t in able.tolist():
            yield np.array([kinds[t], at[t, c]]), np.array([1, -1]), 0
    able = np.flatnonzero(fits.any(axis=1))
    joined = {(t, u): exits.joined(t, u) for t in able.tolist() for u in able.tolist()}
    for p, (a, b) in enumerate(exits.pairs.tolist()):
        for near, far in ((a, b), (b, a)):
            for t in np.flatnonzero(fits[:, near]).tolist():
                others = np.flatnonzero(fits[:, far]).tolist()
                serve = [u for u in others if joined[(t, u) if near == a else (u, t)][0][p]]
                columns = np.array([*at[serve, far].tolist(), at[t, near]])
                yield columns, np.append(np.ones(len(serve), np.int64), -1), 0
                for u in serve if near == a else ():
                    for k in np.flatnonzero(joined[t, u][1][:, p]).tolist():
                        both = np.array([kinds[-1] + 1 + k, at[t, a], at[u, b]])
                        yield both, np.array([1, -1, -1]), -1
