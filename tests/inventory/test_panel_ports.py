"""Cassettes in NetBox: links followed by its rules are those of the wiring, and all comes back."""

import csv

import numpy as np
import pytest
import yaml

from compilers.cabling.panel_plan import panel_plan
from compilers.spec.fabric_file import load_fabric
from compilers.wiring.placed_fabric import place_fabric
from inventory.netbox.netbox_file import read_netbox
from inventory.problems import InputError
from polarfab.commands.hardware.inventory import command
from tests.compilers.cabling.test_panel_plan import spec
from tests.inventory.makers import export, imported

FABRICS = {
    "straight": spec(q=5, rack=6),
    "several trunks": spec(q=7, trunk="mpo8"),
    "stars": spec(q=4, layout="stars"),
    "reversed": spec(
        family="polarstar", q=3, supernode="inductive-quad", degree=3, rack=8, trunk="mpo8"
    ),
}
FABRICS["straight"]["inventory"]["dead_links"] = [{"a": "n0", "b": "n1"}]


@pytest.fixture(scope="module", params=FABRICS)
def fabric(request, tmp_path_factory):
    """A fabric's file, and beside it the folder `one` with what was exported of it."""
    given, folder = FABRICS[request.param], tmp_path_factory.mktemp("panels")
    path = folder / "fabric.yaml"
    path.write_text(yaml.safe_dump(given | {"inventory": "inventory.yaml"}))
    (folder / "inventory.yaml").write_text(yaml.safe_dump(given["inventory"]))
    export(path, folder / "one")
    return path


def links(placed):
    """Both ends of each link, by the names of node and port."""
    wiring = placed.wiring
    tail, link = wiring.links()
    return {
        frozenset(
            {
                (wiring.names[u], wiring.port_name(u, wiring.port[u, k])),
                (wiring.names[v := wiring.far[u, k]], wiring.port_name(v, wiring.far_port[u, k])),
            }
        )
        for u, k in zip(tail.tolist(), link.tolist(), strict=True)
    }


def paths(folder):
    """The links that NetBox finds in these files: `CablePath.from_origin` of 4.6.8, no profiles.

    A front port leads to its mapped rear port, whose position is pushed if it has several; a rear
    port with several pops one, and leads to the front port there.
    """
    types = {}
    for file in (folder / "device-types").glob("*.yaml"):
        data = yaml.safe_load(file.read_text())
        types[data["model"]] = data
    devices = {row["name"]: row for row in csv.DictReader((folder / "devices.csv").open())}
    cables = {}
    for row in csv.DictReader((folder / "cables.csv").open()):
        a, b = (tuple(row[f"side_{e}_{w}"] for w in ("device", "type", "name")) for e in "ab")
        assert a not in cables, row
        assert b not in cables, row
        cables[a], cables[b] = b, a
    found = set()
    for start in [plug for plug in cables if plug[1] == "dcim.interface"]:
        at, stack = cables[start], []
        while at[1] != "dcim.interface":
            device, kind, name = at
            data = types[devices[device]["device_type"]]
            positions = {port["name"]: port["positions"] for port in data["rear-ports"]}
            assert name in ({p["name"] for p in data["front-ports"]} | {*positions})
            if kind == "dcim.frontport":
                (entry,) = (m for m in data["port-mappings"] if m["front_port"] == name)
                if positions[entry["rear_port"]] > 1:
                    stack.append(entry["rear_port_position"])
                at = cables[device, "dcim.rearport", entry["rear_port"]]
            else:
                place = stack.pop() if positions[name] > 1 else 1
                (entry,) = (
                    m
                    for m in data["port-mappings"]
                    if (m["rear_port"], m["rear_port_position"]) == (name, place)
                )
                at = cables[device, "dcim.frontport", entry["front_port"]]
        found.add(frozenset({(start[0], start[2]), (at[0], at[2])}))
        assert not stack
    return found


