"""Cassettes of given types: no other assignment of them has fewer types, trunks or permutations."""

import random
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest

from compilers.cabling.panel_plan import panel_plan
from compilers.cabling.shuffle import Shuffle, types_of
from compilers.cabling.stock import from_stock
from compilers.spec.fabric_file import load_fabric
from compilers.wiring.placed_fabric import place_fabric
from inventory.panel_types import CassetteType
from tests.compilers.cabling.test_panel_plan import led, planned, spec, wanted


def with_types(types, **given):
    found = spec(**given)
    found["inventory"]["panels"]["types"] = {name: {"front": list(f)} for name, f in types.items()}
    return found


def plan_of(given):
    placed = place_fabric(load_fabric(given))
    return panel_plan(placed.topology, placed.wiring, placed.hardware())


def words(front):
    """By front port and lane T or F, and two numbers."""
    return {
        (f, k): (word[0], *map(int, word[1:].split(".")))
        for f, text in enumerate(front)
        for k, word in enumerate(text.split())
        if word != "-"
    }


def realised(plan, fronts):
    """Trunks and their permutations if cassette i has the i-th front, None where no trunks serve.

    Reads each link by itself: the plugs at both ends have to be those of one trunk.
    """
    known = [words(front) for front in fronts]
    trunks, other = {}, {}
    for panel, front, lane in zip(
        *(x.tolist() for x in (plan.panel, plan.front, plan.lane)), strict=True
    ):
        (a, b), (here, there) = panel, zip(front, lane, strict=True)
        one, two = known[a].get(here), known[b].get(there)
        inside = [("F", f + 1, k + 1) for f, k in (there, here)]
        if not (one and two) or (a == b and [one, two] != inside):
            return None
        if a == b:
            continue
        if "F" in (one[0], two[0]):
            return None
        (s, i), (t, j) = sorted([((a, one[1]), one[2]), ((b, two[1]), two[2])])
        if other.setdefault(s, t) != t or other.setdefault(t, s) != s:
            return None
        trunks.setdefault((s, t), []).append((i, j))
    kinds = set()
    for joined in trunks.values():
        if all(i == j for i, j in joined):
            kinds.add("straight")
        elif all(i + j == len(joined) + 1 for i, j in joined):
            kinds.add("reversed")
        else:
            return None
    return len(trunks), len(kinds)


def best(plan, stock, own=()):
    """Of all assignments that with the fewest types of `own`, types, trunks and permutations."""
    fronts = [*stock, *(f for f in own if f not in stock)]
    fit = [[t for t, f in enumerate(fronts) if alone(plan, c, f)] for c in range(len(plan.home))]
    found = []
    for chosen in product(*fit):
        if counts := realised(plan, [fronts[t] for t in chosen]):
            missing = sum(t >= len(stock) for t in {*chosen})
            found.append((missing, len({*chosen}), *counts, chosen))
    return min(found, default=None)


def alone(plan, cassette, front):
    """Whether the links of the cassette have words at all: fewer to try."""
    at = np.flatnonzero(plan.panel.ravel() == cassette)
    plugs = zip(plan.front.ravel()[at].tolist(), plan.lane.ravel()[at].tolist(), strict=True)
    return {*plugs} <= {*words(front)}


