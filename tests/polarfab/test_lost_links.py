"""`check spec` and `compile` name the links that disabled ports leave out, and what that costs."""

import json

import pytest
import yaml


@pytest.fixture
def spec(tmp_path):
    """PolarFly q = 4 with one spare fabric port a node; three ports of n3 are disabled."""
    ports = [
        {"name": "eth{}", "count": 6, "role": "fabric"},
        {"name": "h{}", "count": 1, "role": "host"},
    ]
    nodes = [{"name": f"n{v}", "type": "leaf"} for v in range(21)]
    nodes[3]["disabled_ports"] = ["eth1", "eth2", "eth3"]
    inventory = {"node_types": {"leaf": {"ports": ports}}, "nodes": nodes}
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(inventory))
    file = tmp_path / "fabric.yaml"
    file.write_text("name: lab\ntopology: {family: polarfly, q: 4}\ninventory: inventory.yaml\n")
    return file


@pytest.mark.parametrize("verb", ["check spec", "compile"])
def test_lost_links_are_named_and_priced(polarfab, spec, tmp_path, verb):
    more = ("-o", tmp_path / "build") if verb == "compile" else ()
    code, _out, err = polarfab(*verb.split(), spec, *more)
    assert code == 0
    lines = [line for line in err.splitlines() if line.startswith("lost link: n3 ")]
    assert len(lines) == 2
    assert all("of n3 is disabled, and no spare port is like it" in line for line in lines)
    assert "without them: at most 3 hops, not 2; " in err


def test_json_lists_them(polarfab, spec):
    code, out, _ = polarfab("check", "spec", spec, "--json")
    assert (code, len(json.loads(out)["lost_links"])) == (0, 2)


LEAF = {
    "ports": [
        {"name": "eth{}", "count": 6, "role": "fabric"},
        {"name": "h{}", "count": 2, "role": "host"},
    ],
    "host_count": 2,
}


def described(folder, nodes, **more):
    """A spec of PolarFly q = 3, 13 vertices, with these nodes."""
    listed = {"node_types": {"leaf": LEAF}, "nodes": [{"type": "leaf", **n} for n in nodes]}
    (folder / "inventory.yaml").write_text(yaml.safe_dump(listed | more))
    file = folder / "fabric.yaml"
    file.write_text(
        "name: lab\ntopology: {family: polarfly, q: 3}\n"
        "hosts_per_node: 2\ninventory: inventory.yaml\n"
    )
    return file


REAL = [{"name": f"n{v}"} for v in range(13)]
PLANNED = [{"name": f"new{v}", "state": "planned"} for v in range(3)]
RACKS = [{"name": "A", "units": 20}, {"name": "B", "units": 20}]


@pytest.mark.parametrize(("order", "racked"), [(1, False), (-1, True)])
def test_real_nodes_come_before_planned_ones(polarfab, tmp_path, order, racked):
    nodes = (PLANNED + REAL)[::order]
    more = {}
    if racked:
        nodes = [n | {"rack": "AB"[n["name"] < "new"]} for n in nodes]
        more["racks"] = RACKS
    spec = described(tmp_path, nodes, **more)
    code, out, err = polarfab("check", "spec", spec, "--json")
    found = json.loads(out)
    assert (code, found["hosts"], found["lost_hosts"], err) == (0, 26, [], "")
    assert sorted(found["spares"]) == ["new0", "new1", "new2"]
    code, out, _ = polarfab("compile", spec, "-o", tmp_path / "build", "--json")
    assert (code, json.loads(out)["hosts"]) == (0, 26)


def test_planned_nodes_of_an_earlier_build_give_way_to_real_ones(polarfab, tmp_path):
    spec = described(tmp_path, REAL[:11] + PLANNED[:2])
    assert polarfab("compile", spec, "-o", tmp_path / "build")[0] == 0
    spec = described(tmp_path, PLANNED[:2] + REAL[:12])
    words = spec, "--from", tmp_path / "build", "--json"
    code, out, _ = polarfab("check", "spec", *words)
    assert (code, json.loads(out)["spares"], json.loads(out)["hosts"]) == (0, ["new1"], 24)
    code, out, _ = polarfab("compile", *words, "-o", tmp_path / "next")
    assert (code, json.loads(out)["hosts"]) == (0, 24)


def test_a_real_node_with_hosts_and_no_vertex_is_named(polarfab, tmp_path):
    spec = described(tmp_path, [*REAL, {"name": "n13"}])
    for verb, more in (("check spec", ()), ("compile", ("-o", tmp_path / "build"))):
        _, _, err = polarfab(*verb.split(), spec, *more)
        assert "lost host: 2 hosts of n13, which is a spare: 14 nodes are listed" in err
    assert len(json.loads(polarfab("check", "spec", spec, "--json")[1])["lost_hosts"]) == 1


def test_hosts_at_disabled_ports_are_named(polarfab, tmp_path):
    nodes = [*REAL[:12], {"name": "n12", "disabled_ports": ["h2"]}]
    spec = described(tmp_path, nodes)
    for verb, more in (("check spec", ()), ("compile", ("-o", tmp_path / "build"))):
        _, _, err = polarfab(*verb.split(), spec, *more)
        line = "lost host: h12-1: h2 of n12 is disabled, and no spare port is like it\n"
        assert line in err
    found = json.loads(polarfab("check", "spec", spec, "--json")[1])
    assert (found["hosts"], len(found["lost_hosts"]), found["lost_links"]) == (25, 1, [])


def test_a_file_may_have_hosts_of_planned_spares(polarfab, tmp_path):
    lines = [f"h{v},{node['name']}" for v, node in enumerate([*REAL, *PLANNED])]
    (tmp_path / "hosts.csv").write_text("\n".join(["name,switch", *lines]))
    spec = described(tmp_path, PLANNED + REAL, hosts="hosts.csv")
    code, out, err = polarfab("check", "spec", spec, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["hosts"] == 13
    spec = described(tmp_path, [*REAL, {"name": "new0"}, *PLANNED[1:]], hosts="hosts.csv")
    code, _, err = polarfab("check", "spec", spec)
    message = "a node of the fabric as switch, given new0; it is a spare: the inventory lists more"
    assert (code, message in err) == (2, True)
    assert "hosts.csv:15: hosts: " in err
