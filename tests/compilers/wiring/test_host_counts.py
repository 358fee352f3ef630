"""Uneven hosts and their names: a number for a node or a type, a pattern for names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.proof.walks.delivery import verify
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load, save
from inventory.problems import InputError

PORTS = [{"name": "eth{}", "count": 12}]


def nodes(*counts: int | None) -> list[dict[str, object]]:
    """As many nodes as vertices of PolarFly q = 3, the first with these numbers of hosts."""
    given = [*counts, *[None] * (13 - len(counts))]
    return [
        {"name": f"sw{v:02}", "type": "leaf"} | ({} if n is None else {"host_count": n})
        for v, n in enumerate(given)
    ]


def built(inventory: dict[str, object], **spec: object) -> Build:
    """The fabric of an inventory, with three hosts a node at most."""
    fabric: dict[str, object] = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 3},
        "hosts_per_node": 3,
        **spec,
    }
    return compile_fabric(load_fabric(fabric | {"inventory": inventory}))


def present(build: Build) -> list[str]:
    """The names of the hosts that have a port, vertex by vertex."""
    return [build.wiring.host_names[i] for i in np.flatnonzero(build.wiring.host_port.ravel())]


def test_nodes_and_types_have_hosts_of_their_own_number(tmp_path: Path) -> None:
    types = {"leaf": {"ports": PORTS, "host_count": 2}}
    build = built({"node_types": types, "nodes": nodes(3, 0, 1)})
    assert (build.wiring.host_port > 0).sum(axis=1).tolist() == [3, 0, 1, *[2] * 10]
    assert verify(build).passed
    save(build, tmp_path / "build")
    assert present(load(tmp_path / "build")) == present(build)


def test_missing_hosts_stay_missing_in_a_damaged_fabric() -> None:
    inventory = {"node_types": {"leaf": {"ports": PORTS}}, "nodes": nodes(1)}
    first = built(inventory).wiring
    dead = [{"a": first.names[0], "b": first.names[int(first.far[0, 0])]}]
    build = built(inventory | {"dead_links": dead})
    assert (build.wiring.host_port[0] > 0).sum() == 1
    assert verify(build).passed


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("gpu{number:03}", ["gpu001", "gpu002", "gpu003"]),
        ("{node}-{host}", ["sw00-1", "sw01-1", "sw01-2"]),
        ("v{vertex}h{host:02}", ["v0h01", "v1h01", "v1h02"]),
    ],
)
def test_a_pattern_names_hosts(pattern: str, names: list[str]) -> None:
    types = {"leaf": {"ports": PORTS}}
    build = built({"node_types": types, "nodes": nodes(1), "host_names": pattern})
    assert present(build)[:3] == names


def test_a_pattern_keeps_names_that_are_given() -> None:
    listed = nodes()
    listed[0]["hosts"] = [{"name": "storage"}]
    types = {"leaf": {"ports": PORTS}}
    build = built({"node_types": types, "nodes": listed, "host_names": "gpu{number}"})
    assert present(build)[:3] == ["storage", "gpu2", "gpu3"]


def test_numbers_follow_the_list_of_nodes() -> None:
    listed = [node | {"vertex": 12 - v} for v, node in enumerate(nodes(2, 1, 1))]
    types = {"leaf": {"ports": PORTS, "host_count": 1}}
    build = built({"node_types": types, "nodes": listed, "host_names": "gpu{number}"})
    at = {name: i // 3 for i, name in enumerate(build.wiring.host_names)}
    assert [build.wiring.names[at[f"gpu{n}"]] for n in (1, 2, 3, 4)] == [
        "sw00",
        "sw00",
        "sw01",
        "sw02",
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"host_names": "gpu{serial}"}, "host_names: required fields of {node}, {vertex}, {rack}"),
        ({"host_names": "gpu{host}"}, "gives every host a name of its own"),
        ({"host_names": "h{vertex}{host}"}, "h111 at sw01 and at sw11"),
        ({"host_names": "sw{number:02}"}, "a name that no other node or host has"),
        ({"nodes": nodes(4)}, "nodes[0].host_count: required at most 3"),
    ],
)
def test_wrong_numbers_and_patterns_are_refused(more: dict[str, object], message: str) -> None:
    inventory = {"node_types": {"leaf": {"ports": PORTS}}, "nodes": nodes()}
    hosts = 12 if "111" in message else 3
    ports = {"leaf": {"ports": [{"name": "eth{}", "count": 20}]}}
    with pytest.raises(InputError, match=re.escape(message)):
        built(inventory | {"node_types": ports} | more, hosts_per_node=hosts)
