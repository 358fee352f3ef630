"""`polarfab verify`: proves that a build delivers every ordered pair of switches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inventory.problems import InputError
from polarfab.output.guarantee_output import guarantee_json, print_guarantees
from polarfab.output.verb_output import (
    counted,
    json_option,
    print_facts,
    print_json,
    print_table,
    progress,
    say,
    warn,
)
from polarfab.output.verification_output import (
    main_facts,
    say_emitted,
    stop_if_wrong,
    walks_in_words,
)
from polarfab.shared_options import failure_kinds, shared, target_options

if TYPE_CHECKING:
    from compilers.choices import Method
    from compilers.evaluation.guarantee import Guarantee
    from compilers.proof.failures.failure_walks import FailureReport
    from compilers.proof.walks.delivery_report import Report
    from compilers.readers.emitted_report import EmittedReport
    from compilers.tables.build import Build
    from polarfab.fabric import Fabric

OPENFLOW = "openflow"
"""The value of --emitted for the messages of the controller."""
IN_WORDS = ("legs", "alternates", "channels", "failures", "local", "proved", "findings")
"""The keys of --json that the printed tables show in their own way."""


def _say_losses(build: Build, report: Report) -> None:
    """Name the pairs that failures lose, the first of each kind."""
    names = build.wiring.names
    for case in report.failures:
        for loss in case.losses:
            pair = f"{names[loss.source]} to {names[loss.destination]}"
            warn(f"lost: {pair} with {loss.failed} down")
        unnamed = case.lost_pairs - len(case.losses)
        if unnamed > 0:
            warn(f"lost: {unnamed:,} more pairs, kind of failure: {case.kind}")


def _sample_size(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """The number of cases of several failures at once, from a number or `all`; None by default."""
    if value is None or (value.isdecimal() and int(value)):
        return int(value) if value else None
    if value != "all":
        raise InputError.of("a number from 1, or all", value, key="--sample")
    return sys.maxsize


def _emitted_place(
    context: click.Context, option: click.Parameter, value: Path | None
) -> Path | None:
    """The folder of --emitted, which must exist, or `openflow`."""
    if value is None or str(value) == OPENFLOW:
        return value
    click.Path(exists=True, file_okay=False).convert(value, option, context)
    return value


@click.command("verify")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option(
    "--failures",
    metavar="KIND",
    multiple=True,
    callback=failure_kinds,
    help="Try every failure of one link, node, module, cage, rack, trunk or risk; of 2 or 3 links "
    "or nodes at once; of module+node; or of the groups in FILE.yaml. By default the "
    "failures that `protect` covers.",
)
@shared("--quick", meaning="no failures are tried")
@click.option(
    "--sample",
    metavar="N|all",
    callback=_sample_size,
    help="Try so many of the cases in which several things fail at once. By default all cases of "
    "two, if that is quick, and otherwise 1000.",
)
@shared("--seed", meaning="of the sample")
@click.option(
    "--method",
    type=click.Choice(["auto", "walk", "local"]),
    default="auto",
    help="walk: follow all packets. local: prove each state of a packet from the next states, and "
    "follow only what this does not prove. auto: local in large builds, else walk.",
)
@click.option(
    "--channels/--no-channels",
    "with_channels",
    default=None,
    help="Count the channels that a lossless fabric needs. By default they are counted if that is "
    "quick.",
)
@click.option(
    "--emitted",
    metavar="DIR|openflow",
    type=click.Path(path_type=Path),
    callback=_emitted_place,
    help="Also read the files that `render` wrote into DIR, or the messages of the controller, and "
    "compare them with the tables.",
)
@click.option(
    "--guarantee",
    is_flag=True,
    help="Compute the rate that every host gets under any traffic, from the files that --emitted "
    "reads.",
)
@target_options(more="needed if the files do not show it", rendered=True)
@shared("--accept")
@shared("--scheduler")
@json_option
def command(
    folder: Path,
    failures: tuple[str, ...],
    quick: bool,
    sample: int | None,
    seed: int,
    method: Method,
    with_channels: bool | None,
    emitted: Path | None,
    guarantee: bool,
    target: str | None,
    option_words: tuple[str, ...],
    accept: tuple[str, ...],
    scheduler: str,
    as_json: bool,
) -> None:
    """Prove that the tables of BUILD deliver the packets of every ordered pair.

    verify follows the packets of each pair through the tables, over every alternate. It checks that
    they arrive, that they do not loop, that every next hop is a cabled port, and how long the paths
    are. It also checks that ports, weights, names and addresses are valid and agree. A build that
    passes gets a mark. render, controller and emulate require this mark.

    Failures are tried without a controller: only the switches repair. If a build with `protect`
    loses a pair in a failure that `protect` covers, it does not pass. --failures names other
    failures to try. --quick tries none. The mark says which failures were tried.

    In large builds verify proves every state of a packet (switch, ingress port, destination) from
    the next states. It follows only the packets that this does not prove, and some others as a
    check.

    With --emitted, verify reads the configuration of every switch back, and follows packets through
    it. The result has to be the same as that of the tables. `--emitted openflow` reads the messages
    that the controller sends. A folder with the name openflow is written ./openflow.
    """
    from compilers.targets.openflow.profiles import loss_notes
    from polarfab.fabric import Fabric

    if guarantee and not emitted:
        todo = "polarfab throughput BUILD --guarantee has that of the tables"
        raise click.UsageError(f"--guarantee goes with --emitted; {todo}")

    fabric = Fabric.load(folder)
    if quick and failures:
        raise click.UsageError("--quick tries no failures, and --failures names some")
    with progress(walks_in_words(fabric.builds, quick)) as bar:
        kinds = failures or (() if quick else None)  # None: those that `protect` covers
        verification = fabric.verify(
            failures=kinds,
            sample=sample,
            seed=seed,
            channels=with_channels,
            progress=bar,
            method=method,
            scheduler=scheduler,
        )
    if verification.unmarked:
        say(verification.unmarked)
    files: tuple[EmittedReport, ...] = ()
    if emitted and verification.passed:
        with progress("reading back what was emitted") as bar:
            files = _check_emitted(
                fabric,
                emitted=emitted,
                target=target or "",
                option_words=option_words,
                bar=bar,
                accept=accept,
            )
    shares = _guarantees(fabric, files) if guarantee else ()
    if as_json:
        print_json({**verification.as_dict(), **_emitted_facts(files), **_guarantee_facts(shares)})
    for build, report in zip(fabric.builds, verification.reports, strict=True):
        if not as_json:
            _print_report(build, report, method)
            _say_losses(build, report)
        if report.failures:
            for note in loss_notes(build):
                say(f"failures were tried on the tables; {note}")
        stop_if_wrong(build, report)
    _print_emitted(str(emitted), files, as_json)
    if shares and not as_json:
        print_guarantees(f"by {emitted}: what every host gets", fabric.builds, shares)
    if not verification.passed or not all(report.passed for report in files):
        raise click.exceptions.Exit(1)


def _check_emitted(
    fabric: Fabric,
    emitted: Path,
    target: str,
    option_words: tuple[str, ...],
    bar: Callable[[int, int], None] | None,
    accept: tuple[str, ...],
) -> tuple[EmittedReport, ...]:
    """Read back the controller's messages, or the files in a folder.

    Args:
        fabric: the fabric that the files are for.
        emitted: the folder, or `openflow`.
        target: the target of the files; "" to recognize it by them.
        option_words: the options of the target, as in --set.
        bar: takes the progress.
        accept: the names of differences to accept.
    """
    from compilers.targets.options import read

    if str(emitted) == OPENFLOW:
        return fabric.check_messages(bar)
    return fabric.check_emitted(emitted, target, read(option_words), bar, accept)


def _print_emitted(emitted: str, files: Sequence[EmittedReport], as_json: bool) -> None:
    """Print the reports of emitted files.

    Args:
        emitted: the folder, or `openflow`.
        files: the report of each plane.
        as_json: whether the facts are printed as JSON elsewhere.
    """
    for report in files:
        if not as_json:
            facts = report.as_dict().items()
            printed_facts = [
                (key, value) for key, value in facts if key not in ("examples", "unproved")
            ]
            print_facts(f"emitted: {emitted}", printed_facts)
        say_emitted(report)
        if not report.passed and emitted != OPENFLOW:
            say("files that were rendered with --set: give the same --set to verify")


def _guarantees(fabric: Fabric, files: Sequence[EmittedReport]) -> tuple[Guarantee, ...]:
    """The guarantee of each plane by the emitted files; () if a file differs from the tables."""
    from compilers.readers.emitted_shares import with_emitted_shares
    from polarfab.measures import guarantee

    if not files or not all(report.passed for report in files):
        return ()
    return tuple(
        guarantee(with_emitted_shares(build, report))
        for build, report in zip(fabric.builds, files, strict=True)
    )


def _guarantee_facts(shares: Sequence[Guarantee]) -> dict[str, Any]:
    """For JSON: the guarantee of one plane or a list of several; {} if there is none."""
    facts = [guarantee_json(share) for share in shares]
    return {"guarantee": facts[0] if len(facts) == 1 else facts} if facts else {}


def _emitted_facts(files: tuple[EmittedReport, ...]) -> dict[str, Any]:
    """For JSON: the report of one plane's files or a list of several; {} if none were read."""
    facts = [report.as_dict() for report in files]
    return {"emitted": facts[0] if len(facts) == 1 else facts} if facts else {}


