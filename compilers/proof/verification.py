"""Verify all planes of a fabric, and mark the folders of builds that passed.

`judge` calls `delivery.verify` for each plane, once for planes that forward alike, and returns a
`Verification`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compilers.proof.failures.failure_walks import of_other_plane
from compilers.proof.failures.risk_cases import FAILURE_KINDS, fail_alike
from compilers.proof.proof_options import AS_PROMISED, ProofOptions
from compilers.proof.proved import Proved
from compilers.proof.soundness.build_soundness import unsound_values
from compilers.proof.walks.delivery import default_failures, verify
from compilers.proof.walks.delivery_report import Report
from compilers.tables.build import Build
from compilers.tables.folders.verified_mark import mark_verified
from compilers.tables.folders.written_file import place_of
from compilers.tables.planes_alike import first_plane_forwarding_alike
from compilers.topology.families import require_family
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
    """Why a folder could not be marked; "" if all were."""

    def require_marked(self) -> None:
        """Pass if every folder could be marked.

        Raises:
            InputError: a folder could not be marked.
        """
        if self.unmarked:
            raise InputError.of("", self.unmarked)

    def require_passed(self, folder: str = "", todo: str = "") -> None:
        """Pass if every plane passed.

        Args:
            folder: where the builds were to be written; it is named in the error.
            todo: what the error advises.

        Raises:
            InputError: a plane did not pass.
        """
        if not self.passed:
            raise InputError.of("a build that has passed polarfab verify", repr(self), todo, folder)

    @property
    def passed(self) -> bool:
        """Whether every plane passed, so that its build may be used."""
        return all(report.passed for report in self.reports)

    def mark(self, builds: Sequence[Build], folders: Sequence[Path]) -> Verification:
        """Mark the folders of the builds that were verified, and return this with `unmarked` set.

        Args:
            builds: the verified builds, one for each plane.
            folders: their folders.

        Raises:
            InputError: these are not the builds that were verified, or they had no identity.
        """
        identities = tuple(build.identity for build in builds)
        if self.passed and (identities != self.identities or "" in identities):
            required = f"the builds that were verified, {' and '.join(self.identities)}"
            todo = 'verify these; a build with other values begins with identity=""'
            raise InputError.of(required, " and ".join(identities), todo)
        planes = zip(folders, builds, self.reports, strict=True)
        faults = [_mark(folder, build, report) for folder, build, report in planes]
        return replace(self, unmarked=next(filter(None, faults), ""))

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON: the report; with several planes, the name and report of each."""
        if len(self.reports) == 1:
            return self.reports[0].as_dict()
        named = zip(self.names, self.reports, strict=True)
        return {"planes": [{"fabric": name, **report.as_dict()} for name, report in named]}

    def __repr__(self) -> str:
        """`<Verification passed: 3,192 of 3,192 pairs delivered>`."""
        outcome = "passed" if self.passed else "FAILED"
        pairs, delivered = (
            sum(getattr(report, count) for report in self.reports)
            for count in ("pairs", "delivered")
        )
        return f"<Verification {outcome}: {delivered:,} of {pairs:,} pairs delivered>"


def judge(
    builds: Sequence[Build],
    folders: Sequence[Path] = (),
    options: ProofOptions = AS_PROMISED,
) -> Verification:
    """Verify every plane of a fabric.

    Planes share one walk if they forward alike, and if the same elements fail together in them.

    Args:
        builds: one for each plane.
        folders: the folders of the builds, whose marks are set or removed; none for builds in
            memory.
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
        earlier = first_plane_forwarding_alike(builds, plane)
        kinds = default_failures(build) if options.failures is None else options.failures
        if earlier is None or not fail_alike(builds[earlier], build, kinds):
            report = verify(build, options)
        else:
            report = reports[earlier]
            cases = (of_other_plane(case, builds[earlier], build) for case in report.failures)
            report = replace(report, failures=tuple(cases))
            if report.passed:
                report = replace(report, unsound=unsound_values(build))
        reports.append(report)
        if folders:
            unmarked = _mark(folders[plane], build, report) or unmarked
    names = tuple(build.name for build in builds)
    identities = tuple(build.identity for build in builds)
    return Verification(names, identities, tuple(reports), unmarked)


def _mark(folder: Path, build: Build, report: Report) -> str:
    """Set or remove the mark of a build folder.

    Failures and channels that an earlier run proved of the same build stay in the mark, unless
    this run judged the same kind of failure anew.

    Returns:
        "", or why the mark could not be written.
    """
    facts = report.as_dict() if report.passed else None
    if facts:
        # A sample without a loss says nothing new of a kind.
        judged = {
            case.kind
            for case in report.failures
            if case.cases == case.all_cases or case.lost_pairs > case.cut_off
        }
        facts["proved"] = _with_earlier(facts["proved"], Proved.read(folder, build), judged)
    try:
        mark_verified(folder, build.identity, facts)
    except OSError as error:
        return f"cannot mark {place_of(folder)} as verified or not: {error.strerror}"
    return ""


def _with_earlier(proved: Mapping[str, Any], earlier: Proved, judged: set[str]) -> dict[str, Any]:
    """The proved properties of a build (`Report.proved`), together with those proved earlier.

    Args:
        proved: what this run proved.
        earlier: what the mark of the same build lists.
        judged: the kinds of failures of which this run tried every case or found a loss; what
            earlier runs say of them is dropped.
    """
    proved_before = [
        kind for kind in FAILURE_KINDS if kind in earlier.failures and kind not in judged
    ]
    certified_before = [kind for kind in earlier.certified if kind in proved_before]
    return {
        **proved,
        "channels": earlier.channels or proved["channels"],
        "failures": [*proved_before, *proved["failures"]],
        "certified": [*certified_before, *proved["certified"]],
    }
