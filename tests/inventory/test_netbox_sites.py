"""Exports of a real site: servers, power units, every type of interface, words of both tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from inventory.netbox.cable_types import media
from inventory.netbox.device_roles import is_switch
from inventory.netbox.interface_types import DeviceInterface, blocks, carries_cable
from inventory.netbox.netbox_file import read_netbox
from inventory.problems import InputError
from polarfab.commands.hardware.inventory import command

SWITCH = """\
manufacturer: Acme
model: SW-4
slug: acme-sw-4
interfaces:
  - {name: Ethernet1, type: 400gbase-x-qsfpdd}
  - {name: Ethernet2, type: 400gbase-x-qsfpdd}
  - {name: Ethernet3, type: 400gbase-x-qsfpdd}
  - {name: mgmt0, type: 1000base-t, mgmt_only: true}
  - {name: fc1/1, type: 32gfc-sfp28}
  - {name: stack, type: cisco-stackwise}
"""
PDU = """\
manufacturer: Acme
model: PDU-24
interfaces: [{name: net, type: 100base-tx}]
power-outlets: [{name: 1, type: iec-60320-c13}]
"""
SPEEDS = {
    "1000base-t cx lx lx10 bx10-d kx x-gbic": 1,
    "5gbase-t kr": 5,
    "10gbase-t br-u cx4 lrm x-xfp x-sfpp kx4": 10,
    "25gbase-sr x-sfp28": 25,
    "40gbase-sr4-bd x-qsfpp": 40,
    "50gbase-fr x-sfp28": 50,
    "100gbase-sr1.2 cwdm4 x-cpak x-sfpdd kp4": 100,
    "200gbase-vr2 x-qsfp56": 200,
    "400gbase-sr4_2 sr16 x-osfp-rhs x-cfp8": 400,
    "800gbase-dr8 x-osfp x-osfp-xd": 800,
    "1.6tbase-cr8 dr8-2 kr8 x-osfp1600 x-osfp1600-rhs x-qsfpdd1600": 1600,
    "1600gbase-x-osfp": 1600,
    "infiniband-edr": 100,
    "100base-tx t1 x-sfp": None,
    "2.5gbase-t x-sfp kx": None,
}
"""Types of NetBox and Nautobot with their Gb/s; None for what is no whole number of them."""
LABELS = {
    "QSFP-DD (400GE)": (400, "QSFP-DD"),
    "SFP+ (10GE)": (10, "SFP+"),
    "1000BASE-T (1GE)": (1, "RJ45"),
    "1000BASE-LX10/LH (1GE)": (1, "LX10"),
    "100GBASE-SR1.2 (100GE BiDi)": (100, "SR1.2"),
    "OSFP1600 (1.6TE)": (1600, "OSFP1600"),
    "100BASE-TX (10/100ME)": (None, "TX"),
    "HDR (50 Gbps)": (200, None),
    "Other": (None, None),
}
"""The same as NetBox's list of interfaces prints them."""
NO_ETHERNET = """
virtual, bridge, lag, tunnel, ieee802.11ax, ieee802.15.4, other-wireless, gsm, lte, 5g, sonet-oc192,
1gfc-sfp, 32gfc-sfp28, 128gfc-qsfp28, t1, e3, da15, db25, xdsl, docsis, moca, gpon, 10g-epon,
ng-pon2, 50g-pon, cisco-stackwise, cisco-flexstack-plus, juniper-vcp, extreme-summitstack-512,
new-type, SFP28 (32GFC), EPON (1 Gbps), Link Aggregation Group (LAG), Cisco StackWise
"""


@pytest.mark.parametrize(("types", "speed"), SPEEDS.items())
def test_every_type_of_ethernet_has_its_speed(types: str, speed: int | None) -> None:
    first, *more = types.split()
    start = first.partition("-")[0] + "-"
    for name in (first, *(start + rest for rest in more)):
        assert carries_cable(DeviceInterface("a", name)), name
        (block,) = blocks([DeviceInterface("a", name)])
        assert block.speed == speed, name


def test_labels_of_types_are_read_like_types() -> None:
    for label, kind in LABELS.items():
        assert carries_cable(DeviceInterface("a", label)), label
        (block,) = blocks([DeviceInterface("a", label)])
        assert (block.speed, block.connector) == kind, label


@pytest.mark.parametrize("label", ["{", "}", "{}", "P{}", "{}{}", "{module}"])
def test_a_label_with_braces_is_left_out(label: str) -> None:
    (block,) = blocks([DeviceInterface("eth1", label=label)])
    assert block.label is None


def test_a_speed_that_no_port_has_is_left_out() -> None:
    for name in ("9999tbase-x-q", "QSFP-DD (9999TE)", "99999gbase-x-q"):
        (block,) = blocks([DeviceInterface("a", name)])
        assert block.speed is None, name


def test_what_is_not_ethernet_is_no_port() -> None:
    names = NO_ETHERNET.replace("\n", " ").strip().split(", ")
    assert [name for name in names if carries_cable(DeviceInterface("a", name))] == []


