"""What switches need against what their types hold: node and number are named, all at once."""

import pytest

from compilers.capacity import needed_entries
from compilers.demand.fitted_tables import fit_to_demand
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.openflow.pipeline import Pipeline
from inventory.problems import InputError
from inventory.yamlfile import TextFile
from tests.compilers.routed import routed

FABRIC = """name: lab
topology: {family: polarfly, q: 3}
inventory: inventory.yaml
hosts_per_node: 2
"""


def compiled(folder, tables="{}", rest="", fabric=FABRIC, big="ovs"):
    nodes = "".join(f"  - {{name: n{i}, type: leaf}}\n" for i in range(12))
    (folder / "fabric.yaml").write_text(fabric)
    (folder / "inventory.yaml").write_text(
        f"node_types:\n  leaf: {{ports: [{{count: 6}}], tables: {tables}{rest}}}\n"
        f"nodes:\n{nodes}  - {{name: big, type: {big}}}\n"
    )
    return compile_fabric(load_fabric(folder / "fabric.yaml"))


def test_what_a_switch_needs(tmp_path):
    build = compiled(tmp_path)
    counts = needed_entries(build.tables, build.wiring, 1)
    assert set(counts["lpm_rows"].tolist()) == {12 + 2}
    assert counts["groups"].tolist() == build.topology.graph.degrees.tolist()
    assert set(counts["ecmp_width"].tolist()) == {1}
    assert set(needed_entries(build.tables, build.wiring, 2)["lpm_rows"].tolist()) == {28}


@pytest.mark.parametrize("tables", ["{lpm_rows: 14, groups: 4, ecmp_width: 1}", "{}"])
def test_enough(tmp_path, tables):
    compiled(tmp_path, tables)


def test_every_node_and_number(tmp_path):
    with pytest.raises(InputError) as caught:
        compiled(tmp_path, "{lpm_rows: 13, groups: 3, ecmp_width: 0}")
    texts = [str(p).removeprefix(f"{tmp_path}/") for p in caught.value.problems]
    assert texts[0] == (
        "inventory.yaml:4: nodes[0].type: required at most 13 LPM rows, the lpm_rows of leaf, "
        "given 14 at n0 (vertex 0); "
        "choose another type, a smaller fabric or a simpler routing policy"
    )
    assert (
        "inventory.yaml:14: nodes[…].type: required at most 13 LPM rows, the lpm_rows of leaf, "
        "given 2 more like these" in texts
    )
    assert sum("required at most 3 groups" in text for text in texts) == 9
    assert not any("big" in text for text in texts)
    assert all(("given 1 at" in t or "more" in t) for t in texts if "ports per group" in t)


@pytest.mark.parametrize(("system", "least"), [("ovs", 20), ("eos", 8)])
def test_groups_are_those_of_the_system(tmp_path, system, least):
    """On EOS a group for each egress class; on Open vSwitch one for each role of a class."""
    fabric = f"{FABRIC}system: {system}\nrouting: {{balance: compact-valiant}}\n"
    names = ", names: {eos: 'Ethernet{port}'}"
    compiled(tmp_path, f"{{groups: {least}}}", names, fabric, "leaf")
    with pytest.raises(InputError, match=f"at most {least - 1} groups, .* given {least} at"):
        compiled(tmp_path, f"{{groups: {least - 1}}}", names, fabric, "leaf")


def test_a_width_that_is_too_small_is_told_once(tmp_path):
    """Target eos counts the members of groups, too."""
    fabric = f"{FABRIC}system: eos\nrouting: {{balance: compact-valiant}}\n"
    names = ", names: {eos: 'Ethernet{port}'}"
    with pytest.raises(InputError) as caught:
        compiled(tmp_path, "{ecmp_width: 3}", names, fabric, "leaf")
    assert all("the ecmp_width of leaf" in str(each) for each in caught.value.problems)
    with pytest.raises(InputError, match="routes in two VRFs"):
        compiled(tmp_path, "{ecmp_width: 3, lpm_rows: 20}", names, fabric, "leaf")


def test_both_address_families_count(tmp_path):
    fabric = FABRIC + "addressing: {ipv6: 'fd00::/48'}\n"
    with pytest.raises(InputError, match="given 28 at n0"):
        compiled(tmp_path, "{lpm_rows: 27}", fabric=fabric)


def test_what_a_type_cannot_do(tmp_path):
    fabric = FABRIC + "addressing: {ipv6: 'fd00::/48'}\n"
    with pytest.raises(InputError) as caught:
        compiled(tmp_path, rest=", capabilities: [openflow]", fabric=fabric)
    assert "required a type that can do IPv6 (ipv6), given leaf at 12 nodes" in str(caught.value)


def test_a_build_without_inventory_is_not_checked(tmp_path):
    (tmp_path / "fabric.yaml").write_text(FABRIC.replace("inventory: inventory.yaml\n", ""))
    loaded = load_fabric(tmp_path / "fabric.yaml")
    assert loaded.inventory is None
    assert compile_fabric(loaded).hardware is None


def test_groups_of_shares_that_are_fitted_count():
    """Switches with as many shares spread them over fewer classes or more."""
    build = routed(q=5, spread=True, bounces=True, protect="node")
    flows = "".join(
        f"{s},{(7 * s * s + 3 * k) % 31},{1 + k}\n" for s in range(31) for k in range(3)
    )
    build = fit_to_demand(build, TextFile("d.csv", flows, ""), 1.0)
    pipeline = Pipeline(build)
    emitted = [sum(len(g.egress) for g in pipeline.groups(v)) for v in range(31)]
    assert needed_entries(build.tables, build.wiring, 1)["groups"].tolist() == emitted


def test_a_class_is_as_wide_as_its_port_and_those_that_protect_it(tmp_path):
    build = compiled(tmp_path, fabric=FABRIC + "routing: {protect: node}\n")
    held = build.tables.classes.protection.tolist()
    widths = [max(1 + sum(port > 0 for port in ports) for ports in classes) for classes in held]
    assert needed_entries(build.tables, build.wiring, 1)["ecmp_width"].tolist() == widths


def test_groups_that_openflow_takes_for_repair_count(tmp_path):
    fabric = FABRIC + "routing: {balance: compact-valiant, protect: node}\n"
    build = compiled(tmp_path, fabric=fabric)
    pipeline = Pipeline(build)
    emitted = [sum(len(g.egress) for g in pipeline.groups(v)) for v in range(13)]
    counts = needed_entries(build.tables, build.wiring, 1)
    assert counts["groups"].tolist() == emitted
    assert max(emitted) > 8
    assert needed_entries(build.tables, build.wiring, 1, openflow=False)["groups"].max() == 8
    assert counts["ecmp_width"].max() > 1
    with pytest.raises(InputError, match=f"given {emitted[0]} at n0"):
        compiled(tmp_path, f"{{groups: {min(emitted) - 1}}}", fabric=fabric)
