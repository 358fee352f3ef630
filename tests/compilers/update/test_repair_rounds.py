"""What the report on a move says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilers.tables.build import Build
from compilers.update.compare import compare
from compilers.update.loss import PairLoss
from compilers.update.move_cells import UpdateFault
from compilers.update.move_report import MOVE_COUNTS, MOVE_PARTS, MoveReport
from compilers.update.programs import SwitchPrograms
from tests.compilers.update.updates import MINIMAL, build, grown


@pytest.fixture(scope="module")
def small() -> Build:
    return build("{family: polarfly, q: 3}")


@pytest.fixture(scope="module")
def large(small: Build) -> Build:
    return grown(small, "quadric", 1)


def test_a_report_counts_each_switch(small: Build, large: Build) -> None:
    calls: list[tuple[int, int]] = []
    report = MoveReport.of(large, small, progress=lambda done, count: calls.append((done, count)))
    assert calls[:17] == [(n, 17) for n in range(1, 18)]
    assert [switch["state"] for switch in report.switches].count("gone") == 4
    assert {switch["node"] for switch in report.switches} == {*large.wiring.names}
    programs = SwitchPrograms(report.update)
    tables = {each.node: each.counts() for each in compare(large, small).switches}
    for node, switch in enumerate(report.switches):
        assert switch.get("tables") == tables.get(switch["node"])
        assert ("tables" in switch) == (switch["state"] == "stays")
        for part, counts in programs.counts(node).items():
            assert switch[part] == {word: getattr(counts, word) for word in MOVE_COUNTS}
    names = ("other", *small.wiring.names[1:])
    renamed = replace(small, wiring=replace(small.wiring, names=names))
    found = MoveReport.of(large, renamed).switches
    assert ("other", "stays") in {(switch["node"], switch["state"]) for switch in found}
    back = MoveReport.of(small, large)
    assert [switch["state"] for switch in back.switches].count("new") == 4
    assert {switch["node"] for switch in back.switches} == {*large.wiring.names}


def test_a_report_says_what_is_lost(small: Build, large: Build) -> None:
    good = MoveReport.of(small, build(policy=("compact-valiant", "link")))
    assert repr(good) == f"<MoveReport lab to lab: {good.rounds} rounds, no pair loses a packet>"
    assert good.rounds == good.update.rounds
    assert good.as_dict()["lossless"]
    nothing = MoveReport.of(small, small)
    assert (nothing.rounds, nothing.update.rounds) == (0, 2)
    assert not any(s[p][c] for s in nothing.switches for p in MOVE_PARTS for c in MOVE_COUNTS)
    fault = UpdateFault(299, "0", "5", "is not delivered")
    wrong = replace(good, proof=replace(good.proof, faults=(fault,)))
    found = MoveReport.of(large, small).as_dict()
    assert not wrong.lossless
    assert "packets may be lost" in repr(wrong)
    listed = {"round": 300, "from": "0", "to": "5", "what": "is not delivered"}
    assert wrong.as_dict()["proof"]["faults"] == [listed]
    assert not found["lossless"]
    assert len(found["loss"]["switches"]) == len(found["loss"]["hosts"]) == 4
    none = PairLoss((), 0, (), 0, False, ())
    exposed = replace(none, exposed_pairs=3)
    assert [part.loses_nothing for part in (none, exposed, replace(exposed, is_repaired=True))] == [
        1,
        0,
        1,
    ]
    assert not replace(none, lost_pairs=1, is_repaired=True).loses_nothing


def test_a_report_walks_as_many_mixtures_as_it_is_asked_for(small: Build) -> None:
    other = build(policy=("compact-valiant", "link"))
    states = [MoveReport.of(small, other, mixtures=n).proof.states for n in (0, 3)]
    assert states[1] == states[0] + 3 * (MoveReport.of(small, other).update.last_round - 1)
    assert MoveReport.of(small, build(policy=MINIMAL)).rounds == 0
