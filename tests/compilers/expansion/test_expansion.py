"""A fabric grows: nothing that stands is touched, and the larger one forwards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.cabling.schedule_columns import ScheduleRows
from compilers.expansion import grow as growth
from compilers.expansion.grow import grow
from compilers.expansion.grown_wiring import moved_cables
from compilers.expansion.link_ports import LinkPorts
from compilers.expansion.port_shortage import require_room
from compilers.pipeline import compile_fabric
from compilers.proof.walks.delivery import verify
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load, save
from compilers.topology.layout import layout
from compilers.topology.replicated_clusters import Expansion
from compilers.update.renumbering import BLOCK, renumberings
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError
from polarfab.commands.hardware.expand import command
from polarfab.fabric import Fabric
from tests.compilers.fabrics import partly_installed
from tests.compilers.routed import routed

CASES = [(3, "quadric", 2), (7, "fan", 3), (4, "nucleus", 1)]
INVENTORY = "generate: {type: copackaged-4x8}\n"
NO_LINK = {"port": 0, "far": -1, "far_port": 0}


def build(folder: Path, q: int, routing: str = "", inventory: str = INVENTORY) -> Build:
    text = f"name: lab\ntopology: {{family: polarfly, q: {q}}}\nhosts_per_node: 2\n{routing}"
    if inventory:
        (folder / "inventory.yaml").write_text(inventory)
        text += "inventory: inventory.yaml\n"
    (folder / "fabric.yaml").write_text(text)
    return compile_fabric(load_fabric(folder / "fabric.yaml"))


def ends(build: Build) -> set[frozenset[tuple[str, int]]]:
    """Every cable as its two ends, node and port, from the far side's arrays."""
    w = build.wiring
    return {
        frozenset(((w.names[u], int(w.port[u, k])), (w.names[v], int(w.far_port[u, k]))))
        for u, row in enumerate(w.far.tolist())
        for k, v in enumerate(row)
        if v >= 0
    }


@pytest.mark.parametrize(("q", "method", "count"), CASES)
def test_only_added(tmp_path: Path, q: int, method: str, count: int) -> None:
    small = build(tmp_path, q)
    found = grow(small, method, count)
    before, after = ends(small), ends(found.build)
    assert before < after
    assert len(after) == len(found.cables) == found.build.topology.graph.size
    assert len(after - before) == len(found.added) == len(found.expansion.added)
    assert found.moved == 0
    used = [end for cable in after for end in cable]
    assert len(set(used)) == len(used)
    w = found.build.wiring
    hosts = {(w.names[v], p) for v, row in enumerate(w.host_port.tolist()) for p in row}
    assert len(hosts) == 2 * len(w.names)
    assert hosts.isdisjoint(used)


@pytest.mark.parametrize(("q", "method", "count"), CASES)
def test_the_larger_fabric_forwards_and_keeps_its_rows(
    tmp_path: Path, q: int, method: str, count: int
) -> None:
    small = build(tmp_path, q)
    found = grow(small, method, count)
    larger = save(found.build, tmp_path / "larger")
    report = verify(larger)
    assert report.passed
    assert report.max_hops == larger.topology.diameter
    old = small.topology.graph.order
    one, two = small.tables.routes.egress, larger.tables.routes.egress[:old, :old]
    assert (one == two).all()
    assert not found.changes["rows_changed"].any()
    assert not found.changes["classes_changed"].any()
    degrees = [b.topology.graph.degrees[:old] for b in (small, larger)]
    assert (found.changes["classes_added"] == degrees[1] - degrees[0]).all()
    for v in range(old):
        assert small.addressing.host(v, 1) == larger.addressing.host(v, 1)


def test_a_changed_row_is_counted(tmp_path: Path) -> None:
    small = build(tmp_path, 3)
    larger = grow(small, "quadric", 1).build
    egress = larger.tables.routes.egress.copy()
    egress[2, 5] ^= 1
    routes = replace(larger.tables.routes, egress=egress)
    other = replace(larger, tables=replace(larger.tables, routes=routes))
    assert growth.changes(small, other)["rows_changed"].tolist() == [0, 0, 1] + [0] * 10


