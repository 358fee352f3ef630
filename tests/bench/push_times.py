"""`polarfab bench controller`: the controller beside a bare socket server, in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mininet_scenarios.machine.inner import InnerProcess, Job

BARE = "bare socket server, same bundles"
Tell = Callable[[str], None]
"""Is told what is done next."""


@dataclass(frozen=True, slots=True)
class Push:
    """One way to program all switches.

    seconds: the best of the repetitions, from the first switch that names itself to the last
    answer. ratio: times those of the bare server with the same bundles in the same run. sent: rows
    and groups. megabytes: the most memory. echo: seconds of the slowest echo reply of them all.
    """

    what: str
    seconds: float
    ratio: float
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
    job = Job(
        build=str(folder.resolve()),
        logs=str(work.resolve()),
        hosts=0,
        framework="",
        unverified=True,
        scratch="",
    )
    inner = InnerProcess("tests.bench.push_child", job)
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
    bare: dict[str, list[float]] = {BARE: [], "bare socket server, no bundles": []}
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeat):
        for what, times in bare.items():
            tell(what)
            times.append(inner.call("bare", what == BARE))
            inner.call("wipe")
        for name in frameworks:
            for what in (f"{name}, from nothing", f"{name}, nothing to change"):
                tell(what)
                found.setdefault(what, []).append(inner.call("controller", name))
            inner.call("wipe")
    base = min(bare[BARE])
    for what, times in bare.items():
        yield Push(what, min(times), min(times) / base, rows)
    for what, runs in found.items():
        seconds = min(run["seconds"] for run in runs)
        yield Push(
            what,
            seconds,
            seconds / base,
            sent=int(runs[0]["sent"]),
            megabytes=max(run["megabytes"] for run in runs),
            echo=max(run["echo"] for run in runs),
        )
