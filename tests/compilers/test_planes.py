"""Planes: identical fabrics, everything that names something of its own, tables computed once."""

from __future__ import annotations

import os
from dataclasses import replace
from ipaddress import ip_network
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from compilers.cabling.bill import bill
from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.cabling.schedule_columns import CABLE_COLUMNS, ScheduleRows
from compilers.expansion.grow import grow
from compilers.pipeline import compile_fabric
from compilers.planes import compile_planes
from compilers.proof.walks.delivery import verify
from compilers.spec.fabric_file import load_fabric
from compilers.spec.forwarding import Forwarding
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load, plane_folders, save_planes
from compilers.tables.planes_alike import forward_alike
from compilers.wiring.plane_pools import part_of
from inventory.problems import InputError

SPEC = "name: lab\ntopology: {family: polarfly, q: 3}\nplanes: 2\n"
FULL = SPEC + "addressing: {ipv4: 10.0.0.0/16, ipv6: 2001:db8::/48}\nhosts_per_node: 2\n"


def planes(folder: Path, spec: str = FULL, inventory: str = "") -> tuple[Build, ...]:
    if inventory:
        (folder / "inventory.yaml").write_text(inventory)
        spec += "inventory: inventory.yaml\n"
    (folder / "fabric.yaml").write_text(spec)
    return compile_planes(load_fabric(folder / "fabric.yaml"))


def listed(racks: str = "", extra: str = "", first: int = 0, count: int = 26) -> str:
    """13 nodes of each of two planes, in turn."""
    nodes = "".join(
        f"  - {{name: n{i}, type: copackaged-4x8, plane: {1 + i % 2}"
        f"{', rack: ' + racks if racks else ''}}}\n"
        for i in range(first, first + count)
    )
    return f"{extra}nodes:\n{nodes}"


def own(build: Build) -> dict[str, set[object]]:
    """What only one plane may have."""
    w, a = build.wiring, build.addressing
    cables = cables_of(w, hardware_of(build))
    rows = ScheduleRows.of(w, cables)
    known = hardware_of(build)
    places = zip(known.rack.tolist(), known.unit.tolist(), strict=True)
    return {
        "nodes": set(w.names),
        "numbers": set(w.datapath_id.tolist()),
        "macs": set(a.host_mac.ravel().tolist()),
        "addresses": {a.network(v) for v in range(len(w.names))},
        "addresses6": {a.network6(v) for v in range(len(w.names))},
        "labels": {row[CABLE_COLUMNS.index("label")] for row in rows},
        "bundles": {row[CABLE_COLUMNS.index("bundle")] for row in rows} - {""},
        "ports": {(row[5], row[7]) for row in rows} | {(row[10], row[12]) for row in rows},
        "places": {(known.rack_names[r], u) for r, u in places},
        "floor": {tuple(known.rack_place[r].tolist()) for r in set(known.rack.tolist())},
    }


INVENTORIES = {
    "generated": "generate: {type: copackaged-4x8, name: 's{}'}\n",
    "generated in racks of theirs": "generate: {type: copackaged-4x8}\nracks: [{name: A}]\n",
    "listed in one rack": listed("A", "racks: [{name: A}]\n"),
}


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_planes_share_tables_and_nothing_else(tmp_path: Path, inventory: str) -> None:
    one, two = planes(tmp_path, inventory=INVENTORIES[inventory])
    assert one.tables is two.tables
    for build in (one, two):
        assert verify(build).passed
    mine, theirs = own(one), own(two)
    shared = {"places", "floor"} if "rack" in inventory else set()
    for word in mine:
        assert mine[word], word
        if word not in shared:
            assert mine[word].isdisjoint(theirs[word]), word
    if "rack" in inventory:
        assert mine["places"].isdisjoint(theirs["places"])
        assert mine["floor"] == theirs["floor"]
    assert one.wiring.host_names == two.wiring.host_names
    assert (one.name, two.name) == ("lab-p1", "lab-p2")


