"""Links of several parallel cables: a socket each, the port one to everything behind the wiring."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from compilers.audit.adopted_cables import adopted
from compilers.audit.resolve import ObservedCables, resolve
from compilers.audit.socket_numbers import CableSet, SocketNumbers
from compilers.audit.wiring_audit import check
from compilers.cabling.bill import bill
from compilers.cabling.cable_formats import as_csv
from compilers.cabling.cable_plan import Cables, cables_of
from compilers.cabling.netbox_export import files
from compilers.cabling.schedule_columns import ScheduleRows
from compilers.expansion.grow import grow
from compilers.pipeline import compile_fabric
from compilers.proof.walks.delivery import verify
from compilers.readers.devices.neighbour_facts import NamedEnd, NeighbourFacts, NeighbourSighting
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load, save
from inventory.netbox.netbox_file import read_netbox
from inventory.problems import InputError
from tests.compilers.audit.makers import apply
from tests.inventory.makers import export, imported

SPEC = "name: lab\ntopology: {family: polarfly, q: 3}\ninventory: inventory.yaml\n"
TYPES = """node_types:
  twin:
    ports:
      - {name: "bond{}", count: 6, role: fabric, lanes: 8, label: "P{}",
         parallel: 2, member: "Ethernet{}"}
      - {name: "host{}", count: 1, role: host}
