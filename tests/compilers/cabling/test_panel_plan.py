"""Cassettes and trunks, followed as they are built, lead where the plan has links."""

import json
from pathlib import Path

import numpy as np
import pytest

from compilers.audit.wiring_report import WiringReport
from compilers.cabling.cable_schedule import CableSchedule
from compilers.cabling.cords import bill_items, cords
from compilers.cabling.panel_plan import panel_plan, panel_summary
from compilers.spec.fabric_file import load_fabric
from compilers.wiring.placed_fabric import place_fabric
from inventory.problems import InputError
from polarfab.cabling import cable_paths, check_wiring
from polarfab.cabling import cables as cable_schedule
from polarfab.fabric import Fabric

EXAMPLE = Path(__file__).parents[3] / "examples" / "q7-panels" / "fabric.yaml"


def spec(
    family="polarfly", layout=None, trunk="mpo24", rack=100, ports=160, parallel=1, **parameters
):
    block = {"count": ports, "lanes": 1}
    if parallel > 1:
        block |= {"name": "bond{}", "member": "eth{}", "parallel": parallel}
    inventory = {
        "node_types": {"t": {"ports": [block]}},
        "generate": {"type": "t", "racks": {"units": rack}},
        "panels": {"trunk": trunk},
    }
    if layout:
        inventory["placement"] = {"layout": layout}
    topology = {"family": family, **parameters}
    return {"name": "x", "topology": topology, "hosts_per_node": 1, "inventory": inventory}


def planned(**given):
    placed = place_fabric(load_fabric(spec(**given)))
    return panel_plan(placed.topology, placed.wiring, placed.hardware())


def led(plan, exchanged=()):
    """The switch, port and socket at the other end of each, along ribbons, cassettes and trunks.

    Reads only what is bought and plugged: the words of types, and the trunks between sockets.
    exchanged: a cassette and two ports behind it whose plugs are in each other's place.
    """
    cables = plan.cables
    ends = np.stack(
        (plan.shuffle.cassette, plan.shuffle.front_port, plan.shuffle.lane, *plugs_of(cables))
    ).reshape(6, -1)
    at = {(p, f, k): (*plug,) for p, f, k, *plug in ends.T.tolist()}
    types = plan.shuffle.types
    words = [[text.split() for text in types[k][1]] for k in plan.shuffle.cassette_type]
    behind = {
        (p, word): (f, k)
        for p, rows in enumerate(words)
        for f, row in enumerate(rows)
        for k, word in enumerate(row)
    }
    used = np.bincount(plan.shuffle.trunk[plan.shuffle.trunk >= 0])
    sockets, plugs = {}, {}
    if exchanged:
        p, one, other = exchanged
        plugs = {(p, one): (p, other), (p, other): (p, one)}
    for t, (panels, places) in enumerate(
        zip(plan.shuffle.ends.tolist(), plan.shuffle.rear_ports.tolist(), strict=True)
    ):
        a, b = (plugs.get(s, s) for s in zip(panels, places, strict=True))
        sockets[a], sockets[b] = (b, t), (a, t)
    found = {}
    for (p, f, k), here in at.items():
        word = words[p][f][k]
        number, position = map(int, word[1:].split("."))
        if word[0] == "F":
            found[here] = at[p, number - 1, position - 1]
            continue
        (q, socket), trunk = sockets[p, number - 1]
        there = used[trunk] + 1 - position if plan.shuffle.is_reversed[trunk] else position
        if place := behind.get((q, f"T{socket + 1}.{there}")):
            found[here] = at[q, *place]
    return found


def plugs_of(cables):
    """The switch, port and socket of both ends of each cable."""
    return cables.ends, cables.ports, np.stack((cables.socket, cables.socket), axis=1)


def wanted(plan):
    pairs = np.stack(plugs_of(plan.cables), axis=2).tolist()
    return {tuple(x): tuple(y) for a, b in pairs for x, y in ((a, b), (b, a))}


MORE = [pytest.param(q, marks=pytest.mark.long) for q in (19, 23, 25, 27, 29)]


@pytest.mark.parametrize("trunk", ["mpo24"])
@pytest.mark.parametrize("q", [2, 5, 8, *MORE])
def test_fans_have_one_type_and_straight_trunks(q, trunk):
    plan = planned(q=q, trunk=trunk)
    assert led(plan) == wanted(plan)
    assert len(plan.shuffle.types) == plan.shuffle.fewest_types == 2
    assert not plan.shuffle.is_reversed.any()
    fans = [
        k
        for k, name in zip(plan.shuffle.cassette_type, plan.names, strict=True)
        if name.startswith("fan")
    ]
    assert len(set(fans)) == 1


