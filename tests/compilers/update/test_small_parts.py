"""Parts of moves that a changed line of them shows: found by mutants that no other test saw."""

from dataclasses import replace

import numpy as np
import pytest

from compilers.tables.intermediate_form import no_route
from compilers.update.compare import SwitchChange, compare
from compilers.update.difference import CLASS_PARTS, TableDifference
from compilers.update.loss import missing_cables, pair_loss
from compilers.update.matching import SwitchMatching
from compilers.update.move_plan import plan
from compilers.update.update_proof import hops_between
from tests.compilers.proof.oracle import Oracle
from tests.compilers.proof.test_walks_elsewhere import built
from tests.compilers.routed import routed
from tests.compilers.update.test_repair_messages import STAR
from tests.compilers.update.updates import build, links_of

POLARFLY = {"family": "polarfly", "q": 3}


def test_rows_of_every_destination_are_compared_under_marks():
    """Marks of one build mean rows of it: where one leads elsewhere, rows are not kept in place."""
    build = built(POLARFLY, balance="spread")
    assert TableDifference.of(build, build).is_in_place
    routes = build.tables.routes
    for destination in (0, 5, 12):
        egress = np.array(routes.egress)
        egress[3, destination] = (egress[3, destination] + 1) % 3
        tables = replace(build.tables, routes=replace(routes, egress=egress))
        assert not TableDifference.of(build, replace(build, tables=tables)).is_in_place


def test_only_a_move_from_carriers_to_carriers_pauses():
    minimal, valiant = built(POLARFLY), built(POLARFLY, balance="valiant")
    assert not plan(minimal, valiant).pauses_intermediates
    assert not plan(valiant, minimal).pauses_intermediates
    hurt = build(dead=tuple(links_of(build())[:1]))
    assert plan(hurt, build(policy=("valiant", "none"))).last_round > 1
    assert not plan(hurt, build(policy=("valiant", "none"))).pauses_intermediates
    assert not plan(minimal, valiant).swaps_mac_meaning
    assert not plan(valiant, minimal).swaps_mac_meaning


def test_cables_of_fabrics_with_many_switches_are_told_apart():
    build = routed("polarfly", q=3)
    node = np.arange(build.tables.switches)
    assert missing_cables(build, build, node, node) == ()
    links = int(np.count_nonzero(build.wiring.far >= 0)) // 2
    for many in (1 << 15, 1 << 16):
        assert len(missing_cables(build, build, node, node + many)) == links


def test_a_build_without_hosts_keeps_none():
    """Every pair of hosts loses its packets on the way to it, and none on the way back."""
    with_hosts = built({"family": "polarfly", "q": 2})
    without = built({"family": "polarfly", "q": 2}, {"hosts_per_node": 0})
    assert pair_loss(plan(with_hosts, without)).lost_pairs == 7 * 6
    assert pair_loss(plan(without, with_hosts)).loses_nothing


@pytest.mark.parametrize("word", CLASS_PARTS)
def test_a_class_that_differs_in_one_part_is_counted(word):
    old = built(POLARFLY, balance="compact-valiant", protect="link")
    value = np.array(getattr(old.tables.classes, word))
    value[5, 0, 0] += 1
    tables = replace(old.tables, classes=replace(old.tables.classes, **{word: value}))
    (found,) = filter(None, compare(old, replace(old, tables=tables)).switches)
    assert found == SwitchChange(old.wiring.names[5], classes_changed=1)


def test_a_row_of_its_own_is_another_than_the_aggregates_that_does_the_same():
    old = build(STAR, dead=tuple(links_of(build(STAR))[:1]))
    routes = old.tables.routes
    egress, none = np.array(routes.egress), no_route(routes.egress)
    s, column, d = next(
        (s, column, int(d))
        for s in range(len(egress))
        for column, d in enumerate(routes.prefixes(s))
        if d < len(egress) and egress[s, column] == none
    )
    egress[s, column] = Oracle(old).number(s, d)
    tables = replace(old.tables, routes=replace(routes, egress=egress))
    changed, _ = TableDifference.of(old, replace(old, tables=tables)).compare_cells(np.array([d]))
    assert np.flatnonzero(changed).tolist() == [s]


def test_a_switch_that_had_no_hosts_is_no_destination_of_both():
    new = built(POLARFLY)
    endpoints = np.arange(13) != 5
    old = replace(new, topology=replace(new.topology, endpoints=endpoints))
    assert 5 not in SwitchMatching.of(old, new).destinations(old, new)


def test_links_between_switches_at_the_end_of_a_move_are_those_of_the_new_tables():
    hurt = build(dead=tuple(links_of(build())[:1]))
    update = plan(build(), hurt)
    found, oracle = hops_between(update, np.full(13, update.last_round, np.uint8)), Oracle(hurt)
    assert found.tolist() == [[oracle.minimal(s, d) for d in range(13)] for s in range(13)]
    assert found.max() > 2
