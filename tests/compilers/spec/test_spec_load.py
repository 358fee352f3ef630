"""What a right fabric.yaml and inventory.yaml become."""

import hashlib
import io
import json
import sys
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric, schema
from inventory.problems import InputError

EXAMPLE = Path(__file__).parents[3] / "examples" / "q7"
SMALLEST = "name: lab\ntopology: {family: polarfly, q: 7}\n"


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_smallest_fabric_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, SMALLEST)
    loaded = load_fabric("-")
    assert loaded.spec.topology.parameters() == {"q": 7}
    assert loaded.spec.addressing.ipv4 == IPv4Network("10.0.0.0/8")
    assert loaded.inventory is None
    assert loaded.inputs == {"fabric": hashlib.sha256(SMALLEST.encode()).hexdigest()}
    assert loaded.fabric_document.line(("topology", "q")) == 2


def test_inventory_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text(SMALLEST + 'hosts_per_node: 2\ninventory: "-"\n')
    stdin(monkeypatch, (EXAMPLE / "inventory.yaml").read_text())
    loaded = load_fabric(fabric)
    assert loaded.inventory is not None
    assert len(loaded.inventory.nodes) == 57
    stdin(monkeypatch, fabric.read_text())
    with pytest.raises(InputError, match="the fabric itself is read from standard input"):
        load_fabric("-")


def test_example() -> None:
    loaded = load_fabric(EXAMPLE / "fabric.yaml")
    lines = (EXAMPLE / "inventory.yaml").read_text().splitlines()
    assert loaded.inventory is not None
    assert loaded.inventory_document is not None
    assert loaded.inventory_document.file == str(EXAMPLE / "inventory.yaml")
    for i, node in enumerate(loaded.inventory.nodes):
        line = loaded.inventory_document.line(("nodes", i, "name"))
        assert f"name: {node.name}" in lines[line - 1]
    build = compile_fabric(loaded)
    assert build.wiring.datapath_id.tolist() == list(range(0x7001, 0x7001 + 57))
    assert build.wiring.port_name(0, 9) == "oio1/0"
    assert build.wiring.host_names[:4] == ("storage", "gpu0", "h1-0", "h1-1")
    assert build.addressing.mac(0, 0) == "52:54:00:12:34:56"
    assert build.addressing.mac(0, 1) == "02:00:00:00:00:02"
    assert str(build.addressing.network(56)) == "10.7.1.192/29"


def test_mac_addresses_follow_the_vertex(tmp_path: Path) -> None:
    """A node at a vertex of its own takes its hosts there; the others fill up in their order."""
    (tmp_path / "inventory.yaml").write_text(
        "node_types: {leaf: {ports: [{count: 4}]}}\nnodes:\n"
        "- {name: first, type: leaf}\n"
        "- {name: third, type: leaf, vertex: 0, hosts: [{mac: 52:54:00:12:34:56}]}\n"
        + "".join(f"- {{name: {i}, type: leaf}}\n" for i in range(2, 7))
    )
    (tmp_path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\n"
    )
    build = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    assert build.wiring.names == ("third", "first", "2", "3", "4", "5", "6")
    assert build.addressing.mac(0, 0) == "52:54:00:12:34:56"
    assert build.addressing.mac(1, 0) == "02:00:00:01:00:01"


def test_pool_that_just_fits(tmp_path: Path) -> None:
    """57 blocks of 4 addresses need a /24: one bit more is refused, and no sooner."""
    fabric = tmp_path / "fabric.yaml"
    for length, fits in ((24, True), (25, False)):
        fabric.write_text(SMALLEST + f"addressing: {{ipv4: 10.0.0.0/{length}}}\n")
        if fits:
            assert load_fabric(fabric).spec.addressing.ipv4.prefixlen == length
        else:
            with pytest.raises(InputError, match="a pool of /24 or larger"):
                load_fabric(fabric)


