"""What the scripts share: options, a build to measure, a table of times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import click

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.topology.families import check_topology
from inventory.problems import InputError
from polarfab.output.verb_output import print_json, print_table

REPEATS = 5
"""How often a piece of work is timed."""
balance_option = click.option(
    "--balance",
    metavar="NAME",
    default="",
    show_default=False,
    help="With this balance and protect: link.  [default: minimal paths, unprotected]",
)


@dataclass(frozen=True, slots=True)
class Timing:
    """What was timed."""

    what: str
    """The work, in words."""
    seconds: float
    """The time that it took."""
    ratio: float
    """The time as a multiple of that of the first row of its table."""


def q_option(usual: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The order of the field of a PolarFly."""
    return click.option("--q", type=int, default=usual, help="Order of the field, a prime power.")


def best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The shortest of a few runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def require_order(q: int) -> None:
    """Pass when there is a PolarFly of this order.

    Raises:
        InputError: there is none.
    """
    problems = check_topology("polarfly", {"q": q})
    if problems:
        raise InputError(problems)


@contextmanager
def compiled(q: int, balance: str = "") -> Iterator[Path]:
    """A build of PolarFly in a folder that goes at the end."""
    require_order(q)
    with TemporaryDirectory(prefix="polarfab-") as folder:
        spec, build = Path(folder, "fabric.yaml"), Path(folder, "build")
        routing = f"routing: {{balance: {balance}, protect: link}}\n" if balance else ""
        spec.write_text(f"name: bench\ntopology: {{family: polarfly, q: {q}}}\n{routing}")
        save(compile_fabric(load_fabric(spec)), build)
        yield build


def print_timings(as_json: bool, title: str, ratio: str, timings: Iterable[Timing]) -> None:
    """Print times as a table or as JSON.

    Args:
        as_json: whether it is JSON.
        title: of the table.
        ratio: the heading of the column of ratios.
        timings: the rows.
    """
    if as_json:
        print_json([asdict(timing) for timing in timings])
        return
    rows = [
        (timing.what, round(timing.seconds * 1e3, 2), round(timing.ratio, 2)) for timing in timings
    ]
    print_table(title, ["what", "ms", ratio], rows)
