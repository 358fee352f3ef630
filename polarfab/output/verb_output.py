"""The output of every verb: tables and progress for people, JSON for machines.

Every verb takes --quiet and --verbose (`volume_options`): quiet leaves out notes and progress,
verbose shows lists in full.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from inventory.problems import InputError, Problem
from polarfab.output.column_widths import fitting
from polarfab.output.option_names import named_options, option_names

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")

MOST_ROWS = 40
"""Rows of a table that are printed without --verbose."""
PIPE_WIDTH = 120
"""Columns of what is not a terminal, unless COLUMNS says another number."""


RED, GREEN, YELLOW, CYAN = "bold red", "green", "yellow", "cyan"
COLOURS = {
    **dict.fromkeys(("pass", "passed", "proved", "in sync", "as built"), GREEN),
    **dict.fromkeys(("warning", "lost link", "lost host"), YELLOW),
    **dict.fromkeys(("error", "FAIL", "FAILED", "failed", "wrong", "damaged", "lost"), RED),
}
"""Verdicts, and the first words of warnings."""
NAMES = dict.fromkeys(("name", "node", "switch", "host", "rack", "scenario", "target"), CYAN)
"""Columns of names. Nothing else is coloured."""


def painted(text: str, meaning: str) -> str:
    """A text in the colour of what it means; none with NO_COLOR, or if there is no terminal.

    `click.echo` takes colours away from what is no terminal.
    """
    if meaning not in COLOURS or os.environ.get("NO_COLOR"):
        return text
    *bold, colour = COLOURS[meaning].split()
    return click.style(text, fg=colour, bold=bool(bold) or None)


def volume_options() -> list[click.Parameter]:
    """The options --quiet and --verbose."""
    quiet = "No notes and no progress: results, warnings and errors only."
    return [_volume_option("--quiet", -1, quiet), _volume_option("--verbose", 1, "Lists in full.")]


def _volume_option(name: str, level: int, help_line: str) -> click.Option:
    """An option that sets the volume; click calls it before it looks at other options."""

    def set_volume(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
        _remember_verb(context)
        if wanted and context.meta.setdefault("volume", level) != level:
            raise click.UsageError("--quiet and --verbose contradict each other; leave one out")

    return click.Option(
        [f"-{name[2]}", name],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=set_volume,
        help=help_line,
    )


def _remember_verb(context: click.Context) -> None:
    """Keep the verb, its parameters and its options for what is printed at its end.

    The parameters are filled in later (`polarfab.output.next_steps`).
    """
    context.meta["parameters"] = context.params
    context.meta["verb"] = context.command_path.partition(" ")[2]
    context.meta["options"] = option_names(context.command)


def volume() -> int:
    """-1 where the user wants it quiet, 1 verbose, else 0."""
    context = click.get_current_context(silent=True)
    return int(context.meta.get("volume", 0)) if context else 0


def chosen_format(form: str | None, as_json: bool, usual: str = "table") -> str:
    """The format that --format asks for, `json` with --json, the usual one with neither.

    Raises:
        UsageError: they contradict each other.
    """
    if as_json and form:
        raise click.UsageError(f"leave --format {form} or --json out: each is another format")
    return "json" if as_json else form or usual


def counted(number: int, noun: str) -> str:
    """`1 host`, `2 hosts`, `2 switches`."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(value, indent=2))


def print_csv(rows: Sequence[Mapping[str, object]]) -> None:
    """Print a CSV table on stdout, with the keys of the first row as columns; None is empty."""
    import csv

    if rows:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    whole: bool = False,
) -> None:
    """A table on stdout, numbers to the right; the first rows of many, unless `whole`.

    Columns that do not fit are left out.
    """
    from rich.table import Table

    body = [list(row) for row in rows]
    shown = body if whole or volume() > 0 else body[:MOST_ROWS]
    numeric = [
        bool(body) and all(isinstance(row[i], int | float) for row in body)
        for i, _ in enumerate(columns)
    ]
    heads = [in_words(column) for column in columns]
    cells = [[_cell(value) for value in row] for row in shown]
    console = _console()
    widths = fitting(heads, cells, numeric, console.width)
    table = Table()
    for i, width in enumerate(widths):
        justify: Any = "right" if numeric[i] else "left"
        table.add_column(heads[i], justify=justify, overflow="fold", width=width)
    for row in cells:
        table.add_row(*(_marked(row[i], columns[i]) for i, _ in enumerate(widths)))
    if title:
        console.print(title, style="bold")
    console.print(table)
    if left_out := heads[len(widths) :]:
        say(f"left out for want of width: {', '.join(left_out)}; --json has all")
    if more := len(body) - len(shown):
        say(f"{more:,} more rows: --verbose prints them, --json has all")


def print_facts(
    title: str, facts: Iterable[tuple[str, object]], more: Iterable[tuple[str, object]] = ()
) -> None:
    """Two columns, a name and a value per line, on stdout; with --verbose `more` of them."""
    shown = list(facts)
    if volume() > 0:
        names = {name for name, _ in shown}
        shown += [(name, value) for name, value in more if name not in names]
    rows = [(in_words(name), _cell(value)) for name, value in shown]
    if not _print_plain(title, rows):
        _print_folded(title, rows)