def changed(front, dice):
    """The same cassette with other trunk ports or positions; now and then with a fault."""
    of = [
        [(w[0], *map(int, w[1:].split("."))) if w != "-" else None for w in text.split()]
        for text in front
    ]
    behind = sorted({w[1] for row in of for w in row if w and w[0] == "T"})
    places = {i: max(w[2] for row in of for w in row if w and w[:2] == ("T", i)) for i in behind}
    shuffled = dict(zip(behind, dice.sample(behind, len(behind)), strict=True))
    how = dice.choice(["ports", "mirror", "split", "part", "merge", "swap", "dark"])

    def moved(word):
        if not word or word[0] == "F":
            return None if how == "dark" else word
        _, i, k = word
        if how == "ports":
            return "T", shuffled[i], k
        if how == "mirror":
            return "T", i, places[i] + 1 - k
        if how == "split" and k > 1:
            return "T", i + len(behind), k - 1
        if how == "part" and k > 1:
            return "T", i + len(behind), k
        if how == "merge" and i == behind[-1]:
            return "T", behind[0], k + places[behind[0]]
        return word

    found = [[moved(word) for word in row] for row in of]
    if how == "swap":
        spots = [(f, k) for f, row in enumerate(found) for k, w in enumerate(row) if w]
        (a, b), (c, d) = dice.sample(spots, 2)
        if found[a][b][0] == found[c][d][0] == "T":
            found[a][b], found[c][d] = found[c][d], found[a][b]
    return tuple(" ".join(f"{w[0]}{w[1]}.{w[2]}" if w else "-" for w in row) for row in found)


def ring(fronts):
    """Cassettes with so many switches, whose k-th lanes lead to the k-th cassette behind theirs.

    The last lanes of the first two switches of a cassette lead to each other.
    """
    count = len(fronts)
    links = [
        ((c, f, k - 1), ((c + k) % count, f, count - k - 1))
        for c, k in product(range(count), range(1, count))
        for f in range(max(fronts))
        if c < (c + k) % count and f < min(fronts[c], fronts[(c + k) % count])
    ]
    links += [((c, 0, count - 1), (c, 1, count - 1)) for c in range(count) if fronts[c] > 1]
    panel, front, lane = np.array(links).transpose(2, 0, 1)
    between = panel[:, 0] != panel[:, 1]
    ends, first, found = np.unique(panel[between], axis=0, return_index=True, return_inverse=True)
    sockets, trunk = lane[between][first], np.full(len(links), -1)
    trunk[between] = found.ravel()
    table = np.full((count, max(fronts) * count), -1)
    for near, far in ((0, 1), (1, 0)):
        c, f, k = (x[:, near] for x in (panel, front, lane))
        inside = front[:, far] * count + lane[:, far]
        table[c, f * count + k] = np.where(between, table.shape[1] + k * 12 + f, inside)
    kind, types = types_of(table, count, 12)
    named = tuple((f"cassette-{n}", rows) for n, rows in enumerate(types, 1))
    return Shuffle(
        *(np.arange(count), panel, front, lane, panel * 0, trunk, front),
        *(ends, sockets, np.zeros(len(ends), bool), kind, named, 1),
    )


@pytest.mark.parametrize("seed", range(120))
def test_the_choice_is_the_first_of_the_best(seed):
    dice = random.Random(seed)  # noqa: S311
    plain = ring([dice.choice([1, 2, 3]) for _ in range(3)])
    whole = ring([3] * len(plain.home)).types[0][1]
    made = [*(rows for _, rows in plain.types), whole, whole[:2], whole[:1]]
    stock = [dice.choice(made) for _ in range(dice.choice([0, 1, 2]))]
    stock += [changed(dice.choice([whole, *made]), dice) for _ in range(dice.choice([1, 2, 3]))]
    dice.shuffle(stock)
    stock = list(dict.fromkeys(f for f in stock if not CassetteType(front=f).fault()))
    given = [(f"t{n}", front) for n, front in enumerate(stock)]
    found = from_stock(plain, given, np.zeros(len(plain.home), int), 12)
    least = best(plain, stock, [rows for _, rows in plain.types])
    fronts = [found.types[kind][1] for kind in found.kind.tolist()]
    all_fronts = [*stock, *(rows for _, rows in plain.types if rows not in stock)]
    assert [*map(all_fronts.index, fronts)] == [*least[-1]]
    assert (len(found.ends), len({*found.turned.tolist()})) == least[2:4]


