"""fabric.yaml and inventory.yaml of a larger fabric: compiled again, they change nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
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
    again = compiled_again(Fabric.from_spec(SPEC, inventory).compile(), clusters, tmp_path)
    assert again.build.topology.parameters["clusters"] == clusters


def compiled_again(small: Fabric, clusters: str, folder: Path) -> Fabric:
    """The larger fabric, compiled from its files; nothing differs from what `expand` made."""
    assert small.loaded is not None
    larger = small.expand(clusters).build
    place = folder / "larger-inventory.yaml"
    spec, hardware = grown_files(small.loaded, small.builds, (larger,), place)
    place.write_text(hardware)
    (folder / "larger-fabric.yaml").write_text(spec)
    again = Fabric.from_spec(folder / "larger-fabric.yaml").compile(Fabric.of(larger))
    differ = compare(larger, again.build)
    assert {word for word in differ.facts if not word.startswith("input")} == set()
    assert (differ.cables_added, differ.hosts_moved, differ.renumbered, differ.renamed) == ((),) * 4
    assert not any(differ.switches)
    assert np.array_equal(again.build.wiring.host_port, larger.wiring.host_port)
    assert again.build.allocations.of("link") == larger.allocations.of("link")
    return again


def test_new_switches_have_as_many_hosts_as_most_of_their_type(tmp_path: Path) -> None:
    """Leaves have two hosts, but one has three; spines have none. A spare lists one host."""
    ports = [{"name": "p{}", "count": 12}]
    types = {"leaf": {"ports": ports, "host_count": 2}, "spine": {"ports": ports, "host_count": 0}}
    nodes = [{"name": f"n{n}", "type": "spine" if n % 2 else "leaf"} for n in range(7)]
    nodes[0]["host_count"] = 3
    small = Fabric.from_spec(SPEC | {"hosts_per_node": 3}, {"node_types": types, "nodes": nodes})
    again = compiled_again(small.compile(), "fan:1", tmp_path)
    wiring = again.build.wiring
    assert len(wiring.names) > 7
    by_type = {"leaf": 2, "spine": 0}
    new = [by_type[wiring.type_names[t]] for t in wiring.node_type[7:].tolist()]
    counts = (wiring.host_port > 0).sum(axis=1).tolist()
    assert counts == [3, 0, 2, 0, 2, 0, 2, *new]
    assert {*new} == {0, 2}


def test_a_file_of_hosts_names_those_of_new_switches(tmp_path: Path) -> None:
    rows = "".join(f"db{n},n{n}\n" for n in range(6))
    (tmp_path / "hosts.csv").write_text(f"name,switch\n{rows}")
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(RACKED | {"hosts": "hosts.csv"}))
    spec = SPEC | {"inventory": "inventory.yaml", "hosts_per_node": 2}
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(spec))
    again = compiled_again(Fabric.from_spec(tmp_path / "fabric.yaml").compile(), "fan:1", tmp_path)
    assert (again.build.wiring.host_port > 0).sum(axis=1).tolist()[5:] == [1, 0, 0, 0, 0]


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
