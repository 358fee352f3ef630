"""Any shortest path, and UGAL: baselines carry what theory says, without deadlock."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from compilers.demand.traffic_matrix import Traffic
from compilers.proof.lossless.channels import channels_along
from compilers.tables.build import Build
from compilers.topology.families import BASELINES
from extensions.simulation import simulate as simulate_fabric
from extensions.simulation.build_simulation import network_for
from extensions.simulation.channel_counts import path_channels, with_channels
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.latency_curve import simulate
from extensions.simulation.load_point import INTERMEDIATE_POLICIES, LoadPoint
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from inventory.problems import InputError
from polarfab.fabric import Fabric

TWO_PATHS = INTERMEDIATE_POLICIES
FAT_TREE = {"family": "fat-tree", "k": 4}
DRAGONFLY = {"family": "dragonfly", "h": 2}
SMALL: dict[str, dict] = {
    "slimfly": {"q": 5},
    "dragonfly": {"h": 2},
    "hyperx": {"sides": "4x4x4"},
    "jellyfish": {"nodes": 30, "degree": 6, "seed": 1},
    "fat-tree": {"k": 4},
    "megafly": {"h": 3, "a": 6},
    "mlfm": {"n": 5},
    "bundlefly": {"q": 3, "degree": 2},
    "spectralfly": {"p": 3, "q": 5},
}


def made(topology: dict, hosts: int = 1) -> Fabric:
    return Fabric.from_spec({"name": "lab", "topology": topology, "hosts_per_node": hosts})


def point(fabric: Fabric, pattern: str, load: float, routing: str, **more: object) -> LoadPoint:
    (found,) = simulate_fabric(fabric, pattern, [load], routing=routing, **more).points
    return found


def test_a_fat_tree_carries_everything_over_all_its_shortest_paths() -> None:
    fabric = made(FAT_TREE, 4)
    for routing in ("shortest", "ugal"):
        for pattern in ("uniform", "permutation"):
            found = point(fabric, pattern, 0.9, routing)
            assert found.accepted == pytest.approx(found.generated, rel=0.01)
    # A table has one port for all hosts of a switch: a quarter of what four hosts send.
    assert point(fabric, "permutation", 0.9, "minimal").accepted == pytest.approx(0.25, abs=0.01)


def saturation(build: Build, traffic: Traffic, hosts: int) -> float:
    """What hosts can send over shortest paths, split evenly at each switch, by hand."""
    graph = nx.Graph(build.topology.graph.edges().tolist())
    far = dict(nx.all_pairs_shortest_path_length(graph))
    load: dict[tuple[int, int], float] = {}
    for source, goal in zip(traffic.source.tolist(), traffic.destination.tolist(), strict=True):
        flow = {source: 1.0}
        for left in range(far[source][goal], 0, -1):
            after: dict[int, float] = {}
            for switch, amount in flow.items():
                near = [n for n in graph[switch] if far[n][goal] == left - 1]
                for n in near:
                    load[switch, n] = load.get((switch, n), 0.0) + amount / len(near)
                    after[n] = after.get(n, 0.0) + amount / len(near)
            flow = after
    return 1 / (hosts * max(load.values()))


def test_a_dragonfly_under_its_worst_traffic() -> None:
    # Every group to the next one. A Dragonfly's own routes take the one link between two groups,
    # which holds 1/(a·p); shortest paths of the graph take two such links at times, and hold more.
    build, hosts, router = made(DRAGONFLY, 2).build, 2, np.arange(36)
    traffic = Traffic.of(router, (router + 4) % 36)
    expected = saturation(build, traffic, hosts)
    assert 1 / 8 < expected < 0.3

    def measured(routing: str, load: float) -> LoadPoint:
        given = settings_for(build, [load], 0, (), {"routing": routing})
        net = network_for(build, hosts, given)
        flows = HostTraffic.of(traffic, net.switches, hosts)
        return simulate(net, flows, with_channels(build, net, given)).points[0]

    assert measured("shortest", 0.85 * expected).sustained
    assert not measured("shortest", 1.1 * expected).sustained
    assert measured("ugal", 1.4 * expected).sustained


@pytest.mark.parametrize("family", SMALL)
def test_every_baseline_carries_uniform_traffic(family: str) -> None:
    assert set(SMALL) == set(BASELINES)
    fabric = made({"family": family, **SMALL[family]})
    ends = fabric.build.topology.endpoints
    for routing in ("minimal", "ugal", "valiant"):
        found = point(fabric, "uniform", 0.3, routing, vcs=8)
        assert (found.lost, found.deadlock, found.sustained) == (0, (), True)
        net = SimulatedNetwork.of(fabric.build, 1).with_distances()
        far = net.distance[np.ix_(ends, ends)]
        mean = far.sum() / (len(far) * (len(far) - 1))
        if routing == "valiant":
            assert found.mean_hops == pytest.approx(2 * mean, rel=0.1)
        elif routing == "minimal":
            assert found.mean_hops == pytest.approx(mean, rel=0.05)
        else:
            assert mean * 0.95 < found.mean_hops < 2 * mean


def test_ugal_goes_astray_only_where_packets_wait() -> None:
    fabric = made({"family": "polarfly", "q": 7}, 4)
    idle, busy = (point(fabric, "perm1hop", load, "ugal") for load in (0.002, 0.4))
    assert 1 <= idle.mean_hops < 1.05
    assert busy.sustained  # minimal ports carry 1/4
    assert 1.5 < busy.mean_hops < 4


def test_ugal_pf_goes_over_neighbours_where_the_minimal_link_is_loaded() -> None:
    """Compact Valiant, as by tables; between adjacent switches it draws, and tables bounce."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 7}, "hosts_per_node": 4}
    bounces = {"balance": "compact-valiant", "adjacent": "bounce", "disjoint": "none"}
    plain, tables = Fabric.from_spec(spec), Fabric.from_spec({**spec, "routing": bounces})
    (far, near), (as_far, bounced) = (
        [
            point(fabric, pattern, load, routing, paths="table")
            for pattern, load in (("perm2hop", 0.3), ("perm1hop", 0.55))
        ]
        for fabric, routing in ((plain, "ugal-pf"), (tables, "adaptive"))
    )
    assert far == as_far
    assert near.sustained
    assert 3 < near.mean_hops < 4
    assert not bounced.sustained


