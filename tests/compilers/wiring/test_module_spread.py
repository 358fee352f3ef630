"""Links over modules: evenly, with triangles parted, and as many cables between racks as before."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilers.topology.families import build_topology
from compilers.topology.field import field, powers
from compilers.topology.layout import layout
from compilers.topology.polarity import headings
from compilers.topology.triangles import apex_links
from compilers.wiring.module_spread import (
    links_per_module,
    modules_in_rotation,
    modules_in_runs,
    separate_triangles,
    separating_order,
)
from compilers.wiring.shared_risk import modules_of
from tests.compilers.modular import modular, on_modules


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 24), st.integers(0, 1 << 30)
)
def test_shares_are_as_even_as_room_allows(room, links, seed):
    taken = np.random.default_rng(seed).integers(0, 3, len(room)).tolist()
    links = min(links, sum(room))
    share = links_per_module(room, links, taken)
    assert sum(share) == links
    assert all(0 <= count <= most for count, most in zip(share, room, strict=True))
    for one in range(len(room)):
        for other in range(len(room)):  # nothing can be moved to make it more even
            if share[one] and share[other] < room[other]:
                assert share[one] + taken[one] <= share[other] + taken[other] + 1
    for order in (modules_in_runs, modules_in_rotation):
        assert Counter(order(share)) == Counter({m: n for m, n in enumerate(share) if n})


@pytest.mark.parametrize("modules", [2, 3, 8])
@pytest.mark.parametrize("q", [3, 4, 7, 8, 9])
def test_triangles_are_parted_and_modules_even(q, modules):
    build = modular(q, modules, protect="none")
    module, far = modules_of(build.wiring, build.hardware), build.wiring.far
    apex = apex_links(far)
    assert (np.take_along_axis(module, np.maximum(apex, 0).astype(int), 1) != module)[
        apex >= 0
    ].all()
    for row in module:
        count = np.bincount(row[row >= 0], minlength=modules)
        assert count.max() - count.min() <= 1


@pytest.mark.parametrize("q", [5, 7, 8])
def test_racks_have_the_cables_that_they_had(q):
    """Only ports differ: which switches are cabled, and how many cables join two racks, stays."""
    spread, filled = (modular(q, 4, 8, order, protect="none") for order in ("spread", "filled"))
    assert np.array_equal(spread.wiring.far, filled.wiring.far)
    assert np.array_equal(spread.hardware.rack, filled.hardware.rack)
    assert not np.array_equal(spread.wiring.port, filled.wiring.port)


QS = [3, 4, 5, 7, 8, 9, 11, 13, 16]


@pytest.mark.parametrize("q", QS)
def test_triangles_are_numbered_alike_in_all_fans(q):
    """The affine model, by the numbers of links alone: s - t and mates -w/(s - t), or s/t."""
    topology = build_topology("polarfly", {"q": q})
    number, far, f = headings(q, topology.graph.padded()), topology.graph.padded(), field(q)
    apex, fan = apex_links(far), layout(topology, "fans")
    assert all(len({*row}) == len(row) for row in number.tolist())
    number = np.array([0, *powers(q), q, q + 1])[number]
    fan_of, centre = fan.rack[far], np.isin(far, fan.centre)
    member = (fan.rack > 0) & ~np.isin(np.arange(len(far)), fan.centre)
    ordinary = member[:, None] & (far >= 0) & (fan_of > 0) & ~centre
    assert (number[member[:, None] & centre] == q).all()
    # Seen from the first fan, every other has a number; then all links say the same of them.
    t = np.full(q + 1, -1)
    t[1] = 1 - q % 2
    seen = ordinary & (fan.rack == 1)[:, None]
    t[fan_of[seen]] = number[seen]
    here, there = np.broadcast_to(t[fan.rack][:, None], far.shape)[ordinary], t[fan_of[ordinary]]
    assert sorted(t[1 : fan.rack.max() + 1]) == [*range(1 - q % 2, q)]
    expected = f.add[there, f.neg[here]] if q % 2 else f.mul[there, f.inv[here]]
    assert (number[ordinary] == expected).all()
    mate = np.take_along_axis(number, np.maximum(apex, 0).astype(int), axis=1)
    both = ordinary & (apex >= 0) & (mate < q)
    if q % 2:  # one w a member, all but 0 in each fan
        w = [{*f.neg[f.mul[n[k], m[k]]]} for n, m, k in zip(number, mate, both, strict=True)]
        assert {len(found) for found in w} <= {0, 1}
        for rack in range(1, q + 1) if q > 3 else ():
            assert {*range(1, q)} == set.union(*(w[v] for v in fan.members(rack) if member[v]))
    else:
        assert (f.add[f.inv[number[both]], f.inv[mate[both]]] == 1).all()


@pytest.mark.parametrize("modules", [2, 3, 8])
@pytest.mark.parametrize("q", QS)
def test_the_half_turn_is_the_same_in_all_fans(q, modules):
    """So many of each sequence of modules, by the numbers of links, in one fan as in another."""
    topology = build_topology("polarfly", {"q": q})
    number, far = headings(q, topology.graph.padded()), topology.graph.padded()
    apex, fan = apex_links(far), layout(topology, "fans")
    turn = separating_order(apex, far >= 0, number)
    module, found = np.full(far.shape, -1), dict[int, Counter]()
    for v, degree in enumerate((far >= 0).sum(axis=1).tolist()):
        module[v, turn[v, :degree]] = modules_in_runs(
            links_per_module([q] * modules, degree, [0] * modules)
        )
        sequence = module[v, np.argsort(number[v])]
        found.setdefault(int(fan.rack[v]), Counter())[*sequence.tolist()] += 1
    assert all(found[rack] == found[1] for rack in range(1, fan.rack.max() + 1))
    if modules <= q:
        mate = np.take_along_axis(module, np.maximum(apex, 0).astype(int), axis=1)
        assert (mate != module)[apex >= 0].all()


@given(st.integers(2, 4), st.integers(2, 12), st.integers(0, 1 << 30))
def test_exchanges_part_what_they_can(modules, pairs, seed):
    """Triangles put on modules by chance: none is together unless links were fixed there."""
    random = np.random.default_rng(seed)
    apex = [k + pairs if k < pairs else k - pairs for k in range(2 * pairs)]
    module = random.permutation(np.arange(2 * pairs) % modules).tolist()
    found = separate_triangles(module, apex, set())
    assert Counter(found) == Counter(module)
    if modules > 2:
        assert all(found[k] != found[apex[k]] for k in range(2 * pairs))
    fixed = {0, 1}
    kept = separate_triangles(module, apex, fixed)
    assert [kept[k] for k in fixed] == [module[k] for k in fixed]


def test_a_cable_by_hand_stays_and_the_rest_goes_around_it():
    ports = [{"name": "m{module}/{}", "modules": 4, "count": 8, "role": "fabric"}, {"name": "h"}]
    ports[1] |= {"count": 1, "role": "host"}
    build = modular(7, 4, protect="none")
    near = build.wiring.names[int(build.wiring.far[20, 3])]
    cable = {"a": "n20", "a_port": "m3/8", "b": near, "b_port": "m3/8"}
    inventory = {
        "node_types": {"leaf": {"ports": ports}},
        "generate": {"type": "leaf"},
        "cables": [cable],
    }
    from compilers.pipeline import compile_fabric
    from compilers.spec.fabric_file import load_fabric

    keys = {"name": "lab", "topology": {"family": "polarfly", "q": 7}, "inventory": inventory}
    pinned = compile_fabric(load_fabric(keys))
    assert pinned.wiring.port_name(20, int(pinned.wiring.port[20, 3])) == "m3/8"
    module = modules_of(pinned.wiring, pinned.hardware)
    assert sorted(Counter(module[20].tolist()).values()) == [2, 2, 2, 2]
    apex = apex_links(pinned.wiring.far)
    assert all(module[20, k] != module[20, j] for k, j in enumerate(apex[20]) if j >= 0)


def test_hosts_keep_the_ports_of_either_use_that_they_need():
    """Links took ports of hosts, as the two blocks were taken for modules alike."""
    ports = [{"name": "a{}", "count": 4, "role": "fabric"}, {"name": "h{}", "count": 2}]
    inventory = {"node_types": {"leaf": {"ports": ports}}, "generate": {"type": "leaf"}}
    from compilers.pipeline import compile_fabric
    from compilers.spec.fabric_file import load_fabric

    topology = {"family": "polarfly", "q": 3}
    keys = {"name": "lab", "topology": topology, "hosts_per_node": 2, "inventory": inventory}
    build = compile_fabric(load_fabric(keys))
    assert build.wiring.host_port.tolist() == [[5, 6]] * 13


@pytest.mark.parametrize(
    "topology",
    [
        {"family": "pn", "q": 3},
        {"family": "oft", "q": 3},
        {"family": "polarstar", "q": 3, "supernode": "inductive-quad", "degree": 3},
        {"family": "jellyfish", "nodes": 30, "degree": 6, "seed": 1},
    ],
)
def test_other_graphs_are_even_too(topology):
    build = on_modules(topology, 3, 8)
    for row in modules_of(build.wiring, build.hardware):
        count = np.bincount(row[row >= 0], minlength=3)
        assert count.max() - count.min() <= 1
