"""The controller beside a bare socket server, in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from benchmarks.timing import compiled, q_option
from mininet_scenarios.engines.inner_engine import InnerProcess
from mininet_scenarios.scenario.engine import Setup
from polarfab.output.verb_output import json_option, print_json, print_table, say
from polarfab.shared_options import shared

BARE = "bare socket server, same bundles"
"""What others are compared with."""
Tell = Callable[[str], None]
"""Is told what is done next."""


@dataclass(frozen=True, slots=True)
class Push:
    """One way to program all switches; times are the best of the repetitions."""

    what: str
    """The way, in words."""
    seconds: float
    """From the first switch that names itself, not from when the server listens, to the last
    answer: that to a bundle's commit, and of the controller to its reading back.
    """
    ratio: float
    """The seconds as a multiple of those of the bare server with the same bundles."""
    processor: float
    """Seconds of the server's own processor time since it listened."""
    work: float
    """The processor time of the server and of Open vSwitch as a multiple of that with the bare
    server: a busy machine does not change it.
    """
    sent: int
    """How many rows and groups were sent."""
    megabytes: float | None = None
    """The most memory of the server; None if it was not measured."""
    echo: float | None = None
    """Seconds of the slowest echo reply; None if none was asked for."""


@click.command("controller")
@q_option(31)
@shared("--framework", meaning="else both")
@click.option(
    "--repeat", type=click.IntRange(1), default=3, help="Repetitions, of which the best counts."
)
@json_option
def command(q: int, framework: str | None, repeat: int, as_json: bool) -> None:
    """Program all switches of PolarFly in one Open vSwitch, and by a bare socket server.

    The clock starts when the first switch names itself, not when the server listens: all switches
    try to connect every second, at once. It stops at the last answer: the bare server's to the
    commit of a bundle, the controller's to reading the switch back. What else runs here makes wall
    time longer; processor time is that of the server since it listened.

    Needs root, or user namespaces, and Open vSwitch. The machine's own Open vSwitch is not touched.
    """
    with compiled(q) as build:
        frameworks = (framework,) if framework else ("ryu", "os-ken")
        measured = list(pushes(build, build.parent, frameworks, repeat, say))
    if as_json:
        print_json([asdict(push) for push in measured])
        return
    print_table(
        f"PolarFly q={q}: programming all switches (both: the server and Open vSwitch)",
        [
            *("server", "rows and groups sent", "wall time, s", "wall time / bare"),
            *("processor, s", "processor of both / bare", "memory, MB", "slowest echo, ms"),
        ],
        [
            (
                push.what,
                push.sent,
                round(push.seconds, 3),
                round(push.ratio, 2),
                round(push.processor, 3),
                round(push.work, 2),
                "" if push.megabytes is None else round(push.megabytes),
                "" if push.echo is None else round(push.echo * 1e3),
            )
            for push in measured
        ],
    )


def pushes(
    folder: Path, work: Path, frameworks: Sequence[str], repeat: int, tell: Tell
) -> Iterator[Push]:
    """Measure with switches that hold nothing, and with switches that hold their program.

    Each repetition does everything once, so that a busy moment of the machine hits all alike.

    Raises:
        EngineError: Open vSwitch or a push failed.
    """
    setup = Setup((), (folder,), work, unverified=True, temporary=False)
    inner = InnerProcess("benchmarks.push_child", setup)
    try:
        inner.start()
        tell("bring the switches up")
        rows = inner.call("start")
        yield from _measure(inner, rows, frameworks, repeat, tell)
    finally:
        inner.stop()


def _measure(
    inner: InnerProcess, rows: int, frameworks: Sequence[str], repeat: int, tell: Tell
) -> Iterator[Push]:
    """Measure each way, once in each repetition.

    Args:
        inner: the process with the switches (`benchmarks.push_child`).
        rows: how many rows and groups the switches hold in all.
        frameworks: of the controller.
        repeat: the number of repetitions.
        tell: as of `pushes`.
    """
    bare = {BARE: True, "bare socket server, no bundles": False}
    runs_of: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeat):
        for what, bundles in bare.items():
            tell(what)
            runs_of.setdefault(what, []).append(inner.call("bare", bundles))
            inner.call("wipe")
        for name in frameworks:
            for what in (f"{name}, from nothing", f"{name}, nothing to change"):
                tell(what)
                runs_of.setdefault(what, []).append(inner.call("controller", name))
            inner.call("wipe")
    seconds = {what: min(run["seconds"] for run in runs) for what, runs in runs_of.items()}
    work = {
        what: min(run["processor"] + run["switches"] for run in runs)
        for what, runs in runs_of.items()
    }
    for what, runs in runs_of.items():
        yield Push(
            what,
            seconds[what],
            seconds[what] / seconds[BARE],
            min(run["processor"] for run in runs),
            work[what] / work[BARE],
            sent=int(runs[0].get("sent", rows)),
            megabytes=max((run["megabytes"] for run in runs if "megabytes" in run), default=None),
            echo=max((run["echo"] for run in runs if "echo" in run), default=None),
        )