def test_trunks_of_one_kind_are_preferred():
    """Quadrics with mirrored positions would need reversed trunks to the fans."""
    quadrics, fan = (rows for _, rows in planned(q=3).types)
    mirrored = tuple(
        " ".join(f"T{w[1]}.{5 - int(w[3])}" for w in text.split()) for text in quadrics
    )
    stock = {"mirrored": mirrored, "straight": quadrics, "fan": fan}
    plan = plan_of(with_types(stock, q=3))
    assert [name for name, _ in plan.types] == ["straight", "fan"]
    assert not plan.turned.any()
    del stock["straight"]
    plan = plan_of(with_types(stock, q=3))
    assert led(plan) == wanted(plan)
    assert np.bincount(plan.turned).tolist() == [3, 3]


def test_of_several_trunks_those_of_the_stock_are_taken():
    """Trunks of 24 fibres are fewer; through types that are made for 12 they are as many."""
    sizes = {"q": 7, "trunk": "mpo12 mpo24"}
    assert planned(**sizes).trunk_name == "mpo24"
    for trunk, ends in ("mpo12", 35), ("mpo24", 28):
        stock = {f"m{n}": rows for n, (_, rows) in enumerate(planned(q=7, trunk=trunk).types)}
        plan = plan_of(with_types(stock, **sizes))
        assert (plan.trunk_name, len(plan.ends)) == (trunk, ends)
        assert [name for name, _ in plan.types] == [*stock]
        assert led(plan) == wanted(plan)


def both(one, other):
    """Two fabrics of which the second is an expansion that joins nothing to the first."""
    count, trunks = len(one.home), len(one.ends)
    behind = np.where(other.trunk < 0, -1, other.trunk + trunks)
    added = {"panel": other.panel + count, "trunk": behind, "ends": other.ends + count}
    added |= {"kind": other.kind + len(one.types)}
    joined = {
        f.name: np.concatenate((getattr(one, f.name), added.get(f.name, getattr(other, f.name))))
        for f in fields(one)
        if f.name not in ("types", "least")
    }
    names = ((f"cassette-{n}", rows) for n, (_, rows) in enumerate(one.types + other.types, 1))
    return replace(one, **joined, types=tuple(names))


@pytest.mark.parametrize(("sizes", "kinds"), [((2, 3), ["t0", "t1"]), ((3, 2), ["t1"])])
def test_an_expansion_is_chosen_after_what_is_installed(sizes, kinds):
    """Cassettes of two ports in front may have three, as one type does for both stages."""
    installed, added = (ring([size] * 3) for size in sizes)
    whole = ring([3] * 3).types[0][1]
    stock = [("t0", ring([2] * 3).types[0][1]), ("t1", whole)]
    found = from_stock(both(installed, added), stock, np.repeat([0, 1], 3), 12)
    alone = from_stock(installed, stock, np.zeros(3, int), 12)
    chosen = [found.types[kind][0] for kind in found.kind.tolist()]
    assert chosen[:3] == [alone.types[kind][0] for kind in alone.kind.tolist()]
    assert [*dict.fromkeys(chosen)] == kinds


CASES = [
    {"q": 2},
    {"q": 3},
    {"family": "pn", "q": 2},
    {"family": "slimfly", "q": 3, "rack": 3},
    {"family": "polarstar", "q": 2, "supernode": "complete", "degree": 1, "rack": 2},
]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_links_lead_where_they_are_planned_through_given_types(case, seed):
    plain, dice = planned(**case), random.Random(seed)  # noqa: S311
    made = [rows for _, rows in plain.types]
    stock = {f"t{n}": changed(dice.choice(made), dice) for n in range(dice.choice([1, 2, 3]))}
    stock = {name: f for name, f in stock.items() if not CassetteType(front=f).fault()}
    if seed:
        stock |= {f"m{n}": rows for n, rows in enumerate(made)}
    plan = plan_of(with_types(stock, **case))
    assert led(plan) == wanted(plan)
    unknown = [*plan.unknown_types()]
    assert len(unknown) == len([name for name, _ in plan.types if name not in stock])
    assert not (seed and unknown)
    assert plan.unused_types == [name for name in stock if name not in dict(plan.types)]
