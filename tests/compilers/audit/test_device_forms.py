"""Every form that public test data has of what a system prints, as small samples of our own.

The forms are those of ntc-templates and NAPALM; of each reader, all give the same neighbours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilers.audit.neighbour_file import read_facts
from compilers.audit.wiring_report import WiringReport
from compilers.tables.build import Build
from inventory.problems import InputError
from tests.compilers.readers.emitted import fabric

EOS_TEXT = """\
Last table change time   : 0:00:02 ago
Number of table inserts  : 2

Port       Neighbor Device ID             Neighbor Port ID           TTL
Et1/1      spine.example                  Ethernet7                  120
Ma1        an oob switch                  0242.ac14.1401             120
"""
EOS_RULED = """\
Last table change time   : 5 days, 8:24:38 ago
Port          Neighbor Device ID       Neighbor Port ID    TTL
---------- ------------------------ ---------------------- ---
Et1/1         spine.example            Ethernet7           120
Ma1           an oob switch            0242.ac14.1401      120
leaf1#
"""
EOS_DETAIL = """\
leaf1#show lldp neighbors detail
Interface Ethernet1/1 detected 1 LLDP neighbors:

  Neighbor 02aa.0000.0001/"Ethernet7", age 12 seconds
  Discovered 0:01:11 ago; Last changed 0:01:11 ago
  - Chassis ID type: MAC address (4)
    Chassis ID     : 02aa.0000.0001
  - Port ID type: Interface name (5)
    Port ID     : "Ethernet7"
  - System Name: "spine.example"
  - IEEE802.1/IEEE802.3 Link Aggregation
    Link Aggregation Status: Capable, Disabled (0x01)
    Port ID                : 0

Interface Ethernet2/1 detected 0 LLDP neighbors:

Interface Management1 detected 1 LLDP neighbors:

  Neighbor 0242.ac14.1401/0242.ac14.1401, age 2 seconds
    Chassis ID     : 0242.ac14.1401
    Port ID     : 0242.ac14.1401
  - Port Description: "eth0"
  - System Name: "an oob switch"
"""


def eos_interface(name: str, port: str, **more: str) -> dict[str, Any]:
    far = {"interfaceIdType": "interfaceName", "interfaceId": port, **more}
    return {"systemName": name, "chassisId": "02aa.0000.0001", "neighborInterfaceInfo": far}


def eos_json(*rows: tuple[str, str, str]) -> str:
    keys = ("port", "neighborDevice", "neighborPort")
    return json.dumps({"lldpNeighbors": [dict(zip(keys, row, strict=True)) for row in rows]})


EOS_DETAIL_JSON = {
    "lldpNeighbors": {
        "Ethernet1/1": {"lldpNeighborInfo": [eos_interface("spine.example", '"Ethernet7"')]},
        "Ethernet2/1": {"lldpNeighborInfo": []},
        "Management1": {
            "lldpNeighborInfo": [
                eos_interface("an oob switch", "0242.ac14.1401", interfaceDescription="eth0")
            ]
        },
    }
}
NXOS_HEAD = """\
Capability codes:
  (R) Router, (B) Bridge, (T) Telephone, (C) DOCSIS Cable Device
Device ID            Local Intf      Hold-time  Capability  Port ID
"""
NXOS_TEXT = f"""{NXOS_HEAD}spine.example
                     Eth1/1          120        BR          Ethernet7
an oob switch        mgmt0           120                    0242.ac14.1401
Total entries displayed: 2
"""
NXOS_DETAIL = f"""{NXOS_HEAD}
Chassis id: 02aa.0000.0001
Port id: Ethernet7
Local Port id: Eth1/1
Port Description: null
System Name: spine.example
System Description: Cisco Nexus Operating System (NX-OS) Software 9.3(8)
TAC support: http://www.cisco.com/tac
Management Address: not advertised


Chassis id: 0242.ac14.1401
Port id: 0242.ac14.1401
Local Port id: mgmt0
Port Description: eth0
System Name: an oob switch
Management Address: 192.0.2.1

