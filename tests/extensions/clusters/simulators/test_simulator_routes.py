"""Files for simulators, read back by their own grammar: the ways are those that `explain` names."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from compilers.forwarding.single_packets import SinglePackets
from compilers.pipeline import compile_fabric
from compilers.planes import compile_planes
from compilers.proof.explanation import explain
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from extensions.clusters.simulators import host_pair_paths, rated_links
from inventory.problems import InputError
from tests.compilers.damaged_planes import damaged_planes
from tests.extensions.clusters.exported import exported

Q3 = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
STAR = {"family": "polarstar", "q": 2, "supernode": "complete", "degree": 1}
SPREAD = {"balance": "compact-valiant", "protect": "link", "adjacent": "bounce"}
WORDS = "via", "unmarked"
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


def export(form: str, *builds: Build) -> dict[str, str]:
    return exported(form, builds)


def named(build: Build, source: int, destination: int) -> dict[tuple[int, ...], float]:
    """The paths of packets from hosts by `explain`, with their shares."""
    told = explain(build, source, destination)
    taken_by = dict(zip((told.minimal, *told.alternates), told.weights, strict=True))
    return {path: weight / sum(told.weights) for path, weight in taken_by.items() if weight}


def platform_routes(text: str) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Source, destination and links, each with its direction, of each pair of hosts."""
    turned = {"UP": "DOWN", "DOWN": "UP", "NONE": "NONE"}
    whole = ET.fromstring(text).find("zone")  # noqa: S314
    assert whole is not None
    hosts: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for zone in whole.iter("zone"):
        for route in zone.findall("route"):
            assert route.get("dst") == zone.find("router").get("id")  # type: ignore[union-attr]
            hosts.setdefault(zone.attrib["id"], {})[route.attrib["src"]] = steps(route)
    for route in whole.findall("zoneRoute"):
        one, other = route.attrib["src"], route.attrib["dst"]
        ahead = steps(route)
        back = [(link, turned[turn]) for link, turn in reversed(ahead)]
        both = {"YES": True, "NO": False}[route.attrib["symmetrical"]]
        for a, b, links in [(one, other, ahead), *([(other, one, back)] if both else [])]:
            for source, up in hosts[a].items():
                for destination, down in hosts[b].items():
                    last = [(link, turned[turn]) for link, turn in reversed(down)]
                    yield source, destination, up + links + last


def steps(route: ET.Element) -> list[tuple[str, str]]:
    return [(step.attrib["id"], step.attrib["direction"]) for step in route.findall("link_ctn")]


