"""Moves to, from and between builds that mark packets: no state on the way loses one."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from compilers.tables.build import Build
from compilers.update.loss import loss
from compilers.update.move_plan import plan
from compilers.update.order import levels
from compilers.update.slots import counts
from compilers.update.update_proof import Cells, prove
from tests.compilers.routing.makers import paths_by_hand
from tests.compilers.update.makers import replugged, walked
from tests.compilers.update.updates import MINIMAL, build

MARKS, PROTECTED = ("spread", "none"), ("spread", "link")
ALTERNATES = ("compact-valiant", "link")
Policy = tuple[str, str]


def fabric(policy: Policy, q: int = 3) -> Build:
    return build(f"{{family: polarfly, q: {q}}}", policy)


def tree(policy: Policy) -> Build:
    return build("{family: oft, q: 2}", policy)


@cache
def moved(policy: Policy) -> Build:
    """A cable of switch 5 is in another port of it."""
    return replugged(fabric(policy), 5, 1)


MOVES = {
    "minimal to marks": (fabric, MINIMAL, MARKS),
    "alternates to marks": (fabric, ALTERNATES, PROTECTED),
    "marks to minimal": (fabric, PROTECTED, MINIMAL),
    "marks to alternates": (fabric, MARKS, ALTERNATES),
    "a cable moved": (moved, MARKS, MARKS),
    "a cable moved, protected": (moved, PROTECTED, PROTECTED),
}
TREES = {
    "minimal to marks": (MINIMAL, MARKS),
    "all shortest paths to marks": (("ecmp", "link"), PROTECTED),
    "marks to alternates": (PROTECTED, ALTERNATES),
}


def ends(name: str) -> tuple[Build, Build]:
    made, old, new = MOVES[name]
    return fabric(old), made(new)


@pytest.mark.parametrize("generation", [0, 1])
@pytest.mark.parametrize("name", MOVES)
def test_every_mixture_delivers_there_and_back(name: str, generation: int) -> None:
    update = plan(*ends(name))
    proof = prove(update)
    assert not update.in_place
    assert not proof.faults
    moving, lost, longest = walked(update, 1, generation)
    assert not lost
    assert not moving.back
    assert 2 <= longest <= proof.bound + 2
    assert moving.switches == moving.new
    for round in range(update.last, -1, -1):
        for node in Random(round).sample(moving.nodes, 13):  # noqa: S311
            moving.retreat(node)
            if node % 6 == 1:
                assert not moving.worst()[1]
    assert moving.switches == moving.old


@pytest.mark.parametrize("name", TREES)
def test_an_oft_too_whose_leaves_get_no_marked_packets(name: str) -> None:
    update = plan(*(tree(policy) for policy in TREES[name]))
    assert not prove(update).faults
    moving, lost, _ = walked(update, 1)
    assert not lost
    assert not moving.back
    assert moving.switches == moving.new


@pytest.mark.long
@pytest.mark.parametrize("q", [4, 5])
@pytest.mark.parametrize(
    "pair", [(MINIMAL, PROTECTED), (PROTECTED, ALTERNATES), (MARKS, PROTECTED)]
)
def test_larger_ones_too(pair: tuple[Policy, Policy], q: int) -> None:
    update = plan(*(fabric(policy, q) for policy in pair))
    assert not prove(update).faults
    assert not walked(update, q)[1]


def test_the_proof_finds_packets_that_come_back_to_who_spread_them() -> None:
    update = plan(*ends("marks to alternates"))
    (found,) = levels(update.new, update.difference.fibs, update.difference.compare)
    cells = Cells.of(update, found, np.ones(13, np.bool_))
    standing = np.zeros(13, np.uint8)
    assert not any(where.any() for where in cells.walk(standing)[1].values())
    near = update.new.wiring.far[3, 0]  # a neighbour of 3, to which 3 would not spread
    cells.spreads_before[near, 3] = True
    _, wrong = cells.walk(standing)
    (told,) = (what for what, where in wrong.items() if where.any())
    assert told == "is sent back by where it was spread to"


def test_what_stays_changes_in_place() -> None:
    """With marks the same rows stay where they are; another cable, or marks that come, do not."""
    for old, new, place in (
        (fabric(PROTECTED), fabric(PROTECTED), True),
        (fabric(MARKS), fabric(PROTECTED), True),
        (fabric(PROTECTED), moved(PROTECTED), False),
        (fabric(ALTERNATES), fabric(PROTECTED), False),
    ):
        update = plan(old, new)
        assert update.in_place == place
        moving, lost, _ = walked(update, 5)
        assert not lost
        assert moving.switches == moving.new
        if old is new:
            assert not any(counts(moving.slots[0]).values())


def test_pairs_whose_packets_may_be_spread_over_a_cable_are_told() -> None:
    """Every path of every pair, by hand, that takes the cable which is moved."""
    old, new = ends("a cable moved")
    link = {5, int(old.wiring.far[5, 1])}
    exposed = sum(
        any({*hop} == link for path in paths for hop in pairwise(path))
        for paths in paths_by_hand("polarfly", 3).values()
    )
    found = loss(plan(old, new))
    assert found.exposed == exposed
    assert not found.none
    assert loss(plan(*ends("a cable moved, protected"))).none
