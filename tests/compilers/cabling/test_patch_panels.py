"""Cords, patch panels and trunks, followed by the names on them, lead where the plan has links."""

import csv
import io
from itertools import islice

import numpy as np
import pytest
import yaml

from compilers.cabling.cable_schedule import CableSchedule
from compilers.cabling.panel_plan import panel_plan
from compilers.drawing.rack_chart import rack_chart
from compilers.spec.fabric_file import load_fabric
from compilers.wiring.placed_fabric import place_fabric
from inventory.netbox.netbox_file import read_netbox
from inventory.panel_types import straight_through
from inventory.problems import InputError
from polarfab.cabling import cable_paths, cables, check_wiring
from polarfab.fabric import Fabric
from tests.compilers.cabling.test_panel_plan import EXAMPLE, plugs_of, spec
from tests.inventory.makers import export, imported
from tests.inventory.test_panel_ports import links, paths

OWN = {"front": ["T2.1", "-", "T1.2", "T1.1", "T2.2"], "part_number": "PP-4"}


def patched(patch="patch-24", trunk="mpo24", types=None, **given):
    found = spec(trunk=trunk, **given)
    more = {"patch": patch, "types": types}
    found["inventory"]["panels"] |= {word: value for word, value in more.items() if value}
    return found


def planned(**given):
    placed = place_fabric(load_fabric(patched(**given)))
    return panel_plan(placed.topology, placed.wiring, placed.hardware())


def rows_of(schedule):
    return list(csv.DictReader(io.StringIO("".join(schedule.text("panels")))))


def followed(rows, front, exchanged=()):
    """The switch and port at the other end of each, by the names in the list of cords alone.

    exchanged: two plugs at panels that are in each other's place.
    """
    plugs = dict(zip(exchanged, exchanged[::-1], strict=True))
    joined = {}
    for row in rows:
        ends = ((row["a"], row["a_port"]), (row["b"], row["b_port"]))
        a, b = (plugs.get(end, end) for end in ends)
        assert a not in joined, row
        assert b not in joined, row
        joined[a], joined[b] = b, a
    behind = {word: f"F{f}" for f, word in enumerate(front, 1)}
    panels = {row["b"] for row in rows if row["kind"] == "cord"}
    found = {}
    for start in [end for end in joined if end[0] not in panels]:
        panel, port = joined[start]
        if panel in panels:
            trunk, position = front[int(port[1:]) - 1].split(".")
            far, socket = joined[panel, trunk]
            if not (end := joined.get((far, behind[f"{socket}.{position}"]))):
                continue
            panel, port = end
        found[start] = panel, port
    return found


def wanted(plan):
    name = plan.wiring.names
    kind = plan.cables.hardware.types
    pairs = [
        [(name[v], kind[plan.wiring.node_type[v]].sockets[p - 1][k]) for v, p, k in ends]
        for ends in np.stack(plugs_of(plan.cables), axis=2).tolist()
    ]
    return {x: y for a, b in pairs for x, y in ((a, b), (b, a))}


GIVEN = [
    {"q": 2, "rack": 2},
    {"q": 5, "rack": 6},
    {"q": 5, "rack": 4},  # a cluster in two racks
    {"q": 7, "rack": 8, "trunk": "mpo8", "patch": "patch-48"},
    {"q": 7, "rack": 8, "trunk": "single"},
    {"q": 5, "rack": 6, "parallel": 2, "ports": 8},
    {"q": 3, "rack": 3, "trunk": "mpo8", "patch": "own", "types": {"own": OWN}},
    {"family": "jellyfish", "nodes": 30, "degree": 7, "rack": 8},
    {"family": "polarstar", "q": 3, "supernode": "paley", "degree": 2, "rack": 10},
]


