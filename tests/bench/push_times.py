"""`polarfab bench controller`: the controller beside a bare socket server, in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mininet_scenarios.engines.inner_engine import InnerProcess
from mininet_scenarios.scenario.engine import Setup

BARE = "bare socket server, same bundles"
Tell = Callable[[str], None]
"""Is told what is done next."""


@dataclass(frozen=True, slots=True)
class Push:
    """One way to program all switches; times are the best of the repetitions.

    seconds: from the first switch that names itself, not from when the server listens, to the last
    answer: that to a bundle's commit, and of the controller to its reading back. ratio: times those
    of the bare server with the same bundles in the same run. processor: seconds of the server's own
    processor time since it listened. work: the same with that of Open vSwitch, as times that of the
    bare server, which a busy machine does not change. sent: rows and groups. megabytes: the most
    memory. echo: seconds of the slowest echo reply of them all.
    """

    what: str
    seconds: float
    ratio: float
    processor: float
    work: float
    sent: int
    megabytes: float | None = None
    echo: float | None = None


def pushes(
    folder: Path, work: Path, frameworks: Sequence[str], repeat: int, tell: Tell
) -> Iterator[Push]:
    """Measure with switches that hold nothing, and with switches that hold their program.

    Each repetition does everything once, so that a busy moment of the machine hits all alike.

    Raises:
        EngineError: Open vSwitch or a push failed.
    """
    setup = Setup((), (folder,), work, unverified=True, temporary=False)
    inner = InnerProcess("tests.bench.push_child", setup)
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
    bare = {BARE: True, "bare socket server, no bundles": False}
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeat):
        for what, bundles in bare.items():
            tell(what)
            found.setdefault(what, []).append(inner.call("bare", bundles))
            inner.call("wipe")
        for name in frameworks:
            for what in (f"{name}, from nothing", f"{name}, nothing to change"):
                tell(what)
                found.setdefault(what, []).append(inner.call("controller", name))
            inner.call("wipe")
    seconds = {what: min(run["seconds"] for run in runs) for what, runs in found.items()}
    work = {
        what: min(run["processor"] + run["switches"] for run in runs)
        for what, runs in found.items()
    }
    for what, runs in found.items():
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