def test_words_that_yaml_guesses_about(tmp_path: Path) -> None:
    """Names are what the reader sees: 007, no, 1e3 and 7 are names, not other things."""
    (tmp_path / "inventory.yaml").write_text(
        "node_types: {0x10: {ports: [{count: 4}]}}\nnodes:\n"
        + "".join(
            f"- {{name: {word}, type: 0x10}}\n"
            for word in ("007", "no", "1e3", "7", "on", "2024-01-01", "1_0")
        )
    )
    (tmp_path / "fabric.yaml").write_text(
        "name: 1.0\ntopology: {family: polarfly, q: 2}\ninventory: inventory.yaml\n"
    )
    loaded = load_fabric(tmp_path / "fabric.yaml")
    assert loaded.spec.name == "1.0"
    assert loaded.inventory is not None
    names = [node.name for node in loaded.inventory.nodes]
    assert names == ["007", "no", "1e3", "7", "on", "2024-01-01", "1_0"]


def test_a_mapping_is_a_fabric() -> None:
    """A program's values: the same fabric as from files, with the inventory inside."""
    values = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 2},
        "addressing": {"ipv4": IPv4Network("10.0.0.0/16")},
        "inventory": {"generate": {"type": "copackaged-4x8"}},
    }
    loaded = load_fabric(values)
    assert loaded.inventory is not None
    assert loaded.spec.addressing.ipv4 == IPv4Network("10.0.0.0/16")
    assert "inventory" in values
    assert len(compile_fabric(loaded).wiring.names) == 7
    assert set(loaded.inputs) == {"fabric", "inventory"}
    assert load_fabric(values).inputs == loaded.inputs
    other = load_fabric({**values, "name": "other"}).inputs
    assert other["fabric"] != loaded.inputs["fabric"]
    assert other["inventory"] == loaded.inputs["inventory"]


def test_an_inventory_that_generates_nothing_has_no_nodes() -> None:
    """Found by the fuzzer of documents: it ended as a bug where vertices took nodes."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}
    with pytest.raises(InputError, match="the key nodes, given nothing"):
        load_fabric({**spec, "inventory": {"generate": None}})


def test_a_mapping_that_names_a_file() -> None:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 7}, "hosts_per_node": 2}
    loaded = load_fabric({**spec, "inventory": str(EXAMPLE / "inventory.yaml")})
    assert loaded.inventory is not None
    assert len(loaded.inventory.nodes) == 57
    with pytest.raises(InputError, match=r"^inventory: .* given no\.yaml, no such file"):
        load_fabric({**spec, "inventory": Path("no.yaml")})


def test_mistakes_in_a_mapping_are_said_of_keys() -> None:
    with pytest.raises(InputError) as caught:
        load_fabric(
            {
                "name": "lab",
                "topology": {"family": "polarfly", "q": 6},
                "inventory": {"node_types": {"a": {"ports": []}}, "nodes": [{"name": "x"}]},
                3: (),
            }
        )
    assert {(p.file, p.line) for p in caught.value.problems} == {("", 0)}
    keys = {p.key for p in caught.value.problems}
    assert keys == {"topology.q", "node_types.a.ports", "nodes[0].type", "3"}
    endless: dict[str, object] = {"name": "lab"}
    endless["topology"] = endless
    with pytest.raises(InputError, match="at most 50 levels"):
        load_fabric(endless)


@pytest.mark.parametrize("kind", ["fabric", "inventory"])
def test_schema_file_is_the_models(kind: str, pytestconfig: pytest.Config) -> None:
    """docs/schema is what an editor is pointed at; --update-golden writes it."""
    file = Path(__file__).parents[3] / "docs" / "schema" / f"{kind}.json"
    now = json.dumps(schema(kind), indent=2) + "\n"  # type: ignore[arg-type]
    if pytestconfig.getoption("--update-golden"):
        file.write_text(now)
    assert file.read_text() == now
