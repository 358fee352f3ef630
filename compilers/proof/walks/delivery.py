"""`verify`: whether the tables of a build deliver every ordered pair of switches with hosts.

The verb `verify`, and `compile` after it made a build, call it. It puts a `Report` together from:

1. soundness: values that contradict others (`compilers.proof.soundness`);
2. delivery over minimal ports, by a walk or by a local proof (`compilers.proof.local`);
3. all paths that packets of hosts may take, and all failures that were asked for, by walks
   (`compilers.proof.failures`) or by the local proof;
4. the virtual channels of a lossless fabric (`compilers.proof.lossless`).

A *walk* follows every packet hop by hop. A *local proof* looks at each state of a packet (a switch,
an ingress link, a destination) once. A *package proof* treats a whole fabric at once by its algebra
(`registered_proofs`). Proofs take over in fabrics where walks would take long (`_uses_proofs`):

| what | package proof | local proof | walked |
|---|---|---|---|
| delivery over minimal ports | `prove_delivery`: all or nothing | yes | unproved destinations |
| all paths, and one failure | `prove_single_failures` after that | yes | unproved destinations |
| two failures | `prove_two_failures` beside a local proof | no | all, unless proved |
| the failure of a module | `prove_module_failures` | no | all, unless proved |
| other failures, channels | no | no | all |

Of what is proved, a few destinations are walked, too. If such a walk contradicts a proof, walks
replace the proof, and the report gets the finding WRONG_PROOF.

Packets follow the tables alone. The graph only tells how short a path could have been.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, isqrt

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import HostPathFigures, packet_count
from compilers.proof.failures.failure_walks import walk, walk_failures
from compilers.proof.local import registered_proofs
from compilers.proof.local.local_proof import PROVABLE_KINDS, LocalProof, local_proof, provable
from compilers.proof.local.proof_results import LocalUse, proof_results, sample_destinations
from compilers.proof.lossless.channels import find_channels
from compilers.proof.proof_options import WITHOUT_FAILURES, ProofOptions
from compilers.proof.soundness.build_soundness import (
    broken_claims,
    unsound_values,
    unwalkable_values,
)
from compilers.proof.soundness.unsound import UnsoundValues
from compilers.proof.walks.delivery_report import NO_PAIRS, Report
from compilers.proof.walks.minimal_walk import walk_minimal
from compilers.routing.bounce_goals import SMALLEST_Q_WITH_GOALS
from compilers.spec.policy import PROTECTED_FAILURES
from compilers.tables.build import Build
from compilers.tables.build_parts import switch_blocks, towards
from compilers.topology import polarity

SINGLE_FAILURES = PROTECTED_FAILURES["node"]
"""The kinds of failures of one element: a link, a node."""
TWO_FAILURES = "2"
"""The kind of failures of any two elements at once."""
SMALLEST_Q_WITH_MARKED_PAIR_REPAIR = 4
"""The smallest q of a PolarFly at which two failures leave every marked packet a path."""
TWO_FAILURES_UP_TO = 1 << 17
"""The most packets for which two failures are walked by default: PolarFly up to q = 9, a second."""
CHANNELS_UP_TO = 1 << 26
"""The most packets for which channels are counted by default."""
WALKED_UP_TO = 1 << 25
"""The most packets that `auto` walks, exactly and in half a second: PolarFly up to q = 31."""
MOST_OPEN_DESTINATIONS = 64
"""The most destinations that the proof of two failures may leave open. These are walked exactly.