def _print_report(build: Build, report: Report, method: str) -> None:
    """Print the facts of a report, more of them with --verbose, and a table of failures."""
    facts = [(key, value) for key, value in report.as_dict().items() if key not in IN_WORDS]
    facts += _path_facts(report)
    facts += _proof_facts(report, method)
    title = f"{build.name}: {build.topology.title()}, build {build.identity}"
    print_facts(title, main_facts(report), facts)
    if report.failures:
        columns = ["kind", "cases", "of", "lost pairs", "looped", "max hops", "stretch", "lost"]
        rows = [_failure_row(failures) for failures in report.failures]
        print_table("failures, without a controller", columns, rows)


def _path_facts(report: Report) -> list[tuple[str, object]]:
    """The lengths and the number of paths, and the channels that they need."""
    facts: list[tuple[str, object]] = [
        (f"pairs over {counted(hops, 'link')}", pairs)
        for hops, pairs in enumerate(report.hop_counts)
        if pairs
    ]
    if report.counts_legs:
        facts.append(("counted", "legs: minimal paths to an intermediate, or from one"))
    if report.alternates:
        alternates = report.alternates
        longest = alternates.max_hops if alternates.exact else f"≤ {alternates.max_hops}"
        facts.append(("paths with alternates", alternates.paths))
        facts.append(("paths with alternates, not delivered", alternates.strays))
        facts.append(("paths with alternates, longest", longest))
    if report.channels:
        verdict = "no deadlock" if report.channels.is_deadlock_free else "deadlock"
        facts.append(("channels, by valley", f"{report.channels.count} ({verdict})"))
    return facts


