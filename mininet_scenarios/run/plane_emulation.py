"""An emulation of a fabric of any number of planes: one after the other, then all together.

Planes share nothing but the hosts, so each is brought up, checked and taken down by itself. What
hosts have of all of them is read off the rounds that were seen: a host with a port to each plane is
one host, and two hosts reach each other where one plane delivers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from compilers.planes import compile_planes
from compilers.proof.verification import judge
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from compilers.tables.folders.plane_folders import builds_in, save_planes
from inventory.problems import InputError
from mininet_scenarios.machine.runs import add_folder, recorded
from mininet_scenarios.run.emulation import Emulated, Emulation, work_folder
from mininet_scenarios.run.rehearsal_plan import WrongTables
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.scenario_file import LoadedScenario
from mininet_scenarios.verdict.checks import Check, Mismatch
from mininet_scenarios.verdict.result import Happened, PairsReached, Result


def run_planes(emulation: Emulation) -> Emulated:
    """Run it: as it is where the fabric has one plane, else each plane, and what hosts have of all.

    Raises:
        InputError: the scenario or its fabric is wrong, or the machine lacks something.
        WrongTables: verification has not passed on a plane.
        EngineError: an engine could not do its part.
    """
    loaded = emulation.loaded
    folders = builds_in(loaded.folder) if loaded.folder else ()
    count = len(folders) or (loaded.fabric.spec.planes if loaded.fabric else 1)
    if count == 1:
        return emulation.run()
    if emulation.terminal:
        raise InputError.of("a fabric of one plane", f"{count} planes", "name one", key="--cli")
    with recorded() as record, work_folder(emulation.keep) as work:
        if not emulation.keep:
            add_folder(record, work)
        folders = folders or _compiled(emulation, work / "build")
        builds = [load(folder) for folder in folders]
        return _merged(loaded, builds, list(_each(emulation, builds, folders)))


def _compiled(emulation: Emulation, folder: Path) -> tuple[Path, ...]:
    """The folders of all planes, compiled and walked."""
    fabric = emulation.loaded.fabric
    assert fabric is not None  # noqa: S101
    what = "compile all planes, and walk every pair through their tables"
    with emulation.observer.step(what) as progress:
        builds = save_planes(compile_planes(fabric), folder)
        folders = builds_in(folder)
        reports = judge(builds, folders, progress, failures=()).reports
    for build, report in zip(builds, reports, strict=True):
        if not report.passed and not emulation.unverified:
            raise WrongTables(build, report)
    return folders


def _each(
    emulation: Emulation, builds: Sequence[Build], folders: Sequence[Path]
) -> Iterator[Emulated]:
    """Each plane, with the moments of the timeline that name what it has."""
    for plane, (build, folder) in enumerate(zip(builds, folders, strict=True), 1):
        emulation.observer.note(f"plane {plane}: {build.name}")
        others = tuple(other for other in builds if other is not build)
        loaded = replace(emulation.loaded, folder=folder, fabric=None, others=others)
        keep = emulation.keep / f"plane-{plane}" if emulation.keep else None
        yield replace(emulation, loaded=loaded, keep=keep).run()


def _merged(loaded: LoadedScenario, builds: Sequence[Build], found: Sequence[Emulated]) -> Emulated:
    """One result: checks and events of every plane, behind them those of all together."""
    results = [each.result for each in found]
    whole = Result(
        pairs=sum(result.pairs for result in results),
        delivered=sum(result.delivered for result in results),
        predicted_hops=_sum([result.predicted_hops for result in results]),
        seen_hops=_sum([result.seen_hops for result in results]),
        caught="; ".join(filter(None, (result.caught for result in results))),
    )
    for build, result in zip(builds, results, strict=True):
        whole.checks += [replace(c, name=f"{build.name}: {c.name}") for c in result.checks]
        whole.happened += [replace(e, what=f"{build.name}: {e.what}") for e in result.happened]
        whole.seconds[build.name] = result.seconds["all"]
    whole.seconds["all"] = round(sum(whole.seconds.values()), 2)
    sampled = [HostSample.of(build, loaded.scenario.hosts).names for build in builds]
    names = tuple(dict.fromkeys(chain.from_iterable(sampled)))
    for state in _together(sampled, names, [result.reached for result in results]):
        check = _check(state, names)
        whole.checks.append(check)
        pairs = len(names) * (len(names) - 1)
        event = f"all planes: {state.what}"
        whole.happened.append(Happened(event, 0.0, pairs, check.required, check.seen))
    facts: dict[str, Any] = {**found[0].facts, "scenario": loaded.scenario.name}
    facts["build"] = " and ".join(each.facts["build"] for each in found)
    facts |= {word: sum(each.facts[word] for each in found) for word in ("switches", "links")}
    facts["planes"] = [each.as_dict() for each in found]
    return Emulated(facts, whole)


def _sum(histograms: Sequence[dict[int, int]]) -> dict[int, int]:
    """Pairs by their links in all planes; nothing where one plane leaves that to its switches."""
    total: Counter[int] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return dict(sorted(total.items())) if all(histograms) else {}


def _together(
    hosts: Sequence[tuple[str, ...]],
    names: Sequence[str],
    reached: Sequence[dict[int, PairsReached | None]],
) -> Iterator[PairsReached]:
    """Pairs of all hosts that any plane delivers, after each moment that all planes were asked.

    A plane that a moment does not touch is as it was after the last one that did.
    """
    index = {name: i for i, name in enumerate(names)}
    places = [np.ix_(own, own) for own in ([index[name] for name in some] for some in hosts)]
    for moment in sorted(set().union(*reached)):
        now = [part[max(m for m in part if m <= moment)] for part in reached]
        told = [part[moment] for part in reached if moment in part]
        if None in now:
            continue
        sure, seen = np.zeros((2, len(names), len(names)), np.bool_)
        for place, state in zip(places, now, strict=True):
            if state is not None:
                sure[place] |= state.sure
                seen[place] |= state.reached
        what = next((state.what for state in told if state), "")
        yield PairsReached(what, sure, seen)


def _check(found: PairsReached, names: Sequence[str]) -> Check:
    """Whether every pair that a plane can deliver reached each other over one."""
    lost = tuple(
        Mismatch(f"{names[i]} → {names[j]}", "delivered by a plane", "by none")
        for i, j in np.argwhere(found.sure & ~found.reached).tolist()
    )
    return Check.of(f"all planes, {found.what}", int(np.count_nonzero(found.sure)), lost)