If it leaves more open, the proof is not used, and a sample of all cases is walked instead.
"""
DELIVERY, ALTERNATES, MODULE = "delivery", "alternates", "module"
"""Names of what is proved, in `LocalUse.proved`."""
WRONG_PROOF = UnsoundValues.one(
    "local proof", "what a walk of a few destinations finds", "something else; all were walked"
)
"""The finding that a walk contradicts the local proof, or that of a package."""


def verify(build: Build, options: ProofOptions = WITHOUT_FAILURES) -> Report:
    """Judge every ordered pair of switches with hosts, over every path that its packets may take.

    The report is built in steps. Delivery comes first, as soundness depends on what is proved of
    it. Paths and single failures follow, by the proof or by walks. Other kinds of failures come
    last: those that the report lacks by then are walked.

    Args:
        build: its tables and wiring are proved.
        options: what is proved besides delivery, and how.

    Raises:
        InputError: so many failures can leave a marked packet no path, or the build has no groups
            of a kind of failures.
    """
    faults = unwalkable_values(build)
    if faults.count:
        return replace(NO_PAIRS, unsound=faults)
    kinds = default_failures(build) if options.failures is None else tuple(options.failures)
    uses_proofs = _uses_proofs(build, options)
    proofs = _prove_without_walks(build, kinds, options) if uses_proofs else _Proofs()
    delivery = _delivery(build, proofs, options)
    report = replace(delivery.report, promised=promised_failures(build))
    report = _with_soundness(report, build)
    # If minimal paths are missing, the other walks would only repeat the same faults.
    if report.delivered != report.pairs:
        return report
    # Without a local proof, walks do what is left. That is nothing where a package has proved
    # delivery, and no alternates or failures are to be proved.
    if proofs.local and delivery.is_proved:
        proof = proofs.local
        if _proves_two_failures(build, kinds, options.sample):
            proof = _with_two_failures(build, proof)
        report = _with_proof(report, build, proof, options)
    else:
        report = _with_walks(report, build, kinds, options)
    if uses_proofs and MODULE in kinds and build.forwarding.repairs:
        report = _with_modules(report, build, options.seed)
    report = _with_all_failures(report, build, kinds, options)
    counts_channels = options.channels
    if counts_channels is None:
        counts_channels = packet_count(build) <= CHANNELS_UP_TO
    if counts_channels:
        report = _with_channels(report, build, options)
    return _report_of_legs(report) if build.forwarding.intermediates else report


def _with_soundness(report: Report, build: Build) -> Report:
    """The report on delivery with the values of the build that contradict others.

    Rows that a program computes are not compared if delivery to every switch is proved. What the
    build's `Forwarding` says is compared with the tables only if nothing else is wrong.
    """
    all_proved = report.local is not None and not report.local.open
    are_stored = isinstance(build.tables.routes.egress, np.ndarray)
    proves_rows = all_proved and bool(build.topology.endpoints.all())
    faults = unsound_values(build, rows=are_stored or not proves_rows)
    report = replace(report, unsound=UnsoundValues.of((report.unsound, faults)))
    if report.delivered != report.pairs or report.unsound.count:
        return report
    return replace(report, unsound=broken_claims(build, constructed=all_proved))


@dataclass(frozen=True, slots=True, eq=False)
class _Proofs:
    """What is proved of a build without walks: by a package for the whole fabric, or locally."""

    package_hop_counts: tuple[int, ...] | None = None
    """How many pairs of switches have a minimal path of 0, 1, 2, … links, if a package proves the
    delivery of all pairs at once; else None."""
    package_is_contradicted: bool = False
    """Whether a package proves delivery, but rows that are computed contradict its proof."""
    local: LocalProof | None = None
    """What the local proof shows; None where it was not needed or not possible."""

    def delivers(self, destinations: int) -> NDArray[np.bool_]:
        """bool[D], to which destinations delivery is proved: by a package to all or to none."""
        if self.local:
            return self.local.delivers
        return np.full(destinations, self.package_hop_counts is not None)

    @property
    def hop_counts(self) -> tuple[int, ...]:
        """How many pairs have a minimal path of 0, 1, 2, … links, of those that are proved."""
        if self.local:
            counts = self.local.hop_counts[self.local.delivers].sum(axis=0)
            return tuple(np.trim_zeros(counts, trim="b").tolist())
        return self.package_hop_counts or ()


def _uses_proofs(build: Build, options: ProofOptions) -> bool:
    """Whether proofs take the place of walks: always (`local`), never (`walk`), or, with `auto`,
    where a walk takes long.
    """
    if options.method == "auto":
        return packet_count(build) > WALKED_UP_TO
    return options.method == "local"


def _prove_without_walks(build: Build, kinds: tuple[str, ...], options: ProofOptions) -> _Proofs:
    """Prove delivery, all paths and single failures without walks, as far as possible.

    Package proofs come first.
    """
    delivery = registered_proofs.first_result(lambda p: p.prove_delivery(build, options.seed))
    if delivery and delivery.is_contradicted:
        return _Proofs(package_is_contradicted=True)
    hop_counts = delivery.hop_counts if delivery else None
    single = _provable_failures(build, kinds)
    needs_local = hop_counts is None or single or _has_alternates(build)
    if not needs_local or not provable(build):
        return _Proofs(hop_counts)
    local = None
    if hop_counts is not None:
        local = registered_proofs.first_result(
            lambda p: p.prove_single_failures(build, hop_counts, single)
        )
    return _Proofs(hop_counts, local=local or local_proof(build, single, options.progress))


def _with_channels(report: Report, build: Build, options: ProofOptions) -> Report:
    """The report with the channels, without failures and under the single failures asked for."""
    single = tuple(kind for kind in options.failures or () if kind in SINGLE_FAILURES)
    counted = find_channels(build, "valley", single, options.progress)
    return replace(report, channels=counted, channels_under=single)


def _with_all_failures(
    report: Report, build: Build, kinds: tuple[str, ...], options: ProofOptions
) -> Report:
    """The report with all kinds of failures, in their order; those that it lacks are walked."""
    by_kind = {failure.kind: failure for failure in report.failures}
    for kind in kinds:
        if kind not in by_kind:
            by_kind[kind] = walk_failures(
                build,
                kind,
                sample=options.sample,
                seed=options.seed,
                progress=options.progress,
                workers=options.workers,
            )
    return replace(report, failures=tuple(by_kind[kind] for kind in kinds))


def _report_of_legs(legs: Report) -> Report:
    """The report on paths over intermediates, made from the report on their legs.

    Both legs are minimal paths, so their lengths add up. If no leg loses packets, no path does: a
    leg to an intermediate that is down ends at a neighbour, which forwards its packets as from a
    host there.
    """
    # The n switches with hosts have n(n - 1) pairs, which gives n; each of them is an intermediate.
    intermediates = (1 + isqrt(1 + 4 * legs.pairs)) // 2
    alternates = HostPathFigures(
        paths=legs.pairs * intermediates, strays=0, max_hops=2 * legs.max_hops
    )
    return replace(legs, counts_legs=True, alternates=alternates)


@dataclass(frozen=True, slots=True, eq=False)
class _Delivery:
    """The result of step 2, with which further steps go on."""

    report: Report
    """The report on delivery over minimal ports."""
    is_proved: bool
    """Whether delivery to some destinations is proved, and no walk contradicts the proof."""


def _delivery(build: Build, proofs: _Proofs, options: ProofOptions) -> _Delivery:
    """Judge delivery over minimal ports.

    Destinations to which delivery is not proved are walked. As a check, some destinations to which
    it is proved are walked, too. If the check contradicts the proof, all destinations are walked,
    and the report says that the proof is wrong.
    """
    if proofs.package_is_contradicted:
        return _delivery_by_walk(build, options, WRONG_PROOF)
    destinations = np.flatnonzero(build.topology.endpoints)
    delivers = proofs.delivers(len(destinations))
    if not delivers.any():
        return _delivery_by_walk(build, options)
    checked = sample_destinations(destinations[delivers], options.seed)
    check = walk_minimal(build, None, checked)
    if check.minimal < check.pairs:
        return _delivery_by_walk(build, options, WRONG_PROOF)
    pairs = int(np.count_nonzero(delivers)) * (len(destinations) - 1)
    unproved = destinations[~delivers]
    use = LocalUse(
        proved=(DELIVERY,),
        destinations=len(destinations),
        open=len(unproved),
        walked=len(checked),
        program=proofs.local is None,  # then a package has proved the whole fabric
    )
    report = Report(
        pairs=pairs,
        delivered=pairs,
        minimal=pairs,
        loops=0,
        hop_counts=proofs.hop_counts,
        faults=(),
        local=use,
    )
    if len(unproved):
        walked = walk_minimal(build, options.progress, unproved, options.workers)
        report = replace(report.with_pairs_of(walked), local=use)
    return _Delivery(report, is_proved=True)


def _delivery_by_walk(
    build: Build, options: ProofOptions, found: UnsoundValues | None = None
) -> _Delivery:
    """Judge delivery over minimal ports to all destinations by a walk.

    Args:
        build: the build.
        options: its progress and workers are used.
        found: what the report finds besides; None for nothing.
    """
    report = walk_minimal(build, options.progress, workers=options.workers)
    if found is not None:
        report = replace(report, unsound=found)
    return _Delivery(report, is_proved=False)


def _with_walks(
    report: Report,
    build: Build,
    kinds: tuple[str, ...],
    options: ProofOptions,
) -> Report:
    """The report with all paths, if there are alternates, and with single failures, by walks."""
    single = tuple(kind for kind in kinds if kind in SINGLE_FAILURES)
    has_alternates = _has_alternates(build)
    if not single and not has_alternates:
        return report
    walked = walk(build, single, options.progress, workers=options.workers)
    alternates = walked.alternates if has_alternates else None
    return replace(report, alternates=alternates, failures=walked.failures)


def _with_proof(
    report: Report,
    build: Build,
    proof: LocalProof,
    options: ProofOptions,
) -> Report:
    """The report with all paths and failures by the proof, or by walks if the proof is wrong."""
    has_alternates, kinds = _has_alternates(build), tuple(proof.repaired)
    if not has_alternates and not kinds:
        return report
    results = proof_results(build, proof, kinds, options.seed)
    if results.is_contradicted:
        wrong = UnsoundValues.of((WRONG_PROOF, report.unsound))
        single = tuple(kind for kind in kinds if kind in PROVABLE_KINDS)
        return _with_walks(replace(report, unsound=wrong, local=None), build, single, options)
    proved = (DELIVERY, ALTERNATES, *kinds) if has_alternates else (DELIVERY, *kinds)
    return replace(
        report,
        alternates=results.alternates if has_alternates else None,
        failures=results.failures,
        local=replace(results.local_use, proved=proved),
    )


def _with_modules(report: Report, build: Build, seed: int) -> Report:
    """The report with the failures of modules, if it is proved that none loses a packet.

    A few destinations are walked as a check. If these contradict the bounds, the proof is wrong.
    """
    bounds = registered_proofs.first_result(lambda p: p.prove_module_failures(build))
    if bounds is None:
        return report
    longest = report.alternates.max_hops if report.alternates else report.max_hops
    destinations = np.flatnonzero(build.topology.endpoints)
    checked = sample_destinations(destinations, seed)
    walked = walk_failures(towards(build, checked), MODULE, destinations=checked)
    # The switch that meets the dead module is at most `longest` - 1 links from the source.
    hops_bound = longest - 1 + bounds.path_links
    stretch_bound = bounds.detour_links
    if walked.lost_pairs or walked.max_hops > hops_bound or walked.stretch > stretch_bound:
        return replace(report, unsound=UnsoundValues.of((WRONG_PROOF, report.unsound)))
    exact = walked.max_hops == hops_bound and walked.stretch == stretch_bound
    module_report = replace(walked, max_hops=hops_bound, stretch=stretch_bound, exact=exact)
    use = report.local or LocalUse(
        proved=(), destinations=len(destinations), open=0, walked=len(checked)
    )
    use = replace(use, proved=(*use.proved, MODULE))
    return replace(report, failures=(*report.failures, module_report), local=use)


def _provable_failures(build: Build, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of failures for the local proof: none if switches do not repair failures."""
    return tuple(kind for kind in kinds if kind in PROVABLE_KINDS and build.forwarding.repairs)


