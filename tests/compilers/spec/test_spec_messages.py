"""Every message about a wrong fabric.yaml or inventory.yaml, as golden text."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from inventory.problems import InputError

BAD = runpy.run_path(str(Path(__file__).parent / "bad_fabrics.py"))
JARGON = (
    "pydantic",
    "validat",
    "dict",
    "str ",
    "int ",
    "NoneType",
    "tuple",
    "Traceback",
    "{required}",
)


def message(fabric: str | bytes, inventory: str | None = None) -> str:
    Path("fabric.yaml").write_bytes(fabric if isinstance(fabric, bytes) else fabric.encode())
    if inventory is not None:
        Path("inventory.yaml").write_text(inventory, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        compile_fabric(load_fabric("fabric.yaml"))
    text = str(caught.value)
    assert not [word for word in JARGON if word in text]
    assert all(len(line) < 320 for line in text.splitlines())
    assert all(p.file in ("fabric.yaml", "inventory.yaml") for p in caught.value.problems)
    return text


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder."""
    monkeypatch.chdir(tmp_path)


def test_fabric_messages(golden: Callable[[str, str], None]) -> None:
    texts = [f"[{name}]\n{message(text)}\n" for name, text in BAD["FABRICS"].items()]
    golden("\n".join(texts), "fabric-messages.txt")


def test_inventory_messages(golden: Callable[[str, str], None]) -> None:
    texts = [
        f"[{name}]\n{message(BAD['WITH'], text)}\n" for name, text in BAD["INVENTORIES"].items()
    ]
    golden("\n".join(texts), "inventory-messages.txt")


MANY_WRONG = """\
name: a lab
topology: {family: polarfyl, q: 6}
hosts_per_node: 2
addressing: {ipv4: 10.0.0.0/26, gateway_mac: 03:00:00:00:00:01}
routing: {balance: minimum, minimal_share: 2*q}
system: lynux
inventry: other.yaml
inventory: inventory.yaml
"""
MANY_WRONG_NODES = """\
node_types: {leaf: {ports: [{count: 12}], units: 0}}
racks: [{name: A}, {name: a, row: 1}]
nodes:
- {name: n0, type: leaf, rack: B}
- {name: n0, type: leaf, datapath_id: 7}
- {name: n2, type: leef, datapath_id: 7, vertex: 1}
- {name: n3, type: leaf, vertex: 1, hosts: [{}, {}, {}]}
- {name: n4, type: leaf, disabled_ports: [eth99]}
- {name: n5, type: leaf, management: sw5}
- {type: leaf}
dead_links: [{a: n0, b: n99}]
cables: [{a: n0, a_port: eth1, b: n3, b_port: e1}, {a: n5, a_port: eth1, b: m1, b_port: eth1}]
"""


def test_every_mistake_of_both_files_in_one_error() -> None:
    """None hides another, and where each is mended the pair compiles."""
    text = message(MANY_WRONG, MANY_WRONG_NODES)
    found = [line.split(": required")[0] for line in text.splitlines()]
    assert found == [
        "fabric.yaml:1: name",
        "fabric.yaml:2: topology.family",
        "fabric.yaml:2: topology.q",
        "fabric.yaml:4: addressing.gateway_mac",
        "fabric.yaml:4: addressing.ipv4",
        "fabric.yaml:5: routing.balance",
        "fabric.yaml:5: routing.minimal_share",
        "fabric.yaml:6: system",
        "fabric.yaml:7: inventry",
        "inventory.yaml:1: node_types.leaf.units",
        "inventory.yaml:2: racks[1].name",
        "inventory.yaml:2: racks[1]",
        "inventory.yaml:4: nodes[0].rack",
        "inventory.yaml:5: nodes[1].name",
        "inventory.yaml:6: nodes[2].type",
        "inventory.yaml:6: nodes[2].datapath_id",
        "inventory.yaml:7: nodes[3].vertex",
        "inventory.yaml:7: nodes[3].hosts",
        "inventory.yaml:8: nodes[4].disabled_ports[0]",
        "inventory.yaml:9: nodes[5].management",
        "inventory.yaml:10: nodes[6].name",
        "inventory.yaml:11: dead_links[0].b",
        "inventory.yaml:12: cables[0].b_port",
        "inventory.yaml:12: cables[1].b",
    ]


def test_all_mended_at_once_compiles() -> None:
    fabric = MANY_WRONG
    for wrong, right in (
        ("a lab", "lab"),
        ("polarfyl, q: 6", "polarfly, q: 7"),
        ("/26, gateway_mac: 03", "/23, gateway_mac: 06"),
        ("minimum, minimal_share: 2*q", "compact-valiant, minimal_share: 1/q"),
        ("lynux", "linux"),
        ("inventry: other.yaml\n", ""),
    ):
        assert wrong in fabric
        fabric = fabric.replace(wrong, right)
    nodes = MANY_WRONG_NODES
    more = "".join(f"- {{name: n{i}, type: leaf}}\n" for i in range(6, 57))
    for wrong, right in (
        ("units: 0", "units: 1"),
        ("{name: a, row: 1}", "{name: b}"),
        ("n0, type: leaf, rack: B", "n0, type: leaf, rack: b"),
        ("n0, type: leaf, datapath_id: 7", "n1, type: leaf, datapath_id: 107"),
        ("leef, datapath_id: 7, vertex: 1", "leaf, datapath_id: 108, vertex: 2"),
        ("[{}, {}, {}]", "[{}, {}]"),
        ("eth99", "eth12"),
        ("management: sw5", "management: 192.0.2.5"),
        ("- {type: leaf}\n", more),
        ("b: n99", "b: n39"),
        ("n3, b_port: e1}", "n37, b_port: eth1}"),
        ("b: m1, b_port: eth1", "b: n45, b_port: eth2"),
    ):
        assert wrong in nodes
        nodes = nodes.replace(wrong, right)
    Path("fabric.yaml").write_text(fabric)
    Path("inventory.yaml").write_text(nodes)
    assert len(compile_fabric(load_fabric("fabric.yaml")).wiring.names) == 57
    Path("inventory.yaml").write_text(nodes.replace("b: n45", "b: n44"))
    with pytest.raises(InputError, match="compile against the build that has the cable"):
        compile_fabric(load_fabric("fabric.yaml"))