def test_netbox_finds_every_link(fabric):
    placed = place_fabric(load_fabric(fabric))
    assert paths(fabric.parent / "one") == links(placed)


def test_a_fabric_with_cassettes_comes_back(fabric, tmp_path):
    before, exported = place_fabric(load_fabric(fabric)), fabric.parent / "one"
    imported(exported, tmp_path / "inventory.yaml")
    (tmp_path / "fabric.yaml").write_text(fabric.read_text())
    after = place_fabric(load_fabric(tmp_path / "fabric.yaml"))
    assert links(after) == links(before)
    dead = [[{d.a, d.b} for d in placed.inventory.dead_links] for placed in (before, after)]
    assert dead[0] == dead[1]
    plans = [panel_plan(p.topology, p.wiring, p.hardware()) for p in (before, after)]
    words = "cassette", "front_port", "lane", "trunk", "position", "ends", "rear_ports"
    for word in (*words, "is_reversed"):
        np.testing.assert_array_equal(*(getattr(plan.shuffle, word) for plan in plans))
    assert plans[0].shuffle.types == plans[1].shuffle.types
    export(tmp_path / "fabric.yaml", tmp_path / "two")
    for name in sorted(path.relative_to(exported) for path in exported.rglob("*.*")):
        assert (exported / name).read_text() == (tmp_path / "two" / name).read_text()


def test_exchanged_trunks_and_a_missing_one_change_links(tmp_path):
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text(yaml.safe_dump(FABRICS["straight"] | {"inventory": "inventory.yaml"}))
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(FABRICS["straight"]["inventory"]))
    export(fabric, tmp_path / "one")
    file = tmp_path / "one" / "cables.csv"
    lines = file.read_text().splitlines()
    one, other = (line.split(",") for line in lines[-2:])
    one[3:6], other[3:6] = other[3:6], one[3:6]
    planned = read_netbox([tmp_path / "one"])
    file.write_text("\n".join([*lines[:-2], ",".join(one), ",".join(other)]))
    swapped = read_netbox([tmp_path / "one"])
    file.write_text("\n".join(lines[:-1]))
    fewer = read_netbox([tmp_path / "one"])
    assert (planned.left_out.cables, len(planned.data["cables"])) == (0, 90)
    assert swapped.left_out.cables == 0
    ends = [
        {frozenset(((c["a"], c["a_port"]), (c["b"], c["b_port"]))) for c in found.data["cables"]}
        for found in (planned, swapped, fewer)
    ]
    assert len(ends[0] - ends[1]) == 6
    assert (len(ends[0] - ends[2]), len(ends[2] - ends[0]), fewer.left_out.cables) == (3, 0, 6)


PATCH = """manufacturer: X
model: panel
slug: x-panel
u_height: 1
rear-ports: [{name: R1, type: mpo, positions: 6}, {name: R2, type: lc}]
front-ports:
  - {name: Port 1, type: lc, rear_port: R1, rear_port_position: 3}
  - {name: Port 2, type: lc, rear_port: R2}
"""
PATCHED = (
    "name,role,manufacturer,device_type,status\n"
    "a,leaf,X,EX-1,active\nb,leaf,X,EX-1,active\np,panel,X,panel,active\nq,panel,X,panel,active\n"
)
CABLED = (
    "side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,status,label\n"
    "a,dcim.interface,Ethernet1,p,dcim.frontport,Port 1,connected,one\n"
    "p,dcim.rearport,R1,q,dcim.rearport,R1,STATUS,trunk\n"
    "q,dcim.frontport,Port 1,b,dcim.interface,Ethernet2,connected,two\n"
    "b,dcim.interface,Ethernet1,p,dcim.frontport,Port 2,connected,dangling\n"
)