def _proves_two_failures(build: Build, kinds: tuple[str, ...], sample: int | None) -> bool:
    """Whether to try a proof of two failures.

    Two failures have to be asked for, with a sample that has all their cases, and switches have to
    repair failures.
    """
    pairs = comb(build.tables.switches + build.topology.graph.size, 2)
    return TWO_FAILURES in kinds and build.forwarding.repairs and (sample or pairs) >= pairs


def _with_two_failures(build: Build, proof: LocalProof) -> LocalProof:
    """The proof with two failures at once, if a package proves them for most destinations."""
    failures = registered_proofs.first_result(lambda p: p.prove_two_failures(build))
    if failures is None or np.count_nonzero(~failures.holds) > MOST_OPEN_DESTINATIONS:
        return proof
    holds = failures.holds[proof.destinations] & proof.delivers
    hops = proof.longest + failures.longer_than_longest[proof.destinations]
    return replace(
        proof,
        repaired={**proof.repaired, TWO_FAILURES: holds},
        stretch={**proof.stretch, TWO_FAILURES: failures.stretch[proof.destinations]},
        hops={**proof.hops, TWO_FAILURES: hops},
    )


def _has_alternates(build: Build) -> bool:
    """Whether any class has alternates."""
    alternate = build.tables.classes.alternate
    return any(bool(alternate[block].any()) for block in switch_blocks(build))


def promised_failures(build: Build) -> tuple[str, ...]:
    """The kinds of failures that may lose no pair.

    These are the kinds of the policy's `protect`; in a whole PolarFly also two failures at once.
    """
    kinds = PROTECTED_FAILURES.get(build.forwarding.protect, ())
    if not kinds or not polarity.is_whole(build.topology):
        return kinds
    smallest_q = SMALLEST_Q_WITH_GOALS
    if build.forwarding.marks:
        smallest_q = SMALLEST_Q_WITH_MARKED_PAIR_REPAIR
    return (*kinds, TWO_FAILURES) if int(build.topology.parameters["q"]) >= smallest_q else kinds


def default_failures(build: Build) -> tuple[str, ...]:
    """The kinds of failures that are proved by default.

    These are the promised kinds, but two failures at once only where that is quick.
    """
    is_quick = packet_count(build) <= TWO_FAILURES_UP_TO
    return tuple(kind for kind in promised_failures(build) if kind != TWO_FAILURES or is_quick)
