"""What NetBox and Nautobot exchange: nothing lost on the way, wrong files told by name."""

from __future__ import annotations

import csv
import random
import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import yaml

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target
from inventory.inventory_file import load_inventory
from inventory.netbox.interface_types import DeviceInterface, blocks
from inventory.netbox.netbox_file import read_netbox
from inventory.problems import InputError
from polarfab.commands.hardware.inventory import command
from tests.compilers.spec.makers import mutated_bytes
from tests.compilers.targets.makers import compiled
from tests.fuzzing import reading, ten_minutes
from tests.inventory.makers import export, imported

HERE = Path(__file__).parents[1]
EXAMPLES = HERE.parent / "examples"
OURS = HERE / "data" / "device-type.yaml"
FUZZED = 80
HEAD = "name,role,manufacturer,device_type,serial,status,site,rack,position,face\n"


STATES = {
    "name: n26,": "name: n26, state: planned,",
    "name: n12,": "name: n12, disabled_ports: [oio0/3, oio2/0, host2],",
}


@pytest.mark.parametrize(("damaged", "racks"), [(False, True), (True, False)])
def test_round_trip_of_q7(tmp_path: Path, racks: bool, damaged: bool) -> None:
    shutil.copytree(EXAMPLES / "q7", tmp_path / "q7")
    if damaged:
        path = tmp_path / "q7" / "inventory.yaml"
        text = path.read_text() + "dead_links: [{a: n01, b: n15}, {a: n57, b: n01}]\n"
        names = compile_fabric(load_fabric(tmp_path / "q7" / "fabric.yaml")).wiring
        near = [names.names[v] for v in names.far[0].tolist()[:2]]
        text = text.replace("b: n15", f"b: {near[0]}").replace("a: n57", f"a: {near[1]}")
        for word, other in STATES.items():
            assert word in text
            text = text.replace(word, other)
        path.write_text(text)
    if racks:
        with (tmp_path / "q7" / "inventory.yaml").open("a") as file:
            file.write("cabling: {types: [{name: red, media: mmf-om4, colour: ff0000}]}\n")
            file.write("cables:\n  - {a: n26, a_port: oio1/0, b: n06, b_port: oio2/7, ")
            file.write("length: 4.5, label: mine}\n")
            file.write("racks:\n" + "".join(f"  - {{name: r{i}, units: 9}}\n" for i in range(8)))
    fabric = tmp_path / "q7" / "fabric.yaml"
    export(fabric, tmp_path / "one")
    mine = ",mmf-om4,planned,mine,ff0000,4.5,m,"
    assert (mine in (tmp_path / "one" / "cables.csv").read_text()) == racks
    before = compile_fabric(load_fabric(fabric))
    imported(tmp_path / "one", tmp_path / "inventory.yaml")
    shutil.copy(tmp_path / "inventory.yaml", tmp_path / "q7")
    export(fabric, tmp_path / "two")
    names = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*.*"))
    assert len(names) == 5 + racks
    for name in names:
        assert (tmp_path / "one" / name).read_text() == (tmp_path / "two" / name).read_text()
    after = compile_fabric(load_fabric(fabric))
    assert (before.topology.present.sum(), after.topology.present.sum()) == (57 - damaged,) * 2
    assert before.topology.graph.size < 224 or not damaged
    for part in ("wiring", "addressing"):
        for field in fields(getattr(before, part)):
            values = (getattr(getattr(build, part), field.name) for build in (before, after))
            np.testing.assert_equal(*values, err_msg=f"{part}.{field.name}")


