"""`validate` and `compile` name the links that disabled ports leave out, and what that costs."""

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


@pytest.mark.parametrize("verb", ["validate", "compile"])
def test_lost_links_are_named_and_priced(polarfab, spec, tmp_path, verb):
    more = ("-o", tmp_path / "build") if verb == "compile" else ()
    code, _out, err = polarfab(verb, spec, *more)
    assert code == 0
    lines = [line for line in err.splitlines() if line.startswith("lost link: n3 ")]
    assert len(lines) == 2
    assert all("of n3 is disabled, and no spare port is like it" in line for line in lines)
    assert "without them: at most 3 hops, not 2; " in err


def test_json_lists_them(polarfab, spec):
    code, out, _ = polarfab("validate", spec, "--json")
    assert (code, len(json.loads(out)["lost_links"])) == (0, 2)
