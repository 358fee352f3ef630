"""The levels of cells of a repair, by hand, and what the report on a move says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compilers.routing.link_repair import Intact, repaired
from compilers.tables.build import Build
from compilers.update import repair_rounds
from compilers.update.compare import compare
from compilers.update.loss import PairLoss
from compilers.update.move_report import MOVE_COUNTS, MOVE_PARTS, MoveReport
from compilers.update.programs import SwitchPrograms
from compilers.update.repair_rounds import CUT_OFF, RepairRounds, _Cells
from compilers.update.update_proof import UpdateFault
from tests.compilers.update.updates import MINIMAL, build, grown


def cells(ahead: list[int], **more: list[int]) -> _Cells:
    """Cells with rows of their own, under no aggregate; `ahead` counts none as their number."""
    n = len(ahead)
    given = {"row": [*range(n)], "whole": [-1] * n, "shared": [0] * n} | more
    own, drops = (np.array(given.pop(w, [v] * n), bool) for w, v in (("own", 1), ("drops", 0)))
    numbers = {word: np.array(value, np.int64) for word, value in given.items()}
    return _Cells(
        **numbers,
        own=own,
        drops=drops,
        ahead=np.array(ahead, np.int64),
        entered=np.zeros((n, 2), np.int64),
    )


def levels(found: _Cells, gone: tuple[int, ...] = ()) -> list[int]:
    rows = np.zeros(int(found.row.max()) + 1, bool)
    rows[list(gone)] = True
    return found.levels(rows).tolist()


def test_a_cell_comes_after_those_that_its_packets_meet() -> None:
    assert levels(cells([1, 2, 3])) == [3, 2, 1]
    assert levels(cells([2, 2, 3])) == [2, 2, 1]
    assert levels(cells([3, 0, 0])) == [1, 2, 2]
    assert levels(cells([299, *[300] * 299])) == [2, *[1] * 299]


def test_what_is_cut_off_comes_behind_all_others() -> None:
    """With those whose packets come there, each after what it meets."""
    assert levels(cells([1, 2, 3], drops=[0, 0, 1])) == [3, 2, 1]
    assert levels(cells([1, 2, 5, 4, 5], drops=[0, 0, 1, 0, 0])) == [5, 4, 3, 2, 1]


def test_rows_of_aggregates_and_those_that_they_replace_come_together() -> None:
    """Row 1 is an aggregate's. Cells 0 and 4 go by it, cell 1 by its own row, which is gone; cell 2
    keeps its own, and so does cell 3, which cell 0 meets.
    """
    under = {
        "row": [1, 0, 2, 3, 1],
        "own": [0, 1, 1, 1, 0],
        "whole": [1, 1, 1, -1, 1],
    }
    assert levels(cells([3, 5, 5, 5, 5], **under), gone=(0,)) == [2, 2, 1, 1, 2]
    assert levels(cells([3, 5, 5, 5, 5], **under)) == [2, 1, 1, 1, 2]
    assert levels(cells([3, 5, 1, 5, 5], **under), gone=(0,)) == [2, 2, 3, 1, 2]
    whole = under | {"whole": [1, -1, 1, -1, 1]}
    assert levels(cells([3, 5, 5, 5, 5], **whole), gone=(0,)) == [2, 1, 1, 1, 2]


def test_an_aggregate_of_number_nought_is_waited_for() -> None:
    under = {"row": [0, 0, 1], "own": [0, 0, 1], "whole": [0, 0, -1]}
    assert levels(cells([2, 3, 3], **under)) == [2, 2, 1]


def test_aggregates_that_wait_for_each_other_have_no_order() -> None:
    under = {"row": [0, 0, 1, 1, 2], "own": [0, 0, 0, 0, 1], "whole": [0, 0, 1, 1, -1]}
    circle = cells([2, 5, 5, 1, 5], **under, drops=[0, 0, 0, 0, 1])
    assert levels(circle) == [1, 1, 1, 1, 2]


def test_paths_shared_at_every_hop_have_levels_of_their_own() -> None:
    shared = cells([1, 2, 3, 4], shared=[2, CUT_OFF + 1, CUT_OFF, 1])
    assert levels(shared) == [2, 4, 3, 1]


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
    changed = replace(nothing, switches=good.switches)
    assert changed.rounds == nothing.update.rounds
    other = replace(nothing, update=replace(good.update), switches=nothing.switches)
    assert other.rounds == good.update.rounds
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
    exposed = replace(none, exposed=3)
    assert [part.none for part in (none, exposed, replace(exposed, repaired=True))] == [1, 0, 1]
    assert not replace(none, pairs=1, repaired=True).none


def test_a_report_walks_as_many_mixtures_as_it_is_asked_for(small: Build) -> None:
    other = build(policy=("compact-valiant", "link"))
    states = [MoveReport.of(small, other, mixtures=n).proof.states for n in (0, 3)]
    assert states[1] == states[0] + 3 * (MoveReport.of(small, other).update.last - 1)
    assert MoveReport.of(small, build(policy=MINIMAL)).rounds == 0


@pytest.mark.parametrize("policy", [MINIMAL, ("ecmp, transit: ecmp", "none")])
def test_rounds_are_the_same_however_many_cells_are_compared_at_once(
    policy: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = "{family: polarstar, q: 2, supernode: inductive-quad, degree: 3}"
    whole = build(topology if policy == MINIMAL else "{family: hyperx, sides: 4x4}", policy)
    intact, far = Intact.of(whole), whole.wiring.far
    repairs = []
    for links in (((0, 0),), ((0, 1), (5, 2), (9, 0))):
        dead = np.zeros(far.shape, np.bool_)
        for u, k in links:
            dead[u, k] = dead[far[u, k], np.flatnonzero(far[far[u, k]] == u)] = True
        repairs.append(repaired(intact, dead))
    one = RepairRounds.between(*repairs)
    monkeypatch.setattr(repair_rounds, "CELLS_AT_ONCE", len(far) + 1)
    other = RepairRounds.between(*repairs)
    assert one.last == other.last > 2 - (policy != MINIMAL)
    assert {*map(tuple, one.rows.tolist())} == {*map(tuple, other.rows.tolist())}
    assert {*map(tuple, one.entered.tolist())} == {*map(tuple, other.entered.tolist())}
    assert one.switches.tolist() == sorted({*one.rows[:, 0].tolist(), *one.classes[:, 0].tolist()})