@pytest.mark.parametrize("given", GIVEN)
def test_links_lead_where_they_are_planned(given):
    fabric = Fabric.from_spec(patched(**given)).compile()
    schedule = CableSchedule.of(fabric.builds)
    (plan,) = schedule.plans
    rows = rows_of(schedule)
    assert followed(rows, plan.types[0][1]) == wanted(plan)
    inside = {row["a_rack"] == row["b_rack"] for row in rows if row["kind"] == "cable"}
    assert inside <= {True}
    assert all(row["a_rack"] == row["b_rack"] for row in rows if row["kind"] == "cord")
    assert all(row["a_rack"] != row["b_rack"] for row in rows if row["kind"] == "trunk")
    counts = plan.summary()
    kinds = [row["kind"] for row in rows]
    assert [counts[word] for word in ("cords", "trunks", "cables")] == [
        kinds.count(word) for word in ("cord", "trunk", "cable")
    ]
    assert counts["plugs"] == 2 * len(rows)
    assert counts["types"] == 1


def test_labels_begin_with_the_plane():
    rows = rows_of(cables(Fabric.from_spec(patched(q=3, rack=8) | {"planes": 2})))
    assert {row["label"][:4] for row in rows} == {f"P{p}-{kind}" for p in (1, 2) for kind in "RTC"}


def test_a_fabric_in_one_rack_has_cables_alone():
    schedule = cables(Fabric.from_spec(patched(q=2, rack=100)))
    rows = rows_of(schedule)
    assert [row["kind"] for row in rows] == ["cable"] * 9
    assert followed(rows, ()) == wanted(schedule.plans[0])
    assert schedule.plans[0].summary()["plugs"] == 18