def test_ugal_pf_goes_over_switches_with_hosts() -> None:
    """A Megafly's hosts are at leaves, all of whose neighbours are spines."""
    fabric = made({"family": "megafly", **SMALL["megafly"]}, 3)
    around, shortest = (
        point(fabric, "uniform", 0.8, routing, vcs=8) for routing in ("ugal-pf", "shortest")
    )
    assert around.sustained
    assert around.mean_hops == pytest.approx(shortest.mean_hops, rel=0.01)


def test_flits_wait_as_packets_do() -> None:
    fabric = made(DRAGONFLY, 2)
    packets, flits = (
        point(fabric, "uniform", 0.4, "ugal", level=level) for level in ("packet", "flit")
    )
    assert packets.mean_latency == pytest.approx(flits.mean_latency, rel=0.08)
    assert packets.mean_hops == pytest.approx(flits.mean_hops, rel=0.05)


@pytest.mark.parametrize("family", ["jellyfish", "dragonfly", "megafly"])
def test_channels_are_those_of_all_shortest_paths(family: str) -> None:
    build: Build = made({"family": family, **SMALL[family]}).build
    graph = nx.Graph(build.topology.graph.edges().tolist())
    ends = np.flatnonzero(build.topology.endpoints).tolist()
    paths = [
        path for s in ends for t in ends if s != t for path in nx.all_shortest_paths(graph, s, t)
    ]
    net = SimulatedNetwork.of(build, 1).with_distances()
    valleys = 1 + max(channels_along(build, path)[-1] for path in paths)
    assert path_channels(net, "shortest", "valley") == valleys
    assert path_channels(net, "shortest", "hop") == max(map(len, paths)) - 1
    assert {path_channels(net, routing, "valley") for routing in TWO_PATHS} == {2 * valleys}


@pytest.mark.parametrize("routing", ["shortest", "ugal", "valiant", "ugal-pf"])
def test_nothing_stops_above_saturation(routing: str) -> None:
    fabric = made({"family": "jellyfish", "nodes": 30, "degree": 4, "seed": 2}, 3)
    net = SimulatedNetwork.of(fabric.build, 3).with_distances()
    few = path_channels(net, routing, "valley")
    found = point(fabric, "longest", 1.0, routing, vcs=few, buffer=8 * few, scheme="valley")
    assert found.deadlock == ()
    assert found.accepted > (0.05 if routing == "valiant" else 0.1)  # two paths, half as much


def test_what_these_paths_do_not_take() -> None:
    build = made(DRAGONFLY, 2).build
    for more in ({"flows": 2}, {"fail": [("0-1", 5)]}):
        fail = more.pop("fail", ())
        with pytest.raises(InputError, match=r"rule of forwarding with `f.*given ugal"):
            settings_for(build, (), 0, fail, {"routing": "ugal", **more})
    given = settings_for(build, (), 0, (), {"routing": "ugal", "vcs": 2, "scheme": "valley"})
    with pytest.raises(InputError, match=r"channels for scheme valley, as these paths need"):
        with_channels(build, network_for(build, 2, given), given)