def test_a_moved_plug_is_counted(tmp_path: Path) -> None:
    small = build(tmp_path, 3)
    larger = grow(small, "quadric", 1).build.wiring
    larger.port[0, 0], larger.port[0, 1] = larger.port[0, 1], larger.port[0, 0]
    assert moved_cables(small.wiring, larger) == 2


@pytest.mark.parametrize("protect", ["none", "link"])
def test_a_policy_grows_with_it(tmp_path: Path, protect: str) -> None:
    routing = f"routing: {{balance: compact-valiant, protect: {protect}}}\n"
    found = grow(build(tmp_path, 5, routing), "quadric", 1)
    assert verify(found.build).passed
    assert found.build.tables.classes.alternate.any()
    assert found.build.tables.classes.protection.any() == (protect == "link")


def labels(build: Build) -> dict[frozenset[str], str]:
    """The label of each cable, by its nodes."""
    cables = cables_of(build.wiring, hardware_of(build))
    rows = ScheduleRows.of(build.wiring, cables)
    return {frozenset((str(row[5]), str(row[10]))): str(row[1]) for row in rows}


def test_labels_stay_what_they_are(tmp_path: Path) -> None:
    small = build(tmp_path, 5)
    before, after = labels(small), labels(load(save_in(grow(small, "fan", 1).build, tmp_path)))
    assert before.items() < after.items()
    assert len(set(after.values())) == len(after)


def test_more_racks_leave_the_first_as_they_are(tmp_path: Path) -> None:
    small = build(tmp_path, 5)
    one, two = (grow(small, "fan", count).build for count in (1, 3))
    assert ends(one) < ends(two)
    assert labels(one).items() < labels(two).items()
    assert one.hardware is not None
    assert two.hardware is not None
    order = one.topology.graph.order
    for word in ("rack", "unit"):
        assert (getattr(one.hardware, word) == getattr(two.hardware, word)[:order]).all()


def save_in(build: Build, folder: Path) -> Path:
    save(build, folder / "larger")
    return folder / "larger"


def test_racks_with_room_are_filled_and_new_ones_stand_behind(tmp_path: Path) -> None:
    small = build(tmp_path, 5)
    assert small.hardware is not None
    assert small.hardware.rack_names == ("rack0",)
    known = grow(small, "quadric", 2).build.hardware
    assert known is not None
    assert known.rack_names == ("rack0", "quadrics-2")
    assert known.rack[31:].tolist() == [0] * 6 + [1] * 6
    places = set(map(tuple, known.rack_place.tolist()))
    assert len(places) == len(known.rack_names)
    seats = set(zip(known.rack.tolist(), known.unit.tolist(), strict=True))
    assert len(seats) == len(known.rack)


def test_a_rack_without_room_for_a_cluster_takes_a_part_of_it(tmp_path: Path) -> None:
    racks = "".join(f"  - {{name: R{i}, units: {n}}}\n" for i, n in enumerate((31, 2, 5)))
    small = build(tmp_path, 5, inventory=f"{INVENTORY}racks:\n{racks}")
    known = grow(small, "quadric", 1).build.hardware
    assert known is not None
    assert known.rack_names == ("R0", "R1", "R2")
    seats = list(zip(known.rack[31:].tolist(), known.unit[31:].tolist(), strict=True))
    assert sorted(seats) == [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (2, 4)]


def test_the_parts_of_a_cluster_that_no_rack_holds_are_numbered(tmp_path: Path) -> None:
    inventory = "generate: {type: copackaged-4x8, racks: {units: 4}}\n"
    known = grow(build(tmp_path, 5, inventory=inventory), "quadric", 1).build.hardware
    assert known is not None
    assert known.rack_names[-2:] == ("quadrics-1", "quadrics-1-part2")


def test_the_node_that_lacks_most_ports_is_named() -> None:
    small = routed(q=2)
    flat = layout(small.topology)
    link_ports = LinkPorts(((),), ((1, 2), *[()] * 6))
    added = np.array([[0, 1], [0, 2], [0, 3], [1, 2]], np.int32)
    for lacking, words in (
        (added, "at 1, given 0, and too few at 3 more nodes"),
        (added[:1], "at 1, given 0; no cluster"),
    ):
        larger = Expansion(small.topology, lacking, np.arange(7, dtype=np.int32), flat)
        with pytest.raises(InputError, match=words):
            require_room(link_ports, larger, small.wiring, 0)


