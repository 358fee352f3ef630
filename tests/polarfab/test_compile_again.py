"""Compiling again: cables, hosts and numbers that are there stay."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from compilers.tables.build import Build
from polarfab.fabric import Fabric
from tests.polarfab.conftest import Run

SPEC = {"name": "hall", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 3}
LEAF = {"ports": [{"name": "eth{}", "count": 9}]}
RACKS = [{"name": "A", "units": 8}, {"name": "B", "units": 8}]


def cables(build: Build) -> set[tuple[tuple[str, str], ...]]:
    """Every cable as its two ends, switch and port."""
    w = build.wiring
    return {
        tuple(sorted(((w.names[u], w.port_name(u, p)), (w.names[v], w.port_name(v, q)))))
        for u, p, v, q in w.each_cable()
    }


def hall(folder: Path, **inventory: Any) -> Path:
    """The fabric.yaml of a hall of generated nodes, with more of an inventory."""
    nodes = {"node_types": {"leaf": LEAF}, "generate": {"type": "leaf"}}
    (folder / "inventory.yaml").write_text(yaml.safe_dump(nodes | inventory))
    (folder / "fabric.yaml").write_text(yaml.safe_dump(SPEC | {"inventory": "inventory.yaml"}))
    return folder / "fabric.yaml"


def test_cables_stay_when_compile_replaces_a_build(polarfab: Run, tmp_path: Path) -> None:
    build, anew, kept = (tmp_path / name for name in ("build", "anew", "kept"))
    code, _, err = polarfab("compile", hall(tmp_path), "-o", build)
    assert (code, "numbers are new; name `allocations:`" in err) == (0, True)
    before = cables(Fabric.load(build).build)
    spec = hall(tmp_path, racks=RACKS)
    code, _, err = polarfab("compile", spec, "-o", build)
    assert (code, cables(Fabric.load(build).build)) == (0, before)
    assert "nothing else changes" in err
    assert "number" not in err
    assert polarfab("compile", spec, "-o", anew)[0] == 0
    assert cables(Fabric.load(anew).build) != before
    assert polarfab("compile", spec, "-o", kept, "--from", build)[0] == 0
    assert cables(Fabric.load(kept).build) == before
    code, _, err = polarfab("compile", spec, "-o", build, "--replace-cables")
    assert (code, cables(Fabric.load(build).build)) == (0, cables(Fabric.load(anew).build))
    assert "cable moves" in err
    assert "label of a cable changes" not in err
    _, _, err = polarfab("plan", anew, "--from", kept)
    assert "counted over all of them together" in " ".join(err.split())


def test_what_a_file_without_its_build_cannot_keep_is_named(polarfab: Run, tmp_path: Path) -> None:
    spec = hall(tmp_path)
    numbered = SPEC | {"inventory": "inventory.yaml", "allocations": "numbers.csv"}
    errors = []
    for folder, pool in (("a", "10.4.0.0/16"), ("b", "10.4.0.0/16"), ("c", "10.5.0.0/16")):
        spec.write_text(yaml.safe_dump(numbered | {"addressing": {"ipv4": pool}}))
        code, _, err = polarfab("compile", spec, "-o", tmp_path / folder)
        assert code == 0
        errors.append(err)
    assert "numbers are new" in errors[0]
    assert "numbers are those of" in errors[1]
    assert "changes" not in errors[1]
    assert "pool ipv4 changes: 10.4.0.0 to 10.5.0.0" in errors[2]


def test_compile_names_settings_and_systems_that_change(polarfab: Run, tmp_path: Path) -> None:
    leaf, large = LEAF | {"system": "eos"}, LEAF | {"system": "nvue"}
    ports = {"eos": "Ethernet{port}", "nvue": "swp{port}"}
    for one in (leaf, large):
        one["names"] = ports
    spec = hall(tmp_path, node_types={"leaf": leaf})
    assert polarfab("compile", spec, "-o", tmp_path / "build", "--no-verify")[0] == 0
    spec = hall(tmp_path, node_types={"leaf": large})
    links = {"addressing": {"links": "100.99.0.0/16"}, "control_plane": {"routes": "ebgp"}}
    spec.write_text(yaml.safe_dump(SPEC | {"inventory": "inventory.yaml"} | links))
    code, _, err = polarfab("compile", spec, "-o", tmp_path / "build", "--no-verify")
    assert code == 0
    assert "addressing.links changes: none to 100.99.0.0/16" in err
    assert "all links (addressing.links): 100.64.0.0/10 to 100.99.0.0/16" in err
    assert "control_plane.routes changes: static to ebgp" in err
    assert "system eos to nvue" in err
    assert "no switch" not in err


def test_compile_names_ports_of_a_type_that_change(polarfab: Run, tmp_path: Path) -> None:
    """In the inventory's words, and one port for all that change alike."""
    spec = hall(tmp_path)
    assert polarfab("compile", spec, "-o", tmp_path / "build", "--no-verify")[0] == 0
    more = {"ports": [{"name": "eth{}", "count": 12, "speed": 200}]}
    spec = hall(tmp_path, node_types={"leaf": more})
    code, _, err = polarfab("compile", spec, "-o", tmp_path / "build", "--no-verify")
    assert code == 0
    said = [line for line in err.splitlines() if line.startswith("type leaf")]
    assert said == [
        "type leaf: ports 9 to 12",
        "type leaf: speed of port eth1 0 to 200",
        "type leaf: port block 1, count 9 to 12",
        "type leaf: port block 1, speed 0 to 200",
    ]


