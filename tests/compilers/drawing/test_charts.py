"""Charts say what the build's arrays say: loads, failures, rounds, racks and cables."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

import polarfab
from compilers.cabling.cable_schedule import CableSchedule
from compilers.cabling.cords import trunks
from compilers.cabling.schedule_columns import CABLE_COLUMNS
from compilers.drawing.chart import Chart, short_number
from compilers.drawing.link_matrix import LinkLosses, Matrix, failure_chart, load_chart
from compilers.drawing.move_chart import changes_of, move_chart
from compilers.drawing.picture import draw_chart
from compilers.drawing.rack_chart import rack_chart
from compilers.evaluation.saturation import throughput
from compilers.proof.failures.failure_walks import walk_failures
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.update.move_plan import plan
from compilers.update.move_report import MOVE_COUNTS, MOVE_PARTS, MoveReport
from inventory.problems import InputError
from tests.compilers.fabrics import partly_installed

SVG = "{http://www.w3.org/2000/svg}"
PROTECTED = {"balance": "compact-valiant", "protect": "node"}
CABLED = Path(__file__).parents[3] / "examples" / "q7-copackaged" / "fabric.yaml"
PANELS = CABLED.parents[1] / "q7-panels" / "fabric.yaml"


@cache
def build(q: int, *, protected: bool = False) -> Build:
    routing = PROTECTED if protected else {}
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": q}, "routing": routing}
    return polarfab.Fabric.from_spec(spec).compile().build


def counted(chart: Chart) -> dict[str, int]:
    """The number of pieces by style, as the SVG's paths have them."""
    found: Counter[str] = Counter()
    for path in ET.fromstring(chart.svg()).iter(f"{SVG}path"):  # noqa: S314
        assert path.get("d", "").count("M") == int(path.get("data-count", ""))
        found[path.get("class", "")] += int(path.get("data-count", ""))
    return found


def cells(chart: Chart) -> int:
    return sum(count for style, count in counted(chart).items() if style.endswith("cell"))


def texts(chart: Chart, style: str) -> list[str]:
    return [label.text for label in chart.labels if label.style.split()[0] == style]


