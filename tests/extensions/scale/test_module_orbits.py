"""Orbits and walks agree on what a module's death loses; the theorem of `module_orders`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compilers.proof.failures.failure_walks import walk_failures
from compilers.proof.proof_options import ProofOptions
from compilers.proof.verification import judge
from compilers.proof.walks.delivery import verify
from compilers.routing.choose import choices
from compilers.routing.minimal_routes import minimal_tables
from compilers.routing.plane_choices import with_plane_repairs
from compilers.wiring.shared_risk import modules_of
from extensions.scale.module_orbits import module_bounds
from tests.compilers.modular import modular


def by_chance(build, seed, aware=True):
    """The same fabric with each switch's links at other ports of those that it uses, by chance."""
    random = np.random.default_rng(seed)
    wiring, port = build.wiring, build.wiring.port.copy()
    for row, far in zip(port, wiring.far, strict=True):
        count = np.count_nonzero(far >= 0)
        row[:count] = random.permutation(row[:count])
    far_port = np.zeros_like(port)
    switch, link = np.nonzero(wiring.far >= 0)
    back = {(s, int(wiring.far[s, k])): port[s, k] for s, k in zip(switch, link, strict=True)}
    for s, k in zip(switch.tolist(), link.tolist(), strict=True):
        far_port[s, k] = back[int(wiring.far[s, k]), s]
    wiring = replace(wiring, port=port, far_port=far_port)
    forwarding = replace(build.forwarding, disjoint=False, protect="node")
    module = modules_of(wiring, build.hardware) if aware else None
    tables = minimal_tables(build.topology, wiring)
    tables = choices(tables, build.topology, wiring, forwarding, module=module)
    return replace(build, wiring=wiring, tables=tables, forwarding=forwarding)


@pytest.mark.parametrize(
    ("q", "modules", "aware"),
    [(4, 2, True), (4, 2, False), (4, 4, True), (5, 2, True), (5, 2, False)],
)
def test_orbits_say_what_walks_find(q, modules, aware):
    """On random placements: orbits that leave mean that nothing is lost, and no path is longer.

    And without alternates, whose ingress differs, nothing else is lossless.
    """
    lossless = proved = 0
    for seed in range(3):
        build = by_chance(modular(q, modules), seed, aware)
        bounds, report = module_bounds(build), walk_failures(build, "module")
        if bounds:
            assert not report.lost_pairs
            assert report.max_hops <= 1 + bounds.path_links
            assert report.stretch <= bounds.detour_links
        lossless += not report.lost_pairs
        proved += bounds is not None
    assert proved == lossless


@pytest.mark.parametrize(
    ("q", "balance"), [(4, "compact-valiant"), (5, "compact-valiant"), (5, "spread")]
)
def test_bounds_hold_for_alternates_and_marks(q, balance):
    build = modular(q, 2, balance=balance)
    bounds, report = module_bounds(build), walk_failures(build, "module")
    longest = verify(build).alternates.max_hops
    assert not report.lost_pairs
    assert report.max_hops <= longest - 1 + bounds.path_links
    assert report.stretch <= bounds.detour_links


def test_what_orbits_cannot_judge():
    assert module_bounds(modular(7, 4, placement="filled", protect="none")) is None
    build = modular(7, 4)
    classes = build.tables.classes
    protection = classes.protection.copy()
    protection[3, 9] = protection[3, 9, ::-1]  # to one whose path comes back, first
    assert module_bounds(build)
    own = protection.copy()
    own[3, 2] = build.wiring.port[3, 2]
    for wrong in (own,):
        edited = replace(build.tables, classes=replace(classes, protection=wrong))
        assert module_bounds(replace(build, tables=edited)) is None
    by_turn = replace(
        modular(7, 2), tables=with_plane_repairs(modular(7, 2).tables, modular(7, 2).wiring)
    )
    assert module_bounds(by_turn) is None
    assert walk_failures(by_turn, "module").lost_pairs


def test_verify_takes_orbits_and_says_so():
    build = modular(7, 4)
    (report,) = judge([build], (), ProofOptions(failures=["module"], method="local")).reports
    assert "module" in report.local.proved
    (case,) = report.failures
    assert (case.cases, case.lost_pairs, case.exact) == (228, 0, False)
    assert case.max_hops == 6
    assert report.proved["failures"] == ["module"]
    (walked,) = judge([build], (), ProofOptions(failures=["module"], method="walk")).reports
    assert walked.local is None
    assert walked.failures[0].max_hops == 5
