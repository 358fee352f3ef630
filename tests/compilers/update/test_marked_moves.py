"""Moves to, from and between builds that mark packets: no state on the way loses one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from compilers.forwarding.walks import minimal_hops
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.update.loss import pair_loss
from compilers.update.move_cells import MoveCells
from compilers.update.move_plan import Update, plan
from compilers.update.order import levels
from compilers.update.slots import change_counts
from compilers.update.update_proof import prove
from tests.compilers.routing.makers import paths_by_hand
from tests.compilers.update.makers import replugged, walked
from tests.compilers.update.updates import MINIMAL, Moving, build, named, unchecked

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
    "marks to alternates": (fabric, MARKS, ALTERNATES),
    "a cable moved": (moved, MARKS, MARKS),
    "a cable moved, protected": (moved, PROTECTED, PROTECTED),
}
STAR = "{family: polarstar, q: 2, supernode: inductive-quad, degree: 0}"
LOST_WHEN_SPREAD = "is lost on a way that it is spread over"


def random_graph(seed: int) -> str:
    return f"{{family: jellyfish, nodes: 20, degree: 6, seed: {seed}}}"


def ends(name: str) -> tuple[Build, Build]:
    made, old, new = MOVES[name]
    return fabric(old), made(new)


@pytest.mark.parametrize(
    ("name", "generation"), [(name, number % 2) for number, name in enumerate(MOVES)]
)
def test_every_mixture_delivers_there_and_back(name: str, generation: int) -> None:
    update = plan(*ends(name))
    proof = prove(update)
    assert not update.is_in_place
    assert not proof.faults
    moving, lost, longest = walked(update, 1, generation)
    assert not lost
    assert not moving.back
    assert 2 <= longest <= proof.hop_bound + 2
    assert moving.switches == moving.new
    for round in range(update.last_round, -1, -1):
        for node in Random(round).sample(moving.nodes, 13):  # noqa: S311
            moving.retreat(node)
            if node % 6 == 1:
                assert not moving.worst()[1]
    assert moving.switches == moving.old


def test_an_oft_too_whose_leaves_get_no_marked_packets() -> None:
    update = plan(tree(("ecmp", "link")), tree(PROTECTED))
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


@pytest.mark.parametrize(
    ("topology", "old", "new"),
    [
        (random_graph(1), PROTECTED, MINIMAL),
        (STAR, MARKS, MINIMAL),
    ],
)
def test_packets_that_bounce_off_who_spread_them_arrive(
    topology: str, old: Policy, new: Policy
) -> None:
    """Without PolarFly's algebra the next hop may be the switch that spread the packet."""
    update = plan(unchecked(build(topology, old)), unchecked(build(topology, new)))
    assert not prove(update).faults
    moving, lost, _ = walked(update, 1)
    assert not lost
    assert bool(moving.back) == (MARKS in (old, new))  # with protection they bounce elsewhere
    assert moving.switches == moving.new


def cells_of(update: Update) -> MoveCells:
    (block,) = levels(update.new, update.difference.fibs, update.difference.compare_cells)
    return MoveCells.of(update, block, np.ones(len(block.destinations), np.bool_))


def told(cells: MoveCells, carried_out: np.ndarray) -> set[str]:
    return {what for what, where in cells.walk(carried_out)[1].items() if where.any()}


def test_the_proof_denies_rows_that_change_too_early() -> None:
    """All rows change in round 1; half of the switches have carried it out."""
    graph = random_graph(1)
    update = plan(unchecked(build(graph, PROTECTED)), unchecked(build(graph, MINIMAL)))
    update = replace(update, row_round=np.minimum(update.row_round, 1))
    halfway = np.arange(20, dtype=np.uint8) % 2
    moving = Moving(update)
    for node in moving.nodes:
        for round in range(int(halfway[node]) + 1):
            moving.advance(node, round)
    assert moving.worst()[1]
    cells = cells_of(update)
    early = replace(cells, level=np.minimum(cells.level, 1))
    assert "meets an old row behind a new one" in told(early, halfway)
    assert not told(cells, halfway)


def test_the_proof_denies_a_switch_without_a_row_that_packets_are_spread_to() -> None:
    """No switch's next hop leads to n0's missing row: marked packets alone get there."""
    graph = random_graph(1)
    old, new = build(graph, MARKS), build(graph, MINIMAL)
    hops = minimal_hops(plan(old, new).difference.fib, np.arange(20))
    home = int(hops[0].argmax())  # nobody goes to the farthest switch over n0
    egress = np.array(old.tables.routes.egress)
    egress[0, home] = no_route(egress)
    routes = replace(old.tables.routes, egress=egress)
    update = plan(named(replace(old, tables=replace(old.tables, routes=routes)), "8" * 16), new)
    assert told(cells_of(update), np.zeros(20, np.uint8)) == {LOST_WHEN_SPREAD}
    assert prove(update).faults
    assert any(f"to {home}: dropped at 0" in lost for lost in Moving(update).worst()[1])


def test_the_proof_follows_bounces() -> None:
    """To a switch that drops packets: more are lost than those that are spread to it."""
    graph = random_graph(1)
    cells = cells_of(plan(build(graph, PROTECTED), build(graph, MINIMAL)))
    standing, dropping = np.zeros(20, np.uint8), 19  # which is no next hop on a path to 0
    cells.next_before[:, dropping, 0] = 20
    cells.has_path[dropping, 0] = False
    assert told(cells, standing) == {LOST_WHEN_SPREAD}
    spread = cells.walk(standing)[1][LOST_WHEN_SPREAD].sum()
    cells.bounces_before[0, :20, 0] = dropping
    assert told(cells, standing) == {LOST_WHEN_SPREAD}
    assert cells.walk(standing)[1][LOST_WHEN_SPREAD].sum() > spread


def test_what_stays_changes_in_place() -> None:
    """With marks the same rows stay where they are; another cable, or marks that come, do not."""
    for old, new, place in (
        (fabric(PROTECTED), fabric(PROTECTED), True),
        (fabric(MARKS), fabric(PROTECTED), True),
        (fabric(PROTECTED), moved(PROTECTED), False),
        (fabric(ALTERNATES), fabric(PROTECTED), False),
    ):
        update = plan(old, new)
        assert update.is_in_place == place
        moving, lost, _ = walked(update, 5)
        assert not lost
        assert moving.switches == moving.new
        if old is new:
            assert not any(change_counts(moving.slots[0]).values())


def test_pairs_whose_packets_may_be_spread_over_a_cable_are_told() -> None:
    """Every path of every pair, by hand, that takes the cable which is moved."""
    old, new = ends("a cable moved")
    link = {5, int(old.wiring.far[5, 1])}
    exposed = sum(
        any({*hop} == link for path in paths for hop in pairwise(path))
        for paths in paths_by_hand("polarfly", 3).values()
    )
    found = pair_loss(plan(old, new))
    assert found.exposed_pairs == exposed
    assert not found.loses_nothing
    assert pair_loss(plan(*ends("a cable moved, protected"))).loses_nothing