def test_what_is_not_in_use_elsewhere(tmp_path: Path) -> None:
    """In the words of NetBox and of Nautobot, from files that we did not write."""
    shutil.copy(OURS, tmp_path / "type.yaml")
    states = ("active", "Planned", "Offline", "Active", "failed")
    (tmp_path / "devices.csv").write_text(
        "name,role,manufacturer,device_type,status\n"
        + "".join(f"s{i},leaf,X,EX-9012 Mk II,{state}\n" for i, state in enumerate(states))
    )
    (tmp_path / "interfaces.csv").write_text(
        "device__name,name,type,enabled,mgmt_only\n"
        "s0,Ethernet1/1,400gbase-x-qsfpdd,False,False\ns0,Ethernet2/1,400gbase-x-qsfpdd,True,False\n"
        "s0,Management1,1000base-t,False,True\ns3,uplink,25gbase-x-sfp28,false,\nx,uplink,,false,\n"
    )
    (tmp_path / "cables.csv").write_text(
        "side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,status\n"
        "s0,dcim.interface,Ethernet2/1,s3,dcim.interface,Ethernet2/1,Decommissioning\n"
        "s0,dcim.interface,Ethernet3/1,s1,dcim.interface,Ethernet2/1,connected\n"
    )
    data = read_netbox([tmp_path]).data
    nodes = {node["name"]: node for node in data["nodes"]}
    assert [n for n, node in nodes.items() if node.get("state") == "planned"] == ["s1", "s2", "s4"]
    ports = {n: node["disabled_ports"] for n, node in nodes.items() if "disabled_ports" in node}
    assert ports == {"s0": ["Ethernet1/1"], "s3": ["uplink"]}
    assert data["dead_links"] == [{"a": "s0", "b": "s3"}]
    assert len(data["cables"]) == 2
    imported(tmp_path, tmp_path / "inventory.txt")


@pytest.mark.parametrize("system", ["sonic", "junos"])
def test_ports_by_the_names_of_a_system_come_back(system: str, tmp_path: Path) -> None:
    """NetBox has what devices say; an import has the inventory's names and cables again."""
    for file in ("fabric.yaml", "inventory.yaml"):
        shutil.copy(EXAMPLES / "q7-copackaged" / file, tmp_path)
    fabric, before = tmp_path / "fabric.yaml", compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    words = ["export", str(fabric), "-o", str(tmp_path / "out"), "--target", system]
    command.main(words, standalone_mode=False)
    names = target(system).names(before)
    cables = list(csv.DictReader((tmp_path / "out" / "cables.csv").open()))
    known = {name for ports in names.wiring.port_names for name in ports}
    assert {row[f"side_{end}_name"] for row in cables for end in "ab"} <= known
    assert "oio0/0" in (tmp_path / "out" / "interfaces.csv").read_text()  # a label
    (tmp_path / "inventory.yaml").unlink()
    imported(tmp_path / "out", tmp_path / "inventory.yaml")
    assert "oio" in (tmp_path / "inventory.yaml").read_text()
    after = compile_fabric(load_fabric(fabric))
    for field in fields(before.wiring):
        values = (getattr(build.wiring, field.name) for build in (before, after))
        np.testing.assert_equal(*values, err_msg=field.name)


def test_management_addresses_become_primary_ones(tmp_path: Path) -> None:
    """`IPAddressImportForm` (netbox/ipam/forms/bulk_import.py, 4.6.8) wants a device and one of its
    interfaces where `is_primary` is true; NetBox makes interfaces from the device type.
    """
    compiled(tmp_path)
    for words, interface in (((), "mgmt0"), (("--target", "eos"), "Management1")):
        out = tmp_path / interface
        command.main(
            ["export", str(tmp_path / "fabric.yaml"), "-o", str(out), *words],
            standalone_mode=False,
        )
        rows = list(csv.DictReader((out / "ip-addresses.csv").open()))
        assert rows[1] == {
            **{"address": "192.0.2.2/24", "status": "active", "device": "n1"},
            **{"interface": interface, "is_primary": "true"},
        }
        device_type = yaml.safe_load((out / "device-types" / "box.yaml").read_text())
        (managed,) = (port for port in device_type["interfaces"] if port.get("mgmt_only"))
        assert managed == {"name": interface, "type": "other", "mgmt_only": True}
        imported(out, tmp_path / f"{interface}.yaml")
        inventory, _ = load_inventory(tmp_path / f"{interface}.yaml")
        nodes = inventory.nodes
        assert [str(node.management) for node in nodes] == [f"192.0.2.{v}" for v in range(1, 8)]


