"""Repairs and moves of switches of every profile end in what the encoder says of the new tables."""

from dataclasses import replace

import numpy as np
import pytest

from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.profiles import PROFILES
from compilers.update.move_plan import plan
from compilers.update.programs import SwitchPrograms
from compilers.update.repair_messages import repair_messages
from compilers.update.repair_rounds import RepairRounds
from compilers.update.slots import messages
from tests.compilers.routed import routed
from tests.compilers.targets.openflow_switch import Switch

SPREAD = replace(routed(q=3, spread=True, protect="link", hosts=2), identity="0123456789abcdef")
MINIMAL = replace(routed(q=3, hosts=2), identity="1123456789abcdef")
SWITCHES = SPREAD.tables.switches
INTACT = IntactBuild.of(SPREAD)
SHAPES = [*list(PROFILES.values())[1:], replace(PROFILES["few-buckets"], tables=1)]


def without(*links):
    far = SPREAD.wiring.far
    dead = np.zeros(far.shape, np.bool_)
    for u, k in links:
        dead[u, k] = dead[far[u, k], np.flatnonzero(far[far[u, k]] == u)] = True
    return repair_tables(INTACT, dead, np.zeros(SWITCHES, np.bool_))


def loaded(encoder, vertex, generation=0):
    program = encoder.program(vertex, generation)
    return Switch().apply((*program.groups, *program.flows))


@pytest.mark.parametrize("profile", SHAPES, ids=lambda p: f"{p.name}, {p.tables} tables")
@pytest.mark.parametrize("link", [(0, 0), (5, 1)])
def test_a_repair_and_its_undoing(profile, link):
    encoder = Encoder(SPREAD, [profile] * SWITCHES)
    whole, hurt = without(), without(link)
    for old, new in ((whole, hurt), (hurt, whole)):
        before, after = (encoder.with_tables(each.tables) for each in (old, new))
        switches = [loaded(before, v) for v in range(SWITCHES)]
        change = RepairRounds.of_repairs(old, new)
        for sent in repair_messages(before, new.tables, change, np.zeros(SWITCHES, np.int64)):
            for vertex, parts in sent.items():
                switches[vertex].apply([np.frombuffer(b"".join(parts), np.uint8)])
        assert switches == [loaded(after, v) for v in range(SWITCHES)]


@pytest.mark.parametrize("profile", SHAPES, ids=lambda p: f"{p.name}, {p.tables} tables")
@pytest.mark.parametrize(("old", "new"), [(MINIMAL, SPREAD), (SPREAD, MINIMAL)])
def test_a_move(profile, old, new):
    update = plan(old, new)
    programs = SwitchPrograms(update, discovers=True)
    programs.slots(0)  # of what its node type says: what a switch shows later counts
    for node in range(SWITCHES):
        programs.restrict(node, profile)
        assert programs.profile(node).abilities == profile.abilities
    before, after = (
        Encoder(build, [profile] * SWITCHES).with_tables(build.tables, discovers=True)
        for build in (old, new)
    )
    for node in range(0, SWITCHES, 3):
        was, now = (int(side[node]) for side in (update.nodes.old_vertex, update.nodes.new_vertex))
        slots, switch = programs.slots(node), loaded(before, was)
        for number in range(update.last_round + 1):
            switch.apply(messages(slots, number))
        assert switch == loaded(after, now, programs.generation_after(0))
