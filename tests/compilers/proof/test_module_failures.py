"""A module, rack or trunk dies: nothing promised is lost, and walks agree with an oracle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.proof.failures.failure_walks import walk_failures
from compilers.proof.failures.risk_cases import named_elements, require_kind
from compilers.proof.name_lookup import find_failures
from compilers.proof.proof_options import ProofOptions
from compilers.proof.remedies import remedy
from compilers.proof.verification import judge
from compilers.routing.plane_choices import with_plane_repairs
from compilers.spec.fabric_file import load_fabric
from compilers.wiring.shared_risk import resolve_name, risk_groups
from extensions.simulation.chosen_settings import settings_for
from inventory.problems import InputError
from polarfab.fabric import Fabric
from tests.compilers.modular import modular, on_modules
from tests.compilers.proof.oracle import ARRIVED, Oracle

pytestmark = pytest.mark.usefixtures("machine_code")
ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/q7-copackaged/fabric.yaml"


def lost_by_oracle(build, group):
    """Ordered pairs that lose packets on some path while a group is down, and the longest path."""
    found = Oracle(build, {frozenset(link) for link in group.links}, {*group.switches})
    lost, longest = set(), 0
    for s, d, paths in found.outcomes():
        for path, outcome in paths:
            if outcome == ARRIVED:
                longest = max(longest, len(path) - 1)
            else:
                lost.add((s, d))
    return lost, longest


@pytest.mark.parametrize(
    ("q", "modules", "routing", "kind"),
    [
        (3, 2, {"balance": "minimal"}, "module"),
        (3, 2, {"balance": "compact-valiant", "adjacent": "bounce"}, "module"),
        (3, 3, {"balance": "compact-valiant"}, "rack"),
        (3, 3, {"balance": "compact-valiant"}, "trunk"),
    ],
)
def test_walks_agree_with_the_oracle(q, modules, routing, kind):
    build = modular(q, modules, placement="spread", **routing)
    report = walk_failures(build, kind)
    known = risk_groups(build.wiring, build.hardware, kind)
    lost = [lost_by_oracle(build, group)[0] for group in known]
    assert report.cases == report.all_cases == len(known)
    assert report.lost_pairs == sum(map(len, lost))


@pytest.mark.parametrize(("q", "modules"), [(4, 2), (5, 3)])
def test_no_module_loses_a_pair(q, modules):
    """With the orders before this test, q = 7 lost 618 pairs on two modules, q = 8 280 on four."""
    report = walk_failures(modular(q, modules), "module")
    assert not report.lost_pairs
    assert report.max_hops <= (8 if q in (4, 8) else 6)


@pytest.mark.parametrize("modules", [2])
def test_two_links_or_switches_still_lose_nothing(modules):
    report = walk_failures(modular(4, modules), "2")
    assert report.cases == report.all_cases
    assert report.lost_pairs == report.cut_off == 0


@pytest.fixture(scope="module")
def example():
    return Fabric.from_spec(EXAMPLE).compile()


def test_orders_alone_keep_cables():
    """Filled modules: all links where they were, and fewer pairs lost."""
    build = modular(5, 4, 3, placement="filled")
    assert build.wiring.same_ports(replace(build, tables=by_turn(build)).wiring)
    assert walk_failures(replace(build, tables=by_turn(build)), "module").lost_pairs == 156
    assert walk_failures(build, "module").lost_pairs == 5


def by_turn(build):
    """The tables of a build as if all links were on one module."""
    return with_plane_repairs(build.tables, build.wiring)


def test_too_few_links_to_spread_beside_a_dead_module_are_refused_at_protect():
    """`compile` named an option of `verify`, which its user had not given."""
    build = on_modules({"family": "polarfly", "q": 3}, 3, 2, balance="spread", protect="module")
    with pytest.raises(InputError, match=r"routing\.protect: required fewer than 2 failures"):
        walk_failures(build, "module")


def test_protection_against_modules_needs_some():
    with pytest.raises(InputError, match="several modules"):
        on_modules({"family": "polarfly", "q": 5}, 1, 8, protect="module")
    with pytest.raises(InputError, match="several modules"):
        Fabric.from_spec(
            {
                "name": "lab",
                "topology": {"family": "polarfly", "q": 3},
                "routing": {"protect": "module"},
            }
        ).compile()


FOUR_AND_FOUR = (
    {"name": "a{}", "count": 4, "role": "fabric"},
    {"name": "b{}", "count": 4, "role": "any"},
)


def of_ports(q, ports, **routing):
    """A whole PolarFly on nodes of one type with these ports, and one for a host."""
    ports = [*ports, {"name": "h{}", "count": 1, "role": "host"}]
    inventory = {"node_types": {"leaf": {"ports": ports}}, "generate": {"type": "leaf"}}
    topology = {"family": "polarfly", "q": q}
    spec = {"name": "lab", "topology": topology, "routing": routing, "inventory": inventory}
    return compile_fabric(load_fabric(spec))


def test_other_policies_know_nothing_of_modules():
    """Orders for modules put the apex last: compile refused this build, and lost 116 pairs."""
    build = of_ports(4, FOUR_AND_FOUR, protect="node")
    (report,) = judge([build]).reports
    assert report.passed
    assert [case.lost_pairs for case in report.failures] == [0] * len(report.failures)
    assert [case.kind for case in report.failures][-1] == "2"
    classes, usual = build.tables.classes, by_turn(build).classes
    assert np.array_equal(classes.protection, usual.protection)
    assert np.array_equal(classes.bounce, usual.bounce)


def test_filled_modules_are_sound_without_protection_of_modules():
    (report,) = judge([modular(4, 2, 3, "filled", protect="link")]).reports
    assert report.passed
    assert report.unsound.count == 0


def test_where_orders_for_modules_fail_those_for_nodes_are_advised():
    for_modules, for_nodes = (
        modular(4, 2, 3, "filled", protect=kind) for kind in ("module", "node")
    )
    (report,) = judge([for_modules]).reports
    assert {case.kind for case in report.broken} == {"module", "2"}
    assert remedy(for_modules, report) == "routing: write `protect: node`, which holds"
    assert judge([for_nodes]).reports[0].passed


def test_planes_in_other_racks_are_walked_each(tmp_path):
    """Plane 2 has the tables of plane 1, and fewer racks: it copied the verdict of plane 1."""
    optics = {"name": "m{module}/{}", "modules": 6, "count": 1, "role": "fabric"}
    ports = [optics, {"name": "h{}", "count": 1, "role": "host"}]
    nodes = [{"name": f"a{v}", "plane": 1, "rack": f"S{v}"} for v in range(16)]
    nodes += [{"name": f"b{v}", "plane": 2, "rack": f"R{v // 4}"} for v in range(16)]
    nodes = [{**node, "type": "leaf", "vertex": v % 16} for v, node in enumerate(nodes)]
    racks = [{"name": name, "units": 8} for name in dict.fromkeys(n["rack"] for n in nodes)]
    types = {"leaf": {"ports": ports, "units": 1}}
    spec = {
        "name": "lab",
        "topology": {"family": "jellyfish", "nodes": 16, "degree": 5},
        "planes": 2,
        "routing": {"protect": "link"},
        "inventory": {"node_types": types, "nodes": nodes, "racks": racks},
    }
    fabric = Fabric.from_spec(spec).compile()
    assert fabric.builds[0].tables is fabric.builds[1].tables
    saved = fabric.save(tmp_path / "build", prove=False)
    for each in (fabric, saved):
        first, second = each.verify(failures=["rack", "trunk+rack"]).reports
        assert [case.all_cases for case in first.failures] == [16, 640]
        assert [case.all_cases for case in second.failures] == [4, 24]
        assert second.failures[0].lost_pairs == 6
    assert "rack" not in str(saved.proved[1])
    first, second = saved.verify(failures=["link"]).reports
    assert first.failures[0] is second.failures[0]


def test_what_a_plane_loses_is_named_as_in_this_plane():
    """Plane 2 forwards as plane 1, and named the failures of plane 1."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "planes": 2}
    fabric = Fabric.from_spec(spec).compile()
    kinds = ["link", "node", "2", "link+node", "module+node", "module"]
    for plane, report in zip(fabric.planes, fabric.verify(failures=kinds).reports, strict=True):
        names = plane.build.wiring.names
        for case in report.failures:
            assert case.losses
            for loss in case.losses:
                failed = loss.failed.split(" and ")
                assert plane.explain(names[loss.source], names[loss.destination], failed)


