"""Outages of a build by the numbers of its switches."""

from mininet_scenarios.scenario.outage import Outage


def outage(build, links=(), switches=()):
    """These links cut, pairs of vertices, and these switches without power."""
    name = build.wiring.names.__getitem__
    cut = frozenset(tuple(sorted(map(name, link))) for link in links)
    return Outage(cut, frozenset(map(name, switches)))
