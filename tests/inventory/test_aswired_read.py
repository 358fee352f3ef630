"""Neighbour tables as tools print them; what is no such table is told by name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from compilers.audit.neighbour_file import neighbour_forms, read_facts
from compilers.audit.route_table_file import device_texts, read_tables
from compilers.readers.devices.neighbour_facts import NeighbourSighting
from inventory.problems import InputError
from tests.compilers.audit.device_tables import PRINTERS
from tests.compilers.spec.makers import mutated_bytes, mutated_tree
from tests.fuzzing import reading, ten_minutes

LLDPCTL = {
    "lldp": {
        "interface": [
            {
                "eth1": {
                    "via": "LLDP",
                    "chassis": {
                        "n2.dc1": {
                            "id": {"type": "mac", "value": "02:00:00:00:00:02"},
                            "mgmt-ip": ["192.0.2.2", "2001:db8::2"],
                        }
                    },
                    "port": {"id": {"type": "ifname", "value": "eth7"}, "descr": "to n1"},
                }
            },
            {
                "eth1": {
                    "chassis": {"id": {"type": "mac", "value": "02:00:00:00:00:99"}},
                    "port": {"id": {"type": "mac", "value": "02:00:00:00:00:99"}},
                }
            },
        ]
    }
}
SONIC = """\
Capability codes: (R) Router, (B) Bridge, (O) Other
LocalPort    RemoteDevice    RemotePortID       Capability    RemotePortDescr
-----------  --------------  -----------------  ------------  -----------------
Ethernet0    n2              Ethernet8          BR            fabric port
Ethernet8                    02:00:00:00:00:99                eth0
eth0         mgmt-switch     ge-0/0/1           B             n1 mgmt
--------------------------------------------------
Total entries displayed:  3
"""
EOS = {
    "tablesLastChangeTime": 1700000000.5,
    "lldpNeighbors": [
        {"port": "Ethernet1", "neighborDevice": "n2.dc1", "neighborPort": "Ethernet7", "ttl": 120}
    ],
}
SRLINUX = """\
  +--------------+-------------------+----------------------+---------------------+---------------+
  |     Name     |     Neighbor      | Neighbor System Name | Neighbor Chassis ID | Neighbor Port |
  +==============+===================+======================+=====================+===============+
  | ethernet-1/1 | 1A:7F:00:FF:00:00 | n2                   | 1A:7F:00:FF:00:00   | ethernet-1/7  |
  | mgmt0        | 02:42:AC:14:14:01 | host                 | 02:42:AC:14:14:01   | eth0          |
  +--------------+-------------------+----------------------+---------------------+---------------+
"""
SRLINUX_STATE = {
    "srl_nokia-system:system": {
        "lldp": {
            "interface": [
                {
                    "name": "ethernet-1/1",
                    "neighbor": [
                        {"id": "1", "system-name": "n2", "port-id": "ethernet-1/7"},
                    ],
                }
            ]
        }
    }
}
NXOS = """\
Device ID            Local Intf      Hold-time  Capability  Port ID
n2                   Eth1/1          120        BR          Ethernet1/7
host                 mgmt0           120                    eth0
Total entries displayed: 2
"""
NXOS_ROW = {"chassis_id": "n2", "l_port_id": "Eth1/1", "port_id": "Ethernet1/7"}
JUNOS = """\
Local Interface    Parent Interface    Chassis Id          Port info          System Name
et-0/0/1           -                   2c:6b:f5:a1:c2:c0   to n1 et-0/0/1     n2
"""
JUNOS_ROW = {
    "lldp-local-port-id": [{"data": "et-0/0/1"}],
    "lldp-remote-port-description": [{"data": "et-0/0/7"}],
    "lldp-remote-system-name": [{"data": "n2"}],
}
JUNOS_JSON = {"lldp-neighbors-information": [{"lldp-neighbor-information": [JUNOS_ROW]}]}
IBNETDISCOVER = """\
#
# Topology file: generated on Sat Nov 21 22:00:00 2026
#
vendid=0x2c9
switchguid=0x2c90000000001(2c90000000001)
Switch	40 "S-0002c90000000001"		# "n1" base port 0 lid 1 lmc 0
[1]	"S-0002c90000000002"[7]		# "n2 leaf" lid 2 4xHDR
[33]	"H-0002c90000000099"[1](2c90000000100) 		# "host1 HCA-1" lid 3 4xHDR

