"""Moves to, from and between builds whose packets carry intermediates or are shared at every hop.

No state on the way loses a packet, by what the messages alone say.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from compilers.tables.build import Build
from compilers.update.move_plan import plan
from compilers.update.update_proof import prove
from tests.compilers.update.makers import walked
from tests.compilers.update.updates import build, grown, links_of, unchecked

Policy = tuple[str, str]
VALIANT, PROTECTED, NODE = ("valiant", "none"), ("valiant", "link"), ("valiant", "node")
ALTERNATES, MARKS = ("compact-valiant", "link"), ("spread", "link")
SMALL = "{family: polarfly, q: 2}"
POLARFLY, GRID = "{family: polarfly, q: 3}", "{family: hyperx, sides: 3x3}"
SHARED, SHARED_PROTECTED = ("ecmp, transit: ecmp", "none"), ("ecmp, transit: ecmp", "link")
ECMP = ("ecmp", "link")


def dead(policy: Policy, count: int = 2, topology: str = POLARFLY) -> Build:
    return build(topology, policy, tuple(links_of(build(topology))[::7][:count]))


MOVES = {
    "source checks begin with intermediates": lambda: (
        unchecked(build(SMALL, ALTERNATES)),
        build(SMALL, PROTECTED),
    ),
    "minimal to intermediates": lambda: (build(SMALL), build(SMALL, VALIANT)),
    "alternates to intermediates": lambda: (build(SMALL, ALTERNATES), build(SMALL, NODE)),
    "protection with intermediates": lambda: (build(SMALL, VALIANT), build(SMALL, PROTECTED)),
    "links die with intermediates": lambda: (build(SMALL, PROTECTED), dead(PROTECTED, 1, SMALL)),
    "a rack more with intermediates": lambda: (
        build(SMALL, PROTECTED),
        grown(build(SMALL, PROTECTED), "fan", 1),
    ),
    "the first hop to every hop": lambda: (build(GRID, ECMP), build(GRID, SHARED_PROTECTED)),
    "every hop to intermediates": lambda: (build(GRID, SHARED), build(GRID, VALIANT)),
    "links die with every hop": lambda: (
        build(GRID, SHARED_PROTECTED),
        dead(SHARED_PROTECTED, 3, GRID),
    ),
}


# A move and the one the other way round have different generations.
@pytest.mark.parametrize(("name", "generation"), [(name, n % 2) for n, name in enumerate(MOVES)])
def test_every_mixture_delivers_there_and_back(name: str, generation: int) -> None:
    there = MOVES[name]()
    for pair in (there, there[::-1]):
        update = plan(*pair)
        proof = prove(update)
        assert not proof.faults
        moving, lost, longest = walked(update, 1, generation)
        assert not lost, lost[:5]
        # An intermediate may lie behind the link that a packet came by.
        assert not moving.back or "valiant" in (pair[0].balance, pair[1].balance)
        assert longest <= 2 * proof.hop_bound
        stay = np.flatnonzero(update.nodes.new_vertex >= 0).tolist()
        assert all(moving.switches[n] == moving.new[n] for n in stay)
        if pair is not there:
            continue  # one of the two ways is taken back
        for round in range(update.last_round, -1, -1):
            for node in Random(round).sample(moving.nodes, len(moving.nodes)):  # noqa: S311
                moving.retreat(node)
                if node % 6 == 1:
                    assert not moving.worst()[1]
        assert moving.switches == moving.old


def test_packets_that_carry_intermediates_while_their_rows_change_would_be_lost() -> None:
    """A quadric's link, which is in no triangle, dies: its ends go by who went by them."""
    whole = build(SMALL, VALIANT)
    near = [set(row[row >= 0].tolist()) for row in whole.wiring.far]
    names = whole.wiring.names
    ends = next((u, v) for u in range(7) for v in sorted(near[u]) if not near[u] & near[v])
    hurt = build(SMALL, VALIANT, (tuple(names[v] for v in ends),))
    update = plan(whole, hurt)
    assert update.pauses_intermediates
    assert not walked(update, 0)[1]
    assert any(walked(replace(update, pauses_intermediates=False), seed)[1] for seed in range(3))


@pytest.mark.parametrize("pair", [(VALIANT, MARKS), (MARKS, VALIANT)])
def test_marks_and_intermediates_are_never_in_one_fabric(pair: tuple[Policy, Policy]) -> None:
    """Both are MAC addresses, and one of them is the same."""
    update = plan(*(build(POLARFLY, policy) for policy in pair))
    assert update.swaps_mac_meaning
    assert not walked(update, 0)[1]
    if pair[0] == VALIANT:
        with pytest.raises(AssertionError, match="two rows of one priority match"):
            walked(replace(update, swaps_mac_meaning=False), 0)