def darkest(chart: Chart) -> set[tuple[int, int]]:
    """x and y of the cells of the darkest shade."""
    path = next(shape.path for shape in chart.shapes if shape.style == "s8 cell")
    return {(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)", path)}


def test_every_link_has_its_load_and_the_hottest_is_that_of_throughput() -> None:
    given = build(5, protected=True)
    chart = load_chart(given, "tornado")
    found = throughput(given, "tornado", 1)
    arcs = int((given.wiring.far >= 0).sum())
    assert cells(chart) == 3 * arcs
    notes = [note for note in texts(chart, "key") if note.startswith("hottest")]
    for note, part in zip(notes, (found.minimal, found.as_emitted, found.adaptive), strict=True):
        assert part
        u, v = (given.wiring.names[each] for each in part.hottest)
        assert note == f"hottest {short_number(part.peak)}, {u} → {v}; hosts get {part.share:.1%}"
    matrix = Matrix.of(given)
    ground = next(shape.path for shape in chart.shapes if shape.style == "ground")
    x, y = map(int, re.findall(r"\d+", ground)[:2])
    row, column = matrix.row[list(found.minimal.hottest)]
    size = int(re.findall(r"\d+", ground)[2]) // matrix.rows
    assert (x + column * size, y + row * size) in darkest(chart)


def test_failures_are_those_that_verify_counts() -> None:
    for protected in (False, True):
        given = build(5, protected=protected)
        found, report = LinkLosses.of(given), walk_failures(given, "link")
        assert found.lost.sum() == report.lost_pairs
        assert found.longest.max() == report.max_hops
        edges = given.topology.graph.edges()
        assert sorted(map(sorted, found.ends.tolist())) == sorted(map(sorted, edges.tolist()))
        chart = failure_chart(given)
        assert cells(chart) == 2 * len(edges)
        words = "no link loses a packet" if protected else f"{len(edges)} of {len(edges)} links"
        assert any(note.startswith(words) for note in texts(chart, "key"))


def test_rounds_add_up_to_the_plan() -> None:
    old, new = build(5), build(5, protected=True)
    report = MoveReport.of(old, new)
    changes = changes_of(plan(old, new))
    switches = {switch["node"]: switch for switch in report.switches}
    planned = [
        sum(switches[name][part][word] for part in MOVE_PARTS for word in MOVE_COUNTS)
        for name in new.wiring.names
    ]
    assert changes.sum(axis=1).tolist() == planned
    chart = move_chart(old, new)
    assert cells(chart) == report.rounds * new.topology.graph.order
    notes = [note for note in texts(chart, "key") if "changes" in note]
    shown = [int(note.split()[0].replace(",", "")) for note in notes]
    assert shown == changes.sum(axis=0).tolist()


def test_racks_hold_every_node_and_cables_are_those_of_the_schedule() -> None:
    fabric = polarfab.Fabric.from_spec(CABLED).compile()
    given, chart = fabric.build, rack_chart(fabric.build)
    known = given.hardware
    assert known is not None
    assert [frame.label for frame in chart.frames] == list(known.rack_names)
    drawn = counted(chart)
    assert sum(drawn[f"n{kind} node"] for kind in range(3)) == given.topology.graph.order
    assert sorted(texts(chart, "node-name")) == sorted(given.wiring.names)
    columns, rows = CABLE_COLUMNS.index, len(known.rack_names)
    schedule = list(polarfab.cables(fabric))
    written = list(map(int, texts(chart, "value")))
    counts, metres = written[: len(written) // 2], written[len(written) // 2 :]
    assert max(metres) == max(row[columns("length_m")] for row in schedule)
    inside = [row[columns("a_rack")] == row[columns("b_rack")] for row in schedule]
    assert sum(counts) == 2 * inside.count(False) + inside.count(True)
    assert cells(chart) == 2 * (rows * rows - 1)  # the quadrics are not joined among themselves


def test_racks_of_a_fabric_with_panels_have_cassettes_and_trunks() -> None:
    fabric = polarfab.Fabric.from_spec(PANELS).compile()
    chart = rack_chart(fabric.build)
    (plan,) = polarfab.cables(fabric).plans
    found = list(trunks(plan))
    metres = sum(cord.length_m for cord in found)
    assert f"{len(found)} trunks of {metres:,.0f} m" in chart.subtitle
    assert "cassettes (8)" in texts(chart, "key")
    (bars,) = (shape for shape in chart.shapes if shape.style == "s5" and shape.count == 8)
    left = [int(x) for x in re.findall(r"M(\d+) ", bars.path)]
    assert left == [chart.frames[r].x + 2 for r in plan.rack]
    written = list(map(int, texts(chart, "value")))
    assert sum(written[: len(written) // 2]) == 2 * len(found)


def test_cassettes_that_an_expansion_adds_are_side_by_side() -> None:
    larger = polarfab.Fabric.from_spec(PANELS).compile().expand("quadric:1")
    (plan,) = CableSchedule.of([larger.build]).plans
    count = len(plan.names)
    chart = rack_chart(larger.build)
    (bars,) = (s for s in chart.shapes if s.style == "s5" and s.count == count)
    boxes = [tuple(map(int, b)) for b in re.findall(r"M(\d+) (\d+)h(\d+)", bars.path)]
    assert len(boxes) == len({*boxes}) == count == 17
    for (x, y, wide), (right, level, _) in pairwise(sorted(boxes, key=lambda b: (b[1], b[0]))):
        assert y != level or x + wide < right


def test_racks_of_a_fabric_with_a_link_missing_have_cables() -> None:
    dead = [{"a": "s0", "b": "s22"}]
    given = yaml.safe_load(PANELS.with_name("inventory.yaml").read_text()) | {"dead_links": dead}
    spec = yaml.safe_load(PANELS.read_text()) | {"inventory": given}
    chart = rack_chart(polarfab.Fabric.from_spec(spec).build)
    assert "223 cables of" in chart.subtitle
    assert not any("cassettes" in key for key in texts(chart, "key"))


def test_racks_that_stand_empty_are_drawn_and_not_counted() -> None:
    racks = [{"name": f"A{n}", "row": 0, "column": n, "units": 12} for n in range(3)]
    ports = [{"name": "eth{}", "count": 8}]
    inventory = {"node_types": {"box": {"ports": ports}}, "generate": {"type": "box"}}
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
    chart = rack_chart(polarfab.Fabric.from_spec(spec, inventory | {"racks": racks}).build)
    assert len(chart.frames) == 3
    assert "13 nodes in 2 racks, " in chart.subtitle
    assert "1 pair of racks is joined" in texts(chart, "key")


def test_the_whole_legend_is_in_the_picture() -> None:
    chart = load_chart(build(3), "uniform")
    ticks = [label.y for label in chart.labels if label.style == "tick"]
    assert ticks
    assert chart.height >= max(ticks) + 4


def test_names_of_racks_do_not_touch() -> None:
    star = {"family": "polarstar", "q": 3, "supernode": "inductive-quad", "degree": 3}
    frames = rack_chart(polarfab.Fabric.from_spec({"name": "s", "topology": star}).build).frames
    assert frames[12].label == "supernode12"
    assert frames[1].x - frames[0].x >= 8 * len("supernode12")


def test_units_that_nobody_gave_are_counted_up() -> None:
    chart = rack_chart(build(5))
    boxes = re.findall(
        r"M(\d+) (\d+)h", "".join(s.path for s in chart.shapes if s.style.endswith("node"))
    )
    assert len(set(boxes)) == build(5).topology.graph.order


def test_nodes_that_are_planned_stand_apart() -> None:
    given = partly_installed(load_fabric(CABLED), range(3))
    bare = int((given.wiring.far < 0).all(axis=1).sum())
    drawn = counted(rack_chart(given))
    assert drawn["bare node"] == bare == 35
    assert sum(drawn[f"n{kind} node"] for kind in range(3)) == given.topology.graph.order - bare
    assert Matrix.of(given).sizes.tolist() == [8, *[7] * 7]


def test_a_large_fabric_has_a_row_for_each_cluster_and_stays_small() -> None:
    given = build(17)
    chart = load_chart(given, "uniform")
    assert Matrix.of(given).rows == 18
    assert cells(chart) == 18 * 18 - 1
    assert len(chart.svg()) < 30_000


def test_a_page_has_the_picture_in_it() -> None:
    page = draw_chart(build(3), "load", "html", "tornado")
    assert draw_chart(build(3), "load", "svg", "tornado") in page
    assert "<script" not in page


def test_names_are_escaped() -> None:
    chart = Chart("<&>", '"', "a & b", 10, 10, (), (), ())
    root = ET.fromstring(chart.svg())  # noqa: S314
    assert (root.get("aria-label"), root.findtext(f"{SVG}desc")) == ("<&>", "a & b")


@pytest.mark.parametrize(
    ("show", "message"),
    [
        ("load", "pattern: required a pattern with traffic between switches here"),
        ("rounds", "from: required the build that the switches hold, given none"),
        ("latency", "show: required racks, load, failures, rounds, given latency"),
    ],
)
def test_charts_that_cannot_be_drawn(show: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        draw_chart(build(3), show, pattern="adversarial")