@pytest.mark.parametrize("status", ["connected", "decommissioning"])
def test_patch_panels_before_4_5(status, tmp_path):
    """Panels that are not ours: their front ports name rear ports, links have their far ports."""
    (tmp_path / "panel.yaml").write_text(PATCH)
    (tmp_path / "devices.csv").write_text(PATCHED)
    (tmp_path / "cables.csv").write_text(CABLED.replace("STATUS", status))
    (tmp_path / "interfaces.csv").write_text(
        "device,name,type\na,Ethernet1,400gbase-x-osfp\na,Ethernet2,400gbase-x-osfp\n"
    )
    found = read_netbox([tmp_path])
    assert [node["name"] for node in found.data["nodes"]] == ["a", "b"]
    assert found.data["cables"] == [
        {"a": "a", "a_port": "Ethernet1", "b": "b", "b_port": "Ethernet2"}
    ]
    assert found.data.get("dead_links", []) == (
        [] if status == "connected" else [{"a": "a", "b": "b"}]
    )
    assert found.left_out.cables == 1
    assert "panels" not in found.data


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rear_port: R2}", "rear_port: R3}", "'Port 2' at R3 position 1"),
        ("position: 3", "position: three", "position three"),
        ("{name: R2, type: lc}", "R2", "required a mapping with name, given R2"),
        ("[{name: R1, type: mpo, positions: 6}, {name: R2, type: lc}]", "7", "a list of ports"),
    ],
)
def test_panels_with_mistakes_are_refused_by_line(old, new, said, tmp_path):
    assert old in PATCH
    (tmp_path / "panel.yaml").write_text(PATCH.replace(old, new))
    with pytest.raises(InputError) as refused:
        read_netbox([tmp_path])
    assert said in str(refused.value)
    assert "panel.yaml:" in str(refused.value)


def test_ports_by_the_names_of_a_system_lead_through_cassettes(tmp_path):
    given = spec(q=3)
    given["inventory"]["node_types"]["t"]["names"] = {"eos": "Ethernet{port}"}
    fabric, folder = tmp_path / "fabric.yaml", tmp_path / "one"
    fabric.write_text(yaml.safe_dump(given | {"inventory": "inventory.yaml"}))
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(given["inventory"]))
    words = ["export", str(fabric), "-o", str(folder), "--target", "eos"]
    command.main(words, standalone_mode=False)
    assert {name[:8] for link in paths(folder) for _, name in link} == {"Ethernet"}
    assert {c["a_port"][:3] for c in read_netbox([folder]).data["cables"]} == {"eth"}


def test_a_kind_of_cable_that_netbox_adds_is_in_stock_too(tmp_path):
    """A link inside a rack that somebody has cabled past its cassette."""
    given = spec(q=3)
    kinds = [
        {"name": "short", "media": "dac-passive", "lengths": [1, 2]},
        {"name": "own", "media": "smf-os2"},
        {"name": "long", "media": "smf-os2", "lengths": [2000]},
    ]
    given = given | {"inventory": given["inventory"] | {"cabling": {"types": kinds, "slack": 0.5}}}
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text(yaml.safe_dump(given | {"inventory": "inventory.yaml"}))
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(given["inventory"]))
    export(fabric, tmp_path / "one")
    file = tmp_path / "one" / "cables.csv"
    with file.open() as text:
        rows = list(csv.DictReader(text))
    at = next(i for i, row in enumerate(rows) if row["side_b_type"] == "dcim.rearport")
    one, two = rows[at - 1], rows[at]
    assert one["description"] == two["description"]
    one |= {f"side_b_{word}": two[f"side_a_{word}"] for word in ("device", "type", "name")}
    with file.open("w") as text:
        writer = csv.DictWriter(text, list(one))
        writer.writeheader()
        writer.writerows([*rows[: at - 1], one | {"type": "aoc"}, *rows[at + 1 :]])
    imported(tmp_path / "one", tmp_path / "new.yaml")
    (tmp_path / "new.yaml").replace(tmp_path / "inventory.yaml")
    placed = place_fabric(load_fabric(fabric))
    assert [kind.name for kind in placed.inventory.cabling.types] == ["short", "own", "long", "aoc"]
    assert placed.inventory.cabling.slack == 0.5
