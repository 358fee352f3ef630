"""Parts of moves that a changed line of them shows: found by mutants that no other test saw."""

from dataclasses import replace

import numpy as np

from compilers.update.compare import SwitchChange
from compilers.update.difference import TableDifference
from compilers.update.loss import cables_apart
from compilers.update.move_plan import plan
from compilers.update.update_proof import _at_nodes
from tests.compilers.proof.test_walks_elsewhere import built
from tests.compilers.routed import routed

POLARFLY = {"family": "polarfly", "q": 3}


def test_a_switch_changes_where_anything_does():
    assert not SwitchChange("a")
    assert SwitchChange("a", classes_removed=1)
    assert {*SwitchChange("a").counts().values()} == {0}


def test_rows_of_every_destination_are_compared_under_marks():
    """Marks of one build mean rows of it: where one leads elsewhere, rows are not kept in place."""
    build = built(POLARFLY, balance="spread")
    assert TableDifference.of(build, build).in_place
    routes = build.tables.routes
    for destination in (0, 5, 12):
        egress = np.array(routes.egress)
        egress[3, destination] = (egress[3, destination] + 1) % 3
        tables = replace(build.tables, routes=replace(routes, egress=egress))
        assert not TableDifference.of(build, replace(build, tables=tables)).in_place


def test_only_a_move_from_carriers_to_carriers_pauses():
    minimal, valiant = built(POLARFLY), built(POLARFLY, balance="valiant")
    assert not plan(minimal, valiant).pauses
    assert not plan(valiant, minimal).pauses
    assert plan(minimal, valiant).swaps == plan(valiant, minimal).swaps == False  # noqa: E712


def test_what_is_dropped_goes_nowhere():
    step = np.array([[-1, 0]], np.int32)
    found = _at_nodes(step, np.array([0]), np.array([0]), 1)
    assert found.tolist() == [[1, 0], [1, 1]]


def test_cables_of_fabrics_with_many_switches_are_told_apart():
    build = routed("polarfly", q=3)
    node = np.arange(build.tables.switches)
    assert cables_apart(build, build, node, node) == ()
    links = int(np.count_nonzero(build.wiring.far >= 0)) // 2
    for many in (1 << 15, 1 << 16):
        assert len(cables_apart(build, build, node, node + many)) == links