def test_a_device_type_of_the_library() -> None:
    ((name, given),) = read_netbox([OURS]).data["node_types"].items()
    assert name == "ex-9012-mk-ii"
    assert (given["units"], given["part_number"]) == (2, "EX9012-2")
    assert given["ports"] == [
        {"name": "Ethernet{}/1", "count": 3, "speed": 400, "connector": "QSFP-DD", "label": "{}"},
        {
            "name": "Ethernet{}",
            "count": 3,
            "first": 0,
            "step": 4,
            "speed": 100,
            "connector": "QSFP28",
        },
        {"name": "Ethernet12", "count": 1, "speed": 10, "connector": "SFP+"},
        {"name": "uplink", "count": 1, "speed": 25, "connector": "SFP28"},
    ]


def arista_7050cx3_32s() -> str:
    """The community library's device-types/Arista/DCS-7050CX3-32S.yaml, by its facts."""
    power = "  - {name: PS%d, type: iec-60320-c14, maximum_draw: 362, allocated_draw: 192}\n"
    ports = [f"  - name: Ethernet{i}/1\n    type: 100gbase-x-qsfp28\n" for i in range(1, 33)]
    ports += [f"  - name: Ethernet{i}\n    type: 10gbase-x-sfpp\n" for i in (33, 34)]
    return (
        "---\nmanufacturer: Arista\nmodel: DCS-7050CX3-32S\nslug: arista-dcs-7050cx3-32s\n"
        "part_number: DCS-7050CX3-32S\nu_height: 1\nis_full_depth: false\n"
        "console-ports:\n  - name: Console\n    type: rj-45\n"
        f"power-ports:\n{power % 1}{power % 2}"
        f"interfaces:\n  # QSFP28 ports can be split\n{''.join(ports)}"
        "  - name: Management1\n    type: 1000base-t\n    mgmt_only: true\n"
    )


def test_a_real_product_carries_a_fabric(tmp_path: Path) -> None:
    """PolarFly q = 23 (degree 24) with eight hosts at each: all 32 ports of 100 Gb/s, no other."""
    (tmp_path / "type.yaml").write_text(arista_7050cx3_32s())
    imported(tmp_path, tmp_path / "inventory.yaml")
    text = (tmp_path / "inventory.yaml").read_text()
    ((name, given),) = read_netbox([tmp_path / "type.yaml"]).data["node_types"].items()
    assert name == "dcs-7050cx3-32s"
    assert given["ports"] == [
        {"name": "Ethernet{}/1", "count": 32, "speed": 100, "connector": "QSFP28"},
        {"name": "Ethernet{}", "count": 2, "first": 33, "speed": 10, "connector": "SFP+"},
    ]
    (tmp_path / "inventory.yaml").write_text(
        f"{text}generate: {{type: {name}, name: 'leaf{{}}'}}\n"
    )
    (tmp_path / "fabric.yaml").write_text(
        "name: lab\ntopology: {family: polarfly, q: 23}\nhosts_per_node: 8\n"
        "inventory: inventory.yaml\n"
    )
    build = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    used = np.concatenate((build.wiring.port, build.wiring.host_port), axis=1)
    assert used.max() == 32
    assert build.wiring.port_name(0, 1) == "Ethernet1/1"
    assert build.wiring.port_name(0, 33) == "Ethernet33"


def test_blocks_name_what_they_were_made_from() -> None:
    names = [
        *(f"et-0/0/{i}" for i in range(36)),
        *(f"ethernet-{c}/{i}" for c in (1, 2) for i in range(1, 5)),
        "Ethernet01",
        "Ethernet02",
        "a9",
        "a1",
    ]
    found = blocks([DeviceInterface(name) for name in names])
    assert [name for block in found for name in block.port_names()] == names
    assert len(found) == 3 + 4