def test_the_first_plane_has_the_numbers_of_the_fabric_alone(tmp_path: Path) -> None:
    one, _ = planes(tmp_path, SPEC)
    (tmp_path / "fabric.yaml").write_text(SPEC.replace("planes: 2\n", ""))
    alone = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    assert (one.wiring.datapath_id == alone.wiring.datapath_id).all()
    assert (one.addressing.host_mac == alone.addressing.host_mac).all()
    assert one.addressing.host(5, 0) == alone.addressing.host(5, 0)


def test_a_plane_with_other_ports_has_tables_of_its_own(tmp_path: Path) -> None:
    one, two = planes(tmp_path, inventory=listed())
    a = two.wiring.names[0]
    b = two.wiring.names[int(two.wiring.far[0, 0])]
    cable = f"cables: [{{a: {a}, a_port: oio3/7, b: {b}, b_port: oio3/7}}]\n"
    one, two = planes(tmp_path, inventory=listed(extra=cable))
    assert one.tables is not two.tables
    assert two.wiring.port[0, 0] == 32
    assert not forward_alike(one, two)
    assert one.wiring.port[0, 0] != 32
    assert verify(one).passed
    assert verify(two).passed


def test_damage_is_of_one_plane(tmp_path: Path) -> None:
    text = listed().replace("n4, type: copackaged-4x8", "n4, type: copackaged-4x8, state: planned")
    text += "dead_links: [{a: n1, b: n3}]\n"
    whole = planes(tmp_path, inventory=listed())
    names = whole[1].wiring.names
    far = whole[1].wiring.far[0]
    text = text.replace("b: n3", f"b: {names[int(far[0])]}")
    one, two = planes(tmp_path, inventory=text)
    assert one.topology.present.sum() == 12
    assert two.topology.present.sum() == 13
    assert two.topology.graph.size == whole[1].topology.graph.size - 1
    assert verify(one).passed
    assert verify(two).passed


@pytest.mark.parametrize("count", [1, 3, 16])
def test_pools_are_divided(count: int) -> None:
    for text in ("10.0.0.0/8", "2001:db8::/32"):
        pool = ip_network(text)
        parts = [part_of(pool, plane, count) for plane in range(1, count + 1)]  # type: ignore[type-var]
        assert all(part.subnet_of(pool) for part in parts)  # type: ignore[arg-type]
        assert not any(a.overlaps(b) for a, b in combinations(parts, 2))
        assert parts[0].network_address == pool.network_address


def test_folders(tmp_path: Path) -> None:
    builds = save_planes(planes(tmp_path, SPEC.replace("2", "3")), tmp_path / "build")
    folders = plane_folders(tmp_path / "build")
    assert [folder.name for folder in folders] == ["plane-1", "plane-2", "plane-3"]
    assert [load(folder).identity for folder in folders] == [b.identity for b in builds]
    assert len({b.identity for b in builds}) == 3
    table = "arrays/route_egress.npy"
    assert len({(folder / table).stat().st_ino for folder in folders}) == 1
    assert len({(folder / "arrays/datapath_id.npy").stat().st_ino for folder in folders}) == 3
    assert forward_alike(builds[0], builds[2])
    assert not forward_alike(builds[0], replace(builds[2], forwarding=Forwarding(every_hop=True)))
    with pytest.raises(InputError, match="required the build of one plane, given a folder"):
        load(tmp_path / "build")
    other = planes(tmp_path, SPEC + "routing: {protect: link}\n")
    saved = save_planes(other, tmp_path / "build")
    assert len(plane_folders(tmp_path / "build")) == len(saved) == 2
    save_planes(builds, tmp_path / "again")
    assert not forward_alike(saved[0], builds[0])