def test_simgrid_takes_the_paths_of_the_tables(build: Build) -> None:
    made = export("simgrid", build)
    per_node = build.wiring.host_port.shape[1]
    at = {name: i // per_node for i, name in enumerate(build.wiring.host_names) if name}
    hosts = made["hostfile"].split()
    taken: dict[tuple[int, int], Counter[tuple[int, ...]]] = defaultdict(Counter)
    pairs = Counter()
    for source, destination, links in platform_routes(made["platform.xml"]):
        (first, up), *fabric, (last, down) = links
        assert ((first, up), (last, down)) == ((f"{source}/", "UP"), (f"{destination}/", "DOWN"))
        path = [at[source]]
        for link, direction in fabric:
            if link != "/inside":
                ends = [int(end) for end in link.split("/")]
                here, there = ends if direction == "UP" else reversed(ends)
                assert here == path[-1]
                path.append(there)
        assert path[-1] == at[destination]
        pairs[source, destination] += 1
        taken[path[0], path[-1]][tuple(path)] += 1
    spread = build.balance != "minimal"
    asked = {pair for pair in permutations(hosts, 2) if spread or at[pair[0]] != at[pair[1]]}
    assert set(pairs) == asked
    assert set(pairs.values()) == {1}
    expected = seen = draws = 0.0
    for (source, destination), taken_by in taken.items():
        if source != destination:
            shares = named(build, source, destination)
            assert set(taken_by) <= set(shares)
            shortest = min(shares, key=len)
            expected += shares[shortest] * taken_by.total()
            seen += taken_by[shortest]
            draws += taken_by.total()
    assert abs(seen - expected) <= 4 * (draws / 4) ** 0.5 * (seen != draws)


def test_simgrid_takes_the_paths_of_marked_packets() -> None:
    """Of both hashes: the shares of first links, and of what the next switch spreads over."""
    build = made(Q3 | {"hosts_per_node": 6, "routing": {"balance": "spread"}})
    test_simgrid_takes_the_paths_of_the_tables(build)
    taken_by = host_pair_paths.HostPairPaths.of(rated_links.RatedLinks.of(build))
    length = (taken_by.arcs >= 0).sum(axis=2)
    expected: Counter[int] = Counter()
    for pair in permutations(range(13), 2):
        for path, share in named(build, *pair).items():
            expected[len(path) - 1] += 36 * share  # type: ignore[assignment]
    assert set(expected) == {1, 2, 3, 4}
    for links, mean in expected.items():
        assert abs((length == links).sum() - mean) < 4 * mean**0.5


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
    lines, class_of = read_tables(export("ns3", build)["fabric.txt"])
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


DRAWN: dict[str, dict[str, Any]] = {
    "valiant": Q3 | {"routing": {"balance": "valiant"}},
    "spread": Q3 | {"routing": {"balance": "spread"}},
    "two sides": {"name": "pn", "topology": {"family": "pn", "q": 2}}
    | {"routing": {"balance": "spread"}},
    "every hop": {"name": "hx", "topology": {"family": "hyperx", "sides": "3x3x2"}}
    | {"routing": {"balance": "ecmp", "transit": "ecmp"}},
}


def by_the_rule(build: Build, source: int, destination: int) -> dict[tuple[int, ...], float]:
    """The paths of packets from hosts, each with its part of them."""
    packets, found = SinglePackets(build, destination), Counter[tuple[int, ...]]()
    if build.carries:
        over = [path.switches for _, path in packets.over_intermediates(source)]
        return {path: count / len(over) for path, count in Counter(over).items()}
    weights = packets.weights_of(source)
    for path in packets.paths(source):
        share = 1 if build.every_hop else weights[path.first] / sum(weights.values())
        found[path.switches] += float(path.part) * share  # type: ignore[assignment]
    return dict(found)


@pytest.mark.parametrize("kind", DRAWN)
def test_paths_are_drawn_as_often_as_their_parts_say(kind: str) -> None:
    """By the sum of squares over all paths, 36 draws for each pair of switches."""
    build = made(DRAWN[kind] | {"hosts_per_node": 6})
    paths = host_pair_paths.HostPairPaths.of(rated_links.RatedLinks.of(build))
    far, links = build.wiring.far, build.wiring.far.shape[1]
    drawn: dict[tuple[int, int], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for a, row in enumerate(paths.arcs):
        for b, arcs in enumerate(row.tolist()):
            taken = [divmod(arc, links) for arc in arcs if arc >= 0]
            path = (int(paths.switch[a]), *(int(far[s, k]) for s, k in taken))
            assert [s for s, _ in taken] == list(path[:-1])
            drawn[path[0], int(paths.switch[b])][path] += 1
    squares = free = 0.0
    for (source, destination), counts in drawn.items():
        if source == destination:
            assert set(counts) == {(source,)}
            continue
        parts = by_the_rule(build, source, destination)
        assert set(counts) <= set(parts)
        assert sum(counts.values()) == 36
        squares += sum((counts[path] - 36 * p) ** 2 / (36 * p) for path, p in parts.items())
        free += len(parts) - 1
    assert abs(squares - free) < 5 * (2 * free) ** 0.5


@pytest.mark.parametrize("kind", DRAWN)
def test_a_file_tells_of_intermediates_marks_and_paths_shared_at_every_hop(kind: str) -> None:
    build = made(DRAWN[kind])
    lines, class_of = read_tables(export("ns3", build)["fabric.txt"])
    routes = {int(to): list(map(int, numbers)) for to, *numbers in lines["route"]}
    back = {tuple(map(int, each[:3])): int(each[3]) for each in lines["back"]}
    spread = {(int(s), int(u)): [*map(int, rest)] for s, u, *rest in lines["spread"]}
    vias, unmarked = ([*map(int, lines[word][0])] if lines[word] else [] for word in WORDS)
    sides = [*map(int, lines["side"][0])] if lines["side"] else []

    def onward(path: tuple[int, ...], to: int, marked: bool, host: bool) -> set[tuple[int, bool]]:
        at, number = path[-1], routes[to][path[-1]]
        ahead, turned, taken_by = class_of(at, to)
        if marked and number not in unmarked:
            stays = sides[at] >= 0 and sides[at] == sides[to]
            return {(w, stays) for w in spread[at, path[-2]]}
        if host:
            marks = bool(lines["marks"])
            return {(w, marks and (w != ahead or sides[at] >= 0)) for w in taken_by}
        if path[-2] == ahead:
            return {(turned, False)}
        if (at, number, path[-2]) in back:
            return {(back[at, number, path[-2]], False)}
        return {(w, False) for w in (taken_by if lines["shared"] else [ahead])}

    def paths(source: int, to: int, via: int | None) -> set[tuple[int, ...]]:
        found, waiting = set(), [((source,), via, False, True)]
        while waiting:
            path, over, marked, host = waiting.pop()
            if over == path[-1]:
                over, host = None, True
            if over is None and path[-1] == to:
                found.add(path)
                continue
            end = to if over is None else over
            first = host and over is None
            waiting += (
                [((*path, w), over, mark, False) for w, mark in onward(path, end, marked, first)]
                if len(path) > 1 or first
                else [((*path, class_of(source, end)[0]), over, False, False)]
            )
        return found

    ends = sorted({int(line[1]) for line in lines["host"]})
    for source, destination in permutations(ends, 2):
        wanted = set(by_the_rule(build, source, destination))
        assert set().union(*(paths(source, destination, v) for v in vias or [None])) == wanted


def test_the_same_tables_go_to_booksim(build: Build) -> None:
    made = export("booksim", build)
    assert made["tables.txt"] == export("ns3", build)["fabric.txt"]
    near, at = read_anynet(made["network.anynet"])
    lines, class_of = read_tables(made["tables.txt"])
    assert {(u, v) for u in near for v in near[u] if u < v} == {
        (int(u), int(v)) for u, v, *_ in lines["link"]
    }
    assert [at[n] for n in sorted(at)] == [int(line[1]) for line in lines["host"]]
    pairs = [(s, d) for d in sorted(set(at.values())) for s in near if s != d]
    first = {source: dijkstra(near, source) for source in near}
    alike = sum(first[s][d] == class_of(s, d)[0] for s, d in pairs)
    assert f"{alike:,} of {len(pairs):,}" in made["booksim.config"]
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
    lines, _ = read_tables(export("ns3", build)["fabric.txt"])
    assert {line[2] for line in lines["link"]} == {"200"}
    assert lines["host"][4] == ["h4", "4", "50", str(build.addressing.host(4, 0))]
    platform = ET.fromstring(export("simgrid", build)["platform.xml"])  # noqa: S314
    rates = {link.attrib["id"]: link.attrib["bandwidth"] for link in platform.iter("link")}
    assert (rates["h4/"], rates["0/1"]) == ("50Gbps", "200Gbps")


def test_a_damaged_fabric_is_what_is_left_of_it(tmp_path: Path) -> None:
    damaged, whole = damaged_planes(tmp_path, 1)
    left = [name for name in export("simgrid", whole)["hostfile"].split() if name[1] != "5"]
    assert export("simgrid", damaged)["hostfile"].split() == [h for h in left if h != "h3-1"]
    lines, _ = read_tables(export("ns3", damaged)["fabric.txt"])
    assert not {line[0] for line in lines["class"]} & {"5"}
    with pytest.raises(InputError, match="all switches reach each other"):
        export("booksim", damaged)


def test_packets_that_do_not_arrive() -> None:
    build = made(Q3)
    egress = build.tables.routes.egress.copy()
    egress[3, 7] = no_route(egress)
    routes = replace(build.tables.routes, egress=egress)
    broken = replace(build, tables=replace(build.tables, routes=routes))
    with pytest.raises(InputError, match="every packet arrives"):
        export("simgrid", broken)


def test_planes_stand_beside_each_other() -> None:
    builds = compile_planes(load_fabric(Q3 | {"planes": 2}))
    assert list(export("simgrid", *builds)) == [
        f"lab-p{plane}/{name}" for plane in (1, 2) for name in ("platform.xml", "hostfile")
    ]


@pytest.mark.parametrize("form", ["simgrid", "ns3", "booksim"])
def test_refusals(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a fabric with hosts"):
        export(form, made(Q3 | {"hosts_per_node": 0}))
    for routing in ({"balance": "valiant"}, {"balance": "spread"}):
        if form == "booksim":
            with pytest.raises(InputError, match="BookSim finds one shortest path"):
                export(form, made(Q3 | {"routing": routing}))
    monkeypatch.setattr(rated_links, "STORED_PAIRS", 144)
    with pytest.raises(InputError, match=r"at most 12 switches, .* given 13"):
        export(form, made(Q3))


def test_simgrid_holds_fewer_hosts_where_traffic_is_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_pair_paths, "MOST_PAIRS", 169)
    assert "platform.xml" in export("simgrid", made(KINDS["minimal"]))
    with pytest.raises(InputError, match=r"at most 13 hosts, .* given 78; export it"):
        export("simgrid", made(KINDS["spread"]))
