"""Ports: few modules per rack pair, ports chosen by hand kept, the usual order without racks."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilers.topology.families import FAMILIES
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.placement import layout_or_whole, place_nodes
from compilers.wiring.type_ports import TypePorts
from compilers.wiring.wire import wire
from inventory.floor import Cable, Generate, Placement, RackGrid
from inventory.library import library_type
from inventory.model import Inventory, Node, NodeType, PortBlock
from inventory.problems import InputError


def blocks(*speeds, count=8):
    ports = tuple(
        PortBlock(name=f"m{m}/{{}}", count=count, speed=speed) for m, speed in enumerate(speeds)
    )
    return NodeType(ports=ports)


def polarfly(q):
    return FAMILIES["polarfly"].build({"q": q})


@given(st.lists(st.integers(1, 9), max_size=8))
def test_groups_take_as_few_modules_as_they_can(sizes):
    """Each group alone: at most one module more than it needs; groups that fit whole, in one."""
    types = TypePorts.of(blocks(400, 400, 400, 400))
    ordered = sorted(sizes, reverse=True)
    ports = types.ports_for_groups(ordered, is_one_module=False)
    assert len(set(ports)) == len(ports) == min(32, sum(sizes))
    assert set(ports) <= set(types.fabric)
    free = Counter(dict.fromkeys(range(4), 8))
    at = 0
    for size in ordered:
        own = Counter(types.module[port - 1] for port in ports[at : at + size])
        if any(room >= size for room in free.values()):
            assert len(own) == 1
        free.subtract(own)
        at += size


@pytest.mark.parametrize(("q", "kind"), [(7, "copackaged-4x8"), (11, "copackaged-6x8")])
def test_links_to_a_rack_share_a_module(q, kind):
    topology = polarfly(q)
    filled = Placement(modules="filled")
    settled = place_nodes(topology, generated(kind).model_copy(update={"placement": filled}))
    found = layout_or_whole(topology)
    wiring = wire(topology, settled, 1, position=found.position)
    module = np.array((-1, *TypePorts.of(library_type(kind)).module))
    present = wiring.far >= 0
    switch, link = np.nonzero(present)
    pair = found.rack[wiring.far[switch, link]]
    used = np.unique(np.stack((switch, pair, module[wiring.port[present]]), axis=1), axis=0)
    links = Counter(zip(switch.tolist(), pair.tolist(), strict=True))
    modules = Counter((s, r) for s, r, _ in used.tolist())
    assert {key: -(-n // 8) for key, n in links.items()} == dict(modules)
    assert_a_wiring(topology, wiring)


def assert_a_wiring(topology, wiring):
    """Both ends know each other, and no port is used twice."""
    for v in range(topology.graph.order):
        near = topology.graph.neighbours(v)
        assert wiring.far[v, : len(near)].tolist() == near.tolist()
        used = [p for p in [*wiring.port[v], *wiring.host_port[v]] if p]
        assert len(set(used)) == len(used)
        for k, u in enumerate(near.tolist()):
            back = topology.graph.neighbours(u).tolist().index(v)
            assert wiring.far_port[v, k] == wiring.port[u, back]


def generated(kind):
    return Inventory.model_construct(
        node_types={kind: library_type(kind)},
        generate=Generate(type=kind, racks=RackGrid(units=12)),
        placement=Inventory.model_fields["placement"].default,
        cabling=Inventory.model_fields["cabling"].default,
    )


def test_without_racks_links_take_ports_in_order():
    topology = polarfly(5)
    wiring = wire(topology, generated_inventory(topology, 2), 2)
    expected = np.where(wiring.far >= 0, np.arange(1, 7), 0)
    assert np.array_equal(wiring.port, expected)
    assert np.array_equal(wiring.host_port, np.broadcast_to([7, 8], (31, 2)))


def listed(*cables, types=None, kinds=("leaf",) * 13):
    nodes = tuple(Node(name=f"n{i}", type=kind) for i, kind in enumerate(kinds))
    types = types or {"leaf": blocks(400)}
    return Inventory(node_types=types, nodes=nodes, cables=tuple(Cable(**c) for c in cables))


def test_ports_by_hand_are_kept():
    topology = polarfly(3)
    far = int(topology.graph.neighbours(0)[1])
    cable = {"a": "n0", "a_port": "m0/7", "b": f"n{far}", "b_port": "m0/1"}
    wiring = wire(topology, listed(cable), 1)
    assert wiring.port[0].tolist()[:3] == [1, 7, 2]
    k = topology.graph.neighbours(far).tolist().index(0)
    assert wiring.port[far, k] == 1
    assert_a_wiring(topology, wiring)


def test_wrong_cables_by_hand():
    topology = polarfly(3)
    near = topology.graph.neighbours(0).tolist()
    stranger = next(v for v in range(1, 13) if v not in near)
    end = {"a": "n0", "b_port": "m0/1"}
    with pytest.raises(InputError) as caught:
        wire(
            topology,
            listed(
                {**end, "a_port": "m0/1", "b": f"n{stranger}"},
                {**end, "a_port": "m0/2", "b": f"n{near[0]}"},
                {**end, "a_port": "m0/2", "b": f"n{near[1]}"},
                {**end, "a_port": "m0/3", "b": f"n{near[0]}", "b_port": "m0/4"},
                {**end, "a_port": "m0/9", "b": "n99"},
            ),
            1,
        )
    assert [p.required for p in caught.value.problems] == [
        "a link of the fabric",
        "one cable per port",
        "one cable per link",
        "one cable per link",
        "a port of n0 for links",
        "a node of the fabric",
    ]


def test_speeds_must_agree():
    types = {"leaf": blocks(400), "slow": blocks(100), "any": blocks(None)}
    kinds = ("slow", *["leaf"] * 11, "any")
    with pytest.raises(InputError) as caught:
        wire(polarfly(3), listed(types=types, kinds=kinds), 1)
    problems = [str(p) for p in caught.value.problems]
    near = len([v for v in polarfly(3).graph.neighbours(0).tolist() if v != 12])
    assert len(problems) == near
    required = "nodes[0].type: required ports of one speed at both ends of a link"
    assert problems[0].startswith(f"{required}, given 100 Gb/s at n0 m0/1")


def test_lanes_must_agree():
    """A port of 4 lanes against one of 2; a type that says nothing goes with either."""
    four, two, silent = (
        NodeType(ports=(PortBlock(name="m0/{}", count=8, lanes=n),)) for n in (4, 2, None)
    )
    types = {"leaf": four, "half": two, "any": silent}
    kinds = ("half", *["leaf"] * 11, "any")
    with pytest.raises(InputError) as caught:
        wire(polarfly(3), listed(types=types, kinds=kinds), 1)
    problems = [str(p) for p in caught.value.problems]
    assert len(problems) == len([v for v in polarfly(3).graph.neighbours(0).tolist() if v != 12])
    required = "nodes[0].type: required ports with as many lanes at both ends of a link"
    assert problems[0].startswith(f"{required}, given 2 lanes at n0 m0/1 and 4 lanes at n")
