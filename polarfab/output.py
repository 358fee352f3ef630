"""The output of every verb: tables and progress for people, JSON for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2))


def print_csv(rows: Sequence[Mapping[str, object]]) -> None:
    """One CSV table on stdout, its columns the keys of the first row; None is an empty field."""
    import csv

    if rows:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on stdout; numbers to the right."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    body = [list(row) for row in rows]
    for i, column in enumerate(columns):
        numeric = bool(body) and all(isinstance(row[i], int | float) for row in body)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in body:
        table.add_row(*map(_cell, row))
    _console().print(table)


def print_facts(title: str, facts: Iterable[tuple[str, object]]) -> None:
    """Two columns, a name and a value per line, on stdout."""
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for name, value in facts:
        table.add_row(name, _cell(value))
    _console().print(title, style="bold")
    _console().print(table)


def _console() -> Any:
    from rich.console import Console

    class PipeConsole(Console):
        """A console that leaves a pipe that nobody reads to `polarfab.cli`."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    wide = None if sys.stdout.isatty() else 120
    return PipeConsole(width=wide, highlight=False, emoji=False, markup=False)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return "–" if value is None else str(value)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr, shown where stderr is a terminal; yields report(done, all)."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


def write_file(
    file: Path,
    content: Iterable[str] | bytes,
    todo: str = "name another one with -o",
    folders: bool = False,
) -> None:
    """Write a file whole or not at all; a text piece by piece, with its `folders` if wanted.

    Raises:
        InputError: the file cannot be written.
    """
    from compilers.tables.artefact import put_file

    pieces = [content] if isinstance(content, bytes) else (piece.encode() for piece in content)
    put_file(file, pieces, todo, folders)


def say_unread(switches: Sequence[str]) -> None:
    """How many switches had no file, and the first of them."""
    if switches:
        few = ", ".join(switches[:3]) + ", …" * (len(switches) > 3)
        say(f"{len(switches):,} switch{'es' * (len(switches) != 1)} without a file: {few}")


def say(message: str) -> None:
    """A line for people, on stderr."""
    click.echo(message, err=True)