def test_naming_the_systems_of_a_fabric_changes_no_addresses(polarfab: Run, tmp_path: Path) -> None:
    """Open vSwitch and Linux have no addresses on links; those of other systems are as before."""
    spec, old = hall(tmp_path), tmp_path / "build"
    assert polarfab("compile", spec, "-o", old, "--no-verify")[0] == 0
    for system in ("ovs", "linux"):
        spec.write_text(yaml.safe_dump(SPEC | {"inventory": "inventory.yaml", "system": system}))
        new = tmp_path / system
        code, _, err = polarfab("compile", spec, "-o", new, "--from", old, "--no-verify")
        assert code == 0, err
        assert f"system none to {system}" in err
        assert "addresses of a link" not in err
        assert "routers lose packets" not in polarfab("plan", new, "--from", old, "--unverified")[2]


def test_compile_does_not_replace_another_fabric(polarfab: Run, tmp_path: Path) -> None:
    build = tmp_path / "build"
    spec = hall(tmp_path)
    assert polarfab("compile", spec, "-o", build)[0] == 0
    for change in ({"name": "other"}, {"topology": {"family": "polarfly", "q": 2}}):
        spec.write_text(yaml.safe_dump(SPEC | change))
        code, _, err = polarfab("compile", spec, "-o", build)
        assert (code, "compile into another folder" in err) == (2, True)
    assert Fabric.load(build).name == "hall"


CSV = ["gpu1,n0", "gpu2,n0", "gpu3,n0", "gpu4,n7", "gpu5,n7"]


def with_hosts(folder: Path, lines: list[str]) -> Path:
    """A spec whose hosts are in a file of these lines, without ports."""
    (folder / "hosts.csv").write_text("\n".join(["name,switch", *lines]) + "\n")
    return hall(folder, hosts="hosts.csv")


def places(build: Build) -> dict[str, tuple[str, str, str, str]]:
    """Switch, port and addresses of each host."""
    w, a, width = build.wiring, build.addressing, build.wiring.host_port.shape[1]
    return {
        w.host_names[v * width + h]: (
            w.names[v],
            w.port_name(v, int(w.host_port[v, h])),
            a.mac(v, h),
            str(a.host(v, h)),
        )
        for v, h in np.argwhere(w.host_port > 0).tolist()
    }


def test_hosts_of_a_sorted_file_keep_their_ports(polarfab: Run, tmp_path: Path) -> None:
    build = tmp_path / "build"
    assert polarfab("compile", with_hosts(tmp_path, CSV), "-o", build)[0] == 0
    before = places(Fabric.load(build).build)
    assert polarfab("compile", with_hosts(tmp_path, CSV[::-1]), "-o", build)[0] == 0
    assert places(Fabric.load(build).build) == before
    fewer = [line for line in CSV if not line.startswith("gpu1,")]
    assert polarfab("compile", with_hosts(tmp_path, fewer), "-o", build)[0] == 0
    left = places(Fabric.load(build).build)
    assert left == {name: place for name, place in before.items() if name != "gpu1"}
    assert Fabric.load(build).verify().passed
    more = ["gpu9,n0", *fewer]
    assert polarfab("compile", with_hosts(tmp_path, more), "-o", build)[0] == 0
    assert places(Fabric.load(build).build) == left | {"gpu9": before["gpu1"]}


