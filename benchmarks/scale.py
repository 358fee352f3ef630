"""Timings from size to size: whole processes that compile, prove and explain, against peers.

Every piece of work is a process of its own: processor seconds are those of user and system, memory
is its peak. Modules are there as bytecode, and loops as machine code, as they are once polarfab has
been used. Peers are given the graph, and are timed from their import to the last distance.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, NamedTuple

import click

from benchmarks import scale_peers
from benchmarks.scale_peers import DISTANCES, PATH, PEERS
from compilers.memory import available
from polarfab.output.verb_output import json_option, print_json, print_table, say

MINIMAL, PROTECTED, EXPLAIN = "minimal, proved", "protected, proved", "explain one pair"
"""Pieces of work: to compile and prove a fabric with minimal paths, the same with protected ones,
and to explain the path between two switches."""
ROUTING: dict[str, dict[str, dict[str, str]]] = {
    MINIMAL: {},
    PROTECTED: {"routing": {"balance": "compact-valiant", "protect": "link"}},
}
"""What a fabric.yaml has for the first two, besides its topology."""
USUAL_LARGEST = 4_000
"""The most switches of a fabric, if it is not said."""


class Step(NamedTuple):
    """A fabric of the table."""

    topology: dict[str, int | str]
    """The topology, as a fabric.yaml has it."""
    switches: int
    """The number of switches."""
    budgets: dict[str, float]
    """The processor seconds that are aimed at, by piece of work."""

    @property
    def title(self) -> str:
        """`polarfly q=31`."""
        family, *rest = self.topology.items()
        return " ".join([str(family[1]), *(f"{key}={value}" for key, value in rest)])


def _star(q: int, degree: int) -> dict[str, int | str]:
    """The topology of a PolarStar."""
    return {"family": "polarstar", "q": q, "supernode": "inductive-quad", "degree": degree}


STEPS = (
    Step({"family": "polarfly", "q": 31}, 993, {MINIMAL: 0.35, PROTECTED: 0.7, EXPLAIN: 0.5}),
    Step({"family": "polarfly", "q": 61}, 3_783, {PROTECTED: 3, EXPLAIN: 0.5}),
    Step({"family": "polarfly", "q": 127}, 16_257, {MINIMAL: 3, PROTECTED: 30, EXPLAIN: 0.5}),
    Step(_star(43, 20), 79_506, {MINIMAL: 8, PROTECTED: 60, EXPLAIN: 0.5}),
    Step(_star(83, 44), 627_570, {MINIMAL: 90, EXPLAIN: 0.5}),
)
"""From small to large; the last two are the largest PolarStar of radix 64 and 128."""


WARM_UP_STEPS, WARM_UP_PATIENCE = 2, 600
"""How many fabrics run untimed before, the smallest first, and the seconds after which such a
process is ended. They leave bytecode and the machine code of loops, which in a new clone takes
long. The second has loops that the first does not have; larger ones have the same loops."""
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""The environment variable that would have Python leave none."""


@dataclass(frozen=True, slots=True)
class ScaleTiming:
    """One piece of work at one size."""

    fabric: str
    """The fabric, such as `polarfly q=31`."""
    switches: int
    """The number of its switches."""
    what: str
    """The piece of work."""
    seconds: float | None = None
    """The processor time of the process; None where it did not end well."""
    megabytes: float | None = None
    """The peak memory of the process; None where it did not end well."""
    ratio: float | None = None
    """The seconds as a multiple of ours for the same work; None where there are none of ours."""
    growth: float | None = None
    """The power of the number of switches by which seconds grow from the size before; None at the
    first size.
    """
    budget: float | None = None
    """The seconds that are aimed at; None where none are."""
    why: str = ""
    """Why the process did not end well; "" if it did."""


END = 4096
"""Bytes that are kept of what a process prints."""


class Taken(NamedTuple):
    """What an ended process took, and what it said."""

    seconds: float
    """The processor time."""
    megabytes: float
    """The peak memory."""
    why: str
    """Why it did not end well; "" if it did."""
    printed: str
    """The end of what it printed."""


@click.command("scale")
@click.option(
    "--largest",
    metavar="SWITCHES",
    type=click.IntRange(993),
    default=USUAL_LARGEST,
    help="Leave out larger fabrics; there are 993, 3,783, 16,257, 79,506 and 627,570 switches.",
)
@click.option("--no-peers", is_flag=True, help="Leave out scipy, networkx, igraph and rustworkx.")
@json_option
def command(largest: int, no_peers: bool, as_json: bool) -> None:
    """Compile, prove and explain from size to size, each in a process of its own; and peers.

    Seconds are of processors, user and system. Peers find distances only: no tables, no ports, no
    proof. What does not end in time, or in memory, says so. The largest fabrics take minutes, and
    gigabytes: a process ends after 10 seconds, with --largest above 4,000 after 600.
    """
    ours = sys.executable, "-m", "polarfab"
    timings, time_limit = [], 10 if largest <= USUAL_LARGEST else 600
    steps = [step for step in STEPS if step.switches <= largest]
    for timing in scale_timings(ours, steps, not no_peers, time_limit, available()):
        timings.append(timing)
        if not as_json:
            say(f"{timing.fabric}: {timing.what}{timing.why and f': {timing.why}'}")
    if as_json:
        print_json([asdict(timing) for timing in timings])
        return
    print_table(
        "From size to size",
        ["fabric", "switches", "what", "s", "aim, s", "MB", "times ours", "grows as"],
        [
            (
                timing.fabric,
                timing.switches,
                timing.what,
                timing.why or ("" if timing.seconds is None else f"{timing.seconds:.2f}"),
                timing.budget or "",
                "" if timing.megabytes is None else round(timing.megabytes),
                "" if timing.ratio is None else float(f"{timing.ratio:.2g}"),
                "" if timing.growth is None else f"N^{timing.growth:.1f}",
            )
            for timing in timings
        ],
    )