def _proof_facts(report: Report, method: str) -> list[tuple[str, object]]:
    """The facts that were proved state by state, and those that were walked."""
    from compilers.proof.failures.risk_cases import kind_words

    facts: list[tuple[str, object]] = []
    local = report.local
    if local:
        proved = " and ".join(
            word if word in ("delivery", "alternates") else kind_words(word)
            for word in local.proved
        )
        facts.append((f"proved state by state: {proved}", f"{local.destinations:,} destinations"))
        facts.append(("destinations left to a walk", local.open))
        facts.append(("walked as well", local.walked))
    if local or method == "local":
        for failures in report.failures:
            if not local or failures.kind not in local.proved:
                cases = f"{failures.cases:,} of {failures.all_cases:,}"
                facts.append((f"walked: {kind_words(failures.kind)}", cases))
    if local and local.program:
        facts.append(("rows", "proved of the program that they are computed from"))
    return facts


def _failure_row(failures: FailureReport) -> list[object]:
    """The row of failures of one kind."""
    max_hops: object = failures.max_hops
    stretch: object = failures.stretch
    if not failures.exact:
        max_hops, stretch = f"≤ {max_hops}", f"≤ {stretch}"
    return [
        failures.kind,
        failures.cases,
        failures.all_cases,
        failures.lost_pairs,
        failures.looped,
        max_hops,
        stretch,
        f"{failures.lost_share:.2%}",
    ]