def test_without_links_between_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("not here")

    one = save_planes(planes(tmp_path, SPEC), tmp_path / "one")
    monkeypatch.setattr(os, "link", refuse)
    two = save_planes(planes(tmp_path, SPEC), tmp_path / "two")
    assert [b.identity for b in one] == [b.identity for b in two]
    assert len({file.stat().st_ino for file in (tmp_path / "two").glob("*/arrays/far.npy")}) == 2


def test_growth_of_planes(tmp_path: Path) -> None:
    whole = planes(tmp_path, inventory="generate: {type: copackaged-4x8}\n")
    grown = [grow(build, "quadric", 1).build for build in whole]
    mine, theirs = own(grown[0]), own(grown[1])
    for word in ("nodes", "numbers", "macs", "labels", "addresses"):
        assert mine[word].isdisjoint(theirs[word]), word


def test_racks_that_planes_share_are_bought_once(tmp_path: Path) -> None:
    builds = planes(tmp_path, inventory=INVENTORIES["listed in one rack"])
    parts = [(b.wiring, cables_of(b.wiring, hardware_of(b))) for b in builds]
    items = {(item.kind, item.name): item.quantity for item in bill(*parts)}
    assert items["rack", "rack 42U"] == 1
    assert items["node", "copackaged-4x8"] == 26
    assert items["connector", "MT 400 Gb/s"] == 2 * 2 * 24


WRONG = {
    "no such plane": (listed(count=1).replace("plane: 1", "plane: 3"), "a plane from 1 to 2"),
    "short": (listed(count=25), r"nodes: required 13 nodes.* given 12 \(plane 2\)"),
    "crossing": (
        listed(extra="cables: [{a: n0, a_port: oio0/0, b: n1, b_port: oio0/0}]\n"),
        "required both ends in one plane, given n0 in plane 1, n1 in plane 2",
    ),
    "vertex": (
        listed().replace("name: n3,", "name: n3, vertex: 99,"),
        r"inventory\.yaml:5: nodes\[3\]\.vertex: required a vertex from 0 to 12, .* \(plane 2\)",
    ),
    "datapath": (
        listed().replace("name: n1,", "name: n1, datapath_id: 5,"),
        "required a datapath id of one plane only, given 0x5 in lab-p1 and lab-p2",
    ),
    "full": (
        listed("A", "racks: [{name: A, units: 26}, {name: B}]\n").replace("n9, ", "n9, unit: 1, ")
        + "  - {name: extra, type: copackaged-4x8, rack: A, plane: 2}\n",
        "required nodes of at most 26 units",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    text, words = WRONG[name]
    with pytest.raises(InputError, match=words):
        planes(Path(), inventory=text)


def test_pools_too_small_for_all_planes(tmp_path: Path) -> None:
    """13 vertices of a /30 are a /26; four planes of them a /24."""
    for count, length in ((1, 26), (2, 25), (3, 24), (4, 24)):
        text = f"addressing: {{ipv4: 10.0.0.0/{length}}}\n"
        spec = SPEC.replace("planes: 2", f"planes: {count}")
        assert len(planes(tmp_path, spec + text)) == count
        with pytest.raises(InputError, match=f"a pool of /{length} or larger: 13 vertices"):
            planes(tmp_path, spec + text.replace(f"/{length}", f"/{length + 1}"))


def test_hosts_keep_their_names_in_every_plane(tmp_path: Path) -> None:
    text = listed()
    for i in (0, 1):
        host = f"{{name: storage, mac: '02:00:00:00:00:{i}1'}}"
        text = text.replace(f"name: n{i},", f"name: n{i}, hosts: [{host}], vertex: 0,")
    one, two = planes(tmp_path, inventory=text)
    assert one.wiring.host_names[0] == two.wiring.host_names[0] == "storage"
    assert np.array_equal(one.addressing.host_mac[0, :1], [0x020000000001])
    assert np.array_equal(two.addressing.host_mac[0, :1], [0x020000000011])
    with pytest.raises(InputError, match="a name that no other node or host has"):
        planes(tmp_path, inventory=text.replace("storage", "n7"))
