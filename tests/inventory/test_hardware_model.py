"""Port blocks, the library of types, and every message about racks and cables."""

from collections.abc import Callable
from pathlib import Path

import pytest

from inventory.inventory_file import load_inventory
from inventory.library import library_names, library_type
from inventory.model import PortBlock
from inventory.problems import InputError

BASE = """node_types:
  leaf: {ports: [{name: "e{}", count: 4, role: fabric}, {name: h1, count: 1, role: host}], units: 2}
racks:
  - {name: A, units: 4}
  - {name: B, units: 4}
nodes:
  - {name: n0, type: leaf, rack: A}
  - {name: n1, type: leaf, rack: A}
  - {name: n2, type: leaf, rack: B, unit: 1}
  - {name: n3, type: leaf}
"""
WRONG = {
    "rack unknown": BASE.replace("rack: B", "rack: b"),
    "rack over capacity": BASE.replace("leaf, rack: B, unit: 1", "leaf, rack: A"),
    "rack twice": BASE.replace("name: B", "name: a"),
    "one of two racks": BASE.replace("name: B", "name: A")
    .replace("rack: B, unit: 1", "rack: A, hosts: [{rack: A, unit: 5}]")
    .replace("n3, type: leaf", "n3, type: leaf, rack: C"),
    "place twice": BASE.replace("{name: B,", "{name: B, row: 0, column: 0,"),
    "half a place": BASE.replace("{name: B,", "{name: B, row: 1,"),
    "unit beyond": BASE.replace("unit: 1", "unit: 4"),
    "unit taken": BASE.replace("n3, type: leaf", "n3, type: leaf, rack: B, unit: 2"),
    "unit without rack": BASE.replace("n3, type: leaf", "n3, type: leaf, unit: 2"),
    "values": BASE.replace("n3, type: leaf", "n3, type: leaf, unit: 0, guid: 7, serial: ''"),
    "serial and guid twice": BASE.replace(
        "n0,", "n0, serial: S, guid: 0x0000000000000001,"
    ).replace("n1,", "n1, serial: s, guid: '0000:0000:0000:0001',"),
    "cables": BASE
    + """cables:
  - {a: n0, a_port: e1, b: n1, b_port: e1}
  - {a: n0, a_port: e1, b: n2, b_port: e1}
  - {a: n0, a_port: e2, b: n0, b_port: e3}
  - {a: m0, a_port: e2, b: n2, b_port: h1}
  - {a: n1, a_port: e9, b: n2, b_port: e2, type: smv, length: -1}
  - {a: n1, a_port: e3, b: n2, b_port: e3, type: smv}
  - {a: n1, b: n2}
""",
    "host places": """node_types: {leaf: {ports: [{count: 4}]}}
racks: [{name: r1, units: 4}]
nodes:
  - {name: n0, type: leaf, hosts: [{unit: 2}, {rack: r2}, {rack: r1, unit: 5}, {rack: r1}]}
""",
    "cabling": BASE
    + """cabling:
  slack: long
  types: [{name: x, media: copper}]
""",
    "lengths": BASE
    + """cabling:
  types: [{name: x, lengths: [3, 1]}, {name: x, lengths: [1], colour: red}]
""",
    "lengths again": BASE
    + "cabling: {types: [{name: x, lengths: [3, 1]}, {name: x, lengths: [0]}]}\n",
    "placement": BASE + "placement: {layout: fan, order: short}\n",
    "both": BASE + "generate: {type: leaf}\n",
    "generate": "generate: {type: swich-64, name: n, racks: {name: r, units: 1}}\n",
    "generate no names": "generate: {type: ovs, name: 'n/{}', racks: {name: 'r{lane}{}'}}\n",
    "generate too low": "generate: {type: switch-64, racks: {units: 1}}\n",
    "library mistyped": "nodes: [{name: n0, type: copackaged-4x9}]\n",
    "port block": BASE.replace("count: 4,", "count: 4, modules: 0, breakout: 17, speed: fast,"),
    "module numbers": BASE.replace('"e{}", count: 4,', '"e{module}", count: 4, modules: 2,'),
    "capability": BASE.replace("units: 2}", "units: 2, capabilities: [ipv7], tables: {rows: 1}}"),
}


def test_messages(tmp_path, monkeypatch, golden: Callable[[str, str], None]) -> None:
    monkeypatch.chdir(tmp_path)
    texts = []
    for name, text in WRONG.items():
        Path("i.yaml").write_text(text)
        with pytest.raises(InputError) as caught:
            load_inventory("i.yaml")
        texts.append(f"[{name}]\n{caught.value}\n")
    golden("\n".join(texts), "hardware-messages.txt")


@pytest.mark.parametrize(
    ("block", "names"),
    [
        ({"name": "eth{}", "count": 2}, ["eth1", "eth2"]),
        ({"name": "oio{module}/{}", "modules": 2, "count": 2, "first": 0},
         ["oio0/0", "oio0/1", "oio1/0", "oio1/1"]),
        ({"name": "Ethernet{}", "first": 0, "step": 4, "modules": 2, "count": 2},
         ["Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12"]),
        ({"name": "Ethernet{}", "first": 0, "step": 2, "count": 2, "breakout": 2},
         ["Ethernet0", "Ethernet2", "Ethernet4", "Ethernet6"]),
        ({"name": "et-0/0/{}:{lane}", "first": 0, "count": 2, "breakout": 2},
         ["et-0/0/0:0", "et-0/0/0:1", "et-0/0/1:0", "et-0/0/1:1"]),
    ],
)  # fmt: skip
def test_names_of_ports(block, names) -> None:
    assert PortBlock(**block).port_names() == names
    assert PortBlock(**block).total == len(names)


@pytest.mark.parametrize("name", library_names())
def test_library(name: str) -> None:
    node_type = library_type(name)
    names = [port for block in node_type.ports for port in block.port_names()]
    assert len(set(names)) == len(names)
    fabric = sum(block.total for block in node_type.ports if block.role != "host")
    assert (
        fabric
        == {
            "copackaged-4x8": 32,
            "copackaged-6x8": 48,
            "switch-32": 32,
            "switch-64": 64,
            "switch-128": 128,
            "ovs": 256,
            "infiniband-40": 40,
        }[name]
    )


def test_types_of_the_library_join_those_of_the_file(tmp_path) -> None:
    text = BASE.replace("n3, type: leaf", "n3, type: ovs")
    (tmp_path / "i.yaml").write_text(text)
    inventory, _ = load_inventory(tmp_path / "i.yaml")
    assert list(inventory.node_types) == ["leaf", "ovs"]