def risks(tmp_path, *listed):
    """A fabric's inventory file with these shared risks, and the spec that has it."""
    lines = "".join(f"  - {{name: {name}, fails: [{fails}]}}\n" for name, fails in listed)
    text = f"shared_risks:\n{lines}"
    (tmp_path / "groups.yaml").write_text(text)
    (tmp_path / "inventory.yaml").write_text(
        "node_types: {leaf: {ports: [{name: 'e{}', count: 8, role: any}]}}\n"
        f"generate: {{type: leaf}}\n{text}"
    )
    spec = tmp_path / "fabric.yaml"
    spec.write_text("name: lab\ntopology: {family: polarfly, q: 3}\ninventory: inventory.yaml\n")
    return spec


def test_shared_risks_of_one_name_are_refused(tmp_path):
    """The second took the place of the first, which no proof tried."""
    spec = risks(tmp_path, ("feed", "n0, n1"), ("duct", "n2"), ("feed", "n5"))
    said = r":{}: shared_risks\[2\].name.*no other shared risk.*also in line {}"
    with pytest.raises(InputError, match=r"inventory.yaml" + said.format(6, 4)):
        Fabric.from_spec(spec).compile()
    with pytest.raises(InputError, match=r"groups.yaml" + said.format(4, 2)):
        walk_failures(modular(3, 2), str(tmp_path / "groups.yaml"))


