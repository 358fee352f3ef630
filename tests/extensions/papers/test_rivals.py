"""The routes of FatPaths and WMP, by brute force against what their documents say."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.traffic import PATTERNS
from compilers.topology.families import build_topology
from extensions.baselines.fatpaths import KEPT, LAYERS, layers
from extensions.papers.catalogue import exhibit
from extensions.papers.latency_curves import PaperFabric
from extensions.simulation.latency_curve import simulate
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from manual.papers import of_kept_points
from tests.polarfab.pages import ROOT


def far_of(family: str, q: int) -> np.ndarray:
    return build_topology(family, {"q": q}).graph.padded()


@pytest.mark.parametrize("kept", [0.4, 0.6, 0.8])
@pytest.mark.parametrize(("family", "q"), [("polarfly", 5), ("slimfly", 4)])
def test_a_layer_keeps_its_part_of_the_links_and_has_minimal_paths(
    family: str, q: int, kept: float
) -> None:
    """Each pair in each layer, followed; a link of a layer is the path between its ends there."""
    far = far_of(family, q)
    order, links = len(far), np.argwhere(far >= 0)
    sizes = []
    for number, link in enumerate(layers(far, 5, kept, seed=1)):
        own = {(int(s), int(far[s, k])) for s, k in links if link[s, far[s, k]] == k}
        assert own == {(t, s) for s, t in own}
        graph = nx.Graph(sorted(own))
        assert nx.is_connected(graph)
        lengths = dict(nx.all_pairs_shortest_path_length(graph))
        for source, goal in np.argwhere(~np.eye(order, dtype=bool)):
            here, length = int(source), 0
            while here != goal:
                step = int(far[here, link[here, goal]])
                assert (here, step) in own
                here, length = step, length + 1
            assert length == lengths[source][goal]
        assert (link.diagonal() == far.shape[1]).all()
        sizes.append(len(own) / len(links) if number else kept)
        assert number or len(own) == len(links)
    assert len(set(sizes[1:])) > 1
    assert np.mean(sizes) == pytest.approx(kept, abs=0.07)


@pytest.mark.parametrize("level", ["packet", "flit"])
def test_a_packet_keeps_to_a_layer_that_it_drew(level: str) -> None:
    """The mean of links is that of all layers, so that no packet changes its layer, or has few."""
    fabric = PaperFabric({"family": "polarfly", "q": 5}, 2, "FatPaths")
    build = fabric.build()
    network = SimulatedNetwork.of(build, 2)
    found = layers(network.far, 4, 0.5)
    lengths = [_mean_length(network.far, link) for link in found]
    assert max(lengths[1:]) > 1.2 * lengths[0]
    traffic = HostTraffic.of_pattern("uniform", build.topology, 2, 0)
    settings = SimulationSettings(loads=(0.1,), level=level, period=1_500)
    (point,) = simulate(network.with_layers(found), traffic, settings).points
    assert point.sustained
    assert point.mean_hops == pytest.approx(np.mean(lengths), rel=0.02)


def _mean_length(far: np.ndarray, link: np.ndarray) -> float:
    order = len(far)
    here, goal = np.divmod(np.arange(order**2), order)
    total = 0
    while (away := here != goal).any():
        here = np.where(away, far[here, np.minimum(link[here, goal], far.shape[1] - 1)], here)
        total += int(away.sum())
    return total / (order * (order - 1))


def test_no_other_number_or_part_makes_layers_carry_a_third_of_tornado() -> None:
    """Fluid: what the hottest link lets through at q = 7; `spread` carries .46."""
    topology = build_topology("polarfly", {"q": 7})
    far, pairs = topology.graph.padded(), PATTERNS["tornado"](topology, 4, 0)
    carried = {
        (count, kept, seed): 1 / _hottest(far, layers(far, count, kept, seed), pairs)
        for count in (4, 9, 16)
        for kept in (0.4, 0.6, 0.8)
        for seed in (0, 1)
    }
    assert max(carried.values()) < 0.3
    assert carried[LAYERS, KEPT, 0] > 0.2


def _hottest(far: np.ndarray, links: np.ndarray, pairs: Traffic) -> float:
    """The load of the hottest link, four hosts a switch, by link rates."""
    use = np.zeros(far.shape)
    for link in links:
        here = pairs.source
        while (away := here != pairs.destination).any():
            out = np.where(away, link[here, pairs.destination], 0)
            np.add.at(use, (here[away], out[away]), 4 / len(links))
            here = np.where(away, far[here, out], here)
    return float(use.max())


def test_the_page_has_the_kept_figures() -> None:
    """The sustained loads of its table, and latencies under tornado; no verdict is a paper's."""
    text = (ROOT / "docs/concepts/what-we-found.md").read_text()
    small, large = (of_kept_points(exhibit(f"rivals-fig{number}")) for number in (1, 2))
    assert (small.verdict, large.verdict) == ("holds", "holds")
    for each in (small, large):
        assert any("uniform: FatPaths ≤ spread ≤ WMP ≤ UGAL_PF, bounces; " in s for s in each.setup)
        assert any(s.startswith("FatPaths: a packet takes one of 9 layers") for s in each.setup)
    for (name, *first), (_, *second) in zip(small.rows, large.rows, strict=True):
        loads = (
            "/".join(cell.partition(";")[0] for cell in pair)
            for pair in zip(first, second, strict=True)
        )
        assert f"| {' | '.join((name, *loads))} |" in text, name
    slow, slower = (
        next(c for c in each.claims if c.says.startswith("tornado: spread takes"))
        for each in (small, large)
    )
    said = f"{slow.computed:.0f} cycles and UGAL_PF {slow.printed:.0f}"
    assert f"{said} ({slower.computed:.0f} and {slower.printed:.0f})" in " ".join(text.split())


@pytest.mark.parametrize("q", [3, 5, 7, 9])
def test_wmp_has_the_paths_of_its_white_paper(q: int) -> None:
    """§3.1 and B.4: over each neighbour but the relay, if the path has no link of the shortest one;
    adjacent switches have their link, as `path_calculator.py` of the authors has it."""
    network = SimulatedNetwork.of(PaperFabric({"family": "polarfly", "q": q}, 1, "WMP").build(), 1)
    near = [{int(each) for each in row if each >= 0} for row in network.far]
    rows = network.order.shape[0] // network.switches
    counts = set()
    for here, goal in np.argwhere(~np.eye(network.switches, dtype=bool)):
        row = here * rows + network.number[here, goal]
        hops = zip(network.ingress[row], network.weight[row], strict=True)
        shares = {int(network.end[hop]) // network.ports: w for hop, w in hops if hop >= 0 and w}
        if goal in near[here]:
            assert set(shares) == {goal}
            continue
        (relay,) = near[here] & near[goal]
        other = {over for over in near[here] - {relay} if near[over] & near[goal] != {relay}}
        assert set(shares) == {relay} | other
        counts.add(len(other))
        assert len({shares[over] for over in other}) == 1
        if q == 7:
            assert shares[relay] / sum(shares.values()) == pytest.approx(0.3, abs=0.01)
    assert counts == {q - 1, q}
