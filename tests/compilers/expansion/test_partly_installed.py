"""Fabrics of which part is installed: what comes next moves nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from compilers.cabling.bill import bill
from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.cabling.schedule_columns import CABLE_COLUMNS, ScheduleRows
from compilers.expansion.uninstalled_rest import uninstalled_rest
from compilers.pipeline import compile_fabric
from compilers.proof.walks.delivery import verify
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load, save
from compilers.update.compare import compare
from inventory.problems import InputError
from tests.compilers.fabrics import partly_installed

EXAMPLES = Path(__file__).parents[3] / "examples"
Q7, STAR = "q7-copackaged", "polarstar-q5"


@cache
def built(name: str, racks: int = 0) -> Build:
    loaded = load_fabric(EXAMPLES / name / "fabric.yaml")
    return partly_installed(loaded, range(racks)) if racks else compile_fabric(loaded)


def schedule(build: Build) -> dict[str, tuple[object, ...]]:
    """Number, both ends, type, length and bundle of every cable, by its label."""
    rows = ScheduleRows.of(build.wiring, cables_of(build.wiring, hardware_of(build)))
    return {str(row[CABLE_COLUMNS.index("label")]): row for row in rows}


@pytest.mark.parametrize(("name", "steps"), [(Q7, (2, 5)), (STAR, (6,))])
def test_cables_stay_what_they_are_as_racks_are_added(name: str, steps: tuple[int, ...]) -> None:
    before: dict[str, tuple[object, ...]] = {}
    for racks in steps:
        build = built(name, racks)
        there = hardware_of(build).rack < racks
        assert np.array_equal(build.topology.present, there)
        report = verify(build)
        assert report.passed
        assert report.delivered == there.sum() * (there.sum() - 1)
        now = schedule(build)
        assert before.items() < now.items()
        before = now
    assert before.items() < schedule(built(name)).items()


def ports_to(build: Build) -> np.ndarray:
    """int[S, S]: the port towards each destination, by steps through the rows; 0: none."""
    order = len(build.wiring.names)
    table = np.zeros((order, order), int)
    for s in range(order):
        for d in range(order):
            egress = int(build.tables.routes.egress[s, d])
            if egress < build.tables.classes.port.shape[1] and s != d:
                table[s, d] = build.tables.classes.port[s, egress]
    return table


def test_what_is_added_and_what_changes() -> None:
    some, more = built(Q7, 3), built(Q7)
    found = uninstalled_rest(some, more)
    assert (found.moved, found.relabelled, found.renamed) == (0, 0, 0)
    before, after = schedule(some), schedule(more)
    added = {found.cables.number[e] for e in found.added.tolist()}
    assert added == {row[0] for label, row in after.items() if label not in before}
    names = {more.wiring.names[v] for v in found.nodes.tolist()}
    assert len(names) == 57 - 22
    there = some.topology.present
    old, new = ports_to(some)[there], ports_to(more)[there]
    gained = ((old == 0) & (new > 0)).sum(axis=1)
    assert [each.rows_added for each in found.switches] == gained.tolist()
    changed = ((old > 0) & (new > 0) & (old != new)).sum(axis=1)
    assert changed.any()
    assert [each.rows_changed for each in found.switches] == changed.tolist()
    back = uninstalled_rest(more, some)
    assert [each.rows_removed for each in back.switches] == gained.tolist()


def test_rows_of_a_part_are_rows_not_destinations() -> None:
    """In PolarStar a row serves a supernode: `expand` counts as `plan` and `diff` do."""
    some, more = built(STAR, 6), built(STAR)
    there = some.topology.present
    rows = [build.tables.routes.rows()[there] for build in (some, more)]
    found = uninstalled_rest(some, more).switches
    assert [each.rows_added - each.rows_removed for each in found] == (rows[1] - rows[0]).tolist()
    assert found == compare(some, more).switches


def test_a_moved_plug_and_a_new_name_are_seen(tmp_path: Path) -> None:
    for file in ("fabric.yaml", "inventory.yaml"):
        text = (EXAMPLES / Q7 / file).read_text()
        (tmp_path / file).write_text(text.replace("C1-3, type", "other, type"))
    text = (tmp_path / "inventory.yaml").read_text()
    assert "oio3/7" in text
    (tmp_path / "inventory.yaml").write_text(text.replace("oio3/7", "oio3/6"))
    found = uninstalled_rest(built(Q7, 3), compile_fabric(load_fabric(tmp_path / "fabric.yaml")))
    assert found.moved == 1
    assert found.renamed == 1


def test_another_fabric_is_refused() -> None:
    with pytest.raises(InputError, match="two builds of one fabric"):
        uninstalled_rest(built(Q7), built(STAR))


def test_the_schedule_of_a_part(tmp_path: Path) -> None:
    save(built(Q7, 2), tmp_path / "build")
    build = load(tmp_path / "build")
    cables = cables_of(build.wiring, hardware_of(build))
    items = {(i.kind, i.name): i.quantity for i in bill((build.wiring, cables))}
    assert items["node", "copackaged-4x8"] == 15
    assert items["rack", "rack 10U"] == 2