@pytest.mark.parametrize("q", [4, 8, pytest.param(32, marks=pytest.mark.long)])
def test_stars_have_one_type_and_reversed_trunks(q):
    plan = planned(q=q, layout="stars")
    assert led(plan) == wanted(plan)
    assert len(plan.shuffle.types) == 3  # the nucleus, the star of the centres, all others
    kinds = np.sort(np.bincount(plan.shuffle.cassette_type))
    assert kinds.tolist() == [1, 1, q]
    alike = (
        plan.shuffle.cassette_type[plan.shuffle.ends]
        == np.argmax(np.bincount(plan.shuffle.cassette_type))
    ).all(axis=1)
    assert np.array_equal(plan.shuffle.is_reversed, alike)


@pytest.mark.parametrize(("trunk", "parallel"), [("mpo8", 1), ("mpo24", 3)])
@pytest.mark.parametrize(
    ("q", "supernode", "degree"),
    [
        (2, "inductive-quad", 3),
        (3, "inductive-quad", 4),
        *(pytest.param(q, "inductive-quad", 3, marks=pytest.mark.long) for q in (13, 16, 17)),
        (5, "bdf", 5),
    ],
)
def test_supernodes_have_two_types_and_reversed_trunks(q, supernode, degree, trunk, parallel):
    """Those of quadrics have more links inside; members are matched by an involution in all."""
    size = {"family": "polarstar", "q": q, "supernode": supernode, "degree": degree}
    plan = planned(**size, trunk=trunk, rack=2 * degree + 2, parallel=parallel)
    assert led(plan) == wanted(plan)
    assert len(plan.shuffle.types) == plan.shuffle.fewest_types == 2
    assert plan.shuffle.is_reversed.all()


@pytest.mark.parametrize("rack", [42, 210])
def test_racks_of_several_supernodes_take_no_more_types(rack):
    plan = planned(family="polarstar", q=4, supernode="inductive-quad", degree=4, rack=rack)
    assert led(plan) == wanted(plan)
    assert len(plan.shuffle.types) == plan.shuffle.fewest_types == 2
    assert plan.shuffle.is_reversed.all()


LARGE = [pytest.param(q, marks=pytest.mark.long) for q in (16, 17, 19, 23, 25, 27, 29, 31, 32)]


@pytest.mark.parametrize("q", [3, 4, *LARGE])
@pytest.mark.parametrize("family", ["pn", "oft", "slimfly"])
def test_parallel_classes_and_groups_have_one_type_and_straight_trunks(family, q):
    """But the rack at infinity, and for even q that of t = 0; minimal for odd q."""
    plan = planned(family=family, q=q, rack=200)
    assert led(plan) == wanted(plan)
    infinity = family != "slimfly"
    assert len(plan.names) == q + infinity
    assert len(plan.shuffle.types) == 1 + infinity + (q % 2 == 0)
    assert plan.shuffle.fewest_types == 1 + infinity
    assert np.bincount(plan.shuffle.cassette_type).max() == q - (q % 2 == 0)
    assert not plan.shuffle.is_reversed.any()


@pytest.mark.parametrize(
    ("given", "types"),
    [
        ({"family": "polarstar", "q": 3, "supernode": "complete", "degree": 3, "rack": 4}, 2),
        ({"family": "pn", "q": 4, "layout": "subplanes"}, 3),
        ({"family": "polarstar", "q": 5, "supernode": "paley", "degree": 2, "rack": 5}, 9),
        ({"family": "polarstar", "q": 3, "supernode": "paley", "degree": 6, "rack": 13}, 6),
        ({"q": 2, "layout": "stars"}, 3),
        ({"q": 5, "parallel": 2}, 2),
        ({"q": 4, "layout": "stars", "parallel": 2}, 6),
    ],
)
def test_links_of_other_families_lead_where_they_are_planned(given, types):
    plan = planned(**given)
    assert led(plan) == wanted(plan)
    assert len(plan.shuffle.types) == types
    assert not plan.shuffle.is_reversed[
        np.bincount(plan.shuffle.trunk[plan.shuffle.trunk >= 0]) == 1
    ].any()