SWITCHES = "switch, Leaf, super-spine, ToR, Access Switch, Core router, Storage leaf, Node, , X"
OTHERS = (
    "Server, GPU node, Compute, PDU, Switched PDU, Patch Panel, Edge firewall, Access Point, "
    "OOB switch, Management Switch, Console server, SAN switch, Load Balancer"
)


@pytest.mark.parametrize(("roles", "switch"), [(SWITCHES, True), (OTHERS, False)])
def test_a_role_says_whether_a_device_is_a_switch(roles: str, switch: bool) -> None:
    assert [role for role in roles.split(", ") if is_switch(role) != switch] == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("smf", "smf"),
        ("Direct Attach Copper (Passive)", "dac-passive"),
        ("Single-mode Fiber (OS2)", "smf-os2"),
        ("Singlemode Fiber", "smf"),
        ("Multimode Fiber (OM1)", "mmf-om1"),
        ("CAT5e", "cat5e"),
        ("Active Optical Cabling (AOC)", "aoc"),
        ("power", None),
        ("USB", None),
    ],
)
def test_types_of_cables_as_values_and_as_lists_print_them(text: str, word: str | None) -> None:
    assert media(text) == word


def site(folder: Path, **tables: str) -> Path:
    """A folder with both device types and these tables."""
    (folder / "sw.yaml").write_text(SWITCH)
    (folder / "pdu.yaml").write_text(PDU)
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


DEVICES = """\
Name,Role,Type,Manufacturer,Status
n0,Switch,SW-4,Acme,Active
n1,Switch,acme-sw-4,Acme,Planned
n2,Switch,Acme SW-4,Acme,Active
pdu1,,PDU-24,Acme,Active
gpu1,Server,SRV-9,Acme,Active
oob,OOB switch,SW-4,Acme,Active
"""
CABLES = """\
ID,Termination A,Termination B,Device A,Device B,Status,Type,Length
1,Ethernet1,Ethernet1 (up),n0 (tag 7),n1,Connected,Single-mode Fiber,10 m
2,Ethernet2,"Ethernet2,Ethernet2",n0,"n1,n2",Connected,Direct Attach Copper (Passive),
3,mgmt0,Ethernet1,n0,oob,Connected,CAT5e,
4,fc1/1,fc1/1,n0,n1,Connected,Multimode Fiber (OM1),
5,Ethernet3,"a,b",n0,"gpu1,gpu2",Connected,,
"""