def test_plan_and_diff_name_a_host_that_moved(polarfab: Run, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    assert polarfab("compile", with_hosts(tmp_path, CSV), "-o", old)[0] == 0
    swapped = [CSV[1], CSV[0], *CSV[2:]]
    assert polarfab("compile", with_hosts(tmp_path, swapped), "-o", new)[0] == 0
    code, out, _ = polarfab("diff", new, "--from", old, "--json")
    found = json.loads(out)
    assert (code, [move[0] for move in found["hosts_moved"]]) == (1, ["gpu2", "gpu1"])
    was, now = places(Fabric.load(old).build)["gpu1"], places(Fabric.load(new).build)["gpu1"]
    assert found["hosts_moved"][1][1:] == [f"n0 {p}, {ip}, {mac}" for _, p, mac, ip in (was, now)]
    assert "gpu1" in polarfab("diff", new, "--from", old)[1]
    code, out, _ = polarfab("plan", new, "--from", old)
    assert "2 hosts moved" in out.splitlines()[0]
    assert f"host gpu1 moved: n0 {was[1]}, {was[3]}, {was[2]} to n0 {now[1]}" in out


def test_a_higher_switch_moves_no_other(polarfab: Run, tmp_path: Path) -> None:
    """n2 is replaced by a model of two units, which has no room below n3."""
    build, tall = tmp_path / "build", {"ports": LEAF["ports"], "units": 2}
    nodes = [{"name": f"n{n}", "type": "leaf", "serial": f"S{n}"} for n in range(13)]
    inventory = tmp_path / "inventory.yaml"

    def compiled(**other: object) -> tuple[int, str]:
        nodes[2] = {"name": "n2", "type": "tall", "serial": "S99"} | other
        hall(tmp_path)
        types = {"leaf": LEAF, "tall": tall}
        racks = [{"name": "A", "units": 8}, {"name": "B", "units": 12}]
        inventory.write_text(yaml.safe_dump({"node_types": types, "racks": racks, "nodes": nodes}))
        code, _, err = polarfab("compile", tmp_path / "fabric.yaml", "-o", build, "--quick")
        return code, err

    assert compiled(type="leaf", serial="S2")[0] == 0
    hardware = Fabric.load(build).build.hardware
    assert hardware is not None
    units = hardware.unit.tolist()
    code, err = compiled()
    assert code == 2
    assert "free units" in err
    assert "for n2, where it stood, given unit" in err
    rack, unit = re.findall(r"write `rack: (\w+), unit: (\d+)` to put it there", err)[0]
    code, err = compiled(rack=rack, unit=int(unit))
    assert code == 0
    (moved,) = (line for line in err.splitlines() if "place" in line)
    assert moved.startswith("switch n2: place")
    after = Fabric.load(build).build.hardware
    assert after is not None
    assert [one == two for one, two in zip(units, after.unit.tolist(), strict=True)].count(
        False
    ) == 1


def test_a_trial_and_a_failed_compile_leave_file_and_build(polarfab: Run, tmp_path: Path) -> None:
    """Numbers change with a new host; the file changes together with the build, or neither does."""
    spec, build, file = with_hosts(tmp_path, CSV[:-1]), tmp_path / "build", tmp_path / "numbers.csv"
    spec.write_text(f"{spec.read_text()}allocations: numbers.csv\n")
    compiled = "compile", spec, "--quick", "-o"
    assert polarfab(*compiled, build)[0] == 0
    text, identity = file.read_text(), Fabric.load(build).build.identity
    (tmp_path / "hosts.csv").write_text("\n".join(["name,switch", *CSV]) + "\n")
    code, _, err = polarfab(*compiled, tmp_path / "new", "--from", build)
    assert (code, file.read_text()) == (0, text)
    assert "numbers.csv; this is a trial" in err
    spec.write_text(spec.read_text().replace("numbers.csv", "no-folder/numbers.csv"))
    assert polarfab(*compiled, build)[0] == 2
    assert Fabric.load(build).build.identity == identity
    spec.write_text(spec.read_text().replace("no-folder/numbers.csv", "numbers.csv"))
    assert polarfab(*compiled, build)[0] == 0
    assert file.read_text() != text


def test_compile_says_that_as_numbers_stay(polarfab: Run, tmp_path: Path) -> None:
    """The reader of rendered files counted from the new `base.asn`, and refused them all."""
    spec = hall(tmp_path)
    for number in (65001, 65101):
        more = {"control_plane": {"routes": "ebgp"}, "base": {"asn": number}, "system": "frr"}
        spec.write_text(yaml.safe_dump(SPEC | {"inventory": "inventory.yaml"} | more))
        code, _, err = polarfab("compile", spec, "-o", tmp_path / "build", "--no-verify")
        assert code == 0
    assert "base.asn changes: 65001 to 65101" in err
    assert "switches that are there keep their AS numbers: `base.asn` is for new ones" in err
    assert "AS number changes" not in err
    words = "--target", "frr", "-o", tmp_path / "out", "--unverified"
    code, _, err = polarfab("render", tmp_path / "build", *words)
    assert code == 0, err
    assert "remote-as 65001" in "".join(
        path.read_text() for path in (tmp_path / "out").rglob("frr.conf")
    )


def test_new_as_numbers_of_a_file_are_named(polarfab: Run, tmp_path: Path) -> None:
    spec = hall(tmp_path)
    more = {"control_plane": {"routes": "ebgp"}, "allocations": "numbers.csv"}
    spec.write_text(yaml.safe_dump(SPEC | {"inventory": "inventory.yaml"} | more))
    assert polarfab("compile", spec, "-o", tmp_path / "build", "--no-verify")[0] == 0
    file = tmp_path / "numbers.csv"
    file.write_text("".join(s for s in file.open() if ",asn," not in s or ",asn,0," in s))
    code, _, err = polarfab("compile", spec, "-o", tmp_path / "other", "--no-verify")
    assert (code, "AS number of vertex 1 is new: 4200000001" in err) == (0, True)
    assert "and 6 more: new AS numbers" in err


def test_a_switch_of_a_graph_that_loses_another_keeps_its_numbers(
    polarfab: Run, tmp_path: Path
) -> None:
    """Numbers that stay at a switch whose vertex changes were said to change, or be taken again.

    That its block changes was not said.
    """
    graph, spec, build = (tmp_path / name for name in ("ring.edges", "fabric.yaml", "build"))
    nodes = {"node_types": {"leaf": LEAF}, "nodes": [{"name": n, "type": "leaf"} for n in "abcde"]}
    more = {"topology": {"family": "graph", "file": graph.name}, "inventory": "inventory.yaml"}
    spec.write_text(yaml.safe_dump(SPEC | more | {"control_plane": {"routes": "ebgp"}}))
    for edges, names in (
        ("a b\nb c\nc d\nd e\na e\na d\n", "abcde"),
        ("a b\nb d\nd e\na e\na d\n", "abde"),
    ):
        graph.write_text(edges)
        nodes["nodes"] = [{"name": name, "type": "leaf"} for name in names]
        (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(nodes))
        code, _, err = polarfab("compile", spec, "-o", build, "--no-verify")
        assert code == 0, err
    assert "switch c goes" in err
    assert "block of a switch changes, d: " in err
    assert "label of a cable changes" not in err
    assert "addresses of a link changes" not in err
    assert "AS number changes" not in err
    assert "taken again" not in err


def test_compile_says_where_frr_has_to_be_restarted(polarfab: Run, tmp_path: Path) -> None:
    """BFD of an FRR that runs stays down when TTL security is turned on beside another make."""
    for others, is_told in (("bird", True), ("frr", False)):
        spec, build = hall(tmp_path), tmp_path / others
        nodes = [
            {"name": f"n{n}", "type": "leaf", "system": "frr" if n else others} for n in range(13)
        ]
        document = {"node_types": {"leaf": LEAF}, "nodes": nodes}
        (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(document))
        for gtsm in (False, True):
            more = {"control_plane": {"routes": "ebgp", "gtsm": gtsm}, "system": "frr"}
            spec.write_text(yaml.safe_dump(SPEC | {"inventory": "inventory.yaml"} | more))
            code, _, err = polarfab("compile", spec, "-o", build, "--no-verify")
            assert code == 0, err
        assert "control_plane.gtsm changes: off to on" in err
        assert ("restart FRR on its switches" in err) == is_told