def test_shared_risks_are_not_nested(tmp_path):
    """One in itself ended in a traceback."""
    key = r":{}: shared_risks\[0\].fails\[1\]"
    for fails in ("risk:feed", "risk:other"):
        spec = risks(tmp_path, ("feed", f"n0, '{fails}'"))
        with pytest.raises(InputError, match=r"inventory.yaml" + key.format(4)) as refused:
            Fabric.from_spec(spec).compile()
        assert len(refused.value.problems) == 1
        with pytest.raises(InputError, match=r"groups.yaml" + key.format(2)):
            walk_failures(modular(3, 2), str(tmp_path / "groups.yaml"))


def test_a_build_that_loses_a_promised_module_is_refused():
    """The promise fails where orders know nothing of modules."""
    good = modular(4, 2)
    bad = replace(good, tables=by_turn(good))
    report = judge([bad], (), ProofOptions(failures=["module"])).reports[0]
    assert [case.kind for case in report.broken] == ["module"]
    assert not report.passed


def test_names_of_groups():
    build = modular(5, 4)
    names = [group.name for group in risk_groups(build.wiring, build.hardware, "module")]
    assert names[:4] == ["module:n0/m0", "module:n0/m1", "module:n0/m2", "module:n0/m3"]
    wiring = build.wiring
    group = resolve_name(wiring, build.hardware, "module:n0/m1")
    there = {
        wiring.port_name(s, int(wiring.port[s, k]))
        for s in (0,)
        for k in range(6)
        if tuple(sorted((0, int(wiring.far[0, k])))) in group.links
    }
    assert {name.split("/")[0] for name in there} == {"m1"}
    assert resolve_name(wiring, build.hardware, "module:0/m1") == group
    assert len(there) == len(group.links)
    assert resolve_name(wiring, build.hardware, "trunk:rack1-rack0").links == (
        resolve_name(wiring, build.hardware, "trunk:rack0-rack1").links
    )
    with pytest.raises(InputError, match="module:n0/m1"):
        resolve_name(wiring, build.hardware, "module:n0/m11")
    with pytest.raises(InputError, match="breakout"):
        risk_groups(wiring, build.hardware, "cage")
    with pytest.raises(InputError, match="inventory"):
        risk_groups(wiring, None, "module")


def test_the_group_of_a_rack_is_named_where_a_rack_was_meant():
    """`drain` and `explain` said nothing of it, and scenarios said it of any unknown name."""
    build = modular(5, 4)
    for look in (
        lambda word: resolve_name(build.wiring, build.hardware, word),
        lambda word: find_failures(build, word),
    ):
        with pytest.raises(InputError, match=r"given rack1; rack rack1 .* is group rack:rack1"):
            look("rack1")
        with pytest.raises(InputError) as error:
            look("rack99x")
        assert "is group" not in str(error.value)