def test_servers_power_units_and_breakouts_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = site(tmp_path, devices=DEVICES, cables=CABLES)
    out = tmp_path / "out.txt"
    done = CliRunner().invoke(command, ["import", str(folder), "-o", str(out), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    lines = told.pop("left_out")
    assert told == {
        "file": str(out),
        "node_types": 1,
        "racks": 0,
        "nodes": 3,
        "cables": 1,
        "cables_left_out": 4,
        "devices_left_out": 3,
        "interfaces_left_out": 3,
        "breakout_cables_left_out": 1,
    }
    read = read_netbox([folder])
    assert [node["name"] for node in read.data["nodes"]] == ["n0", "n1", "n2"]
    assert read.data["nodes"][1]["state"] == "planned"
    assert list(read.data["node_types"]) == ["sw-4"]
    (cable,) = read.data["cables"]
    assert (cable["a"], cable["a_port"], cable["b"], cable["b_port"]) == (
        *("n0", "Ethernet1"),
        *("n1", "Ethernet1"),
    )
    assert (cable["type"], cable["length"]) == ("smf", 10)
    assert lines == [
        "left out, PDU-24 has no ports of a fabric: pdu1",
        "left out, role Server: gpu1",
        "left out, role 'OOB switch': oob",
        "interfaces left out of node types: 1 management, 1 32gfc-sfp28, 1 cisco-stackwise",
        f"left out, a breakout cable: {folder}/cables.csv:3 joins n0, n1, n2; write its links "
        "into `cables` yourself",
    ]


@pytest.mark.parametrize(
    ("medium", "lengths"),
    [("dac-passive", [1, 2, 3, 5, 7]), ("dac-active", [1, 2, 3, 5, 7, 10, 15])],
)
def test_copper_is_in_stock_as_far_as_it_reaches(
    medium: str, lengths: list[int], tmp_path: Path
) -> None:
    cables = CABLES.replace("Single-mode Fiber,10 m", f"{medium},2 m")
    folder, out = site(tmp_path, devices=DEVICES, cables=cables), tmp_path / "out.yaml"
    done = CliRunner().invoke(command, ["import", str(folder), "-o", str(out)])
    assert done.exit_code == 0, done.output
    cabling = yaml.safe_load(out.read_text())["cabling"]
    assert cabling["types"] == [{"name": medium, "media": medium, "lengths": lengths}]


def test_roles_can_be_chosen(tmp_path: Path) -> None:
    folder = site(tmp_path, devices=DEVICES)
    read = read_netbox([folder], roles=("oob switch",))
    assert [node["name"] for node in read.data["nodes"]] == ["oob"]
    with pytest.raises(InputError) as error:
        read_netbox([folder], roles=("Router",))
    assert str(error.value) == (
        f"{folder}/devices.csv:2: Role: required a device that is a switch, given the roles "
        "'OOB switch', Server, Switch; choose switches by role"
    )


NAUTOBOT_DEVICES = """\
name,display,id,natural_slug,serial,position,device_type__manufacturer__name,device_type__model,\
status__name,role__name,rack__name,primary_ip4__host,primary_ip6__host
n0,n0,1,n0,S0,NULL,Acme,SW-4,Active,leaf,NoObject,192.0.2.10,NoObject
n1,n1,2,n1,NULL,NULL,Acme,SW-4,Planned,leaf,NoObject,NoObject,2001:db8::1
n2,n2,3,n2,,NULL,Acme,SW-4,Active,leaf,NoObject,NoObject,::4e6f:4f62:6a65:6374
"""
NAUTOBOT_INTERFACES = """\
name,id,device__name,type,mgmt_only,enabled,status__name
Ethernet1,if-01,n0,400gbase-x-qsfpdd,False,True,Active
Ethernet1,if-11,n1,400gbase-x-qsfpdd,False,True,Active
Ethernet2,if-22,n2,400gbase-x-qsfpdd,False,False,Active
"""
NAUTOBOT_CABLES = """\
id,termination_a_type,termination_b_type,termination_a_id,termination_b_id,type,status__name
1,dcim.interface,dcim.interface,if-01,if-22,other,Decommissioning
2,dcim.interface,dcim.powerport,if-11,if-99,power,Connected
"""


def test_nautobots_columns_with_objects_that_are_not_there(tmp_path: Path) -> None:
    folder = site(tmp_path, devices=NAUTOBOT_DEVICES, interfaces=NAUTOBOT_INTERFACES)
    (folder / "cables.csv").write_text(NAUTOBOT_CABLES)
    data = read_netbox([folder]).data
    assert data["nodes"] == [
        {"name": "n0", "type": "sw-4", "serial": "S0", "management": "192.0.2.10"},
        {"name": "n1", "type": "sw-4", "management": "2001:db8::1", "state": "planned"},
        {"name": "n2", "type": "sw-4", "disabled_ports": ["Ethernet2"]},
    ]
    assert data["cables"] == [{"a": "n0", "a_port": "Ethernet1", "b": "n2", "b_port": "Ethernet2"}]
    assert data["dead_links"] == [{"a": "n0", "b": "n2"}]
    (folder / "interfaces.csv").unlink()
    with pytest.raises(InputError) as error:
        read_netbox([folder])
    assert str(error.value) == (
        f"{folder}/cables.csv:2: termination_a_id: required cables whose interfaces are named, "
        "given ids alone; export the list of interfaces, too, with their ids"
    )


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_netbox_may_separate_values_by_other_signs(delimiter: str, tmp_path: Path) -> None:
    folder = site(tmp_path, devices=DEVICES.replace(",", delimiter))
    assert len(read_netbox([folder]).data["nodes"]) == 3


@pytest.mark.parametrize(
    ("table", "text", "message"),
    [
        ("racks", "Name,Site,Status,Type,Height\nr1,lab,Active,4-post cabinet,42U\n", ""),
        (
            "devices",
            "Name,Type,IP Address\nn0,SW-4,rack 7\n",
            "devices.csv:2: IP Address: required an IP address, given 'rack 7'",
        ),
        (
            "devices",
            "Name,Type\nn0,SW-5\n",
            "devices.csv:2: Type: required a device type of the files, given SW-5; did you mean SW",
        ),
        (
            "devices",
            "Name,Type\nn0,Router\n",
            "given Router; import its interfaces.csv or its device type in YAML, or choose the",
        ),
        (
            "cables",
            "ID,Label,Termination A,Termination B,Status,Type\n1,,Ethernet1,Ethernet1,Connected,\n",
            "add the columns Device A and Device B to the list (Configure Table), then export it",
        ),
        (
            "other",
            "a,b\n",
            "cables: Device A, Termination A, Device B, Termination B; interfaces: Device, Name, ",
        ),
    ],
)
def test_messages_name_the_columns_of_the_file(
    table: str, text: str, message: str, tmp_path: Path
) -> None:
    folder = site(tmp_path, **{table: text})
    if not message:
        assert read_netbox([folder]).data[table][0]["name"] == "r1"
        return
    with pytest.raises(InputError) as error:
        read_netbox([folder])
    assert message in str(error.value)


def test_a_switch_without_a_name_is_told_at_its_row(tmp_path: Path) -> None:
    folder = site(tmp_path, devices="Name,Type,Manufacturer,Status\n,SW-4,Acme,Active\n")
    with pytest.raises(InputError, match=r"devices\.csv:2: Name: required a name of each switch"):
        read_netbox([folder])