Total entries displayed: 2
leaf1#
"""


def nxos_json(word: str, *rows: dict[str, str]) -> str:
    return json.dumps({f"TABLE_{word}": {f"ROW_{word}": rows[0] if len(rows) < 2 else [*rows]}})


NXOS_ROWS = (
    {"chassis_id": "spine.example", "l_port_id": "Eth1/1", "port_id": "Ethernet7"},
    {"chassis_id": "an oob switch", "l_port_id": "mgmt0", "port_id": "0242.ac14.1401"},
)
NXOS_DETAILS = (
    {**NXOS_ROWS[0], "chassis_id": "02aa.0000.0001", "sys_name": "spine.example"},
    {**NXOS_ROWS[1], "chassis_id": "0242.ac14.1401", "sys_name": "an oob switch"},
)
JUNOS_TEXT = """\
Local Interface    Parent Interface    Chassis Id          Port info          System Name
et-0/0/1           ae7                 02:aa:00:00:00:01   Ethernet7          spine.example
me0                -                   02:42:ac:14:14:01   eth0               oob

{master:0}
"""
JUNOS_NAMES = ("local-interface", "local-port-id", "remote-port-id-subtype", "remote-port-id")
JUNOS_NAMES += ("remote-port-description", "remote-system-name")


def junos_json(*rows: tuple[str, ...], compact: bool = False, engines: bool = False) -> str:
    entries = [
        {
            f"lldp-{name}": text if compact else [{"data": text}]
            for name, text in zip(JUNOS_NAMES, row, strict=True)
            if text
        }
        for row in rows
    ]
    inner: Any = {"lldp-neighbor-information": entries}
    table = {"lldp-neighbors-information": inner if compact else [inner]}
    if engines:
        item = {"re-name": [{"data": "member0"}], **table}
        table = {"multi-routing-engine-results": [{"multi-routing-engine-item": [item]}]}
    return json.dumps(table)


JUNOS_BRIEF = (
    ("", "et-0/0/1", "Interface name", "Ethernet7", "", "spine.example"),
    ("me0.0", "", "", "", "eth0", "oob"),
)
JUNOS_DETAIL = (
    ("et-0/0/1", "501", "Interface name", "Ethernet7", "Po1:leaf1", "spine.example"),
    ("me0", "33", "Locally assigned", "27", "eth0", "oob"),
)
FORMS: dict[str, list[str]] = {
    "eos": [
        EOS_TEXT,
        EOS_RULED,
        EOS_DETAIL,
        eos_json(
            ("Ethernet1/1", "spine.example", "Ethernet7"),
            ("Management1", "an oob switch", "0242.ac14.1401"),
        ),
        json.dumps(EOS_DETAIL_JSON),
    ],
    "nxos": [
        NXOS_TEXT,
        NXOS_DETAIL,
        nxos_json("nbor", *NXOS_ROWS),
        nxos_json("nbor_detail", *NXOS_DETAILS),
    ],
    "junos": [
        JUNOS_TEXT,
        junos_json(*JUNOS_BRIEF),
        junos_json(*JUNOS_BRIEF, compact=True),
        junos_json(*JUNOS_BRIEF, engines=True),
        junos_json(*JUNOS_DETAIL),
        junos_json(*JUNOS_DETAIL, compact=True, engines=True),
    ],
}
PORTS = {
    "eos": ({"Et1/1", "Ethernet1/1"}, {"Ma1", "Management1"}),
    "nxos": ({"Eth1/1"}, {"mgmt0"}),
    "junos": ({"et-0/0/1"}, {"me0"}),
}
CASES = [(form, n) for form, samples in FORMS.items() for n in range(len(samples))]


@pytest.mark.parametrize(("form", "n"), CASES)
def test_every_form_of_a_reader(form: str, n: int, tmp_path: Path) -> None:
    (tmp_path / "leaf1.txt").write_text(FORMS[form][n])
    facts = read_facts([tmp_path])
    assert facts.forms == ((("leaf1",), form),)
    first, second = facts.seen
    assert (first.near.nodes, first.far.nodes[0]) == (("leaf1",), "spine.example")
    assert "Ethernet7" in first.far.ports
    assert {"eth0", "0242.ac14.1401"} & set(second.far.ports)
    near = [fact.near.ports[0] for fact in facts.seen]
    assert [name in ports for name, ports in zip(near, PORTS[form], strict=True)] == [True, True]


NOT_READ = {
    "LLDP Neighbor Information:\nLocal Information:\nIndex: 1\n": "collect show lldp neighbors |",
    "<rpc-reply><lldp-neighbors-information style='brief'>": "XML of Junos; collect show lldp",
    '<?xml version="1.0"?>\n<lldp label="LLDP neighbors">': "collect lldpctl -f json",
    "LLDP neighbors:\n-----\nInterface: eth0, via: LLDP": "or on SONiC show lldp table",
    "lldp.eth0.via=LLDP\n": "keyvalue of lldpctl; collect lldpctl -f json",
    "<nf:rpc-reply>": "collect show lldp neighbors | json",
    "CA    15  1 0x0002c903000e0b72 4x QDR": "given a neighbour",
    "Switch\t: 0x0002c90300000010 ports 40": "a list (-l, -S, -H); collect ibnetdiscover",
}


@pytest.mark.parametrize("text", NOT_READ)
def test_other_outputs_are_refused_with_the_command_to_use(text: str, tmp_path: Path) -> None:
    (tmp_path / "leaf1.txt").write_text(text)
    with pytest.raises(InputError) as caught:
        read_facts([tmp_path])
    said = str(caught.value)
    assert NOT_READ[text] in said or NOT_READ[text].startswith("given a")
    assert "\n" not in said


ENVELOPES = {
    "eapi": [
        {"lldpNeighbors": [{"port": "Ethernet1", "neighborDevice": "n1", "neighborPort": "x"}]}
    ],
    "nx-api": {
        "body": {
            "TABLE_nbor": {
                "ROW_nbor": {"chassis_id": "n1", "l_port_id": "Eth1/1", "port_id": "Ethernet1/1"}
            }
        }
    },
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_envelopes_of_json_rpc_are_opened(name: str, tmp_path: Path) -> None:
    said = {"jsonrpc": "2.0", "id": 1, "result": ENVELOPES[name]}
    (tmp_path / "n0.json").write_text(json.dumps(said))
    assert [seen.far.nodes for seen in read_facts([tmp_path]).seen] == [("n1",)]


UNKNOWN = {
    "sw#show lldp neighbors\n% LLDP is not enabled\n": "a device says: '% LLDP is not enabled'",
    '{"Ethernet1": [{"hostname": "n1", "port": "x"}]}': "given JSON with Ethernet1",
    '[{"local_interface": "Et1", "neighbor": "n1"}]': "its members with local_interface, neighbor",
}


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_table_of_no_form_is_told_by_what_is_in_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "n0.json").write_text(text)
    with pytest.raises(InputError) as caught:
        read_facts([tmp_path])
    assert UNKNOWN[text] in str(caught.value)


WRONG = {
    "Ethernet1 without lldpNeighborInfo": '{"lldpNeighbors": {"Ethernet1": {"neighbors": []}}}',
    "a local port in every row": '{"lldpNeighbors": [{"interface": "Ethernet1"}]}',
    "eth1 without chassis and port": '{"lldp": {"interface": {"eth1": {"status": "up"}}}}',
    "required four columns": EOS_TEXT.replace("120\nMa1", "120\nMa1 x y z w 120\nMa1"),
    "required 2 neighbours, given 1": EOS_DETAIL.replace("detected 1", "detected 2"),
    "leaf1.txt:1: required a neighbour above its fields": EOS_DETAIL[
        EOS_DETAIL.index("    Port ID") :
    ],
    "required five columns, given 'spine.example'": NXOS_TEXT.replace("Eth1/1 ", ""),
    "columns as in the header": JUNOS_TEXT.replace(
        "02:42:ac:14:14:01   eth0               oob", ""
    ),
    "one neighbour table in a file": eos_json(("Ethernet1", "a", "b")) * 2,
    "required a row in columns": (
        "LocalPort  RemoteDevice  RemotePortID  Capability  RemotePortDescr\n"
        "---------  ------------  ------------  ----------  ---------------\n"
        "Ethernet0 of another table, and more of it\n"
    ),
    "given 'oops {'": 'oops {\n "lldpNeighbors": []\n}\n{}',
}


@pytest.mark.parametrize("words", WRONG)
def test_a_table_is_read_in_full_or_refused(words: str, tmp_path: Path) -> None:
    (tmp_path / "leaf1.txt").write_text(WRONG[words])
    with pytest.raises(InputError) as caught:
        read_facts([tmp_path])
    assert words in str(caught.value)


PROMPTS = ("[root@n0 ~]# lldpctl -f json\n", "admin@n0:~$ x\n", "(lab) u@h:~$ x\n", "u@h ~ % x\n")
BANNERS = ("", "*** Authorized users only ***\n\nLast login: Sat Nov 28\n", ":\n", "[edit]\n")


@pytest.mark.parametrize("banner", BANNERS)
@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompts_and_banners_around_a_table(prompt: str, banner: str, tmp_path: Path) -> None:
    for text in (FORMS["eos"][3], NXOS_TEXT, JUNOS_TEXT, EOS_RULED):
        (tmp_path / "leaf1.txt").write_text(f"{banner}{prompt}{text}\n{prompt}")
        assert len(read_facts([tmp_path]).seen) == 2


@pytest.fixture(scope="module")
def lab() -> Build:
    return fabric("minimal")


def cable_ends(build: Build, vertex: int) -> list[tuple[str, str, str]]:
    """Port, neighbour and its port, of each link of a node."""
    w = build.wiring
    columns = (column[vertex].tolist() for column in (w.port, w.far, w.far_port))
    return [
        (w.port_name(vertex, port), w.names[far], w.port_name(far, far_port))
        for port, far, far_port in zip(*columns, strict=True)
        if far >= 0
    ]


def lldpctl(rows: list[tuple[str, str, str]]) -> str:
    interfaces = [
        {port: {"chassis": {name: {"id": {"type": "mac"}}}, "port": {"id": {"value": there}}}}
        for port, name, there in rows
    ]
    return json.dumps({"lldp": {"interface": interfaces}})


def report(
    build: Build, folder: Path, tables: dict[int, list[tuple[str, str, str]]]
) -> WiringReport:
    for vertex, rows in tables.items():
        (folder / f"{build.wiring.names[vertex]}.json").write_text(lldpctl(rows))
    return WiringReport.of([build], [folder])


@pytest.mark.parametrize(
    "port",
    ["Management1", "mgmt0", "me0", "em0", "fxp0", "eth0", "vme", "Ma1", "con0", "re0:mgmt-0"],
)
def test_a_neighbour_at_a_management_port_is_counted(port: str, lab: Build, tmp_path: Path) -> None:
    rows = [*cable_ends(lab, 0), (port, "oob", "ge-0/0/1"), (port, lab.wiring.names[3], port)]
    found = report(lab, tmp_path, {0: rows})
    assert found.good
    assert [row["port"] for row in found.as_dict()["other_ports"]] == [port, port]
    assert found.as_dict()["unknown_ports"] == []


def test_a_cable_of_the_fabric_at_another_port_is_a_fault(lab: Build, tmp_path: Path) -> None:
    first, *rest = cable_ends(lab, 0)
    found = report(lab, tmp_path, {0: [("eth99", *first[1:]), *rest]})
    assert found.as_dict()["unknown_ports"] == [{"node": lab.wiring.names[0], "port": "eth99"}]
    assert not found.good
    assert found.as_dict()["moves"] == []  # the cable is there
    found = report(lab, tmp_path, {0: [(*first[:2], "mgmt0"), *rest]})
    assert found.as_dict()["unknown_ports"] == [{"node": first[1], "port": "mgmt0"}]
    assert not found.good


def test_a_silent_port_and_an_empty_table_lack_cables(lab: Build, tmp_path: Path) -> None:
    found = report(lab, tmp_path, {0: cable_ends(lab, 0)[1:]})
    assert len(found.audit.missing) == 1
    assert not found.good
    found = report(lab, tmp_path, {0: []})
    assert len(found.audit.missing) == len(cable_ends(lab, 0))
    assert found.as_dict()["empty_tables"] == [lab.wiring.names[0]]


def test_a_dead_switch_that_no_neighbour_sees_lacks_its_cables(lab: Build, tmp_path: Path) -> None:
    dead = lab.wiring.names[6]
    tables = {v: [r for r in cable_ends(lab, v) if r[1] != dead] for v in range(6)}
    found = report(lab, tmp_path, tables)
    assert len(found.audit.missing) == len(cable_ends(lab, 6))
    assert found.audit.absent == (6,)
    assert not found.good


def test_a_neighbour_without_a_name_or_a_port_is_there(lab: Build, tmp_path: Path) -> None:
    """It is no empty port, to which a cable should be added."""
    first, *rest = cable_ends(lab, 0)
    here, names = first[0], lab.wiring.names
    stranger = next(n for n in names[1:] if n not in {row[1] for row in cable_ends(lab, 0)})
    for row, right in (
        ((here, "", first[2]), False),
        ((here, first[1], ""), True),
        ((here, stranger, ""), False),
    ):
        found = report(lab, tmp_path, {0: [row, *rest]})
        assert found.good == right
        assert not found.audit.missing
        assert not found.audit.moves


@pytest.mark.parametrize("name", ["junos", "junos text", "srlinux"])
def test_a_row_without_a_name_is_read(name: str, tmp_path: Path) -> None:
    neighbour = {"chassis-id": "02:AA:00:00:00:01", "port-id": "ethernet-1/3"}
    texts = {
        "junos": junos_json(("et-0/0/1", "", "", "et-0/0/7", "", "")),
        "junos text": "\n".join(
            (
                "Local Interface    Parent Interface    Chassis Id          Port info  System Name",
                "et-0/0/1           -                   02:aa:00:00:00:01   et-0/0/7",
            )
        ),
        "srlinux": json.dumps({"interface": [{"name": "ethernet-1/1", "neighbor": [neighbour]}]}),
    }
    (tmp_path / "leaf1.txt").write_text(texts[name])
    (seen,) = read_facts([tmp_path]).seen
    assert seen.far.nodes
    assert seen.far.ports


def test_numbers_for_ports_are_told_from_what_is_seen(lab: Build, tmp_path: Path) -> None:
    """By both tables, else by the plan; where there is no link, the port is asked for."""
    names, numbers = lab.wiring.names, {"eth1": "500", "eth2": "501", "eth3": "502"}
    tables = {
        v: [(port, far, numbers[there]) for port, far, there in cable_ends(lab, v)]
        for v in range(len(names))
    }
    (tmp_path / "all").mkdir()
    found = report(lab, tmp_path / "all", tables)
    assert (len(found.audit.right), found.good) == (9, True)
    first, second, *rest = tables[0]
    crossed = [(second[0], *first[1:]), (first[0], *second[1:]), *rest]
    (tmp_path / "crossed").mkdir()
    found = report(lab, tmp_path / "crossed", tables | {0: crossed})
    assert [move["kind"] for move in found.as_dict()["moves"]] == ["swap"]
    stranger = next(v for v in range(1, 7) if names[v] not in {row[1] for row in tables[0]})
    (tmp_path / "no link").mkdir()
    wrong = [(first[0], names[stranger], "500"), second, *rest]
    found = report(lab, tmp_path / "no link", {0: wrong})
    assert found.as_dict()["unknown_ports"] == [{"node": names[stranger], "port": "500"}]
    assert found.as_dict()["moves"] == []


def test_numbers_are_learnt_from_details_of_junos(lab: Build, tmp_path: Path) -> None:
    """Node 0 has the number beside the name, and its neighbour sends nothing else."""
    here = cable_ends(lab, 0)
    far = lab.wiring.names.index(here[0][1])
    ports = {f"eth{n}": f"et-0/0/{n - 1}" for n in range(1, 9)}
    mine = [
        (ports[p], str(500 + n), "Locally assigned", "9", ports[there], name)
        for n, (p, name, there) in enumerate(here)
    ]
    theirs = [
        (
            "",
            ports[p],
            "Locally assigned",
            "500" if name == lab.wiring.names[0] else there,
            "",
            name,
        )
        for p, name, there in cable_ends(lab, far)
    ]
    (tmp_path / f"{lab.wiring.names[0]}.json").write_text(junos_json(*mine))
    (tmp_path / f"{lab.wiring.names[far]}.json").write_text(junos_json(*theirs))
    seen = WiringReport.of([lab], [tmp_path]).audit
    assert not seen.misplaced
    assert len(seen.right) >= len(here)