"""
NODES = "generate: {type: twin, racks: {units: 4}}\ncabling: {fibre_cores: 64}\n"


def compiled(folder: Path, more: str = NODES, types: str = TYPES) -> Build:
    (folder / "fabric.yaml").write_text(SPEC)
    (folder / "inventory.yaml").write_text(types + more)
    return compile_fabric(load_fabric(folder / "fabric.yaml"))


def schedule(build: Build) -> tuple[Cables, list[dict[str, str]]]:
    assert build.hardware is not None
    cables = cables_of(build.wiring, build.hardware)
    rows = ScheduleRows.of(build.wiring, cables)
    return cables, list(csv.DictReader(io.StringIO("".join(as_csv(rows)))))


def test_a_link_is_two_cables(tmp_path: Path) -> None:
    build = load(save_in(compiled(tmp_path), tmp_path))
    assert verify(build).passed
    cables, rows = schedule(build)
    assert len(rows) == len({row["label"] for row in rows}) == 2 * 24
    ends = [(row[f"{end}_node"], row[f"{end}_port"]) for row in rows for end in "ab"]
    assert len(set(ends)) == len(ends)
    assert {port for _, port in ends} <= {f"Ethernet{i}" for i in range(1, 13)}
    links: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row in rows:
        a, b = (int(row[f"{end}_port"].removeprefix("Ethernet")) for end in "ab")
        links.setdefault((row["a_node"], row["b_node"]), []).append((a, b))
    for (node, other), pairs in links.items():
        (a, b), (c, d) = pairs
        assert (c - a, d - b, a % 2, b % 2) == (1, 1, 1, 1)
        u, v = build.wiring.names.index(node), build.wiring.names.index(other)
        k = build.wiring.far[u].tolist().index(v)
        assert build.wiring.port[u, k] == (a + 1) // 2
        assert build.wiring.port_name(u, (a + 1) // 2) == f"bond{(a + 1) // 2}"
    assert {row["a_port_label"] for row in rows} <= {f"P{i}" for i in range(1, 7)}
    assert Counter(cables.bundles.cables.tolist()) == {2 * 1: 3, 2 * 4: 3}
    items = bill((build.wiring, cables))
    assert [item.quantity for item in items if item.kind == "connector"] == [96]
    fibres = [item.quantity for item in items if item.kind == "fibre"]
    assert sum(fibres) == 6  # 8 cables of 4 lanes and two cores a lane are 64


def save_in(build: Build, folder: Path) -> Path:
    save(build, folder / "build")
    return folder / "build"


def test_names_where_none_are_given(tmp_path: Path) -> None:
    build = compiled(tmp_path, types=TYPES.replace(', member: "Ethernet{}"', ""))
    _, rows = schedule(build)
    assert {row["a_port"][:5] for row in rows} == {"bond1", "bond2", "bond3", "bond4"}
    assert {row["a_port"][5:] for row in rows} == {".0", ".1"}


def facts_of(ports: SocketNumbers, cables: CableSet) -> NeighbourFacts:
    ends = {s: NamedEnd((ports.node(s),), (ports.name(s),)) for c in cables for s in c}
    seen = [NeighbourSighting(ends[a], ends[b]) for pair in cables for a, b in (pair, pair[::-1])]
    return NeighbourFacts(tuple(seen), frozenset((name,) for name in ports.wiring.names))


def test_crossed_cables_of_one_link_are_seen(tmp_path: Path) -> None:
    build = compiled(tmp_path)
    assert build.hardware is not None
    ports = SocketNumbers(build.wiring, build.hardware.types)
    planned = ports.planned()
    assert len(planned) == 48
    assert ports.width == 14
    (a, b), (c, d) = sorted(planned)[:2]
    crossed = planned - {(a, b), (c, d)} | {(a, d), (c, b)}
    wired = resolve(facts_of(ports, crossed), build.wiring, build.hardware)
    assert wired.cables == crossed
    found = check(build.wiring, wired, build.hardware.types)
    (move,) = found.moves
    assert apply(crossed, [move]) == planned
    assert "swap the plugs in Ethernet" in move.sentence(ports)
    taken = adopted(found, ports)
    assert len(taken.dead_links) == 1
    assert set(taken.useless) == {(a, d), (c, b)}
    assert len(taken.cables) == 46
    found = check(build.wiring, resolve(facts_of(ports, planned), build.wiring, build.hardware))
    assert not found.good  # without the types a port has one socket


def test_links_moved_as_a_whole_are_taken(tmp_path: Path) -> None:
    """Both cables of two links exchanged at one node."""
    build = compiled(tmp_path)
    assert build.hardware is not None
    ports = SocketNumbers(build.wiring, build.hardware.types)
    planned = ports.planned()
    other = {1: 3, 2: 4, 3: 1, 4: 2}

    def turned(socket: int) -> int:
        vertex, number = divmod(socket, ports.width)
        return vertex * ports.width + other.get(number, number) if vertex == 0 else socket

    present = frozenset((min(p), max(p)) for p in ((turned(a), turned(b)) for a, b in planned))
    wired = ObservedCables(present, frozenset(range(13)), frozenset(), (), ())
    found = check(build.wiring, wired, build.hardware.types)
    assert len(found.moves) == 2
    taken = adopted(found, ports)
    assert not taken.dead_links
    text = "cables:\n" + "".join(f"  - {cable}\n" for cable in taken.cables)
    again = compiled(tmp_path, NODES + text.replace("'", '"'))
    assert again.hardware is not None
    assert SocketNumbers(again.wiring, again.hardware.types).planned() == present


def test_of_two_ways_the_planned_one_is_taken(tmp_path: Path) -> None:
    """The plan has bond6 for a link, and somebody cabled bond4, too."""
    build = compiled(tmp_path)
    a, b = build.wiring.names[0], build.wiring.names[int(build.wiring.far[0, 1])]
    mine = f"cables: [{{a: {a}, a_port: bond6, b: {b}, b_port: bond6}}]\n"
    build = compiled(tmp_path, NODES + mine)
    assert build.hardware is not None
    ports = SocketNumbers(build.wiring, build.hardware.types)
    planned = ports.planned()
    u, v = (build.wiring.names.index(name) * ports.width for name in (a, b))
    twice = planned | {(u + 7, v + 7), (u + 8, v + 8)}
    found = check(
        build.wiring,
        ObservedCables(twice, frozenset(range(13)), frozenset(), (), ()),
        build.hardware.types,
    )
    taken = adopted(found, ports)
    assert taken.useless == ((u + 7, v + 7), (u + 8, v + 8))
    assert not taken.dead_links


def test_netbox_and_back(tmp_path: Path) -> None:
    build = compiled(tmp_path)
    a, b = build.wiring.names[0], build.wiring.names[int(build.wiring.far[0, 1])]
    mine = f"cables: [{{a: {a}, a_port: bond6, b: {b}, b_port: bond6, label: mine}}]\n"
    before = compiled(tmp_path, NODES + mine)
    export(tmp_path / "fabric.yaml", tmp_path / "one")
    assert "mine-2" in (tmp_path / "one" / "cables.csv").read_text()
    assert len(read_netbox([tmp_path / "one"]).data["cables"]) == 48
    imported(tmp_path / "one", tmp_path / "again.yaml")
    text = (tmp_path / "again.yaml").read_text() + "cabling: {fibre_cores: 64}\n"
    (tmp_path / "inventory.yaml").write_text(
        text
        if "cabling" not in (tmp_path / "again.yaml").read_text()
        else (tmp_path / "again.yaml").read_text()
    )
    for name, content in files(load_fabric(tmp_path / "fabric.yaml"), "lab"):
        assert content == (tmp_path / "one" / name).read_text(), name
    after = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    assert np.array_equal(before.wiring.port, after.wiring.port)


def test_growth(tmp_path: Path) -> None:
    small = compiled(tmp_path)
    found = grow(small, "quadric", 1)
    assert found.moved == 0
    one, two = schedule(small)[1], schedule(found.build)[1]
    words = ("a_node", "a_port", "b_node", "b_port")
    before, after = ({r["label"]: {r[w] for w in words} for r in rows} for rows in (one, two))
    assert before.items() <= after.items()
    assert len(after) == 2 * len(found.expansion.topology.graph.edges())
    assert len(found.added) == 2 * len(found.expansion.added)


BOTH = "{name: n0, type: twin}"
WRONG = {
    "breakout": (TYPES.replace("parallel: 2", "parallel: 2, breakout: 2"), NODES, "given breakout"),
    "hosts": (
        TYPES.replace("role: fabric", "role: host"),
        NODES,
        "whole ports for links, given ro",
    ),
    "names": (TYPES.replace("Ethernet{}", "bond{}"), NODES, "a name with {} for the number"),
    "mixed": (
        TYPES + "  one: {ports: [{count: 6, lanes: 8}]}\n",
        "nodes:\n"
        + "".join(f"  - {{name: n{i}, type: {'twin' if i else 'one'}}}\n" for i in range(13)),
        "with as many cables at both ends of a link, given 1 cables at n0 eth1 and 2",
    ),
    "askew": (TYPES, "CABLE Ethernet1 Ethernet2", "whole ports, or sockets of one number"),
    "twice": (TYPES, "CABLE bond1 bond1 CABLE Ethernet1 Ethernet1", "required one cable per port"),
    "apart": (TYPES, "CABLE Ethernet1 Ethernet1 CABLE Ethernet4 Ethernet4", "one cable per link"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    types, more, words = WRONG[name]
    if "CABLE" in more:
        build = compiled(tmp_path)
        b = build.wiring.names[int(build.wiring.far[0, 0])]
        lines = [part.split() for part in more.split("CABLE ")[1:]]
        more = (
            NODES
            + "cables:\n"
            + "".join(f"  - {{a: n0, a_port: {p}, b: {b}, b_port: {r}}}\n" for p, r in lines)
        )
    with pytest.raises(InputError) as caught:
        compiled(tmp_path, more, types)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("port", "words"),
    [("bond1", "one cable per port"), ("Ethernet2", "cables of one link at a port")],
)
def test_sockets_of_a_port_have_no_cables_of_two_links(
    tmp_path: Path, port: str, words: str
) -> None:
    """A second link takes the whole port, or its other socket, after a cable at one socket."""
    wiring = compiled(tmp_path).wiring
    b, c = (wiring.names[v] for v in wiring.far[0, :2].tolist())
    cables = (
        "cables:\n"
        f"  - {{a: n0, a_port: Ethernet1, b: {b}, b_port: Ethernet1}}\n"
        f"  - {{a: n0, a_port: {port}, b: {c}, b_port: {port}}}\n"
    )
    with pytest.raises(InputError) as caught:
        compiled(tmp_path, NODES + cables)
    assert words in str(caught.value)
    assert "also in line" in str(caught.value)