def test_what_netbox_and_nautobot_print(tmp_path: Path) -> None:
    shutil.copy(OURS, tmp_path / "type.yaml")
    (tmp_path / "racks.csv").write_text("Name,Site,Status,Height\nr1,lab,Active,42U\n")
    (tmp_path / "devices.csv").write_text(
        "Name,Status,Site,Rack,Role,Manufacturer,Type,IP Address,Position\n"
        "sw1,Active,lab,r1,leaf,Example Networks,EX-9012 Mk II,192.0.2.1/24,3.0\n"
        "sw2,Active,lab,r1,leaf,Example Networks,EX-9012 Mk II,2001:db8::2/64,5\n"
    )
    (tmp_path / "cables.csv").write_text(
        "termination_a__device__name,termination_a__name,termination_b__device__name,"
        "termination_b__name,termination_a_type,type,color,length,length_unit,label\n"
        "sw1,Ethernet1/1,sw2,Ethernet2/1,dcim.interface,mmf-om4,ff0000,10,ft,A1\n"
        "sw1,Console,server,1,dcim.consoleport,,,,,\n"
    )
    imported(tmp_path, tmp_path / "inventory.txt")
    found, _ = load_inventory(tmp_path / "inventory.txt")
    assert [(n.name, str(n.management), n.rack, n.unit) for n in found.nodes] == [
        ("sw1", "192.0.2.1", "r1", 3),
        ("sw2", "2001:db8::2", "r1", 5),
    ]
    (cable,) = found.cables
    assert (cable.b_port, cable.type, cable.length) == ("Ethernet2/1", "mmf-om4-ff0000", 3.048)
    assert read_netbox([tmp_path]).left_out.cables == 1