def test_trunks_are_as_few_as_their_positions_allow():
    plan = planned(q=7, rack=8)
    racks = np.sort(plan.cables.hardware.rack[plan.cables.ends], axis=1)
    apart = racks[racks[:, 0] != racks[:, 1]]
    _, count = np.unique(apart, axis=0, return_counts=True)
    assert len(plan.ends) == (-(-count // plan.room)).sum()
    ends = np.bincount(plan.rack[plan.ends].ravel())
    assert np.bincount(plan.rack).tolist() == (-(-ends // 2)).tolist()  # two trunks a panel


@pytest.mark.parametrize(("ports", "room"), [(24, 12), (24, 1), (24, 5), (4, 12)])
def test_the_library_is_the_identity(ports, room):
    words = straight_through(ports, room)
    lit = [word for word in words if word != "-"]
    assert len(words) == ports
    assert lit == list(words[: len(lit)])
    each = min(ports, room)
    at = [[int(n) - 1 for n in word[1:].split(".")] for word in lit]
    assert [each * t + k for t, k in at] == list(range(ports // each * each))


def test_an_expansion_moves_no_cord():
    given = patched(q=5, rack=6)
    given["inventory"]["generate"]["racks"]["units"] = 8
    fabric = Fabric.from_spec(given).compile()
    larger = fabric.expand("quadric:1").build
    before, after = (rows_of(CableSchedule.of([build])) for build in (fabric.build, larger))
    (plan,) = CableSchedule.of([larger]).plans
    assert followed(after, plan.types[0][1]) == wanted(plan)
    new = {row["label"]: row for row in after if row["kind"] != "cable"}
    assert all(new[row["label"]] == row for row in before if row["kind"] != "cable")
    assert len(new) > sum(row["kind"] != "cable" for row in before)


@pytest.fixture(scope="module")
def example():
    return Fabric.from_spec(
        {
            "name": "x",
            "topology": {"family": "polarfly", "q": 7},
            "hosts_per_node": 4,
            "inventory": yaml.safe_load((EXAMPLE.parent / "inventory.yaml").read_text())
            | {"panels": {"trunk": "mpo24", "patch": "patch-48"}},
        }
    ).compile()


def test_a_path_names_ports_of_patch_panels(example):
    inside, between = cable_paths(example, [(0, 22), (22, 30)])
    assert inside == "s0 eth2 > s22 eth4"
    assert between == "s22 eth5 > C4-P1 13 > T0010:1 > C1-P1 37 > s30 eth5"


def test_exchanged_trunks_are_named_and_exchanged_cords_are_moves(example, tmp_path):
    schedule = CableSchedule.of(example.builds)
    (plan,) = schedule.plans
    rows, front = rows_of(schedule), plan.types[0][1]
    facts = tmp_path / "facts.csv"

    def seen(*exchanged):
        ends = followed(rows, front, exchanged).items()
        lines = (",".join((*here, *there)) for here, there in ends)
        facts.write_text("\n".join(("node,port,neighbour,neighbour_port", *lines)))
        return check_wiring(example, [facts])

    trunks = (row for row in rows if row["kind"] == "trunk" and "C1-P1" in (row["a"], row["b"]))
    plugs, named = [], []
    for row in islice(trunks, 2):
        port = row["a_port" if row["a"] == "C1-P1" else "b_port"]
        plugs.append(("C1-P1", port))
        named.append(f"{row['label']} (port {port})")
    said = f"at C1-P1 trunks {' and '.join(named)} are exchanged: swap their plugs"
    assert seen(*plugs).as_dict()["trunks"] == [said]
    report = seen(("C1-P1", "F1"), ("C1-P1", "F2"))
    assert not report.as_dict()["trunks"]
    assert (len(report.audit.misplaced), len(report.audit.moves)) == (2, 1)
    assert seen().good


def test_single_trunks_are_not_guessed_from_one_link(tmp_path):
    fabric = Fabric.from_spec(patched(q=3, rack=4, trunk="single")).compile()
    schedule = CableSchedule.of(fabric.builds)
    (plan,) = schedule.plans
    rows = rows_of(schedule)
    panel = plan.names[0]
    plugs = [(row["b"], row["b_port"]) for row in rows if row["kind"] == "cord"]
    cords = [plug for plug in plugs if plug[0] == panel][:2]
    ends = followed(rows, plan.types[0][1], cords).items()
    facts = tmp_path / "facts.csv"
    lines = (",".join((*here, *there)) for here, there in ends)
    facts.write_text("\n".join(("node,port,neighbour,neighbour_port", *lines)))
    report = check_wiring(fabric, [facts])
    assert not report.good
    assert not report.as_dict()["trunks"]


def test_the_bill_and_the_labels_have_cords_panels_and_cables(example):
    schedule = CableSchedule.of(example.builds)
    kinds = {}
    for item in schedule.bill():
        kinds[item.kind] = kinds.get(item.kind, 0) + item.quantity
    (plan,) = schedule.plans
    counts = plan.summary()
    assert kinds["patch panel"] == counts["patch_panels"] == 16
    assert (kinds["cord"], kinds["trunk"], kinds["cable"]) == (322, 28, 63)
    assert 322 // 2 + 63 == 224
    labels = "".join(schedule.text("labels"))
    assert all(labels.count(f">{row['label']}<") == 2 for row in rows_of(schedule)[::40])
    chart = rack_chart(example.build)
    assert "patch panels (16)" in [label.text for label in chart.labels]


@pytest.mark.parametrize(
    "given",
    [
        patched(q=5, rack=6),
        patched(q=3, rack=4, trunk="single", patch="patch-48"),
        patched(q=3, rack=3, trunk="mpo8", patch="own", types={"own": OWN}),
    ],
)
def test_netbox_finds_every_link_and_all_comes_back(given, tmp_path):
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text(yaml.safe_dump(given | {"inventory": "inventory.yaml"}))
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(given["inventory"]))
    export(fabric, tmp_path / "one")
    before = place_fabric(load_fabric(fabric))
    assert paths(tmp_path / "one") == links(before)
    assert read_netbox([tmp_path / "one"]).left_out == 0
    devices = (tmp_path / "one" / "devices.csv").read_text()
    assert ",patch panel,Generic,patch panel " in devices
    imported(tmp_path / "one", tmp_path / "new.yaml")
    (tmp_path / "new.yaml").replace(tmp_path / "inventory.yaml")
    after = place_fabric(load_fabric(fabric))
    assert links(after) == links(before)
    plans = [panel_plan(p.topology, p.wiring, p.hardware()) for p in (before, after)]
    for word in ("panel", "front", "trunk", "position", "cord", "ends", "sockets"):
        np.testing.assert_array_equal(*(getattr(plan, word) for plan in plans))
    export(fabric, tmp_path / "two")
    names = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*.*"))
    for name in names:
        assert (tmp_path / "one" / name).read_text() == (tmp_path / "two" / name).read_text()


def test_a_kind_of_cable_that_netbox_adds_is_in_stock_too(tmp_path):
    given = patched(q=3, rack=4)
    kinds = [
        {"name": "short", "media": "dac-passive", "lengths": [1, 2]},
        {"name": "own", "media": "smf-os2"},
        {"name": "long", "media": "smf-os2", "lengths": [2000]},
    ]
    given["inventory"]["cabling"] = {"types": kinds, "slack": 0.5}
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text(yaml.safe_dump(given | {"inventory": "inventory.yaml"}))
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(given["inventory"]))
    export(fabric, tmp_path / "one")
    file = tmp_path / "one" / "cables.csv"
    first, *lines = file.read_text().splitlines()
    inside = next(i for i, line in enumerate(lines) if line.count("dcim.interface") == 2)
    lines[inside] = lines[inside].replace("dac-passive", "aoc")
    file.write_text("\n".join((first, *lines)))
    imported(tmp_path / "one", tmp_path / "new.yaml")
    (tmp_path / "new.yaml").replace(tmp_path / "inventory.yaml")
    cabling = place_fabric(load_fabric(fabric)).inventory.cabling
    assert [kind.name for kind in cabling.types] == ["short", "own", "long", "aoc"]
    assert cabling.slack == 0.5


@pytest.mark.parametrize(
    ("patch", "front", "said"),
    [
        ("patch-25", None, "a type of panels.types, or patch-24, patch-48, patch-96, patch-144"),
        ("own", ["T1.1 T1.2"], "one lane at each port in front of a patch panel"),
        ("own", ["F2.1", "F1.1"], "one lane at each port in front of a patch panel"),
        ("own", ["T1.1", "T1.3"], "as many positions of each trunk port"),
        ("own", ["-"], "as many positions of each trunk port"),
        ("own", [f"T1.{k}" for k in range(1, 14)], "at most 12 positions at a port behind"),
    ],
)
def test_what_is_no_patch_panel_is_refused(patch, front, said, tmp_path):
    given = patched(q=3, rack=4, patch=patch, types={"own": {"front": front}} if front else None)
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(given["inventory"]))
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text(yaml.safe_dump(given | {"inventory": "inventory.yaml"}))
    with pytest.raises(InputError) as refused:
        Fabric.from_spec(fabric).compile()
    assert said in str(refused.value)
    assert "inventory.yaml:" in str(refused.value)


@pytest.mark.parametrize("patch", [None, "patch-24"])
def test_a_path_names_the_members_of_a_port_with_parallel_cables(patch):
    given = patched(q=3, rack=4, parallel=2, ports=6, patch=patch)
    fabric = Fabric.from_spec(given).compile()
    wiring = fabric.build.wiring
    ends = wiring.links()
    for u, k in zip(*(each.tolist() for each in ends), strict=True):
        lines = cable_paths(fabric, [(u, int(wiring.far[u, k]))])
        port = int(wiring.port[u, k])
        near = [f"{wiring.names[u]} eth{2 * port - 1 + n}" for n in (0, 1)]
        assert [line.split(" > ")[0] for line in lines] == near
        assert len({line.split(" > ")[-1] for line in lines}) == 2


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("planes", [1, 2])
def test_cables_of_a_spec_are_those_of_its_build_and_nothing_is_compiled(
    planes, broken, monkeypatch
):
    given = patched(q=3, rack=8) | {"planes": planes}
    if broken:
        del given["inventory"]["panels"]
        end = "p1-n" if planes > 1 else "n"
        given["inventory"]["dead_links"] = [{"a": f"{end}0", "b": f"{end}1"}]
    built = cables(Fabric.from_spec(given).compile())
    monkeypatch.setattr(Fabric, "compile", None)
    planned = cables(Fabric.from_spec(given))
    forms = ("csv", "markdown", "netbox", "labels", "bom", "hosts")
    for form in (*forms, *(() if broken else ("panels", "cassettes"))):
        assert "".join(planned.text(form)) == "".join(built.text(form))
    for without, whole in zip(planned.summaries(), built.summaries(), strict=True):
        del whole["build"]
        assert without == whole
