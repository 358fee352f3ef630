"""Channels of the papers' exhibits: what split ones do to a grown PolarFly."""

from __future__ import annotations

from dataclasses import replace

from compilers.evaluation.traffic import PATTERNS
from extensions.papers.latency_curves import PaperFabric
from extensions.simulation.build_simulation import network_for, settings_for, with_channels
from extensions.simulation.latency_curve import simulate
from extensions.simulation.simulated_network import HostTraffic

WINDOWS = {"warmup": 500, "period": 250, "drain": 2_000, "ways": "minimal"}


def test_split_channels_and_not_growth_make_the_collapse_of_figure_eleven() -> None:
    """On tables with alternates; by valley the virtual channels are split, and too few for it."""
    fabric = PaperFabric({"family": "polarfly", "q": 5}, 5, "UGAL_PF", grown="quadric:2")
    build = fabric.build()
    settings = settings_for(build, [0.5], 0, (), WINDOWS)
    network = network_for(build, 5, settings)
    traffic = HostTraffic.of(PATTERNS["uniform"](build.topology, 5, 0), network.switches)
    (shared,) = simulate(network, traffic, settings).points  # the default
    split = with_channels(build, network, replace(settings, scheme="valley"))
    (valley,) = simulate(network, traffic, split).points
    assert shared.sustained
    assert not valley.sustained
    assert valley.accepted < 0.45
