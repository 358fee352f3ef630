"""The output of every verb: tables, notes and progress for people, JSON for machines; files.

Every verb takes --quiet and --verbose (`volume_options`). --quiet leaves out notes and progress,
--verbose prints lists in full.
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
from polarfab.output.column_widths import fitting_widths
from polarfab.output.option_names import named_options, option_names

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
"""The option of every verb that prints JSON instead of tables."""
MOST_ROWS = 40
"""The most rows of a table that are printed without --verbose."""
PIPE_WIDTH = 120
"""The columns of an output that is no terminal, unless COLUMNS sets another number."""
RED, GREEN, YELLOW, CYAN = "bold red", "green", "yellow", "cyan"
"""Colours as styles of rich."""
COLOURS = {
    **dict.fromkeys(("pass", "passed", "proved", "in sync", "as built"), GREEN),
    **dict.fromkeys(("warning", "lost link", "lost host"), YELLOW),
    **dict.fromkeys(("error", "FAIL", "FAILED", "failed", "wrong", "damaged", "lost"), RED),
}
"""The colours of verdicts, and of the first words of warnings."""
NAME_COLUMNS = dict.fromkeys(("name", "node", "switch", "host", "rack", "scenario", "target"), CYAN)
"""The colours of columns of names, by their headings. Nothing else is coloured."""


def painted(text: str, meaning: str) -> str:
    """A text in the colour of its meaning, a key of `COLOURS`; without colour under NO_COLOR.

    `click.echo` removes colours if the output is no terminal.
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
    """An option that sets the volume. click handles it before other options (`is_eager`)."""

    def set_volume(context: click.Context, _option: click.Parameter, is_set: bool) -> None:
        """Set the volume of the verb that runs."""
        _remember_verb(context)
        if is_set and context.meta.setdefault("volume", level) != level:
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
    """Keep the verb, its parameters and its options for later messages.

    click fills the values of the parameters in later; `polarfab.output.next_steps` reads them.
    """
    context.meta["parameters"] = context.params
    context.meta["verb"] = context.command_path.partition(" ")[2]
    context.meta["options"] = option_names(context.command)


def volume() -> int:
    """-1 with --quiet, 1 with --verbose, else 0."""
    context = click.get_current_context(silent=True)
    return int(context.meta.get("volume", 0)) if context else 0


def chosen_format(form: str | None, as_json: bool, default: str = "table") -> str:
    """The format of --format, `json` with --json, or the usual format with neither.

    Raises:
        UsageError: both options are used.
    """
    if as_json and form:
        raise click.UsageError(f"leave --format {form} or --json out: each is another format")
    return "json" if as_json else form or default


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
    """Print a table on stdout, with numbers to the right.

    Columns that do not fit are left out.

    Args:
        title: the title; "" for none.
        columns: the headings.
        rows: the rows.
        whole: whether to print all rows of many, also without --verbose.
    """
    from rich.table import Table

    body = [list(row) for row in rows]
    printed_rows = body if whole or volume() > 0 else body[:MOST_ROWS]
    numeric = [
        bool(body) and all(isinstance(row[i], int | float) for row in body)
        for i, _ in enumerate(columns)
    ]
    heads = [in_words(column) for column in columns]
    cells = [[_cell(value) for value in row] for row in printed_rows]
    console = _console()
    widths = fitting_widths(heads, cells, numeric, console.width)
    table = Table()
    for i, width in enumerate(widths):
        justify: Any = "right" if numeric[i] else "left"
        table.add_column(heads[i], justify=justify, overflow="fold", width=width)
    for row in cells:
        table.add_row(*(_coloured(row[i], columns[i]) for i, _ in enumerate(widths)))
    if title:
        console.print(title, style="bold")
    console.print(table)
    left_out = heads[len(widths) :]
    if left_out:
        say(f"left out for want of width: {', '.join(left_out)}; --json has all")
    if len(body) > len(printed_rows):
        more = counted(len(body) - len(printed_rows), "more row")
        say(f"{more}: --verbose prints all, --json has all")


def print_facts(
    title: str, facts: Iterable[tuple[str, object]], verbose: Iterable[tuple[str, object]] = ()
) -> None:
    """Print facts on stdout in two columns, a name and a value per line.

    Args:
        title: the title; "" for none.
        facts: names and values.
        verbose: the facts that are added with --verbose; those with a name in `facts` are left out.
    """
    printed_facts = list(facts)
    if volume() > 0:
        names = {name for name, _ in printed_facts}
        printed_facts += [(name, value) for name, value in verbose if name not in names]
    rows = [(in_words(name), _cell(value)) for name, value in printed_facts]
    if not _print_plain(title, rows):
        _print_folded(title, rows)