def test_explain_under_a_dead_module():
    build = modular(5, 4)
    group = resolve_name(build.wiring, build.hardware, "module:n0/m1")
    dead = find_failures(build, "module:n0/m1")
    assert len(dead) == len(group.links)
    (other,) = {*group.links[0]} - {0}
    (path,) = explain(build, 0, other, dead).failing
    assert not path.fault
    assert not {tuple(sorted(pair)) for pair in zip(path.path, path.path[1:], strict=False)} & {
        *group.links
    }


def test_listed_risks(tmp_path):
    ports = [{"name": "e{}", "count": 8, "role": "fabric"}, {"name": "h{}", "count": 1}]
    inventory = {
        "node_types": {"leaf": {"ports": ports}},
        "generate": {"type": "leaf", "racks": {"units": 4}},
        "shared_risks": [
            {"name": "feed", "fails": ["n0", "rack:rack1"]},
            {"name": "duct", "fails": ["n0", "trunk:rack0-rack2"]},
        ],
    }
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "inventory": inventory}
    build = Fabric.from_spec(spec).compile().build
    far = int(build.wiring.far[0][0])
    inventory["shared_risks"][1]["fails"][0] = "n0-n99"
    with pytest.raises(InputError, match=r"shared_risks\[1\].fails\[0\]"):
        Fabric.from_spec(spec).compile()
    inventory["shared_risks"][1]["fails"][0] = f"n0-n{far}"
    build = Fabric.from_spec(spec).compile().build
    known = named_elements(build, "risk")
    assert [*known] == ["risk:feed", "risk:duct"]
    report = walk_failures(build, "risk")
    lost = [
        lost_by_oracle(build, group)[0]
        for group in risk_groups(build.wiring, build.hardware, "risk")
    ]
    assert report.lost_pairs == sum(map(len, lost)) > 0

    file = tmp_path / "risks.yaml"
    file.write_text("shared_risks:\n  - {name: duct, fails: [n0-n99]}\n")
    with pytest.raises(InputError, match=r"risks.yaml:2: shared_risks\[0\].fails"):
        walk_failures(build, str(file))
    file.write_text(f"shared_risks:\n  - {{name: duct, fails: [n0-n{far}]}}\n")
    assert walk_failures(build, str(file)).losses[0].failed == "duct"


def test_several_kinds_at_once():
    build = modular(3, 2)
    report = walk_failures(build, "module+node", sample=10**6)
    assert report.cases == report.all_cases == 26 * 13
    assert walk_failures(build, "module+module", sample=50).cases == 50
    assert walk_failures(build, "module+module", sample=1).all_cases == 26 * 25 // 2
    for wrong in ("modul", "module+", "4", "module+2"):
        with pytest.raises(InputError, match="required"):
            require_kind(wrong)


TABLE = [
    (("module",), "| a module | {} | 0 | {} links |"),
    (("rack", "trunk"), "| a rack; all cables between two racks | {}; {} | 0 | {}; {} |"),
    (
        ("module+module", "module+node"),
        "| two modules; a module and a node | {}; {} | 0 | {}; {} |",
    ),
]


@pytest.mark.parametrize(("kinds", "row"), TABLE)
def test_the_table_of_the_page_is_what_is_measured(example, kinds, row):
    found = [walk_failures(example.build, kind, sample=10**6) for kind in kinds]
    assert not any(report.lost_pairs or report.cut_off for report in found)
    figures = *(f"{report.cases:,}" for report in found), *(report.max_hops for report in found)
    assert row.format(*figures) in (ROOT / "docs/concepts/failures.md").read_text()


def test_the_library_takes_names_of_groups():
    """A simulation takes what `explain --fail` takes."""
    build = modular(5, 4)
    group = resolve_name(build.wiring, build.hardware, "module:n3/m1")
    module, node = settings_for(build, fail=[("module:n3/m1", 5), ("n3", 7)]).failures
    assert {*module.links} == {*group.links}
    assert len(node.links) == np.count_nonzero(build.wiring.far[3] >= 0)


@pytest.mark.parametrize(
    ("topology", "modules", "size", "filled", "spread"),
    [
        ({"family": "pn", "q": 3}, 2, 2, 59, 28),
    ],
)
def test_what_modules_cost_other_families(topology, modules, size, filled, spread):
    """No promise, so counted."""
    before = on_modules(topology, modules, size, "filled", protect="module")
    assert walk_failures(before, "module").lost_pairs == filled
    build = on_modules(topology, modules, size, protect="module")
    assert walk_failures(build, "module").lost_pairs == spread