caguid=0x2c90000000099
Ca	1 "H-0002c90000000099"		# "host1 HCA-1"
[1](2c90000000100) 	"S-0002c90000000001"[33]		# lid 3 lmc 0 "n1" lid 1 4xHDR
"""
OPENFLOW = [
    {
        "src": {"dpid": "0000000000000001", "port_no": "00000001", "name": "s1-eth1"},
        "dst": {"dpid": "0000000000000002", "port_no": "0000000a", "name": "s2-eth10"},
    }
]
CSV = "node,port,neighbor,neighbor_port\nn1,eth1,n2,eth7\nn1,eth2,,\n"
TABLES = {
    "lldpctl": (json.dumps(LLDPCTL), "n1", ("eth1",), "n2.dc1", ("eth7", "to n1")),
    "sonic": (SONIC, "n1", ("Ethernet0",), "n2", ("Ethernet8", "fabric port")),
    "eos": (json.dumps(EOS), "n1", ("Ethernet1",), "n2.dc1", ("Ethernet7",)),
    "srlinux": (SRLINUX, "n1", ("ethernet-1/1",), "n2", ("ethernet-1/7",)),
    "srlinux state": (json.dumps(SRLINUX_STATE), "n1", ("ethernet-1/1",), "n2", ("ethernet-1/7",)),
    "nxos": (NXOS, "n1", ("Eth1/1",), "n2", ("Ethernet1/7",)),
    "nxos json": (
        json.dumps({"TABLE_nbor": {"ROW_nbor": NXOS_ROW}}),
        *("n1", ("Eth1/1",), "n2", ("Ethernet1/7",)),
    ),
    "junos": (JUNOS, "n1", ("et-0/0/1",), "n2", ("to n1 et-0/0/1",)),
    "junos json": (json.dumps(JUNOS_JSON), "n1", ("et-0/0/1",), "n2", ("et-0/0/7",)),
    "ibnetdiscover": (IBNETDISCOVER, "0x0002c90000000001", ("#1",), "0x0002c90000000002", ("#7",)),
    "openflow": (
        json.dumps(OPENFLOW),
        "dpid:0x1",
        ("#1", "s1-eth1"),
        "dpid:0x2",
        ("#10", "s2-eth10"),
    ),
    "csv": (CSV, "n1", ("eth1",), "n2", ("eth7",)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("told", [False, True])
def test_each_form(tmp_path: Path, name: str, told: bool) -> None:
    text, node, port, far, far_port = TABLES[name]
    (tmp_path / "n1.txt").write_text(text)
    facts = read_facts([tmp_path], name.split()[0] if told else None)
    first: NeighbourSighting = facts.seen[0]
    assert (first.near.nodes[0], first.near.ports) == (node, port)
    assert (first.far.nodes[0], first.far.ports) == (far, far_port)
    assert first.near.nodes in facts.reporters


def test_lldpctl_keeps_all_neighbours_of_a_port(tmp_path: Path) -> None:
    (tmp_path / "n1.json").write_text(json.dumps(LLDPCTL))
    seen = read_facts([tmp_path / "n1.json"]).seen
    assert [fact.far.nodes for fact in seen] == [
        ("n2.dc1", "192.0.2.2", "2001:db8::2", "02:00:00:00:00:02"),
        ("02:00:00:00:00:99",),
    ]


def test_one_json_file_of_many_nodes(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(json.dumps({"n1": EOS, "n3": EOS}))
    facts = read_facts([tmp_path])
    assert facts.reporters == {("n1",), ("n3",)}


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_csv_table_of_a_spreadsheet(delimiter: str, tmp_path: Path) -> None:
    first, rest = CSV.replace(",", delimiter).split("\n", 1)
    quoted = delimiter.join(f'"{head}"' for head in first.split(delimiter))
    (tmp_path / "t.csv").write_text(f"\ufeff{quoted}\r\n{rest}")
    (tmp_path / "commas.csv").write_text(CSV)
    seen = [read_facts([tmp_path / name]).seen for name in ("t.csv", "commas.csv")]
    assert seen[0] == seen[1] != ()


def test_folders_name_nodes_where_ansible_fetched_files(tmp_path: Path) -> None:
    for node in ("n1", "n2"):
        (tmp_path / node / "tmp" / ".cache").mkdir(parents=True)
        (tmp_path / node / "tmp" / "lldp.json").write_text(json.dumps(EOS))
        (tmp_path / node / "tmp" / ".cache" / "x").write_text("no table")
    facts = read_facts([tmp_path])
    nodes = [("lldp", "n1", "tmp"), ("lldp", "n2", "tmp")]
    assert facts.reporters == set(nodes)
    assert {fact.near.nodes for fact in facts.seen} == set(nodes)
    assert [names for names, _ in facts.forms] == nodes


def test_a_switch_without_neighbours_is_a_reporter(tmp_path: Path) -> None:
    (tmp_path / "n4.json").write_text('{"lldp": {}}')
    assert read_facts([tmp_path]).reporters == {("n4",)}


WRONG = {
    "a neighbour table (csv, eos": b"hostname leaf1\ninterface Ethernet1\n",
    "an empty file": b"",
    "bytes that are not UTF-8": b"\xff\xfe\x00",
    "required JSON": b'{"lldp": ',
    "nesting beyond measure": b"[" * 100_000,
    "use -f json, not json0": b'{"lldp": [{"interface": []}]}',
    "copy the whole output": b"LocalPort    RemoteDevice\nEthernet0 n2\n",
    "4 values, given 2": b"node,port,neighbour,neighbour_port\nn1,eth0\n",
    "item 0 without a dpid": b'[{"src": {"dpid": 1}, "dst": {}}]',
    "copy the whole table": b"Neighbor System Name\n",
}


HEADS_IN_COMMENTS = (
    "! Device ID            Local Intf      Hold-time  Capability  Port ID",
    "leaf1#Port       Neighbor Device ID       Neighbor Port ID    TTL",
    "leaf1# Interface Ethernet1 detected 1 LLDP neighbors:",
)


@pytest.mark.parametrize("head", HEADS_IN_COMMENTS)
def test_the_head_of_a_table_in_a_comment_is_no_table(tmp_path: Path, head: str) -> None:
    (tmp_path / "n1").write_text(f"{head}\ninterface Ethernet1\n")
    with pytest.raises(InputError, match="required a neighbour table"):
        read_facts([tmp_path])


@pytest.mark.parametrize("words", WRONG)
def test_what_is_no_neighbour_table(tmp_path: Path, words: str) -> None:
    (tmp_path / "n1").write_bytes(WRONG[words])
    with pytest.raises(InputError) as caught:
        read_facts([tmp_path])
    assert words in str(caught.value)
    assert str(tmp_path / "n1") in str(caught.value)


def test_the_wrong_format_is_told_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "n1").write_text(SONIC)
    with pytest.raises(InputError, match="given what looks like sonic; leave `format` out"):
        read_facts([tmp_path], "eos")


def test_mutated_tables(tmp_path: Path) -> None:
    good = bad = 0
    for seed in range(250):
        rng = random.Random(seed)  # noqa: S311
        text = TABLES[rng.choice(list(TABLES))][0].encode()
        (tmp_path / "n1.x").write_bytes(mutated_bytes(text, rng))
        problems = None
        try:
            read_facts([tmp_path], rng.choice([None, None, *neighbour_forms()]))
        except InputError as error:
            problems = error.problems
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        good, bad = good + (problems is None), bad + (problems is not None)
        for problem in problems or ():
            assert str(tmp_path) in problem.file, seed
            assert str(problem).isprintable(), seed
    assert good > 10
    assert bad > 10


LEAVES = [None, True, 0, 10**30, "", "\0", [], {}, [[]], {"a": {}}, [None], "x" * 999]


def test_trees_of_another_shape(tmp_path: Path) -> None:
    trees = [json.loads(t[0]) for t in TABLES.values() if t[0][0] in "[{"]
    for seed in range(250):
        rng = random.Random(seed)  # noqa: S311
        tree = json.loads(json.dumps(rng.choice(trees)))
        place = tree
        while True:
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not place[key] or not isinstance(place[key], dict | list) or rng.random() < 0.2:
                break
            place = place[key]
        place[key] = rng.choice(LEAVES)
        (tmp_path / "n1.json").write_text(json.dumps(tree))
        try:
            read_facts([tmp_path])
        except InputError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {tree}") from error


def table_case(tmp_path: Path) -> Callable[[random.Random], str]:
    """Read a table that is harmed by chance; says what became of that."""
    hops = [("10.1.0.1", "eth1", 1), ("10.1.0.3", "eth2", 1)]
    held = [printer({("main", "10.0.1.0/24"): [hops]}) for printer in PRINTERS.values()]
    routes = ["\n".join(map(json.dumps, outputs)) for outputs in held]

    def case(chance: random.Random) -> str:
        seen, form = chance.random() < 0.5, chance.choice([None, None, *neighbour_forms()])
        text = chance.choice([each[0] for each in TABLES.values()] if seen else routes)
        documents = [line for line in text.splitlines() if line] if not seen else [text]
        if text[0] in "[{" and chance.random() < 0.6:
            trees = [yaml.safe_load(mutated_tree(json.loads(each), chance)) for each in documents]
            mutated = "\n".join(json.dumps(tree, default=str) for tree in trees).encode()
        else:
            mutated = mutated_bytes(text.encode(), chance)
        (file := tmp_path / "n1.x").write_bytes(mutated)
        if seen:
            return reading(lambda: read_facts([tmp_path], form), tmp_path)
        return reading(lambda: read_tables(device_texts([file])), tmp_path)

    return case


def test_what_the_test_below_found(tmp_path: Path) -> None:
    """Junos' header on two lines; a weight of a kernel's next hop that is infinite."""
    case = table_case(tmp_path)
    seeds = (1941, 14440, 7667, 20272)
    assert {case(random.Random(seed)) for seed in seeds} == {"refused"}  # noqa: S311


@pytest.mark.long
def test_ten_minutes_of_tables(tmp_path: Path) -> None:
    """Tables of neighbours and of routes, in every form."""
    ten_minutes("tables", table_case(tmp_path))