def _print_plain(title: str, rows: Sequence[tuple[str, str]]) -> bool:
    """Print two columns without rich, which takes 50 ms to import.

    Returns:
        Whether it did: not where a line is too wide, or has letters whose width is not known.
    """
    name_width = max((len(name) for name, _ in rows), default=0)
    value_width = max((len(value) for _, value in rows), default=0)
    lines = [f" {name:<{name_width}}  {value:<{value_width}} " for name, value in rows]
    for text in (title, *lines):
        if not text.replace("–", "-").isascii() or len(text) > _width():
            return False
    if title:
        click.echo(click.style(title, bold=True))
    for (name, value), line in zip(rows, lines, strict=True):
        click.echo(line.replace(value, painted(value, name)) if name in COLOURS else line)
    return True


def _print_folded(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print two columns, the second folded where it is too wide."""
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for row in rows:
        table.add_row(*row)
    console = _console()
    if title:
        console.print(title, style="bold")
    console.print(table)


def in_words(name: str) -> str:
    """`max hops` for the key `max_hops`."""
    return name.replace("_", " ")


def _console() -> Any:
    """A console of rich on stdout, as wide as `_width` says."""
    from rich.console import Console

    class PipeConsole(Console):
        """A console that leaves a pipe without a reader to `polarfab.cli`."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return PipeConsole(width=_width(), highlight=False, emoji=False, markup=False)


def _width() -> int:
    """Columns of the terminal; `PIPE_WIDTH` of what is none, unless COLUMNS says another."""
    width_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if width_known else PIPE_WIDTH


def _cell(value: object) -> str:
    """A value as the text of a cell: numbers with commas, four digits of a fraction."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 9999.5 <= abs(value) < 1e15 else f"{value:,.4g}"
    return "–" if value is None else str(value)


def _marked(cell: str, column: str) -> Any:
    """A verdict or a name in its colour; rich leaves colours to terminals, and to NO_COLOR."""
    from rich.text import Text

    colour = COLOURS.get(cell, "") or NAMES.get(column, "")
    return Text(cell, style=colour) if colour else cell


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr, shown where stderr is a terminal; yields report(done, all)."""
    if not sys.stderr.isatty() or volume() < 0:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


def file_form(output: Path, *forms: str) -> str:
    """Which of these forms a file has, by its name.

    Raises:
        InputError: none.
    """
    form = output.suffix.removeprefix(".")
    if form not in forms:
        required = " or ".join(f"FILE.{form_of_file}" for form_of_file in forms)
        raise InputError.of(key="output", required=required, given=str(output))
    return form


def write_file(
    file: Path,
    content: Iterable[str] | bytes,
    todo: str = "name another one with -o",
    folders: bool = False,
) -> None:
    """Write a file whole or not at all; a text piece by piece, with its `folders` if wanted.

    `-` is standard output.

    Raises:
        InputError: the file cannot be written, or is inside a build or a render.
    """
    from compilers.tables.folders.generations import require_outside_ours
    from compilers.tables.folders.written_file import STDOUT, put_file

    require_outside_ours(file, todo)
    pieces = [content] if isinstance(content, bytes) else (piece.encode() for piece in content)
    put_file(STDOUT if str(file) == "-" else file, pieces, todo, folders)


def say_written(file: Path, more: str = "") -> None:
    """Say that a file is written, and what of it; nothing of standard output, `-`."""
    if str(file) != "-":
        say(f"written: {file}{more}")


def write_files(folder: Path, what: str, of: str, texts: Mapping[str, str]) -> None:
    """Put texts in a folder, in the place of earlier ones of the same kind (`put_texts`).

    Raises:
        InputError: they cannot be written, or what is not ours is in the way.
    """
    from compilers.targets.rendering.rendered_folder import put_texts

    for file in put_texts(folder, what, of, texts):
        say(f"written: {file}")


def write_new_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into a folder, none over a file that is there.

    Raises:
        InputError: some of the files are there, or cannot be written.
    """
    files = [folder / name for name in texts]
    todo = "name another folder, or move it away"
    present = [
        Problem("a new file", "one that is there", todo, str(f)) for f in files if f.exists()
    ]
    if present:
        raise InputError(present)
    for file, text in zip(files, texts.values(), strict=True):
        write_file(file, [text], folders=True)
        say(f"written: {file}")
    return files


def say_unread(switches: Sequence[str]) -> None:
    """How many switches had no file, and the first of them."""
    if switches:
        first = ", ".join([*switches[:3], "…"] if len(switches) > 3 else switches)
        warn(f"{counted(len(switches), 'switch')} without a file: {first}")


def say(message: str) -> None:
    """A note for people, on stderr; none with --quiet."""
    if volume() >= 0:
        click.echo(message, err=True)


def warn(message: str) -> None:
    """A line on stderr about something wrong, its first words coloured on a terminal."""
    word, sign, rest = named_options(message).partition(":")
    click.echo(f"{painted(word, word)}{sign}{rest}", err=True)
