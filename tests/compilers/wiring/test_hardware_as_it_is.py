"""Hardware as people have it: several types, a file of hosts, reserved ports, cables that stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

import polarfab
from compilers.proof.walks.delivery import verify
from compilers.tables.build import Build
from polarfab.fabric import Fabric

SPEC = {"name": "hall", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 3}
LEAF = {"ports": [{"name": "eth{}", "count": 9}]}
HOSTS = "Host;Switch;Port;Serial\ngpu1;n0;eth2;A\ngpu2;n0;;B\n\nstore;n7;eth9;C\n"


def built(inventory: dict[str, object], **spec: object) -> Build:
    return Fabric.from_spec(SPEC | spec, inventory).build


def plugged(build: Build) -> dict[str, tuple[str, str]]:
    """The switch and the port of each host that has one."""
    wiring = build.wiring
    width = wiring.host_port.shape[1]
    return {
        wiring.host_names[v * width + h]: (
            wiring.names[v],
            wiring.port_name(v, int(wiring.host_port[v, h])),
        )
        for v, h in np.argwhere(wiring.host_port > 0).tolist()
    }


def cables(build: Build) -> set[tuple[tuple[str, str], ...]]:
    """Every cable as its two ends, switch and port."""
    w = build.wiring
    return {
        tuple(sorted(((w.names[u], w.port_name(u, p)), (w.names[v], w.port_name(v, q)))))
        for u, p, v, q in w.each_cable()
    }


def test_generate_makes_nodes_of_several_types() -> None:
    old = {"ports": [{"name": "port{}", "count": 8}], "host_count": 1}
    parts = [{"type": "old", "count": 4}, {"type": "leaf", "name": "l{}", "group": "gpu"}]
    build = built(
        {
            "node_types": {"old": old, "leaf": LEAF},
            "groups": {"gpu": {"host_count": 2, "site": "north"}},
            "generate": {"types": parts, "name": "o{}"},
        }
    )
    assert build.wiring.names[3:5] == ("o3", "l4")
    assert (build.wiring.host_port > 0).sum(axis=1).tolist() == [1] * 4 + [2] * 9
    assert build.wiring.port_name(0, 1) == "port1"
    assert build.wiring.port_name(12, 1) == "eth1"
    assert build.node_vars["l4"]["site"] == "north"
    assert verify(build).passed


def test_a_file_of_hosts_says_where_each_is_plugged(tmp_path: Path) -> None:
    (tmp_path / "hosts.csv").write_text(HOSTS)
    inventory = {"node_types": {"leaf": LEAF}, "generate": {"type": "leaf"}, "hosts": "hosts.csv"}
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(inventory))
    build = Fabric.from_spec(SPEC, tmp_path / "inventory.yaml").build
    found = plugged(build)
    assert found["gpu1"] == ("n0", "eth2")
    assert found["store"] == ("n7", "eth9")
    assert found["gpu2"][0] == "n0"
    assert len(found) == 3
    assert verify(build).passed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "eth2",
            "eth10",
            "csv:2: hosts: required a port of n0 for hosts, given eth10 for gpu1 at n0; did",
        ),
        (
            "gpu2;n0;",
            "gpu2;n0;eth2",
            "csv:3: hosts: required a port of its own, given n0 eth2, also",
        ),
        ("n7", "n77", "csv:5: hosts: required a node of the fabric as switch, given n77; did you"),
        ("store", "n3", "hosts.csv:5: hosts: required a name that no node has, given n3"),
        ("Switch", "place", "a first line with the column switch"),
        ("gpu2", "gp\xfc2", "a CSV file in UTF-8: line 3 is not"),
        ("", "g3;n0;\ng4;n0;\n", "at most 3 at a switch"),
        ("eth9;C", 'eth9;"C\ng9;n1;;', "the row from line 5 of hosts.csv; are its quotes closed?"),
        (
            "store",
            "h2-0",
            "csv:5: hosts: required a name that no other node or host has, given h2-0, which the "
            "host without a name at vertex 2 gets",
        ),
    ],
)
def test_a_file_of_hosts_with_a_mistake(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = HOSTS.replace(old, new, 1) if old else HOSTS + new
    (tmp_path / "hosts.csv").write_text(text, encoding="latin-1")
    inventory = {"node_types": {"leaf": LEAF}, "generate": {"type": "leaf"}, "hosts": "hosts.csv"}
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(inventory))
    with pytest.raises(polarfab.InputError) as error:
        _ = Fabric.from_spec(SPEC, tmp_path / "inventory.yaml").build
    (problem,) = error.value.problems
    assert message in str(problem)
    assert problem.key == "hosts"


def test_ten_wrong_ports_of_a_file_are_named(tmp_path: Path) -> None:
    lines = [f"g{v},n{v},oops{v}" for v in range(13)]
    (tmp_path / "hosts.csv").write_text("\n".join(["name,switch,port", *lines]))
    inventory = {"node_types": {"leaf": LEAF}, "generate": {"type": "leaf"}, "hosts": "hosts.csv"}
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(inventory))
    with pytest.raises(polarfab.InputError) as error:
        _ = Fabric.from_spec(SPEC, tmp_path / "inventory.yaml").build
    problems = [str(problem) for problem in error.value.problems]
    assert len(problems) == 11
    assert "hosts.csv:11: hosts: " in problems[9]
    assert "given oops9 for g9 at n9" in problems[9]
    assert "hosts.csv:12: hosts: " in problems[10]
    assert "given 3 more ports that cannot be used" in problems[10]


def test_wrong_counts_and_types_are_refused() -> None:
    types = {"leaf": LEAF}
    for generate, message in (
        ({"types": [{"type": "leaf", "count": 12}]}, "required 13 nodes in all, given 12"),
        ({"types": [{"type": "leaf", "count": 14}]}, "given 14, where 13 of 13 are left"),
        ({"type": "leaf", "types": [{"type": "leaf"}]}, "required type, or types for several"),
        ({"name": "n{}"}, "required type, or types for several, given neither"),
        ({"types": [{"type": "leaf", "group": "g"}]}, "required a key of groups, given g"),
        ({"types": [{"type": "laef"}]}, "did you mean leaf?"),
    ):
        with pytest.raises(polarfab.InputError, match=message.replace("?", r"\?")):
            _ = built({"node_types": types, "generate": generate})
    for count, message in ((4, "at most 3 "), ("two", "a whole number from 0 to 1024")):
        inventory = {"node_types": types, "generate": {"type": "leaf"}}
        with pytest.raises(polarfab.InputError, match=message):
            _ = built(inventory | {"groups": {"g": {"host_count": count}}})


def test_nothing_takes_a_reserved_port() -> None:
    ports = [
        {"name": "mgmt{}", "count": 2, "role": "reserved"},
        {"name": "eth{}", "count": 7},
    ]
    build = built({"node_types": {"leaf": {"ports": ports}}, "generate": {"type": "leaf"}})
    used = {port for end in cables(build) for _, port in end} | {
        port for _, port in plugged(build).values()
    }
    assert used == {f"eth{n}" for n in range(1, 8)}
    assert build.wiring.port.min(initial=9, where=build.wiring.port > 0) == 3, "numbers stay"


def test_port_names_may_have_spaces(tmp_path: Path) -> None:
    leaf = {"ports": [{"name": "Ethernet {}", "count": 8}], "names": {"eos": "Ethernet{port}"}}
    fabric = Fabric.from_spec(SPEC, {"node_types": {"leaf": leaf}, "generate": {"type": "leaf"}})
    assert fabric.build.wiring.port_name(0, 2) == "Ethernet 2"
    fabric.render("eos", tmp_path / "eos")
    with pytest.raises(polarfab.InputError, match="required interface names of NX-OS"):
        fabric.render("nxos", tmp_path / "nxos")


RACKS = [{"name": "A", "units": 8}, {"name": "B", "units": 8}]


def test_cables_stay_where_an_earlier_build_has_them() -> None:
    inventory: dict[str, object] = {
        "node_types": {"leaf": LEAF},
        "nodes": [{"name": f"s{v}", "type": "leaf"} for v in range(13)],
    }
    before = Fabric.from_spec(SPEC, inventory).compile()
    (first, port), *_ = (end for cable in sorted(cables(before.build)) for end in cable)
    nodes = [
        {"name": f"s{v}", "type": "leaf"} | ({"disabled_ports": [port]} if f"s{v}" == first else {})
        for v in reversed(range(13))
    ]
    changed = inventory | {"nodes": nodes, "racks": RACKS}
    moved = cables(before.build) - cables(Fabric.from_spec(SPEC, changed).build)
    kept = Fabric.from_spec(SPEC, changed).compile(before=before)
    assert len(moved) > 12
    assert len(cables(before.build) - cables(kept.build)) == 1, "the one at the broken port"
    assert plugged(kept.build) == plugged(before.build)
    assert not polarfab.lost_links(kept)[0].links
    assert kept.verify().passed
    with pytest.raises(polarfab.InputError, match="an earlier build of 2 planes, given one of 1"):
        Fabric.from_spec(SPEC | {"planes": 2}).compile(before=before)


def test_what_cannot_stay_moves_before_the_fabric_is_refused() -> None:
    def hardware(role: str, hosts: int) -> dict[str, object]:
        ports = [{"name": "a{}", "count": 3, "role": role}, {"name": "b{}", "count": 4}]
        nodes = [{"name": f"s{v}", "type": "t", "host_count": hosts} for v in range(13)]
        return {"node_types": {"t": {"ports": ports}}, "nodes": nodes}

    before = Fabric.from_spec(SPEC, hardware("any", 2)).compile()
    # Links have all of a1 to a3; now these are for hosts, who leave b1 to b4 to the links.
    after = Fabric.from_spec(SPEC, hardware("host", 2))
    kept = after.compile(before=before)
    assert kept.verify().passed
    assert not polarfab.lost_links(kept)[0].hosts
    with pytest.raises(polarfab.InputError, match="keep the vertices of the earlier build"):
        Fabric.from_spec(SPEC, hardware("host", 3) | few()).compile(before=before)


def few() -> dict[str, object]:
    """Node types with too few ports."""
    return {"node_types": {"t": {"ports": [{"name": "a{}", "count": 5}]}}}
