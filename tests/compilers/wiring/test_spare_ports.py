"""Disabled ports: links and hosts go to spare ones, and what is lost where none are is named."""

import random

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.wiring.lost_links import LostLinks
from compilers.wiring.placed_fabric import place_fabric
from polarfab.exports import to_networkx
from polarfab.fabric import Fabric

SPARE = 3


def loaded(q=4, disabled=None, spare=SPARE, **more):
    """A PolarFly whose nodes have spare fabric ports, and two host ports for one host."""
    leaf = {
        "ports": [
            {"name": "hundredGigE1/{}", "count": q + 1 + spare, "role": "fabric"},
            {"name": "host{}", "count": 2, "role": "host"},
        ]
    }
    nodes = [
        {"name": f"n{v}", "type": "leaf", "disabled_ports": (disabled or {}).get(v, [])}
        for v in range(q * q + q + 1)
    ]
    inventory = {"node_types": {"leaf": leaf}, "nodes": nodes} | more
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": q}}
    return load_fabric(spec, inventory=inventory)


def cables(wiring):
    """Each link as its two ends, by node and port."""
    return {
        (wiring.names[u], wiring.port_name(u, p), wiring.names[v], wiring.port_name(v, r))
        for u, p, v, r in wiring.each_cable()
    }


def port(number):
    return f"hundredGigE1/{number}"


def test_spare_ports_take_the_links_of_disabled_ones():
    """Two disabled ports of five in use, three spare: no link is lost, and two cables move."""
    whole = place_fabric(loaded()).wiring
    build = compile_fabric(loaded(disabled={3: [port(2), port(4)]}))
    assert build.topology.graph.size == 50
    assert build.topology.diameter == 2
    moved = cables(build.wiring) - cables(whole)
    assert {p for a, p, b, r in moved if a == "n3"} | {r for a, p, b, r in moved if b == "n3"} == {
        port(6),
        port(7),
    }
    assert len(moved) == 2


def test_a_port_that_breaks_later_moves_one_cable():
    """Those that moved before stay; so a list of disabled ports grows at its end."""
    first = compile_fabric(loaded(disabled={3: [port(4)]})).wiring
    then = compile_fabric(loaded(disabled={3: [port(4), port(1)]})).wiring
    assert len(cables(then) - cables(first)) == 1


def test_cables_chosen_by_hand_stay_and_push_no_other_onto_a_disabled_port():
    whole = place_fabric(loaded()).wiring
    pins = [
        {"a": a, "a_port": p, "b": b, "b_port": r}
        for a, p, b, r in cables(whole)
        if "n3" in (a, b) and port(2) not in ((p,) if a == "n3" else (r,))
    ]
    build = compile_fabric(loaded(disabled={3: [port(2)]}, cables=pins[:2]))
    assert build.topology.graph.size == 50
    by_hand = pins[0]["a_port"] if pins[0]["a"] == "n3" else pins[0]["b_port"]
    lost = LostLinks.of(place_fabric(loaded(disabled={3: [by_hand]}, cables=pins[:1])))
    assert [
        f"{by_hand} of n3 is disabled, and chosen by cables" in line for line in lost.links
    ] == [True]


def test_hosts_move_too():
    build = compile_fabric(loaded(disabled={5: ["host1"]}))
    names = build.wiring.port_names[0]
    assert names[build.wiring.host_port[5, 0] - 1] == "host2"
    assert names[build.wiring.host_port[4, 0] - 1] == "host1"


@pytest.mark.parametrize("seed", range(4))
def test_as_few_links_are_lost_as_can_be(seed):
    """By each node's own count of working ports; nodes with too few are no neighbours here."""
    draw = random.Random(seed)  # noqa: S311
    whole = place_fabric(loaded())
    degree = whole.topology.graph.degrees
    first = draw.randrange(21)
    near = {first, *whole.topology.graph.neighbours(first).tolist()}
    poor = [first, *draw.sample([v for v in range(21) if v not in near], 1)]
    some = draw.sample(range(21), 8)
    disabled = {v: [port(n) for n in draw.sample(range(1, 9), 3)] for v in some if v not in poor}
    disabled |= {v: [port(n) for n in draw.sample(range(1, 9), 4 + i)] for i, v in enumerate(poor)}
    disabled = {v: ports for v, ports in disabled.items() if ports}
    build = compile_fabric(loaded(disabled=disabled))
    lacking = sum(max(0, int(degree[v]) - (8 - len(ports))) for v, ports in disabled.items())
    assert 50 - build.topology.graph.size == lacking
    for v, ports in disabled.items():
        used = {build.wiring.port_name(v, p) for p in build.wiring.port[v].tolist() if p}
        assert not used & set(ports)


def test_only_ports_of_the_same_kind_are_spare():
    types = {
        "leaf": {
            "ports": [
                {"name": "a{}", "count": 5, "role": "fabric", "speed": 100},
                {"name": "b{}", "count": 2, "role": "fabric", "speed": 400},
                {"name": "host{}", "count": 1, "role": "host"},
            ]
        }
    }
    nodes = [{"name": f"n{v}", "type": "leaf"} for v in range(21)]
    nodes[3]["disabled_ports"] = ["a1"]
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 4}}
    lost = LostLinks.of(
        place_fabric(load_fabric(spec, inventory={"node_types": types, "nodes": nodes}))
    )
    assert len(lost.links) == 1
    assert "a1 of n3 is disabled, and no spare port is like it" in lost.links[0]


def test_the_cost_is_that_of_the_graph():
    """Counted by networkx."""
    import networkx as nx

    given = loaded(disabled={0: [port(n) for n in range(1, 7)]})
    found = LostLinks.of(place_fabric(given))
    whole, left = (to_networkx(Fabric.of(compile_fabric(each))) for each in (loaded(), given))
    before, after = (dict(nx.all_pairs_shortest_path_length(g)) for g in (whole, left))
    more = {(a, b): after[a][b] - before[a][b] for a in before for b in before if a != b}
    assert len(found.links) == 3 if whole.degree[0] == 5 else 2
    growth = found.path_growth
    assert growth.diameter_before == 2
    assert growth.diameter_after == max(max(row.values()) for row in after.values())
    assert (growth.longer, growth.pairs) == (sum(n > 0 for n in more.values()), 420)
    a, b = (int(name.removeprefix("n")) for name in growth.worst)
    assert more[a, b] == max(more.values())
