"""What the receipt of a build that comes from elsewhere takes, compared with reading it."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.timing import Timing, balance_option, best, compiled, print_timings, q_option
from compilers.proof.walks.delivery import verify
from compilers.tables.folders.build_folder import load
from controller.rollout.build_archive import pack
from controller.rollout.build_history import BuildHistory
from controller.switches.current import read_build
from polarfab.output.verb_output import json_option


@click.command("receipt")
@q_option(31)
@balance_option
@json_option
def command(q: int, balance: str, as_json: bool) -> None:
    """Time the proof of a build that a controller receives, and of reading it without one."""
    with compiled(q, balance) as build:
        timings = receipt_timings(build)
    print_timings(as_json, f"PolarFly q={q}: a build from elsewhere", "times reading", timings)


def receipt_timings(folder: Path) -> list[Timing]:
    """The best of a few runs; the builds received are next to the folder."""
    history, data, build = BuildHistory(folder), pack(folder), load(folder)
    steps = {
        "read from its folder, its mark believed": lambda: read_build(folder, unverified=True),
        "of a receipt: the walk of every pair, over every path": lambda: verify(build),
        "the receipt: unpacked, proved, kept, read": lambda: history.receive(data),
    }
    times = {what: best(step) for what, step in steps.items()}
    base = next(iter(times.values()))
    return [Timing(what, seconds, seconds / base) for what, seconds in times.items()]
