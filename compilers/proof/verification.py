"""Verification of a fabric: every plane walked, its build marked, or what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compilers.proof.failures.risk_cases import FAILURE_KINDS, fail_alike
from compilers.proof.proof_options import AS_PROMISED, ProofOptions
from compilers.proof.proved import Proved
from compilers.proof.soundness.build_soundness import unsound
from compilers.proof.walks.delivery import Report, usual, verify
from compilers.tables.build import Build
from compilers.tables.build_codec import first_alike
from compilers.tables.folders.generations import mark_verified
from compilers.tables.folders.written_file import place_of
from compilers.topology.families import family_of, require_family
from inventory.problems import InputError


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """The result of verification, one report per plane."""

    names: tuple[str, ...]
    """The name of each plane."""
    identities: tuple[str, ...]
    """The identity of each plane's build; "" for a build that has none yet."""
    reports: tuple[Report, ...]
    """What was proved of each plane."""
    unmarked: str = ""
    """Why a folder could not be marked; "" where all were."""

    def require_marked(self) -> None:
        """Pass when every folder could be marked.

        Raises:
            InputError: one could not.
        """
        if self.unmarked:
            raise InputError.of("", self.unmarked)

    def require_passed(self, folder: str) -> None:
        """Pass when every plane may be used.

        folder: where its build was to be written.

        Raises:
            InputError: verification has not passed.
        """
        if not self.passed:
            todo = "what verify() returns says why; save with prove=False to keep it all the same"
            raise InputError.of("a build that has passed polarfab verify", repr(self), todo, folder)

    @property
    def passed(self) -> bool:
        """Whether every plane may be used."""
        return all(report.passed for report in self.reports)

    def mark(self, builds: Sequence[Build], folders: Sequence[Path]) -> Verification:
        """The same, marked in the folders of the same builds, one a plane.

        Raises:
            InputError: these are other builds, or verified ones had no identity.
        """
        now = tuple(build.identity for build in builds)
        if self.passed and (now != self.identities or "" in now):
            required = f"the builds that were verified, {' and '.join(self.identities)}"
            todo = 'verify these; a build with other values begins with identity=""'
            raise InputError.of(required, " and ".join(now), todo)
        planes = zip(folders, builds, self.reports, strict=True)
        faults = [_mark(folder, build, report) for folder, build, report in planes]
        return replace(self, unmarked=next(filter(None, faults), ""))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the report, or those of all planes by their names."""
        if len(self.reports) == 1:
            return self.reports[0].as_dict()
        named = zip(self.names, self.reports, strict=True)
        return {"planes": [{"fabric": name, **report.as_dict()} for name, report in named]}

    def __repr__(self) -> str:
        """`<Verification passed: 3,192 of 3,192 pairs delivered>`."""
        word = "passed" if self.passed else "FAILED"
        pairs, delivered = (
            sum(getattr(report, count) for report in self.reports)
            for count in ("pairs", "delivered")
        )
        return f"<Verification {word}: {delivered:,} of {pairs:,} pairs delivered>"


def judge(
    builds: Sequence[Build],
    folders: Sequence[Path] = (),
    options: ProofOptions = AS_PROMISED,
) -> Verification:
    """Verify every plane; those that forward alike, and whose groups fail alike, share one walk.

    Args:
        builds: one a plane.
        folders: of the builds, whose marks are set or removed; none for builds in memory.
        options: what is proved besides delivery, and how.

    Raises:
        InputError: there is no such kind of failure, or no such method, or the fabric's family is
            not installed.
    """
    options.require_valid()
    for build in builds:
        require_family(build.topology)
    reports: list[Report] = []
    unmarked = ""
    for plane, build in enumerate(builds):
        like = first_alike(builds, plane)
        kinds = usual(build) if options.failures is None else options.failures
        if like is None or not fail_alike(builds[like], build, kinds):
            report = verify(build, options)
        elif (report := reports[like]).passed:
            report = replace(report, unsound=unsound(build))
        reports.append(report)
        if folders:
            unmarked = _mark(folders[plane], build, report) or unmarked
    names = tuple(build.name for build in builds)
    identities = tuple(build.identity for build in builds)
    return Verification(names, identities, tuple(reports), unmarked)


def _mark(folder: Path, build: Build, report: Report) -> str:
    """Set or remove the mark of a build folder; returns the fault if that fails, else "".

    What an earlier run proved of the same build, and this one did not try, stays in the mark.
    """
    facts = report.as_dict() if report.passed else None
    if facts:
        earlier, tried = Proved.read(folder, build), {case.kind for case in report.failures}
        kept = [kind for kind in FAILURE_KINDS if kind in earlier.failures and kind not in tried]
        channels = earlier.channels or facts["proved"]["channels"]
        proved = {**facts["proved"], "channels": channels}
        certified = [word for word in earlier.certified if word in kept]
        facts["proved"] = {
            **proved,
            "failures": [*kept, *proved["failures"]],
            "certified": [*certified, *proved["certified"]],
        }
    try:
        mark_verified(folder, build.identity, facts)
    except OSError as error:
        return f"cannot mark {place_of(folder)} as verified or not: {error.strerror}"
    return ""


def remedy(build: Build, report: Report) -> str:
    """What may be written in the fabric's spec instead; "" where no protection fails."""
    broken = {case.kind for case in report.broken}
    if not broken:
        return ""
    choices = []
    if broken == {"node"}:
        choices.append("write `protect: link`, which holds")
    if broken == {"module"}:
        choices.append("write `protect: node`, which holds")
    if not build.forwarding.every_hop and not family_of(build.topology.family).single:
        choices.append("try `balance: ecmp` with `transit: ecmp`, which protects more graphs")
    if family_of(build.topology.family).any_links and (fewest := _fewest_links(build)):
        choices.append(f"add links ({fewest})")
    if broken not in ({"node"}, {"module"}):
        choices.append("write `protect: none` and leave repairs to the controller")
    if len(choices) == 1:
        return f"routing: {choices[0]}"
    return f"routing: {', '.join(choices[:-1])} or {choices[-1]}"


def _fewest_links(build: Build) -> str:
    """The switches that have fewest links, where that is three or less."""
    degrees = build.topology.graph.degrees
    fewest = int(degrees[build.topology.present].min())
    least = [int(v) for v in (degrees == fewest).nonzero()[0]]
    more = f" and {len(least) - 1:,} more" if len(least) > 1 else ""
    return f"{build.wiring.names[least[0]]}{more} have {fewest}" if 0 < fewest <= 3 else ""
