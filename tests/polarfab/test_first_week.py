"""A site of one's own: three models, two rooms and systems, broken ports, uneven hosts."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from tests.polarfab.conftest import Run

SITE = Path(__file__).parents[1] / "data" / "site"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of the site in a folder of their own, which is the current one."""
    shutil.copytree(SITE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_week(polarfab: Run, site: Path) -> None:
    """From the check of the files to a rehearsal: everything is said, nothing is refused."""

    def run(*words: object) -> tuple[str, str]:
        code, out, err = polarfab(*words)
        assert code == 0, f"{words}: {out}{err}"
        return out, err

    out, _ = run("design", "--switches", "13", "--ports", "24", "--diameter", "2")
    assert "polarfly q=3" in out
    code, _, err = polarfab("design", "--ports", "48x25G+8x100G", "--hosts", "200")
    assert code == 2
    assert "hosts the slower ones: say --radix 8" in err
    assert "a link carries 4 of the slowest hosts, so add --oversubscription 4" in err
    _, _, err = polarfab("design", "--ports", "48x25G, 1x100G,2x100", "--hosts", "200")
    assert "hosts the slower ones: say --radix 3; a link" in err
    for broken in (f"1x{'9' * 5000}+1x2", "0x100G+48x25G", "48x0G+8x100G", "8x100G+48x25G+"):
        code, _, err = polarfab("design", "--ports", broken, "--hosts", "200")
        assert code == 2
        assert "--ports: required a whole number from 2 to 4096" in err
    out, err = run("check", "spec", "fabric.yaml")
    assert "switches          12 of 13" in out
    assert "planned switches  1" in out
    assert "Next-B6, with 4 links and 0 hosts" in err
    assert "without planned switches: at most 3 hops, not 2" in err
    _, err = run("compile", "fabric.yaml", "-o", "build")
    assert "Next-B6" in err
    out, _ = run("explain", "build", "Leaf-A1", "leaf-a6-h1")
    assert "Leaf-A6" in out
    out, _ = run("cables", "build", "--format", "bom")
    assert 'cable,dac,"dac-passive, 1 m",7' in out
    assert 'cable,fibre,"smf-os2, 30 m",8' in out
    assert "connector,QSFP28 100 Gb/s,plugs of cables,14" in out
    out, _ = run("cables", "build", "--format", "labels")
    assert "to A1 U" in out
    assert "overflow: hidden" not in out, "a long name hides the far port"
    out, _ = run("export", "build", "--format", "graphml")
    names = nx.get_node_attributes(nx.parse_graphml(out), "name")
    assert {"Leaf-A1", "Mid-B2", "Old-B5"} < set(names.values())
    run("simulate", "build", "--pattern", "traffic.csv", "--load", "0.1")
    out, _ = run("throughput", "build", "--pattern", "traffic.csv", "--json")
    assert [row["flows"] for row in json.loads(out)["patterns"]] == [4]
    out, _ = run("throughput", "build", "--pattern", "traffic.csv")
    assert "0 to 6 hosts per node" in out
    out, _ = run("verify", "build")
    assert "132 of 132" in out
    run("render", "build", "-o", "out")
    of_systems = {
        "eos": {*(site / "out").glob("*/eos.cfg")},
        "frr": {*(site / "out").glob("*/frr.conf")},
    }
    nodes = {system: {path.parent.name for path in paths} for system, paths in of_systems.items()}
    assert nodes["frr"] == {"Old-B4", "Old-B5"}
    assert len(nodes["eos"]) == 10
    assert not nodes["eos"] & nodes["frr"]
    out, _ = run("verify", "build", "--emitted", "out")
    assert "target           eos and frr" in out
    (site / "cut.yaml").write_text(
        "name: cut\nengine: model\nfabric: build\ntimeline:\n"
        "  - {node_down: Leaf-A6}\n  - {node_up: Leaf-A6}\n"
        "traffic: {link_rate: 10, flows: {pattern: traffic.csv}}\n"
    )
    out, _ = run("emulate", "cut.yaml", "--json")
    report = json.loads(out)
    assert report["passed"]
    assert [event["expected"] for event in report["timeline"]] == [24 * 23, 28 * 27]
    assert report["throughput"]["pattern"] == "traffic.csv"


@pytest.mark.parametrize(
    ("file", "before", "after", "messages"),
    [
        (
            "hosts.csv",
            "leaf-a1-h2,Leaf-A1,y2\n",
            "Leaf-A1-H1,Leaf-A1,y2\nbad name,Leaf-A1,y9\n,Leaf-A1,\n",
            (
                "hosts.csv:3: hosts: required a name of its own, given Leaf-A1-H1, also in line 2",
                "hosts.csv:4: hosts: required as name a name of at most 63",
                "hosts.csv:5: hosts: required a name, given none; fill it in",
            ),
        ),
        (
            "hosts.csv",
            "leaf-a1-h2,Leaf-A1,y2\n",
            "leaf-a1-h2,Leaf-A11,y2\nmid-a7,Mid-A7,\n",
            (
                "hosts.csv:3: hosts: required a node of the fabric as switch, given Leaf-A11",
                "hosts.csv:4: hosts: required a name that no node has, given mid-a7",
            ),
        ),
        (
            "hosts.csv",
            "name,switch,port\nleaf-a1-h1,Leaf-A1,y1\nleaf-a1-h2,Leaf-A1,y2\n",
            "name,swich,port,unit\nleaf-a1-h1,Leaf-A11,y1,top\nleaf-a1-h1,Leaf-A1,y2,1001\n",
            (
                "hosts.csv:1: hosts: required a column that is called switch",
                "hosts.csv:2: hosts: required a node of the fabric as switch, given Leaf-A11",
                "hosts.csv:2: hosts: required as unit a whole number from 1 to 1000, given top",
                "hosts.csv:3: hosts: required a name of its own, given leaf-a1-h1, also in line 2",
                "hosts.csv:3: hosts: required as unit a whole number from 1 to 1000, given 1001",
            ),
        ),
        (
            "hosts.csv",
            "name,switch,port\n",
            "name,machine,port\n",
            ("hosts.csv:1: hosts: required a first line with the column switch, given 'name,mach",),
        ),
        (
            "inventory.yaml",
            "lengths: [1, 2, 3]",
            "lengths: [1, 3000]",
            ("lengths: required lengths of at most 7 m, as far as dac-passive reaches",),
        ),
        (
            "inventory.yaml",
            "speed: 25,",
            "speed: 25G,",
            ("speed: required a whole number of Gbit/s, given 25G; write 25",),
        ),
        (
            "inventory.yaml",
            "speed: 25,",
            "speed: 25000,",
            ("speed: required a speed in Gbit/s of at most 9,999, given 25000; write 25",),
        ),
        (
            "inventory.yaml",
            "speed: 25,",
            "speed: 25000000,",
            ("speed: required a speed in Gbit/s of at most 9,999, given 25000000\n",),
        ),
        (
            "inventory.yaml",
            "name: Leaf-A3,",
            "name: leaf-a1,",
            (
                "nodes[2].name: required a name that no other node or host has, given leaf-a1",
                "hosts.csv:9: hosts: required a node of the fabric as switch, given Leaf-A3",
                "hosts.csv:10: hosts: required a node of the fabric as switch, given Leaf-A3",
                "hosts.csv:11: hosts: required a node of the fabric as switch, given Leaf-A3",
            ),
        ),
        (
            "inventory.yaml",
            "name: A2, row",
            "name: a1, row",
            (
                "racks[1].name: required a name that no other rack has, given a1, also in line",
                *(f"nodes[{i}].rack: required a rack of racks, given A2" for i in (4, 5, 6)),
            ),
        ),
    ],
)
def test_mistakes(
    polarfab: Run, site: Path, file: str, before: str, after: str, messages: tuple[str, ...]
) -> None:
    text = (site / file).read_text()
    assert before in text
    (site / file).write_text(text.replace(before, after, 1))
    code, _, err = polarfab("check", "spec", "fabric.yaml")
    assert code == 2
    assert err.count("error:") == len(messages)
    for message in messages:
        assert message in err


def test_a_broken_port_costs_no_link_at_a_quadric(polarfab: Run, site: Path) -> None:
    inventory = site / "inventory.yaml"
    broken = ", disabled_ports: [c2]"
    text = inventory.read_text().replace(f", vertex: 9{broken}", "")
    leaf = "Leaf-A6, type: acme-48Y8, rack: A2"
    text = text.replace(leaf, leaf + broken)
    inventory.write_text(text)
    _, _, err = polarfab("check", "spec", "fabric.yaml")
    assert "lost link: " in err
    assert "Leaf-A6 has 3 ports left for links. It loses no link in the place of " in err
    # A neighbour of it lacks a port for a host.
    one = "Mid-A7, type: Bolt-24C"
    inventory.write_text(text.replace(one, f"{one}, disabled_ports: [e24]"))
    _, _, err = polarfab("check", "spec", "fabric.yaml")
    assert "Leaf-A6 has 3 ports left for links. It loses no link in the place of " in err
    assert "Mid-A7 has" not in err
    assert "their hosts get other addresses" in " ".join(err.split())
    # The nodes that it names are exchanged, and all others stay where they are.
    vertices = dict(re.findall(r"`vertex: (\d+)` at (\S+)", " ".join(err.split())))
    assert len(vertices) == 2
    exchanged = text
    for vertex, node in vertices.items():
        exchanged = exchanged.replace(f"name: {node},", f"name: {node}, vertex: {vertex},")
    inventory.write_text(exchanged)
    _, _, err = polarfab("check", "spec", "fabric.yaml")
    assert "lost link: " not in err
    # No vertex is free that could be named.
    head, nodes = text.split("nodes:\n")
    placed = [
        f"{line[:-1]}, vertex: {vertex}}}\n" for vertex, line in enumerate(nodes.splitlines())
    ]
    inventory.write_text(f"{head}nodes:\n{''.join(placed)}")
    _, _, err = polarfab("check", "spec", "fabric.yaml")
    assert "lost link: " in err
    assert "To exchange them" not in err


@pytest.mark.usefixtures("site")
def test_what_fails_is_called_by_its_name(polarfab: Run) -> None:
    assert polarfab("compile", "fabric.yaml", "-o", "build", "--quick")[0] == 0
    code, _, err = polarfab("explain", "build", "Leaf-A1", "Mid-B2", "--fail", "Leaf-A1:Mid-B2")
    assert code == 2
    assert "write Leaf-A1-Mid-B2" in err
    _, out, _ = polarfab("explain", "build", "Leaf-A1", "Mid-B2", "--fail", "rack:A1")
    assert "switch Leaf-A1 is down" in out


def test_slower_links_of_an_expansion(polarfab: Run, site: Path) -> None:
    """Four spare switches; ports for links of 100 Gbit/s are taken, so 25 are left."""
    ports = '{name: "c{}", count: 4, role: fabric, speed: 100}, {name: "y{}", count: 20, speed: 25}'
    nodes = "".join(f"  - {{name: Sw-{n}, type: leaf}}\n" for n in range(17))
    (site / "inventory.yaml").write_text(
        f"node_types: {{leaf: {{ports: [{ports}]}}}}\nnodes:\n{nodes}"
    )
    (site / "fabric.yaml").write_text(
        "name: site\ntopology: {family: polarfly, q: 3}\ninventory: inventory.yaml\n"
    )
    assert polarfab("compile", "fabric.yaml", "-o", "build", "--quick")[0] == 0
    _, out, _ = polarfab("expand", "build", "--clusters", "quadric:1")
    assert "12 of them, with 25 Gbit/s; those that are there have 100" in " ".join(out.split())


def test_an_unknown_switch_of_generated_nodes_is_named_with_other_mistakes(
    polarfab: Run, site: Path
) -> None:
    (site / "inventory.yaml").write_text(
        'node_types: {leaf: {ports: [{name: "p{}", count: 12}]}}\n'
        "generate: {type: leaf, name: 'sw{}'}\nhosts: hosts.csv\n"
    )
    (site / "hosts.csv").write_text("name,switch\nh1,sw3\nh1,sw12\nh3,Leaf-A1\n")
    code, _, err = polarfab("check", "spec", "fabric.yaml")
    assert code == 2
    assert "hosts.csv:3: hosts: required a name of its own, given h1, also in line 2" in err
    assert "hosts.csv:4: hosts: required a node of the fabric as switch, given Leaf-A1" in err
    assert "generated nodes are called sw{}" in err