def scale_timings(
    ours: Sequence[str], steps: Sequence[Step], peers: bool, patience: float, memory: int
) -> Iterator[ScaleTiming]:
    """The table, row by row as it is measured.

    Args:
        ours: the words that run polarfab.
        steps: the fabrics, from small to large.
        peers: also those of `scale_peers`; one that is not installed says so in its row.
        patience: seconds after which a process is ended.
        memory: bytes that a peer may have.
    """
    before: dict[str, ScaleTiming] = {}
    for step in steps[:WARM_UP_STEPS]:
        list(_ours(step, ours, WARM_UP_PATIENCE))
    for step in steps:
        for row in _rows(step, ours, peers, patience, memory):
            earlier = before.get(row.what)
            if earlier and earlier.seconds and row.seconds:
                power = log(row.seconds / earlier.seconds) / log(row.switches / earlier.switches)
                row = replace(row, growth=power)
            before[row.what] = row
            yield row


def _rows(
    step: Step, ours: Sequence[str], peers: bool, patience: float, memory: int
) -> Iterator[ScaleTiming]:
    """The rows of a fabric: ours, and those of peers; arguments as of `scale_timings`."""
    our_seconds: dict[str, float | None] = {}
    for row in _ours(step, ours, patience):
        our_seconds[row.what] = row.seconds
        yield row
    for name in PEERS if peers else ():
        for work, our_work in ((DISTANCES, MINIMAL), (PATH, EXPLAIN)):
            python = sys.executable, "-m", scale_peers.__name__
            taken = run([*python, name, work, json.dumps(step.topology)], patience, memory)
            row = _row(step, f"{name}: {work}", taken)
            if not taken.why:  # its own time, without that of making the graph
                row = replace(row, seconds=float(taken.printed))
            base = our_seconds.get(our_work)
            if row.seconds and base:
                row = replace(row, ratio=row.seconds / base)
            yield row


def _ours(step: Step, ours: Sequence[str], patience: float) -> Iterator[ScaleTiming]:
    """Our rows of a fabric."""
    with TemporaryDirectory(prefix="polarfab-") as folder:
        spec = Path(folder, "fabric.yaml")
        for number, (what, routing) in enumerate(ROUTING.items()):
            build = Path(folder, f"build-{number}")
            explain = [*ours, "explain", str(build), "0", str(step.switches - 1)]
            spec.write_text(json.dumps({"name": "scale", "topology": step.topology, **routing}))
            yield _row(step, what, run([*ours, "compile", str(spec), "-o", str(build)], patience))
            if what == MINIMAL and build.is_dir():
                yield _row(step, EXPLAIN, run(explain, patience))


def _row(step: Step, what: str, taken: Taken) -> ScaleTiming:
    """The row of a process that has ended."""
    row = ScaleTiming(step.title, step.switches, what, budget=step.budgets.get(what))
    if taken.why:
        return replace(row, why=taken.why)
    ratio = 1.0 if what in (*ROUTING, EXPLAIN) else None
    return replace(row, seconds=taken.seconds, megabytes=taken.megabytes, ratio=ratio)


def run(words: Sequence[str], patience: float, memory: int | None = None) -> Taken:
    """Run a process to its end, or to that of our patience.

    Args:
        words: the command.
        patience: seconds, by the clock.
        memory: bytes of address space that it may have.
    """
    with TemporaryFile() as printed, TemporaryFile() as errors:
        env = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=printed, stderr=errors, env=env
        )
        try:
            if memory:
                resource.prlimit(process.pid, resource.RLIMIT_AS, (memory, memory))
            is_late = not _ends(process.pid, patience)
        except BaseException:
            process.kill()
            raise
        if is_late:
            process.kill()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        why = f"over {patience:,.0f} s" if is_late else _why(process.returncode, _text(errors))
        seconds, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6
        return Taken(seconds, peak, why, _text(printed))


def _ends(pid: int, patience: float) -> bool:
    """Whether a process ends within so many seconds."""
    descriptor = os.pidfd_open(pid)
    try:
        ended = select.poll()  # select takes no descriptor from 1,024 on
        ended.register(descriptor, select.POLLIN)
        return bool(ended.poll(1000 * patience))
    finally:
        os.close(descriptor)


def _text(file: IO[bytes]) -> str:
    """The end of a file. Only that: a process that we start counts our memory as its own."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - END))
    return file.read().decode(errors="replace").strip()


def _why(code: int, errors: str) -> str:
    """Why a process failed: the last line that it said, "" where it did not."""
    if code == -signal.SIGKILL:
        return "killed, for memory as a rule"
    if "MemoryError" in errors or "bad_alloc" in errors:
        return "out of memory"
    return (errors or f"exit code {code}").splitlines()[-1] if code else ""
