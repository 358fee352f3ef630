"""Clusters to racks, vertices to nodes, units, and the order that shortens cables."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.cabling.cable_plan import cables_of
from compilers.topology.families import BASELINES, FAMILIES
from compilers.wiring.hardware import hardware_of_inventory
from compilers.wiring.placement import layout_or_whole, place_nodes, placed_layout
from compilers.wiring.same_units import with_previous_units
from compilers.wiring.wire import wire
from inventory.floor import Cabling, Generate, Placement, Rack, RackGrid
from inventory.hosts import Host
from inventory.library import library_type
from inventory.model import Inventory, Node
from inventory.problems import InputError

TYPES = {name: library_type(name) for name in ("copackaged-4x8", "switch-64")}


def polarfly(q):
    return FAMILIES["polarfly"].build({"q": q})


def polarstar(q=3):
    return FAMILIES["polarstar"].build({"q": q, "supernode": "inductive-quad", "degree": 3})


def generated(kind="copackaged-4x8", units=42, **rest):
    generate = Generate(type=kind, racks=RackGrid(units=units))
    return Inventory.model_construct(
        node_types=TYPES, generate=generate, placement=Placement(), cabling=Cabling(), **rest
    )


def racks_of(topology, settled):
    """The rack of each vertex, and that nodes stand within racks without overlap."""
    taken = set()
    heights = {rack.name: rack.units for rack in settled.racks}
    for node in settled.nodes:
        if node.rack is None:
            continue
        units = range(node.unit, node.unit + settled.node_types[node.type].units)
        assert units[0] >= 1
        assert units[-1] <= heights[node.rack]
        spots = {(node.rack, unit) for unit in units}
        assert not taken & spots
        taken |= spots
    at = {node.vertex: node for node in settled.nodes if node.vertex is not None}
    assert sorted(at) == list(range(topology.graph.order))
    return [at[v].rack for v in range(topology.graph.order)]


def test_a_rack_a_cluster():
    topology = polarfly(7)
    settled = place_nodes(topology, generated(units=8))
    racks = racks_of(topology, settled)
    found = layout_or_whole(topology)
    assert racks == [f"rack{c}" for c in found.rack.tolist()]
    assert len(settled.racks) == 8


def test_several_supernodes_to_a_rack():
    topology = polarstar()
    settled = place_nodes(topology, generated("switch-64", units=42))
    racks = np.array(racks_of(topology, settled)).reshape(13, 8)
    assert (racks == racks[:, :1]).all()
    assert racks[:, 0].tolist() == [f"rack{i // 2}" for i in range(13)]


def test_several_racks_to_a_supernode():
    topology = polarstar()
    racks = racks_of(topology, place_nodes(topology, generated("switch-64", units=7)))
    assert len(set(racks[:8])) == 3
    assert len(set(racks)) == -(-104 // 3)


def test_hand_made_places_are_kept():
    topology = polarfly(3)
    nodes = [Node(name=f"n{i}", type="copackaged-4x8") for i in range(14)]
    nodes[0] = Node(name="n0", type="copackaged-4x8", rack="B", unit=2, vertex=5)
    nodes[1] = Node(name="n1", type="copackaged-4x8", rack="B")
    racks = (Rack(name="A", units=9), Rack(name="B", units=9))
    settled = place_nodes(topology, Inventory(node_types=TYPES, nodes=tuple(nodes), racks=racks))
    racks_of(topology, settled)
    assert (settled.nodes[0].rack, settled.nodes[0].unit, settled.nodes[0].vertex) == ("B", 2, 5)
    assert settled.nodes[1].rack == "B"
    assert sum(node.vertex is None for node in settled.nodes) == 1


def test_nodes_that_stand_in_racks_take_the_vertices_of_whole_clusters():
    topology = polarfly(7)
    nodes = [
        Node(name=f"n{r}-{i}", type="copackaged-4x8", rack=f"C{r}")
        for r in range(8)
        for i in range(8 if r == 0 else 7)
    ]
    racks = tuple(Rack(name=f"C{r}") for r in range(8))
    settled = place_nodes(topology, Inventory(node_types=TYPES, nodes=tuple(nodes), racks=racks))
    assert racks_of(topology, settled) == [f"C{c}" for c in layout_or_whole(topology).rack.tolist()]


def test_too_little_room():
    nodes = tuple(Node(name=f"n{i}", type="copackaged-4x8") for i in range(13))
    racks = (Rack(name="A", units=12),)
    with pytest.raises(InputError, match="room for 13 nodes more, given 1 racks with room for 12"):
        place_nodes(polarfly(3), Inventory(node_types=TYPES, nodes=nodes, racks=racks))


def metres(topology, order):
    inventory = generated("switch-64", units=16)
    inventory = inventory.model_copy(update={"placement": Placement(order=order)})
    settled = place_nodes(topology, inventory)
    found = layout_or_whole(topology)
    wiring = wire(topology, settled, 0, position=found.position)
    racks_of(topology, settled)
    return cables_of(wiring, hardware_of_inventory(settled, wiring, found)).needed.sum()


def test_an_order_that_shortens_cables():
    topology = polarstar()
    assert metres(topology, "shortest") < metres(topology, "listed")


def test_without_scipy_the_order_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    inventory = generated("switch-64", units=16)
    inventory = inventory.model_copy(update={"placement": Placement(order="shortest")})
    with pytest.raises(InputError, match=r"^placement\.order: required scipy for placement"):
        place_nodes(polarstar(), inventory)


@given(
    told=st.lists(
        st.tuples(st.booleans(), st.sampled_from([None, "A", "B"])), min_size=13, max_size=16
    ),
    seed=st.randoms(use_true_random=False),
)
@settings(max_examples=40)
def test_whatever_is_given_of_places_is_kept(told, seed):
    """Any mixture of nodes with a vertex, a rack, both or neither; there are units for all."""
    topology = polarfly(3)
    vertices = seed.sample(range(13), 13)
    nodes = tuple(
        Node(
            name=f"n{i}", type="copackaged-4x8", vertex=vertices.pop() if v and vertices else None
        ).model_copy(update={"rack": rack})
        for i, (v, rack) in enumerate(told)
    )
    racks = (Rack(name="A", units=20), Rack(name="B", units=20))
    settled = place_nodes(topology, Inventory(node_types=TYPES, nodes=nodes, racks=racks))
    racks_of(topology, settled)
    for before, after in zip(nodes, settled.nodes, strict=True):
        assert before.vertex in (None, after.vertex)
        assert before.rack in (None, after.rack)


def between_racks(topology, racks):
    return sum(racks[u] != racks[v] for u, v in topology.graph.edges().tolist())


@pytest.mark.parametrize("racks", [(), (5, 9, 3, 14, 9)], ids=["made up", "unequal"])
def test_parts_of_any_graph_fill_racks_with_few_links_between(racks):
    topology = BASELINES["jellyfish"].build({"nodes": 36, "degree": 5, "seed": 2})
    listed = generated(
        units=9, racks=tuple(Rack(name=f"r{n}", units=u) for n, u in enumerate(racks))
    )
    parted = listed.model_copy(update={"placement": Placement(layout="partition")})
    before, after = (racks_of(topology, place_nodes(topology, each)) for each in (listed, parted))
    assert between_racks(topology, after) < 0.8 * between_racks(topology, before)
    settled = place_nodes(topology, parted)
    found = placed_layout(topology, settled)
    assert [found.names[r] for r in found.rack] == after
    for rack in range(len(found.names)):
        assert found.position[found.members(rack)].tolist() == [*range(sum(found.rack == rack))]


def test_what_stands_keeps_its_rack_in_a_partition():
    topology = BASELINES["jellyfish"].build({"nodes": 12, "degree": 3, "seed": 2})
    nodes = [Node(name=f"n{v}", type="switch-64", vertex=v) for v in range(12)]
    nodes[3] = Node(name="n3", type="switch-64", vertex=3, rack="b", unit=2)
    nodes[8] = Node(name="n8", type="switch-64", rack="a")
    inventory = Inventory.model_construct(
        node_types=TYPES,
        nodes=tuple(nodes),
        racks=(Rack(name="a", units=16), Rack(name="b", units=16)),
        placement=Placement(layout="partition"),
        cabling=Cabling(),
    )
    settled = place_nodes(topology, inventory)
    racks_of(topology, settled)
    assert (settled.nodes[3].rack, settled.nodes[3].unit) == ("b", 2)
    assert (settled.nodes[8].rack, settled.nodes[8].vertex) == ("a", 8)


def test_a_partition_needs_racks_with_room():
    topology = BASELINES["jellyfish"].build({"nodes": 12, "degree": 3, "seed": 2})
    nodes = tuple(Node(name=f"n{v}", type="switch-64") for v in range(12))
    parted = {"node_types": TYPES, "placement": Placement(layout="partition")}
    bare = Inventory.model_construct(nodes=nodes, cabling=Cabling(), **parted)
    with pytest.raises(InputError, match=r"placement\.layout: required racks, one for each part"):
        place_nodes(topology, bare)
    small = bare.model_copy(update={"racks": (Rack(name="a", units=9),)})
    with pytest.raises(InputError, match="room for 12 nodes more, given 1 racks with room for"):
        place_nodes(topology, small)


def test_a_host_that_names_only_its_rack_is_in_the_way_of_no_switch():
    """Its rack gives its cable a length; which unit it fills is not known."""
    hosts = Host(name="db1", rack="a"), Host(name="db2", rack="a", unit=2)
    inventory = Inventory.model_construct(
        node_types=TYPES,
        nodes=(Node(name="n0", type="copackaged-4x8", hosts=hosts),),
        racks=(Rack(name="a", units=4),),
    )
    (node,) = with_previous_units(inventory, {"n0": 0}, [("a", 1)], ()).nodes
    assert (node.rack, node.unit) == ("a", 1)
    with pytest.raises(InputError, match="given unit 2 has db2"):
        with_previous_units(inventory, {"n0": 0}, [("a", 2)], ())