def test_made_up_hardware_grows_and_grows_again(tmp_path: Path) -> None:
    small = build(tmp_path, 3, inventory="")
    one = grow(small, "quadric", 1)
    two = grow(one.build, "quadric", 1)
    assert ends(small) < ends(one.build) < ends(two.build)
    assert (one.moved, two.moved) == (0, 0)
    assert (two.build.wiring.host_port[:13] == small.wiring.host_port).all()
    names = two.build.wiring.port_names[0]
    assert names == tuple(f"eth{n + 1}" for n in range(len(names)))
    assert verify(two.build).passed


def test_the_nucleus_twin_needs_no_more_ports_than_there_are(tmp_path: Path) -> None:
    found = grow(build(tmp_path, 4, inventory=""), "nucleus", 1)
    assert found.build.wiring.names[-1] == "21"
    assert found.clusters_that_fit == 1
    assert not found.ports_left.any()


def test_a_way_to_grow_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one of quadric, fan, nucleus, given spine"):
        grow(build(tmp_path, 5), "spine", 1)


def test_how_many_racks_fit(tmp_path: Path) -> None:
    small = build(tmp_path, 7)
    fits = grow(small, "quadric", 1).clusters_that_fit
    assert grow(small, "quadric", fits).ports_left.min() >= 0
    with pytest.raises(InputError, match=f"at most {fits} clusters of this kind fit"):
        grow(small, "quadric", fits + 1)


@pytest.mark.parametrize(("hosts", "fits"), [(1, 2), (2, 1), (3, 0)])
def test_hosts_of_new_nodes_need_ports_too(hosts: int, fits: int) -> None:
    """Three clusters have ports for all links, of eight of any role; hosts were not counted."""
    nodes = {"node_types": {"leaf": {"ports": [{"count": 8}]}}, "generate": {"type": "leaf"}}
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": hosts}
    (small,) = Fabric.from_spec(spec, nodes).compile().compiled
    words = {1: "one cluster of this kind fits", 0: "no cluster of this kind fits"}
    if fits:
        assert grow(small, "fan", fits).clusters_that_fit == fits
    with pytest.raises(InputError, match=words.get(fits, f"at most {fits} clusters")):
        grow(small, "fan", fits + 1)


def test_a_pool_that_is_full(tmp_path: Path) -> None:
    small = build(tmp_path, 5, "addressing: {ipv4: 10.0.0.0/24}\n")
    with pytest.raises(InputError, match=r"a pool of /23 or larger for 37 vertices"):
        grow(small, "quadric", 1)


