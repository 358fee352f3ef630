"""fabric.yaml and inventory.yaml of a larger fabric: compiled again, they change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from compilers.expansion.grown_files import grown_files
from compilers.update.compare import compare
from polarfab.fabric import Fabric

SPEC = {"name": "hall", "topology": {"family": "polarfly", "q": 2}}
RACKED = {
    "node_types": {"leaf": {"ports": [{"name": "p{}", "count": 8}]}},
    "racks": [{"name": "A", "units": 5}, {"name": "B", "units": 5}],
    "nodes": [{"name": f"n{n}", "type": "leaf", "serial": f"S{n}"} for n in range(7)],
}
GENERATED = {"node_types": RACKED["node_types"], "generate": {"type": "leaf", "name": "s{}"}}


@pytest.mark.parametrize("inventory", [None, RACKED, GENERATED], ids=["none", "racks", "generate"])
@pytest.mark.parametrize("clusters", ["nucleus:1", "fan:1"])
def test_the_files_of_a_larger_fabric_compile_to_its_build(
    inventory: dict[str, object] | None, clusters: str, tmp_path: Path
) -> None:
    small = Fabric.from_spec(SPEC, inventory).compile()
    assert small.loaded is not None
    larger = small.expand(clusters).build
    place = tmp_path / "larger-inventory.yaml"
    spec, hardware = grown_files(small.loaded, small.builds, (larger,), place)
    place.write_text(hardware)
    (tmp_path / "larger-fabric.yaml").write_text(spec)
    assert yaml.safe_load(spec)["topology"]["clusters"] == clusters
    again = Fabric.from_spec(tmp_path / "larger-fabric.yaml").compile(Fabric.of(larger)).build
    differ = compare(larger, again)
    assert {word for word in differ.facts if not word.startswith("input")} == set()
    assert (differ.cables_added, differ.hosts_moved, differ.renumbered, differ.renamed) == ((),) * 4
    assert not any(differ.switches)
    assert again.allocations.of("link") == larger.allocations.of("link")


def test_labels_stay_when_a_fabric_grows() -> None:
    small = Fabric.from_spec(SPEC, RACKED).compile()
    larger = small.expand("nucleus:1")
    labels = small.build.allocations.of("cable").used
    assert labels.items() < larger.build.allocations.of("cable").used.items()


def test_no_new_cable_is_plugged_into_a_disabled_port(tmp_path: Path) -> None:
    nodes = [node | {"disabled_ports": ["p4"]} for node in RACKED["nodes"]]
    fabric = Fabric.from_spec(SPEC, RACKED | {"nodes": nodes}).compile()
    fabric.save(tmp_path / "build", False)
    for small in (fabric, Fabric.load(tmp_path / "build")):
        wiring = small.expand("fan:1").build.wiring
        ports = {wiring.port_name(v, n) for v in range(7) for n in wiring.port[v].tolist() if n}
        assert len(ports) > 3
        assert "p4" not in ports
