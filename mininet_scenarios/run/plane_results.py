"""The results of all planes of a fabric as one.

Planes share nothing but the hosts. So what hosts have of all planes follows from the rounds of
packets in each: two hosts reach each other if one plane delivers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from compilers.tables.build import Build
from mininet_scenarios.scenario.engine import Check, HostSample, Mismatch
from mininet_scenarios.scenario.scenario_file import LoadedScenario
from mininet_scenarios.verdict.checks import Happened, PairsReached, Result
from mininet_scenarios.verdict.report import Emulated


def merged(loaded: LoadedScenario, builds: Sequence[Build], runs: Sequence[Emulated]) -> Emulated:
    """The results of all planes as one: their checks and events, then those of all together.

    Args:
        loaded: the scenario of all planes.
        builds: of the planes.
        runs: their rehearsals, in the same order.
    """
    results = [run.result for run in runs]
    whole = Result(
        pairs=sum(result.pairs for result in results),
        delivered=sum(result.delivered for result in results),
        predicted_hops=_summed([result.predicted_hops for result in results]),
        seen_hops=_summed([result.seen_hops for result in results]),
        caught="; ".join(result.caught for result in results if result.caught),
    )
    for build, result in zip(builds, results, strict=True):
        whole.checks += [
            replace(check, name=f"{build.name}: {check.name}") for check in result.checks
        ]
        whole.happened += [
            replace(event, what=f"{build.name}: {event.what}") for event in result.happened
        ]
        whole.seconds[build.name] = result.seconds["all"]
    whole.seconds["all"] = round(sum(whole.seconds.values()), 2)
    plane_hosts = [HostSample.of(build, loaded.scenario.hosts).names for build in builds]
    hosts = tuple(dict.fromkeys(chain.from_iterable(plane_hosts)))
    for reached in _reached_by_any(plane_hosts, hosts, [result.reached for result in results]):
        check = _delivery_check(reached, hosts)
        whole.checks.append(check)
        happened = Happened(
            what=f"all planes: {reached.what}",
            at=0.0,
            pairs=len(hosts) * (len(hosts) - 1),
            expected=check.required,
            possible=check.required,  # pairs that a plane delivers for certain are counted, no more
            reached=check.seen,
        )
        whole.happened.append(happened)
    facts: dict[str, Any] = {**runs[0].facts, "scenario": loaded.scenario.name}
    facts["build"] = " and ".join(run.facts["build"] for run in runs)
    for name in ("switches", "links"):
        facts[name] = sum(run.facts[name] for run in runs)
    facts["planes"] = [run.as_dict() for run in runs]
    return Emulated(facts, whole)


def _summed(histograms: Sequence[dict[int, int]]) -> dict[int, int]:
    """The pairs by their links in all planes; empty if one plane leaves that to its switches."""
    if not all(histograms):
        return {}
    total: Counter[int] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return dict(sorted(total.items()))


def _reached_by_any(
    plane_hosts: Sequence[tuple[str, ...]],
    hosts: Sequence[str],
    plane_reached: Sequence[dict[int, PairsReached | None]],
) -> Iterator[PairsReached]:
    """The pairs of hosts that any plane delivers, after each moment at which all planes were asked.

    A plane that a moment does not touch is as it was after the last one that did.

    Args:
        plane_hosts: the hosts of each plane.
        hosts: those of all planes.
        plane_reached: of each plane, by moment, what its hosts reached; None if they were not
            asked.
    """
    index = {name: i for i, name in enumerate(hosts)}
    places = []
    for names in plane_hosts:
        numbers = [index[name] for name in names]
        places.append(np.ix_(numbers, numbers))
    for moment in sorted(set().union(*plane_reached)):
        latest = [reached[max(m for m in reached if m <= moment)] for reached in plane_reached]
        if None in latest:
            continue
        expected, arrived = np.zeros((2, len(hosts), len(hosts)), np.bool_)
        for place, reached in zip(places, latest, strict=True):
            if reached is not None:
                expected[place] |= reached.sure
                arrived[place] |= reached.reached
        of_moment = (reached[moment] for reached in plane_reached if moment in reached)
        what = next((reached.what for reached in of_moment if reached), "")
        yield PairsReached(what, expected, arrived)


def _delivery_check(pairs: PairsReached, hosts: Sequence[str]) -> Check:
    """Whether every pair that a plane can deliver reached each other over one."""
    lost = tuple(
        Mismatch(f"{hosts[i]} → {hosts[j]}", "delivered by a plane", "by none")
        for i, j in np.argwhere(pairs.sure & ~pairs.reached).tolist()
    )
    return Check.of(f"all planes, {pairs.what}", int(np.count_nonzero(pairs.sure)), lost)
