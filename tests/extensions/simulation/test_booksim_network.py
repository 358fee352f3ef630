"""Files for BookSim, read back by their own grammar: the paths are those that `explain` names."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from compilers.pipeline import compile_fabric
from compilers.planes import compile_planes
from compilers.proof.explanation import explain
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from extensions.simulation.booksim_network import of_planes
from inventory.problems import InputError
from tests.compilers.damaged_planes import damaged_planes

Q3 = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
STAR = {"family": "polarstar", "q": 2, "supernode": "complete", "degree": 1}
SPREAD = {"balance": "compact-valiant", "protect": "link", "adjacent": "bounce"}
KINDS: dict[str, dict[str, Any]] = {
    "minimal": Q3 | {"hosts_per_node": 2},
    "spread": Q3 | {"hosts_per_node": 6, "routing": SPREAD},
    "star": {"name": "star", "topology": STAR},
    "oft": {"name": "oft", "topology": {"family": "oft", "q": 2}},
}


@pytest.fixture(params=KINDS, scope="module")
def build(request: pytest.FixtureRequest) -> Build:
    return made(KINDS[request.param])


def made(spec: dict[str, Any]) -> Build:
    return compile_fabric(load_fabric(spec))


def export(*builds: Build) -> dict[str, str]:
    return dict(of_planes(builds))


def named(build: Build, source: int, destination: int) -> dict[tuple[int, ...], float]:
    """The paths of packets from hosts by `explain`, with their shares."""
    told = explain(build, source, destination)
    taken_by = dict(zip((told.minimal, *told.alternates), told.weights, strict=True))
    return {path: weight / sum(told.weights) for path, weight in taken_by.items() if weight}


def read_tables(text: str) -> tuple[dict[str, list[list[str]]], Any]:
    lines: dict[str, list[list[str]]] = defaultdict(list)
    for word, *rest in map(str.split, text.splitlines()):
        lines[word].append(rest)
    classes = {
        (int(s), int(k)): (
            int(ahead),
            int(back),
            dict(zip(map(int, taken_by[::2]), map(int, taken_by[1::2]), strict=True)),
        )
        for s, k, ahead, back, *taken_by in lines["class"]
    }
    routes = {int(to): list(map(int, numbers)) for to, *numbers in lines["route"]}
    return lines, lambda at, to: classes[at, routes[to][at]]


def test_tables_lead_the_paths_of_the_build(build: Build) -> None:
    lines, class_of = read_tables(export(build)["tables.txt"])
    links = {frozenset(map(int, line[:2])) for line in lines["link"]}
    assert len(links) == len(lines["link"]) == build.topology.graph.size
    ends = sorted({int(line[1]) for line in lines["host"]})
    for source, destination in permutations(ends, 2):
        *_, taken_by = class_of(source, destination)
        found = {}
        for first, weight in taken_by.items():
            path = [source, first]
            while path[-1] != destination:
                ahead, back, _ = class_of(path[-1], destination)
                path.append(back if ahead == path[-2] else ahead)
                assert len(path) < 9
            assert all(frozenset(path[i : i + 2]) in links for i in range(len(path) - 1))
            found[tuple(path)] = weight / sum(taken_by.values())
        assert found == pytest.approx(named(build, source, destination))


def test_the_network_has_the_links_and_hosts_of_the_tables(build: Build) -> None:
    files = export(build)
    near, at = read_anynet(files["network.anynet"])
    lines, class_of = read_tables(files["tables.txt"])
    assert {(u, v) for u in near for v in near[u] if u < v} == {
        (int(u), int(v)) for u, v, *_ in lines["link"]
    }
    assert [at[n] for n in sorted(at)] == [int(line[1]) for line in lines["host"]]
    pairs = [(s, d) for d in sorted(set(at.values())) for s in near if s != d]
    first = {source: dijkstra(near, source) for source in near}
    alike = sum(first[s][d] == class_of(s, d)[0] for s, d in pairs)
    assert f"{alike:,} of {len(pairs):,}" in files["booksim.config"]
    if build.topology.family == "polarfly":
        assert alike == len(pairs)


def read_anynet(text: str) -> tuple[dict[int, set[int]], dict[int, int]]:
    near: dict[int, set[int]] = defaultdict(set)
    at = {}
    for line in text.splitlines():
        kind, number, *rest = line.split()
        assert kind == "router"
        near[int(number)] |= set()
        for what, other in zip(rest[::2], map(int, rest[1::2]), strict=True):
            if what == "node":
                at[other] = int(number)
            else:
                near[int(number)].add(other)
                near[other].add(int(number))
    assert sorted(near) == list(range(len(near)))
    assert sorted(at) == list(range(len(at)))
    return near, at


def dijkstra(near: dict[int, set[int]], start: int) -> dict[int, int]:
    """The first router on the way to each other, by `AnyNet::route`."""
    distance, previous = {start: 0}, {}
    left = set(near)
    while left:
        here = min(left, key=lambda v: (distance.get(v, len(near)), v))
        left.remove(here)
        for there in near[here]:
            if distance[here] + 1 < distance.get(there, len(near)):
                distance[there], previous[there] = distance[here] + 1, here
    first = {}
    for there in previous:
        at = there
        while previous[at] != start:
            at = previous[at]
        first[there] = at
    return first


def test_rates_are_those_of_the_inventory() -> None:
    ports = [
        {"name": "f{}", "first": 1, "count": 4, "role": "fabric", "speed": 200},
        {"name": "h{}", "first": 5, "count": 1, "role": "host", "speed": 50},
    ]
    hardware = {"node_types": {"t": {"ports": ports}}}
    hardware["nodes"] = [{"name": f"n{i}", "type": "t"} for i in range(13)]
    build = made(Q3 | {"inventory": hardware})
    lines, _ = read_tables(export(build)["tables.txt"])
    assert {line[2] for line in lines["link"]} == {"200"}
    assert lines["host"][4] == ["h4", "4", "50", str(build.addressing.host(4, 0))]


def test_every_plane_has_a_folder() -> None:
    builds = compile_planes(load_fabric(Q3 | {"planes": 2}))
    names = ("network.anynet", "booksim.config", "tables.txt")
    assert list(export(*builds)) == [f"lab-p{plane}/{name}" for plane in (1, 2) for name in names]


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a fabric with hosts"):
        export(made(Q3 | {"hosts_per_node": 0}))
    shared = {"routing": {"balance": "ecmp", "transit": "ecmp"}}
    for more in (
        {"routing": {"balance": "valiant"}},
        {"routing": {"balance": "spread"}},
        {"topology": {"family": "fat-tree", "k": 2}} | shared,
    ):
        with pytest.raises(InputError, match="BookSim finds one shortest path"):
            export(made(Q3 | more))
    damaged, _ = damaged_planes(tmp_path, 1)
    with pytest.raises(InputError, match="all switches reach each other"):
        export(damaged)
    with pytest.raises(InputError, match=r"at most 4,096 switches, .* given 4,161"):
        export(made(Q3 | {"topology": {"family": "polarfly", "q": 64}}))
