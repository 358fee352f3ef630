"""Channels of the papers' exhibits: split where the papers split them, and only there."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from extensions.papers.curve_presentation import deadlock_lines
from extensions.papers.curve_runs import QuickRuns
from extensions.papers.curve_values import latency_at
from extensions.papers.exhibit import PaperClaim
from extensions.papers.latency_curves import simulated_curve
from extensions.papers.paper_fabric import PaperFabric
from extensions.simulation.build_simulation import network_for
from extensions.simulation.channel_counts import with_channels
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.latency_curve import LatencyCurve, simulate
from extensions.simulation.load_point import LoadPoint
from extensions.simulation.simulated_network import HostTraffic

WINDOWS = {"warmup": 500, "period": 250, "drain": 2_000, "routing": "minimal"}


def test_split_channels_and_not_growth_make_the_collapse_of_figure_eleven() -> None:
    """On tables with alternates; by valley the virtual channels are split, and too few for it."""
    fabric = PaperFabric({"family": "polarfly", "q": 5}, 5, "UGAL_PF, bounces", grown="quadric:2")
    build = fabric.build()
    settings = settings_for(build, [0.5], 0, (), WINDOWS)
    network = network_for(build, 5, settings)
    traffic = HostTraffic.of_pattern("uniform", build.topology, 5, 0)
    (shared,) = simulate(network, traffic, settings).points  # the default
    split = with_channels(build, network, replace(settings, scheme="valley"))
    (valley,) = simulate(network, traffic, split).points
    assert shared.sustained
    assert not valley.sustained
    assert valley.accepted < 0.45


@pytest.mark.parametrize("routes", ["MIN", "UGAL"])
def test_dragonfly_has_no_deadlock_as_in_booksim(routes: str) -> None:
    """With any free channel it had one under uniform traffic, and accepted .27 of .95."""
    look = QuickRuns((0.95,), warmup=800, period=250, drain=600)
    dragonfly = PaperFabric({"family": "dragonfly", "h": 2, "a": 4}, 2, routes)
    curve = simulated_curve(dragonfly, "uniform", quick=True, quick_runs=look)
    assert curve.deadlock == ()
    assert curve.points[0].accepted > 0.6


def point(load: float, **fields: object) -> LoadPoint:
    known = dict.fromkeys(LoadPoint.__dataclass_fields__, 0)
    given = {**known, "offered": load, "mean_latency": 20.0, "deadlock": (), "sustained": True}
    return LoadPoint(**{**given, **fields})


def test_deadlocks_are_named_beside_the_picture() -> None:
    stopped = LatencyCurve((point(0.5), point(0.8, deadlock=(1, 2, 1)), point(0.9, deadlock=(1,))))
    curves = {("uniform", "DF"): stopped, ("uniform", "PF"): LatencyCurve((point(0.5),))}
    (line,) = deadlock_lines(curves.items())
    assert line.startswith("Deadlocks, loads offered: uniform DF from 0.8. ")
    assert deadlock_lines([]) == ()


def test_a_load_at_which_nothing_came_is_not_the_fastest() -> None:
    curve = LatencyCurve((point(0.4, mean_latency=None), point(0.5)))
    claim = PaperClaim("faster", latency_at(curve, 0.5), latency_at(curve, 0.4), "<=")
    assert claim.verdict == "contradicts"
    assert latency_at(curve, 0.7) == inf
    with pytest.raises(KeyError):
        latency_at(curve, 0.45)
