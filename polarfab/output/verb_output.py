"""The output of every verb: tables and progress for people, JSON for machines.

Every verb takes --quiet and --verbose (`volume_options`): quiet leaves out notes and progress,
verbose shows lists in full.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from inventory.problems import InputError, Problem

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


def _louder(step: int) -> Callable[[click.Context, click.Parameter, bool], None]:
    """Set the volume, and keep where the parameters will be for `polarfab.output.next_steps`."""

    def remember(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
        context.meta["given"] = context.params
        context.meta["verb"] = context.command_path.partition(" ")[2]
        context.meta["options"] = {
            f"{word.lstrip('-').replace('-', '_')}{end}": f"{option}{end}"
            for param in context.command.params
            if isinstance(param, click.Option)
            for word in (param.name or "", *param.opts, *param.secondary_opts)
            if not re.match("-[a-z]", word)  # `q` is --q, the order, and not -q, --quiet
            for option in [param.opts[0] if word == param.name else word]
            for end in ["", " "][: 1 + (param.metavar == "NAME=VALUE")]
        }
        if wanted and context.meta.setdefault("volume", step) != step:
            raise click.UsageError("--quiet and --verbose contradict each other; leave one out")

    return remember


def volume_options() -> list[click.Parameter]:
    """The options --quiet and --verbose."""
    return [
        click.Option(
            [f"-{name[2]}", name],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_louder(step),
            help=what,
        )
        for name, step, what in (
            ("--quiet", -1, "No notes and no progress: results, warnings and errors only."),
            ("--verbose", 1, "Lists in full."),
        )
    ]


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
    heads, cells = [*map(in_words, columns)], [[*map(_cell, row)] for row in shown]
    console = _console()
    widths = fitting(heads, cells, numeric, console.width)
    table = Table()
    for head, right, width in zip(heads, numeric, widths, strict=False):
        justify: Any = "right" if right else "left"
        table.add_column(head, justify=justify, overflow="fold", width=width)
    for row in cells:
        table.add_row(*(_marked(*pair) for pair in zip(row, columns[: len(widths)], strict=False)))
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
    facts = list(facts)
    facts += [fact for fact in more if volume() > 0 and fact[0] not in dict(facts)]
    rows = [(in_words(name), _cell(value)) for name, value in facts]
    if not _print_plain(title, rows):
        _print_folded(title, rows)


def _print_plain(title: str, rows: Sequence[tuple[str, str]]) -> bool:
    """Print two columns that need no folding, without rich, which takes 50 ms to import."""
    name, value = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
    texts = [title, *(f" {one:<{name}}  {other:<{value}} " for one, other in rows)]
    if not all(text.replace("–", "-").isascii() and len(text) <= _width() for text in texts):
        return False
    if title:
        click.echo(click.style(title, bold=True))
    for (one, other), text in zip(rows, texts[1:], strict=True):
        click.echo(text.replace(other, painted(other, one)) if one in COLOURS else text)
    return True


def _print_folded(title: str, rows: Sequence[tuple[str, str]]) -> None:
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for row in rows:
        table.add_row(*row)
    if title:
        _console().print(title, style="bold")
    _console().print(table)


def in_words(name: str) -> str:
    """`max hops` for the key `max_hops`."""
    return name.replace("_", " ")


def _console() -> Any:
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


def named_options(text: str) -> str:
    """A text of library code, with the verb's options for the parameters in its backquotes.

    `hosts_per_node` becomes --hosts-per-node, and `set decap=switch` --set decap=switch.
    """
    options = _options()

    def named(match: re.Match[str]) -> str:
        return f"{options[match[1]]}{match[2]}" if match[1] in options else match[0]

    return re.sub(r"`([a-z_]+)((?: [^`]*)?)`", named, text)


def named_problem(problem: Problem) -> Problem:
    """A problem of library code, its key and texts with the verb's options for parameters.

    The keys of YAML files are those of the file. `set lmc` is one of the values NAME=VALUE of an
    option; `target NAME` is a thing, and no option.
    """
    options = {} if problem.file.endswith((".yaml", ".yml")) else _options()
    return replace(
        problem,
        key=re.sub(
            r"(?:^|(?<=, ))[a-z_]+(?: |(?=$|,))", lambda m: options.get(m[0], m[0]), problem.key
        ),
        required=named_options(problem.required),
        given=named_options(problem.given),
        todo=named_options(problem.todo),
    )


def _options() -> dict[str, str]:
    context = click.get_current_context(silent=True)
    options: dict[str, str] = context.meta.get("options", {}) if context else {}
    return options


def warn(message: str) -> None:
    """A line on stderr about something wrong, its first words coloured on a terminal."""
    word, sign, rest = named_options(message).partition(":")
    click.echo(f"{painted(word, word)}{sign}{rest}", err=True)


BORDER = 1
BETWEEN = 3
"""What a cell takes besides its text: a space on both sides, and a line."""
TEXT_WIDTHS = (22, 10)
"""The narrowest that columns of text are made; the second if all columns fit only so."""


def fitting(
    heads: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], room: int
) -> list[int]:
    """The width of each column, from the left as many as fit; at least the first.

    Numbers are never broken, headings between words, other text where it has to be.

    Args:
        heads: a heading a column.
        cells: the rows.
        numeric: whether a column has numbers.
        room: the columns of the terminal.
    """
    words = [max(map(len, head.split()), default=1) for head in heads]
    natural = [max([word, *(len(row[i]) for row in cells)]) for i, word in enumerate(words)]
    every = zip(natural, words, numeric, strict=True)
    columns = [(width, width if number else word) for width, word, number in every]
    easy, tight = ([min(n, max(least, text)) for n, least in columns] for text in TEXT_WIDTHS)
    least = tight if _taken(easy) > room >= _taken(tight) else easy
    count = len(heads)
    while count > 1 and _taken(least[:count]) > room:
        count -= 1
    widths = natural[:count]
    while (over := _taken(widths) - room) > 0:
        slack = [width - low for width, low in zip(widths, least, strict=False)]
        if not any(slack):
            break
        widest = max((i for i, some in enumerate(slack) if some), key=lambda i: widths[i])
        widths[widest] -= min(over, slack[widest])
    return _headings_in_one_line(heads, widths, room)


def _taken(widths: Sequence[int]) -> int:
    return BORDER + sum(widths) + BETWEEN * len(widths)


def _headings_in_one_line(heads: Sequence[str], widths: list[int], room: int) -> list[int]:
    """The widths, with room that is left given to headings that take more than one line."""
    for i, width in enumerate(widths):
        more = max(0, len(heads[i]) - width)
        if _taken(widths) + more <= room:
            widths[i] += more
    return widths