def test_types_come_from_interfaces_where_no_file_has_them(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(HEAD + "a,leaf,X,EX-1,,active,lab,,,\n")
    (tmp_path / "i.csv").write_text(
        "device,name,type,mgmt_only\na,Ethernet1,400gbase-x-osfp,false\n"
        "a,Ethernet2,400gbase-x-osfp,false\na,mgmt0,1000base-t,true\n"
    )
    assert read_netbox([tmp_path]).data["node_types"]["ex-1"]["ports"] == [
        {"name": "Ethernet{}", "count": 2, "speed": 400, "connector": "OSFP"}
    ]


WRONG = {
    "semicolons.csv": (b"name;device_type\na;b\n", "semicolons.csv:2: device_type: required a"),
    "book.csv": (b"PK\x03\x04rest", "a ZIP or Excel file"),
    "page.csv": (b"<!doctype html>", "HTML or XML"),
    "list.csv": (b'[{"name": 1}]', "JSON"),
    "schedule.csv": (b"cable,label,bundle,a_rack\n", "a cable schedule"),
    "other.csv": (b"hostname,os\na,b\n", "columns 'hostname,os'"),
    "empty.csv": (b"", "an empty file"),
    "latin.csv": (b"name,device_type\n\xe9,b\n", "byte 0xe9"),
    "short.csv": (HEAD.encode() + b"a,b\n", "10 values, one a column, given 2"),
    "unknown.csv": (HEAD.encode() + b"a,leaf,X,EX-1,,active,lab,,,\n", "a device type of the file"),
    "fabric.yaml": (b"name: x\ntopology: {q: 7}\n", "YAML with name, topology"),
    "spaces.yaml": (
        b"manufacturer: X\nmodel: Y\ninterfaces: [{name: Port 1, type: other}]\n",
        "'Port 1'",
    ),
    "none.yaml": (b"manufacturer: X\nmodel: Y\ninterfaces: []\n", "or InfiniBand, given none"),
    "tall.yaml": (b"manufacturer: X\nmodel: Y\nu_height: 1e9\ninterfaces: [{name: a}]\n", "1e9"),
    "absent.csv": (None, "no such file; check the name"),
    "open.csv": (HEAD.encode() + b'"a,b\n' * 3, "open.csv:2: required 10 values"),
    "comment.yaml": (
        b'manufacturer: X\nmodel: Y\ninterfaces: [{name: a}]\ncomments: "polarfab: {"\n',
        "comment.yaml:4: comments: required the line polarfab: {…} as JSON",
    ),
    "cables.csv": (
        b"side_a_device,side_a_name,side_b_device,side_b_name\n",
        "given no device and no device type; name those files, too",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_from_the_wrong_tool(tmp_path: Path, name: str) -> None:
    content, words = WRONG[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_netbox([tmp_path / name])
    assert words in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


def test_a_damaged_comment_loses_nothing_silently(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("manufacturer: X\nmodel: Y\ninterfaces: [{name: a1}]\n")
    devices = tmp_path / "devices.csv"
    for kept, wrong in (
        ('polarfab: {""vertex"": 2}', ""),
        ('polarfab: {""vertex"": 2', ":2: comm"),
    ):
        devices.write_text(f'name,device_type,comments\nn2,Y,"note\n{kept}"\n')
        if not wrong:
            assert read_netbox([tmp_path]).data["nodes"][0]["vertex"] == 2
            continue
        with pytest.raises(InputError, match=f"{wrong}ents: required the line polarfab: {{…}}"):
            read_netbox([tmp_path])


def test_mutated_files(tmp_path: Path) -> None:
    export(EXAMPLES / "q7" / "fabric.yaml", tmp_path)
    paths = sorted(tmp_path.rglob("*.*"))
    for path in paths:  # short, so that a mutation meets something
        if path.suffix == ".csv":
            path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:12]))
    (tmp_path / "type.yaml").write_bytes(OURS.read_bytes())
    export(EXAMPLES / "q7-panels" / "fabric.yaml", tmp_path / "panels")
    (tmp_path / "panels" / "device-types" / "cassette-cassette-2.yaml").rename(
        tmp_path / "fan.yaml"
    )
    shutil.rmtree(tmp_path / "panels")
    paths += [tmp_path / "type.yaml", tmp_path / "fan.yaml"]
    originals = {path: path.read_bytes() for path in paths}
    good = bad = 0
    for seed in range(FUZZED):
        rng = random.Random(seed)  # noqa: S311
        path = rng.choice(list(originals))
        path.write_bytes(mutated_bytes(originals[path], rng))
        problems = None
        try:
            imported(tmp_path, tmp_path / "inventory.txt")
        except InputError as error:
            problems = error.problems
        except Exception as error:
            raise AssertionError(f"seed {seed}, {path.name}") from error
        good, bad = good + (problems is None), bad + (problems is not None)
        for problem in problems or ():
            assert problem.file.startswith(str(tmp_path)), seed
            assert str(problem).isprintable(), seed
        (tmp_path / "inventory.txt").unlink(missing_ok=True)
        path.write_bytes(originals[path])
    assert good > 10
    assert bad > 10


@pytest.mark.long
def test_ten_minutes_of_exports(tmp_path: Path) -> None:
    export(EXAMPLES / "q7" / "fabric.yaml", tmp_path)
    (tmp_path / "type.yaml").write_bytes(OURS.read_bytes())
    originals = dict[Path, bytes]()
    for path in sorted(tmp_path.rglob("*.*")):
        lines = path.read_bytes().splitlines(keepends=True)
        originals[path] = b"".join(lines[:12] if path.suffix == ".csv" else lines)
        path.write_bytes(originals[path])

    def case(chance: random.Random) -> str:
        path = chance.choice(list(originals))
        path.write_bytes(mutated_bytes(originals[path], chance))
        try:
            return reading(lambda: read_netbox([tmp_path]), tmp_path)
        finally:
            path.write_bytes(originals[path])

    ten_minutes("exports", case)


@pytest.mark.parametrize("name", ["a\x1b.csv", "a\x1b.yaml", "a\x1b/none.txt"])
def test_odd_names_of_files_are_named_in_letters(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("a: b\n")
    with pytest.raises(InputError) as caught:
        read_netbox([tmp_path / name.partition("/")[0]])
    assert str(caught.value.problems[0]).isprintable()


def test_odd_keys_are_named_in_letters(tmp_path: Path) -> None:
    """Found by ten minutes of tables of devices."""
    (tmp_path / "type.yaml").write_text('"manufacture\\tr": x\nmodel: y\n')
    with pytest.raises(InputError) as caught:
        read_netbox([tmp_path])
    assert str(caught.value.problems[0]).isprintable()