def test_a_pool_whose_blocks_begin_after_its_first_address() -> None:
    """They would end beyond the pool: 17 blocks of 8 addresses from 10.0.0.128 on."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 3}
    pools = [{"addressing": {"ipv4": pool}} for pool in ("10.0.0.128/25", "10.0.0.0/24")]
    first, second = (Fabric.from_spec(spec | pool) for pool in pools)
    moved = second.compile(first.compile())
    with pytest.raises(
        InputError, match=r"a pool of /23 or larger for 17 vertices, given 10\.0\.0\.0"
    ):
        grow(moved.compiled[0], "quadric", 1)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"base": {"ntp": ["10.0.0.60"]}}, "a time server"),
        ({"base": {"syslog": ["10.0.0.60"]}}, "a server of logs"),
        ({"base": {"management": {"length": 24, "gateway": "10.0.0.60"}}}, "the gateway"),
        ({"management": "10.0.0.60"}, "the management of n3"),
    ],
)
def test_blocks_of_new_switches_hold_no_other_address(more: dict[str, Any], what: str) -> None:
    """The next block of four addresses begins at 10.0.0.52, the one after at 10.0.0.56."""
    nodes = [{"name": f"n{v}", "type": "switch-32"} for v in range(13)]
    nodes[3] |= {"management": more["management"]} if "management" in more else {}
    base = {"base": more["base"]} if "base" in more else {}
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, **base}
    (small,) = Fabric.from_spec(spec, {"nodes": nodes}).compile().compiled
    with pytest.raises(
        InputError, match=rf"new switches without {what}.*10.0.0.60 in 10.0.0.60/30"
    ):
        grow(small, "quadric", 1)


def test_what_a_plane_without_room_is_told_does_help() -> None:
    """A larger pool does not: planes keep their parts of it."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 3}
    spec |= {"planes": 2, "addressing": {"ipv4": "10.0.0.0/24"}}
    first = Fabric.from_spec(spec).compile()
    spec["addressing"] = {"ipv4": "10.0.0.0/16"}
    wide = Fabric.from_spec(spec).compile(first)
    with pytest.raises(InputError, match=r"17 vertices, given 10\.0\.0\.0/25") as refused:
        grow(wide.compiled[0], "quadric", 1)
    topology = yaml.safe_load(refused.value.problems[0].todo.split("`")[1])
    larger = Fabric.from_spec(spec | topology).compile(wide)
    assert [len(build.wiring.names) for build in larger.compiled] == [17, 17]
    one, two = zip(wide.compiled, larger.compiled, strict=True)
    assert renumberings(*one) == ()
    assert {change.kind for change in renumberings(*two)} == {BLOCK}


