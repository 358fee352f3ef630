"""The cable schedule: bundles of the papers, lengths, and every format of it."""

import csv
import io
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from compilers.cabling.bill import bill
from compilers.cabling.cable_formats import as_csv, as_labels, as_markdown, labels_of_rows
from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.cabling.host_cables import as_host_csv
from compilers.cabling.netbox_cables import as_netbox
from compilers.cabling.schedule_columns import CABLE_COLUMNS, ScheduleRows
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from inventory.problems import InputError

EXAMPLES = Path(__file__).parents[3] / "examples"
Q7, Q31, STAR = "q7-copackaged", "q31", "polarstar-q5"


@cache
def built(name):
    return compile_fabric(load_fabric(EXAMPLES / name / "fabric.yaml"))


@cache
def schedule(name):
    build = built(name)
    return build, cables_of(build.wiring, hardware_of(build))


def rows(name):
    build, cables = schedule(name)
    return ScheduleRows.of(build.wiring, cables)


@pytest.mark.parametrize(("name", "q"), [(Q7, 7), (Q31, 31)])
def test_bundles_of_polarfly(name, q):
    """PolarFly paper, §V: q - 2 links between fans, q + 1 from the quadrics to each fan."""
    _, cables = schedule(name)
    assert len(cables) == q * (q + 1) ** 2 // 2
    sizes = Counter(cables.bundles.cables.tolist())
    assert sizes == {q - 2: q * (q - 1) // 2, q + 1: q}
    quadrics = (cables.bundles.clusters == 0).any(axis=1)
    assert (cables.bundles.cables[quadrics] == q + 1).all()
    assert (cables.bundle < 0).sum() == q * 3 * (q - 1) // 2


def test_bundles_of_polarstar():
    """PolarStar paper, §8: 2d'+2 links between adjacent supernodes, one bundle an edge of ER_q."""
    _, cables = schedule(STAR)
    assert Counter(cables.bundles.cables.tolist()) == {8: 90}
    assert (cables.bundle < 0).sum() == 31 * 12 + 6 * 4
    fibres = [item for item in bill((built(STAR).wiring, cables)) if item.kind == "fibre"]
    assert sum(item.quantity for item in fibres) == 90
    thin = replace(cables.hardware, cabling={**cables.hardware.cabling, "fibre_cores": 100})
    items = bill((built(STAR).wiring, replace(cables, hardware=thin)))
    assert sum(item.quantity for item in items if item.kind == "fibre") == 180


@pytest.mark.parametrize("name", [Q7, STAR])
def test_every_link_is_one_cable_and_no_port_has_two(name):
    build, cables = schedule(name)
    edges = np.sort(cables.ends, axis=1)
    assert np.array_equal(edges[np.lexsort(edges.T[::-1])], build.topology.graph.edges())
    ends = np.stack((cables.ends.ravel(), cables.ports.ravel()), axis=1)
    assert len(np.unique(ends, axis=0)) == len(ends)
    there = build.wiring.far_by_port()
    assert (there[cables.ends[:, 0], cables.ports[:, 0]] == cables.ends[:, 1]).all()


def test_lengths_by_hand():
    """C1-2 in row 0, column 1, unit 2 to C6-3 in row 1, column 2, unit 3; racks of 10 units."""
    _, cables = schedule(Q7)
    records = [dict(zip(CABLE_COLUMNS, row, strict=True)) for row in rows(Q7)]
    there = next(r for r in records if (r["a_rack"], r["b_rack"]) == ("C1", "C6"))
    rise = (10 - there["a_unit"] + 1 + 10 - there["b_unit"] + 1) * 0.04445 + 2 * 0.5
    assert there["run_m"] == pytest.approx(2.4 + 0.6 + rise + 0.5, abs=0.006)
    assert there["length_m"] == 7
    inside = next(r for r in records if r["a_rack"] == r["b_rack"])
    units = abs(inside["a_unit"] - inside["b_unit"])
    assert inside["run_m"] == pytest.approx(units * 0.04445 + 0.5, abs=0.006)
    stock = np.array([1, 2, 3, 5, 7, 10])
    assert (cables.length >= cables.needed).all()
    assert (cables.length == stock[np.searchsorted(stock, cables.needed)]).all()


def test_a_cable_by_hand_has_its_ports_and_label():
    by_hand = [r for r in rows(Q7) if r[CABLE_COLUMNS.index("label")] == "by-hand"]
    assert len(by_hand) == 1
    assert {"C1-1", "C1-2", "oio3/7"} <= set(by_hand[0])


def test_no_cable_is_long_enough(tmp_path):
    for file in ("fabric.yaml", "inventory.yaml"):
        text = (EXAMPLES / Q7 / file).read_text().replace("[1, 2, 3, 5, 7, 10]", "[1, 2, 3, 5]")
        (tmp_path / file).write_text(text)
    with pytest.raises(InputError) as caught:
        compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    assert re.search(
        r"inventory\.yaml:20: cabling\.types: required a cable of 6\.\d m or longer, "
        r"given lengths to 5 m; ",
        str(caught.value),
    )


def test_only_what_is_asked_for():
    assert [row[0] for row in rows(Q7)] == list(range(1, 225))
    assert len(list(rows(Q7).of_rack(0))) == 56


def test_csv_and_netbox_name_the_same_ends():
    ours = list(csv.DictReader(io.StringIO("".join(as_csv(rows(Q7))))))
    theirs = list(csv.DictReader(io.StringIO("".join(as_netbox([(rows(Q7), None)])))))
    assert len(ours) == len(theirs) == 224
    for mine, other in zip(ours, theirs, strict=True):
        for end in "ab":
            assert mine[f"{end}_node"] == other[f"side_{end}_device"]
            assert mine[f"{end}_port"] == other[f"side_{end}_name"]
            assert other[f"side_{end}_type"] == "dcim.interface"
        assert (other["type"], other["length_unit"]) == ("smf-os2", "m")
        assert mine["label"] == other["label"]


def test_markdown_and_labels_hold_every_cable():
    text = "".join(as_markdown(rows(Q7)))
    assert len(re.findall(r"^\| (C\d{5}|by-hand) \|", text, re.MULTILINE)) == 224
    sheet = "".join(as_labels(labels_of_rows(rows(Q7)), "<q7>"))
    assert sheet.count("<li>") == 2 * 224
    assert "<title>&lt;q7&gt;</title>" in sheet


def test_fibres_hold_all_cables_of_bundles():
    build, cables = schedule(STAR)
    for single in (False, True):
        cabling = {**cables.hardware.cabling, "fibre_cores": None if single else 24}
        known = replace(cables, hardware=replace(cables.hardware, cabling=cabling))
        items = list(bill((build.wiring, known)))
        count = sum(item.quantity for item in items if item.kind == "cable")
        alone = np.ones(len(cables), bool) if single else cables.bundle < 0
        assert count == np.count_nonzero(alone)
        assert (cables.bundle == 0).any()
        assert any(item.kind == "fibre" for item in items) is not single


def test_hardware_survives_the_build_folder(tmp_path):
    saved = save(built(Q7), tmp_path / "build")
    again = load(tmp_path / "build")
    assert again.identity == saved.identity
    cables = cables_of(again.wiring, hardware_of(again))
    _, before = schedule(Q7)
    text = "".join(as_csv(ScheduleRows.of(again.wiring, cables)))
    assert text == "".join(as_csv(rows(Q7)))
    assert again.hardware.serial == built(Q7).hardware.serial
    assert len(before) == len(cables)


@pytest.mark.parametrize(
    "family", ["{family: polarfly, q: 4}", "{family: pn, q: 3}", "{family: graph, file: named.txt}"]
)
def test_a_fabric_without_inventory_has_cables_too(tmp_path, family):
    (tmp_path / "named.txt").write_text("leaf spine\nspine edge\nedge leaf\n")
    (tmp_path / "fabric.yaml").write_text(f"name: lab\ntopology: {family}\n")
    build = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    assert build.hardware is None
    cables = cables_of(build.wiring, hardware_of(build))
    assert len(cables) == build.topology.graph.size


def test_cables_to_hosts():
    build, cables = schedule(Q7)
    found = list(csv.DictReader(io.StringIO("".join(as_host_csv([(build, rows(Q7))])))))
    assert len(found) == 57
    ports = {(row["node"], row["port"]) for row in found}
    assert ports == {(name, "host1") for name in build.wiring.names}
    first = build.wiring.names.index(found[0]["node"])
    assert (found[0]["host"], found[0]["mac"]) == (f"h{first}", build.addressing.mac(first, 0))
    assert found[0]["module"] == "4"
    assert {row["rack"] for row in found} == set(cables.hardware.rack_names)


def test_cables_to_hosts_that_stand_somewhere(tmp_path):
    """A host in its node's rack, one in the rack beside, one too far for the stock."""
    (tmp_path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\nhosts_per_node: 4\ninventory: i.yaml\n"
    )
    hosts = "[{}, {rack: R0, unit: 21}, {rack: R1, unit: 20}, {rack: R9}]"
    nodes = "".join(
        f"  - {{name: n{v}, type: switch-32, rack: R0{f', unit: 1, hosts: {hosts}' * (not v)}}}\n"
        for v in range(7)
    )
    (tmp_path / "i.yaml").write_text(
        "racks: [{name: R0, row: 0, column: 0, units: 20}, {name: R1, row: 0, column: 1, units: 20}"
        ", {name: R9, row: 9, column: 0, units: 20}]\n"
        "cabling: {types: [{name: dac, lengths: [1, 2]}, {name: smf, lengths: [3, 5]}]}\n"
        f"nodes:\n{nodes}"
    )
    with pytest.raises(InputError, match=r"hosts\[1\]\.unit: required a unit from 1 to 20 of R0"):
        load_fabric(tmp_path / "fabric.yaml")
    text = (tmp_path / "i.yaml").read_text().replace("unit: 21", "unit: 19")
    (tmp_path / "i.yaml").write_text(text)
    build = save(compile_fabric(load_fabric(tmp_path / "fabric.yaml")), tmp_path / "build")
    cables = cables_of(build.wiring, hardware_of(build))
    rows = ScheduleRows.of(build.wiring, cables)
    found = list(csv.DictReader(io.StringIO("".join(as_host_csv([(build, rows)])))))
    mine = [row for row in found if row["node"] == "n0"]
    words = ("host_rack", "host_unit", "type", "length_m", "run_m")
    assert [tuple(row[w] for w in words) for row in mine] == [
        ("", "", "", "", ""),
        ("R0", "19", "dac", "2.0", "1.3"),  # 18 units of 44.45 mm, and 0.5 m slack
        ("R1", "20", "smf", "5.0", "3.03"),  # 0.6 + 20 and 1 units + 2 trays of 0.5 + slack
        ("R9", "1", "", "", "24.88"),
    ]
    assert all(row["host_rack"] == "" for row in found if row["node"] != "n0")
    assert {cables.hardware.unit[v] for v in range(7)} == {1, 2, 3, 4, 5, 6, 7}


def test_nodes_keep_off_the_units_of_hosts(tmp_path):
    (tmp_path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\ninventory: i.yaml\n"
    )
    nodes = "".join(
        f"  - {{name: n{v}, type: switch-32, hosts: [{{rack: R0, unit: {v + 2}}}]}}\n"
        for v in range(7)
    )
    (tmp_path / "i.yaml").write_text(f"racks: [{{name: R0}}]\nnodes:\n{nodes}")
    build = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    assert sorted(build.hardware.unit.tolist()) == [1, 9, 10, 11, 12, 13, 14]
