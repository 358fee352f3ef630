"""Figures of the Projective Networks paper: its bounds, and statements that are not so."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.topology.field import prime_power
from extensions.papers.projective import projective_paper
from extensions.papers.projective.network_growth import GROWTHS, cost, growth, ideal_hosts


@pytest.mark.parametrize(("name", "hosts"), [("complete graph", 33 * 32), ("Hamming 2D", 22**3)])
def test_networks_of_64_ports_are_on_the_bound(name: str, hosts: int) -> None:
    """Both are generalised Moore graphs of k̄ = 1 and nearly 2."""
    largest = growth(name).members()[-1]
    assert largest.quantities()["R"] == pytest.approx(64, rel=1e-3)
    assert ideal_hosts(cost(largest)) == pytest.approx(hosts, rel=3e-3)


def test_the_bound_is_the_printed_one() -> None:
    """Formula (5): T = R^k k̄^(k-1) / ((k - k̄)(k̄ + 1)^k), for large Δ."""
    for mean, k in ((1.5, 2), (2.5, 3), (3.5, 4), (5.5, 6)):
        printed = 64**k * mean ** (k - 1) / ((k - mean) * (mean + 1) ** k)
        assert ideal_hosts(mean) == pytest.approx(printed, rel=0.06)
    grid = [ideal_hosts(mean) for mean in np.linspace(1, 5.6, 461)]
    assert grid == sorted(grid)


def test_figure_seven_has_one_point_more_of_delorme() -> None:
    claims = projective_paper.costs(True).claims
    wrong = [each.says.partition(":")[0] for each in claims if each.verdict == "corrected"]
    assert wrong == ["two points only of Delorme's graph"]


def test_the_dragonfly_supersedes_the_3d_hamming_graph_in_scale_only() -> None:
    """The word is read as of as many ports; of as many compute nodes it is the other way round."""
    cube, dragonfly = (growth(name).members() for name in ("Hamming 3D", "dragonfly"))
    hosts, ports = ([each.quantities()[key] for each in dragonfly] for key in "TR")
    for each in cube:
        T = each.quantities()["T"]
        assert cost(each) < 0.97 * np.interp(T, hosts, [cost(other) for other in dragonfly])
    assert (round(T), round(each.quantities()["R"])) == (65520, 61)
    assert round(float(np.interp(T, hosts, ports))) == 44
    (line,) = projective_paper.costs(True).setup
    assert all(number in line for number in ("65,520", "3 %", "61", "44"))


def test_lines_of_the_fano_plane_are_named_where_they_are() -> None:
    """A label in brackets is orthogonal to the points of the line that it is on."""
    plane = projective_paper.fano(True).diagrams[0]
    names = [label for label in plane.labels if label]
    assert len(set(names)) == 14
    assert all(f">{name}</text>" in plane.svg() for name in names)
    assert plane.svg().count("<circle") == 7
    at = dict(zip(plane.labels, plane.places, strict=True))
    for one, other in np.asarray(plane.links)[:6].tolist():
        ends = [plane.labels[one], plane.labels[other]]
        (line,) = [
            name
            for name in names
            if name.startswith("[") and abs(_turn(at[ends[0]], at[ends[1]], at[name])) < 1e-9
        ]
        for end in ends:
            assert sum(int(a) * int(b) for a, b in zip(end, line[1:4], strict=True)) % 2 == 0


def _turn(a, b, c) -> float:
    return float((b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0])


@pytest.mark.parametrize(
    ("figure", "routers", "hosts"),
    [(projective_paper.full_mesh, 18, 36), (projective_paper.orthogonal_fat_tree, 21, 42)],
)
def test_compute_nodes_are_drawn_at_their_leaves(figure, routers: int, hosts: int) -> None:
    """White circles of figures 10 and 11, which had routers only."""
    drawn = figure(True).diagrams[-1]
    assert drawn.svg().count('fill="#ffffff"') == hosts
    links = np.bincount(np.asarray(drawn.links).ravel())
    assert {*links[routers:].tolist()} == {1}
    assert len(links) == len(drawn.places) == routers + hosts
    assert len({tuple(place) for place in drawn.places.tolist()}) == routers + hosts
    own, beyond = drawn.places[:routers, 0], drawn.places[routers:, 0]
    assert ((beyond < own.min()) | (beyond > own.max())).all()


def test_slim_fly_of_every_prime_power_is_drawn() -> None:
    """4, 8, 17 and 32, next to another one, were left out."""
    drawn = projective_paper.mms_orders(True).panels[0].curves[0].x
    assert drawn == tuple(2.0 * q * q for q in range(3, 128) if prime_power(q))


def test_curves_of_figures_seven_and_nine_are_all_there() -> None:
    names = [curve.name for curve in projective_paper.costs(True).panels[0].curves]
    assert names == [*(each.name for each in GROWTHS), "ideal, R = 64"]
    drawn = {
        curve.name: curve.y for curve in projective_paper.three_networks(True).panels[0].curves
    }
    fly = growth("Slim Fly MMS").members()
    assert drawn["Slim Fly MMS: k̄"] == tuple(each.mean for each in fly)
    assert drawn["Slim Fly MMS: k̄/u"] == tuple(each.mean / each.utilisation for each in fly)