def test_the_verb(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    small = save(build(tmp_path, 3), tmp_path / "build")
    words = [
        str(tmp_path / "build"),
        "--clusters",
        "quadric:1",
        "-o",
        str(tmp_path / "more"),
        "--json",
    ]
    command.main(words, standalone_mode=False)
    report = json.loads(capfd.readouterr().out)
    assert (report["cables_moved"], report["nodes"]) == (0, 17)
    assert len(report["added"]) == report["cables_added"] == report["cables"] - 24
    assert len(report["switches"]) == small.topology.graph.order
    lines = (tmp_path / "more-added-cables.csv").read_text().splitlines()
    assert len(lines) == 1 + report["cables_added"]
    assert (tmp_path / "more" / "verified.json").is_file()
    assert np.load(tmp_path / "more" / "arrays" / "port.npy").shape[0] == 17


@pytest.mark.parametrize(("q", "method", "one", "two"), [(5, "quadric", 1, 2), (5, "fan", 1, 1)])
def test_step_by_step_as_in_one_go(tmp_path: Path, q: int, method: str, one: int, two: int) -> None:
    small = build(tmp_path, q)
    first = load(save_in(grow(small, method, one).build, tmp_path))
    found, whole = grow(first, method, two), grow(small, method, one + two)
    assert found.build.topology.parameters == whole.build.topology.parameters
    assert (found.build.topology.graph.edges() == whole.build.topology.graph.edges()).all()
    assert ends(first) < ends(found.build) == ends(whole.build)
    assert found.moved == 0
    assert len(found.added) == len(ends(found.build)) - len(ends(first))
    assert found.build.wiring.names == whole.build.wiring.names
    assert (found.build.wiring.datapath_id == whole.build.wiring.datapath_id).all()
    assert labels(first).items() < labels(found.build).items()
    assert labels(found.build) == labels(whole.build)
    assert verify(found.build).passed
    assert not found.changes["rows_changed"].any()
    assert found.clusters_that_fit == whole.clusters_that_fit - one
    known = found.build.hardware
    assert known is not None
    seats = set(zip(known.rack.tolist(), known.unit.tolist(), strict=True))
    assert len(seats) == len(known.rack)
    assert len(set(map(tuple, known.rack_place.tolist()))) == len(known.rack_names)


@pytest.mark.parametrize(
    ("method", "count", "words"),
    [
        ("fan", 1, "required more clusters by quadric, given fan, where 1 by quadric were added"),
        ("quadric", 1024, "given 1 installed and 1024 more"),
    ],
)
def test_what_a_grown_fabric_refuses(tmp_path: Path, method: str, count: int, words: str) -> None:
    grown = grow(build(tmp_path, 3), "quadric", 1).build
    with pytest.raises(InputError, match=words):
        grow(grown, method, count)


def test_a_fabric_that_has_grown_by_the_nucleus_does_not_grow_again(tmp_path: Path) -> None:
    """The message asked for more clusters by nucleus, of which there is one."""
    grown = grow(build(tmp_path, 4), "nucleus", 1).build
    with pytest.raises(InputError, match="required a fabric that has not grown by the nucleus"):
        grow(grown, "fan", 1)


def test_a_fabric_that_is_not_whole_does_not_grow(tmp_path: Path) -> None:
    build(tmp_path, 3, inventory="")
    part = partly_installed(load_fabric(tmp_path / "fabric.yaml"), range(2))
    with pytest.raises(InputError, match=r"required a whole fabric, given [0-9]+ links missing"):
        grow(part, "quadric", 1)


def _one_cable(far: int, order: int = 70_000) -> Wiring:
    """Vertex 0 and another, port 1 to port 1, in a fabric of more switches than 16 bits number."""
    ends = {word: np.full((order, 1), none, np.int32) for word, none in NO_LINK.items()}
    for one, other in ((0, far), (far, 0)):
        ends["port"][one], ends["far"][one], ends["far_port"][one] = 1, other, 1
    wiring = routed(q=2).wiring
    return replace(wiring, node_type=np.zeros(order, wiring.node_type.dtype), **ends)


@pytest.mark.parametrize("far", [5, 65_536 + 5])
def test_moved_cables_beyond_65536_switches(far: int) -> None:
    assert moved_cables(_one_cable(65_536 + 5), _one_cable(far)) == (far == 5)


SPARES = """node_types:
  leaf: {ports: [{name: 'eth{}', count: 12}]}
  old: {ports: [{name: 'e{}', count: 4}]}
racks: [{name: A1, units: 15}, {name: A2, units: 5}]
nodes:
"""
SPARE_NODES = """
  - {name: other, type: old, rack: A2, unit: 1}
  - {name: broken, type: leaf, rack: A2, unit: 5, disabled_ports: [eth3]}
  - {name: ordered, type: leaf, state: planned}
  - {name: s1, type: leaf, rack: A2, unit: 2, datapath_id: 0x900, management: 192.0.2.9, serial: S1,
     hosts: [{name: db1, mac: '00:11:22:33:44:55', rack: A2, unit: 3}, {}]}
  - {name: s2, type: leaf}
"""


def test_spares_are_taken_before_nodes_are_made_up(tmp_path: Path) -> None:
    nodes = "\n".join(f"  - {{name: n{v}, type: leaf, rack: A1}}" for v in range(13))
    plain = build(tmp_path, 3, inventory=SPARES + nodes + "\n")
    assert "spares" not in json.loads((save_in(plain, tmp_path) / "fabric.json").read_text())
    first = load(save_in(build(tmp_path, 3, inventory=SPARES + nodes + SPARE_NODES), tmp_path))
    found = grow(first, "quadric", 1)
    larger, known = found.build, found.build.hardware
    assert known is not None
    w = larger.wiring
    assert w.names[13:] == ("s1", "s2", "ordered", f"{w.names[found.expansion.origin[16]]}-1")
    assert [node.name for node in found.spare_nodes.values()] == ["s1", "s2", "ordered"]
    assert w.datapath_id[13:].tolist() == [0x900, 0x902, 0x903, 0x904]
    assert (w.management[13], known.serial[13]) == ("192.0.2.9", "S1")
    assert w.host_names[26:30] == ("db1", "h13-1", "h14-0", "h14-1")
    assert larger.addressing.mac(13, 0) == "00:11:22:33:44:55"
    assert (known.host_rack[13, 0], known.host_unit[13, 0]) == (1, 3)
    # A1 has two units free; those of A2 are the spares' and the host's, but for one.
    assert known.rack_names == ("A1", "A2")
    assert list(zip(known.rack[13:].tolist(), known.unit[13:].tolist(), strict=True)) == [
        *((1, 2), (0, 14), (0, 15), (1, 4))
    ]
    assert [node.name for node in known.spares] == ["other", "broken"]
    assert verify(load(save_in(larger, tmp_path))).passed