@pytest.mark.parametrize(
    ("q", "trunks", "plugs"), [(7, 28, 170), (8, 28, 202), (11, 66, 398), (13, 104, 940)]
)
def test_plugs_and_trunks_are_those_counted_by_hand(q, trunks, plugs):
    """Ribbons: a switch has ceil((q + 1) / 12); trunks: one to twelve links of a pair of racks."""
    counts = panel_summary(planned(q=q))
    switches, links = q * q + q + 1, q * (q + 1) ** 2 // 2
    assert (counts["trunks"], counts["plugs"]) == (trunks, plugs)
    assert counts["ribbons"] == switches * -(-(q + 1) // 12)
    assert counts["plugs_of_direct_cables"] == 2 * links


@pytest.fixture(scope="module")
def example():
    return Fabric.from_spec(EXAMPLE).compile()


def lldp(folder, plan, exchanged=()):
    """What `lldpctl -f json` of each switch shows of its neighbours through ribbons and trunks."""
    name, port = plan.wiring.names, plan.wiring.port_name
    folder.mkdir(exist_ok=True)
    seen = {node: [] for node in name}
    for (v, here, _), (far, there, _) in led(plan, exchanged).items():
        heard = {"chassis": {name[far]: {}}, "port": {"id": {"value": port(far, there)}}}
        seen[name[v]].append({port(v, here): heard})
    for node, ports in seen.items():
        (folder / f"{node}.json").write_text(json.dumps({"lldp": {"interface": ports}}))
    return folder


def test_an_expansion_adds_cassettes_and_moves_nothing(example, tmp_path):
    larger = example.expand("quadric:1")
    before, after = (CableSchedule.of([build]).plans[0] for build in (example.build, larger.build))
    assert led(after) == wanted(after)
    assert after.names[: len(before.names)] == before.names
    assert after.shuffle.types[:2] == before.shuffle.types
    assert np.array_equal(
        after.shuffle.cassette_type[: len(before.shuffle.cassette_type)],
        before.shuffle.cassette_type,
    )
    new = {cord.label: cord for cord in cords(after)}
    assert all(new[cord.label] == cord for cord in cords(before))
    assert len(new) == 137
    assert len(after.shuffle.types) == after.shuffle.fewest_types == 5
    for plan, plugged in ((before, 224), (after, 288)):  # none moves before the new ones are in
        seen = WiringReport.of([larger.build], [lldp(tmp_path / "lldp", plan)], None)
        assert seen.as_dict()["right"] == plugged
        assert len(seen.audit.missing) == 288 - plugged
        assert {move.kind for move in seen.audit.moves} <= {"add"}


def test_two_exchanged_trunks_are_named(example, tmp_path):
    plan = CableSchedule.of(example.builds).plans[0]
    one, other = np.flatnonzero((plan.shuffle.ends == 3).any(axis=1))[[2, 4]].tolist()
    at = [int(plan.shuffle.rear_ports[t][plan.shuffle.ends[t] == 3][0]) for t in (one, other)]

    def seen(*exchanged):
        return check_wiring(example, [lldp(tmp_path / "lldp", plan, exchanged)])

    plugs = (
        f"{plan.trunk_label(t)} (port T{k + 1})" for t, k in zip((one, other), at, strict=True)
    )
    report = seen(3, *at)
    said = f"at fan3-P1 trunks {' and '.join(plugs)} are exchanged: swap their plugs"
    assert report.as_dict()["trunks"] == [said]
    assert len(report.audit.misplaced) == 10
    assert seen().good


def test_a_path_names_cassettes_and_trunks(example):
    assert cable_paths(example, [(0, 22), (22, 30), (30, 22)]) == [
        "s0 eth1 > fan4-P1 4.1 > fan4-P1 5.1 > s22 eth1",
        "s22 eth2 > fan4-P1 5.2 > T0010:3 > fan1-P1 2.5 > s30 eth5",
        "s30 eth5 > fan1-P1 2.5 > T0010:3 > fan4-P1 5.2 > s22 eth2",
    ]


def test_the_bill_has_cassettes_ribbons_and_trunks_in_place_of_cables(example):
    kinds = {}
    for item in CableSchedule.of(example.builds).bill():
        kinds[item.kind] = kinds.get(item.kind, 0) + item.quantity
    assert kinds == {
        "node": 57,
        "rack": 8,
        "connector": 448,
        "cassette": 8,
        "ribbon": 57,
        "trunk": 28,
    }


def test_a_trunk_that_holds_no_link_is_refused():
    given = spec(q=3, trunk="mpo8")
    given["inventory"]["node_types"]["t"]["ports"][0]["lanes"] = 8
    with pytest.raises(InputError, match="a trunk of 16 fibres at least"):
        Fabric.from_spec(given).compile()


def test_formats_of_panels_need_panels():
    fabric = Fabric.from_spec({"name": "x", "topology": {"family": "polarfly", "q": 3}}).compile()
    with pytest.raises(InputError, match="a fabric with panels"):
        "".join(cable_schedule(fabric).text("panels"))


def test_a_ribbon_of_more_links_than_a_trunk_holds_is_bought_as_several():
    plan = planned(q=13)
    bought = sum(item.quantity for item in bill_items(plan) if item.kind == "ribbon")
    assert bought == panel_summary(plan)["ribbons"] == 2 * 183


def test_a_ribbon_reaches_from_its_switch_to_the_top_of_the_rack():
    plan = planned(q=3, rack=100)
    metres = [cord.length_m for cord in cords(plan) if cord.kind == "ribbon"]
    assert min(metres) > 4  # 96 units of 44.45 mm


def test_a_fat_tree_has_an_even_radix():
    found = panel_summary(planned(q=4))
    assert (found["hosts"], found["fat_tree_radix"]) == (21, 8)


def test_cords_of_a_rack_end_in_it(example):
    (plan,) = CableSchedule.of(example.builds).plans
    schedule = CableSchedule.of(example.builds, rack="C1")
    of_rack = [cord for cord in cords(plan) if "C1" in (cord.a_rack, cord.b_rack)]
    listed = [line.split(",")[0] for line in "".join(schedule.text("panels")).splitlines()[1:]]
    assert listed == [cord.label for cord in of_rack]
    labels = "".join(schedule.text("labels"))
    assert all((cord.label in labels) == (cord in of_rack) for cord in cords(plan))
    netbox = "".join(schedule.text("netbox")).splitlines()
    trunks = {line.split(",")[8] for line in netbox if line.count("dcim.rearport") == 2}
    assert trunks == {cord.label for cord in of_rack if cord.kind == "trunk"}


def test_cables_with_links_missing_are_listed_and_checked_without_panels(tmp_path):
    given = spec(q=3)
    plan = planned(q=3)
    a, b = (plan.wiring.names[v] for v in plan.cables.ends[0])
    given["inventory"]["dead_links"] = [{"a": a, "b": b}]
    fabric = Fabric.from_spec(given).compile()
    schedule = CableSchedule.of(fabric.builds)
    listed = "".join(schedule.text("csv"))
    assert listed.count("\n") == 1 + 23
    assert "panels" not in schedule.summaries()[0]
    whole = json.loads("".join(schedule.text("json")))
    assert len(whole["schedule"]) == 23
    assert "bom" not in whole
    (tmp_path / "cables.csv").write_text(listed)
    assert check_wiring(fabric, [tmp_path / "cables.csv"]).good
    for form in ("panels", "bom", "labels"):
        with pytest.raises(InputError, match="links missing"):
            "".join(schedule.text(form))


def test_labels_of_cords_begin_with_the_plane():
    schedule = cable_schedule(Fabric.from_spec(spec(q=3) | {"planes": 2}))
    labels = [line.split(",")[0] for line in "".join(schedule.text("panels")).splitlines()[1:]]
    assert {label[:4] for label in labels} == {f"P{p}-{kind}" for p in (1, 2) for kind in "RT"}


def test_panels_are_counted_for_the_plane_that_has_all_links():
    """A dead link of plane 1 gave its summary the panels of plane 2."""
    given = spec(q=3) | {"planes": 2}
    given["inventory"]["dead_links"] = [{"a": "p1-n0", "b": "p1-n1"}]
    lacking, whole = cable_schedule(Fabric.from_spec(given)).summaries()
    assert "panels" not in lacking
    assert whole["panels"]


def test_a_path_names_the_members_of_a_port_with_parallel_cables():
    fabric = Fabric.from_spec(spec(q=3, parallel=2, ports=6)).compile()
    wiring = fabric.build.wiring
    for u, k in zip(*(ends.tolist() for ends in wiring.links()), strict=True):
        lines = cable_paths(fabric, [(u, int(wiring.far[u, k]))])
        port = int(wiring.port[u, k])
        near = [f"{wiring.names[u]} eth{2 * port - 1 + n}" for n in (0, 1)]
        assert [line.split(" > ")[0] for line in lines] == near
        assert len({line.split(" > ")[-1] for line in lines}) == 2


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("planes", [1, 2])
def test_cables_of_a_spec_are_those_of_its_build(planes, broken):
    given = spec(q=3) | {"planes": planes}
    if broken:
        del given["inventory"]["panels"]
        end = "p1-n" if planes > 1 else "n"
        given["inventory"]["dead_links"] = [{"a": f"{end}0", "b": f"{end}1"}]
    built = cable_schedule(Fabric.from_spec(given).compile())
    before_it_is_compiled = cable_schedule(Fabric.from_spec(given))
    forms = ["csv", "markdown", "netbox", "labels", "bom", "hosts", *([] if broken else ["panels"])]
    for form in forms:
        assert "".join(before_it_is_compiled.text(form)) == "".join(built.text(form))
    whole = built.summaries()
    for summary in whole:
        del summary["build"]
    assert before_it_is_compiled.summaries() == whole