def _print_plain(title: str, rows: Sequence[tuple[str, str]]) -> bool:
    """Print two columns without rich, which takes 50 ms to import.

    Returns:
        Whether they were printed: not if a line is too wide, or has letters of unknown width.
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
    """Print two columns, of which the second is folded if it is too wide."""
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
    """A console of rich on stdout, of the width `_width`."""
    from rich.console import Console

    class PipeConsole(Console):
        """A console that leaves a pipe without a reader to `polarfab.cli`."""

        def on_broken_pipe(self) -> None:
            """Raise the error instead of ending the process."""
            raise BrokenPipeError

    return PipeConsole(width=_width(), highlight=False, emoji=False, markup=False)


def _width() -> int:
    """The columns of the terminal, or those of COLUMNS; `PIPE_WIDTH` without either."""
    is_width_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if is_width_known else PIPE_WIDTH


def _cell(value: object) -> str:
    """The text of a cell: numbers with commas, and four digits of a fraction."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 9999.5 <= abs(value) < 1e15 else f"{value:,.4g}"
    return "–" if value is None else str(value)


def _coloured(cell: str, column: str) -> Any:
    """A cell with its colour, if it is a verdict or a name; rich removes colours where needed."""
    from rich.text import Text

    colour = COLOURS.get(cell, "") or NAME_COLUMNS.get(column, "")
    return Text(cell, style=colour) if colour else cell


@contextmanager
def progress(words: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr.

    Args:
        words: what is done meanwhile.

    Yields:
        A function that takes how much is done, and how much there is; None if stderr is no
        terminal.
    """
    if not sys.stderr.isatty() or volume() < 0:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)

        def report(done: int, total: int) -> None:
            """Move the bar."""
            bar.update(task, completed=done, total=total)

        yield report


def file_form(output: Path, *forms: str) -> str:
    """The form of a file by the end of its name, one of `forms`.

    Raises:
        InputError: the name ends in none of them.
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
    """Write a file whole or not at all.

    Args:
        file: the file; `-` is standard output.
        content: pieces of a text, or bytes.
        todo: what to do if it cannot be written.
        folders: whether to make the folders of the file.

    Raises:
        InputError: the file cannot be written, or is inside a build or a render.
    """
    from compilers.tables.folders.folder_contents import require_outside_polarfab_folders
    from compilers.tables.folders.written_file import STDOUT, put_file

    require_outside_polarfab_folders(file, todo)
    pieces = [content] if isinstance(content, bytes) else (piece.encode() for piece in content)
    put_file(STDOUT if str(file) == "-" else file, pieces, todo, folders)


def say_written(file: Path, note: str = "") -> None:
    """Say that a file is written, with a note; nothing for standard output, `-`."""
    if str(file) != "-":
        say(f"written: {file}{note}")


def write_files(folder: Path, kind: str, fabric: str, texts: Mapping[str, str]) -> None:
    """Put texts in a folder, in the place of earlier ones of the same kind (`put_texts`).

    Args:
        folder: the folder.
        kind: the kind of files, such as `netbox`.
        fabric: the name of the fabric.
        texts: the texts by file name.

    Raises:
        InputError: they cannot be written, or files of others are in the folder.
    """
    from compilers.targets.rendering.rendered_folder import put_texts

    for file in put_texts(folder, kind, fabric, texts):
        say(f"written: {file}")


def write_new_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into a folder; no existing file is replaced.

    Raises:
        InputError: some of the files exist, or cannot be written.
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
    """Warn of switches without a file: how many there are, and the first of them."""
    if switches:
        first = ", ".join([*switches[:3], "…"] if len(switches) > 3 else switches)
        warn(f"{counted(len(switches), 'switch')} without a file: {first}")


def say(message: str) -> None:
    """Print a note on stderr; nothing with --quiet."""
    if volume() >= 0:
        click.echo(message, err=True)


def warn(message: str) -> None:
    """Print a warning on stderr; its words before a colon have a colour on a terminal."""
    verdict, sign, details = named_options(message).partition(":")
    click.echo(f"{painted(verdict, verdict)}{sign}{details}", err=True)
