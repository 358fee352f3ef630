"""Merges the results of all planes of a fabric, for `emulation`.

A plane is a fabric of its own switches and links; planes share nothing but the hosts. Each was
rehearsed by itself. Two hosts reach each other if one plane delivers their packets. So which pairs
of hosts reach each other over all planes follows from the packets that were sent in each plane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from compilers.tables.build import Build
from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.scenario_file import LoadedScenario
from mininet_scenarios.verdict.report import Emulated
from mininet_scenarios.verdict.result import EventOutcome, PairsReached, Result


def merged(loaded: LoadedScenario, builds: Sequence[Build], runs: Sequence[Emulated]) -> Emulated:
    """The results of all planes as one result.

    It has the checks and events of each plane, then a check of all planes for each moment: the time
    of an event, which has the same number in all planes.

    Args:
        loaded: the scenario of all planes.
        builds: of the planes.
        runs: their rehearsals, in the same order.
    """
    results = [run.result for run in runs]
    total = Result(
        pairs=sum(result.pairs for result in results),
        delivered=sum(result.delivered for result in results),
        predicted_hops=_summed([result.predicted_hops for result in results]),
        seen_hops=_summed([result.seen_hops for result in results]),
        wrong_table_found="; ".join(
            result.wrong_table_found for result in results if result.wrong_table_found
        ),
    )
    for build, result in zip(builds, results, strict=True):
        _add_plane(total, build.name, result)
    total.seconds["all"] = round(sum(total.seconds.values()), 2)
    plane_hosts = [HostSample.of(build, loaded.scenario.hosts).names for build in builds]
    hosts = tuple(dict.fromkeys(chain.from_iterable(plane_hosts)))
    for reached in _reached_by_any(plane_hosts, hosts, [result.reached for result in results]):
        check = _delivery_check(reached, hosts)
        total.checks.append(check)
        event = EventOutcome(
            what=f"all planes: {reached.event}",
            at=0.0,
            pairs=len(hosts) * (len(hosts) - 1),
            expected=check.required,
            possible=check.required,  # only pairs that a plane delivers for certain are counted
            reached=check.seen,
        )
        total.events.append(event)
    return Emulated(_facts(loaded.scenario.name, runs), total)


def _add_plane(total: Result, plane: str, result: Result) -> None:
    """Add the checks, the events and the duration of a plane, with its name before theirs."""
    total.checks += [replace(check, name=f"{plane}: {check.name}") for check in result.checks]
    total.events += [replace(event, what=f"{plane}: {event.what}") for event in result.events]
    total.seconds[plane] = result.seconds["all"]


def _facts(scenario: str, runs: Sequence[Emulated]) -> dict[str, Any]:
    """The facts of a run of all planes, from those of each plane."""
    facts: dict[str, Any] = {**runs[0].facts, "scenario": scenario}
    facts["build"] = " and ".join(run.facts["build"] for run in runs)
    for name in ("switches", "links"):
        facts[name] = sum(run.facts[name] for run in runs)
    facts["planes"] = [run.as_dict() for run in runs]
    return facts


def _summed(histograms: Sequence[dict[int, int]]) -> dict[int, int]:
    """By number of links, how many pairs of all planes have paths of so many.

    It is empty if one of the histograms is: in such a plane, pairs have paths of several lengths.
    """
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
    """The pairs of hosts that any plane delivers, after each moment for which all planes know it.

    A moment may leave a plane as it was. Then the pairs that the plane reached after its last
    earlier moment count.

    Args:
        plane_hosts: the hosts of each plane.
        hosts: the hosts of all planes.
        plane_reached: of each plane, by moment, the pairs that were reached; None if no packets
            were sent after the moment.
    """
    index = {name: i for i, name in enumerate(hosts)}
    pairs_of_plane = []
    for names in plane_hosts:
        numbers = [index[name] for name in names]
        pairs_of_plane.append(np.ix_(numbers, numbers))
    for moment in sorted(set().union(*plane_reached)):
        latest = []
        for reached_by_moment in plane_reached:
            last_moment = max(number for number in reached_by_moment if number <= moment)
            latest.append(reached_by_moment[last_moment])
        if None in latest:
            continue
        # bool[H, H] each: the pairs that a plane delivers for certain, and those that arrived.
        expected, arrived = np.zeros((2, len(hosts), len(hosts)), np.bool_)
        for pairs, reached in zip(pairs_of_plane, latest, strict=True):
            if reached is not None:
                expected[pairs] |= reached.expected
                arrived[pairs] |= reached.reached
        at_moment = (reached[moment] for reached in plane_reached if moment in reached)
        words = next((reached.event for reached in at_moment if reached), "")
        yield PairsReached(words, expected, arrived)


def _delivery_check(pairs: PairsReached, hosts: Sequence[str]) -> Check:
    """The check that each pair which some plane can deliver was delivered by a plane."""
    lost = tuple(
        Mismatch(f"{hosts[i]} → {hosts[j]}", "delivered by a plane", "by none")
        for i, j in np.argwhere(pairs.expected & ~pairs.reached).tolist()
    )
    return Check.of(f"all planes, {pairs.event}", int(np.count_nonzero(pairs.expected)), lost)
