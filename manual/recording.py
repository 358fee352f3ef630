"""A recording of the README's commands as an animated SVG: `make recording`.

Each line of the terminal is in the file once. Two CSS animations do the rest: the *pen*, which
hides what is not written yet, and the *roll*, which scrolls. Where motion is not wanted
(`prefers-reduced-motion`) or not known, the last screen is shown, still.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from rich.ansi import AnsiDecoder
from rich.text import Text

ROOT = Path(__file__).parents[1]
SHOWN = (
    "polarfab init lab polarfly --q 7",
    "polarfab compile lab/fabric.yaml -o build",
    "polarfab explain build n9 n18",
    "make demo",
)
"""Commands of the README."""
COLUMNS, ROWS = 108, 28
ADVANCE, LINE, EDGE, BAR = 7.8, 18, 16, 30
KEY, ENTER, LONGEST_WAIT, BETWEEN, AT_END = 0.045, 0.4, 0.9, 1.6, 6.0
"""Seconds a letter, before a command runs, between lines at most, after a command, at the end."""
PROMPT = "$ "
STYLES = {"b": "bold", "green": "color(2)", "red": "color(1)", "faint": "dim"}
"""Classes of the picture, and the words of Rich for a terminal's styles."""
DEMO = re.compile(r"^\t\$\(BIN\)/(polarfab emulate .*)$", re.M)


@dataclass(frozen=True, slots=True)
class Session:
    """A command, and the lines that it printed, each with the seconds since the one before."""

    command: str
    lines: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """The pen from `second` on: its column and row; letters that it types until the next moment."""

    second: float
    column: int
    row: int
    letters: int = 0


def meant(command: str) -> list[str]:
    """The words to run for a command as it is shown; of `make demo`, what the Makefile runs."""
    if command == "make demo":
        found = DEMO.search((ROOT / "Makefile").read_text())
        if not found:
            raise LookupError("the Makefile's demo no longer runs `polarfab emulate`")
        command = found[1]
    program, *words = shlex.split(command)
    if program != "polarfab":
        raise ValueError(f"not a polarfab command: {command}")
    return [sys.executable, "-m", "polarfab", *words]


def recorded(command: str, folder: Path) -> Session:
    """Run a command in this folder, and take what it prints as at a terminal of COLUMNS columns.

    It has a pipe, so that no progress bars are in it.

    Raises:
        RuntimeError: it fails.
    """
    width = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    environment = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    lines, before = [], monotonic()
    with subprocess.Popen(
        meant(command),
        cwd=folder,
        env=os.environ | width | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as process:
        for line in process.stdout or ():
            now = monotonic()
            lines.append((now - before, line.rstrip("\n")))
            before = now
    if process.returncode:
        raise RuntimeError(f"{command}: exit code {process.returncode}")
    return Session(command, tuple(lines))


def moments(sessions: Sequence[Session]) -> tuple[list[Moment], list[str]]:
    """Where the pen is when, and all lines, commands included."""
    found: list[Moment] = []
    lines: list[str] = []
    now = 0.5
    for session in sessions:
        found.append(Moment(now, len(PROMPT), len(lines), len(session.command)))
        now += KEY * len(session.command)
        found.append(Moment(now, len(PROMPT) + len(session.command), len(lines)))
        lines.append(f"\x1b[32m{PROMPT}\x1b[0;1m{session.command}\x1b[0m")
        now += ENTER
        found.append(Moment(now, 0, len(lines)))
        for wait, line in session.lines:
            now += min(wait, LONGEST_WAIT)
            lines.append(line)
            found.append(Moment(now, 0, len(lines)))
        now += BETWEEN
    found.append(Moment(now + AT_END - BETWEEN, 0, len(lines)))
    return found, lines


def svg(sessions: Sequence[Session]) -> str:
    """The recording as an animated SVG, whose first frame is the last: none is blank."""
    timeline, lines = moments(sessions)
    length = timeline[-1].second
    wide, high = round(COLUMNS * ADVANCE + 2 * EDGE), ROWS * LINE + 2 * EDGE + BAR
    pen = _frames((m.second / length, _pen(m), m.letters) for m in timeline)
    roll = _frames((m.second / length, _roll(_top(m.row)), 0) for m in timeline)
    commands = "; ".join(session.command for session in sessions)
    texts = "".join(
        _text(number, text) for number, text in enumerate(AnsiDecoder().decode("\n".join(lines)))
    )
    far = COLUMNS * ADVANCE * 2
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" \
height="{high}" role="img" aria-label="polarfab at a terminal">
<title>polarfab at a terminal</title>
<desc>{escape(commands)}</desc>
<style>
text {{ font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
text {{ fill: #d7dde4; white-space: pre; }}
.b {{ font-weight: bold; fill: #fff; }}
.green {{ fill: #56d38b; }}
.red {{ fill: #ff7b72; }}
.faint {{ fill: #8b949e; }}
.page {{ fill: #10161d; }}
#roll {{ {_roll(_top(len(lines)))} }}
#pen {{ {_pen(timeline[-1])} }}
@media (prefers-reduced-motion: no-preference) {{
#roll {{ animation: roll {length:.1f}s step-end infinite; }}
#pen {{ animation: pen {length:.1f}s step-end infinite; }}
}}
@keyframes roll {{ 0% {{ {_roll(_top(len(lines)))} }} {roll}}}
@keyframes pen {{ 0% {{ {_pen(timeline[-1])} }} {pen}}}
</style>
<rect class="page" width="{wide}" height="{high}" rx="9"/>
<circle cx="20" cy="18" r="5.5" fill="#ff5f57"/><circle cx="38" cy="18" r="5.5" fill="#febc2e"/>\
<circle cx="56" cy="18" r="5.5" fill="#28c840"/>
<svg x="{EDGE}" y="{BAR + EDGE // 2}" width="{wide - 2 * EDGE}" height="{ROWS * LINE}">
<g id="roll" xml:space="preserve">
{texts}<g id="pen"><path class="page" d="M0 0h{far:g}v9999h-{2 * far:g}v-{9999 - LINE}h{far:g}z"/>\
<rect y="2" width="{ADVANCE}" height="{LINE - 3}" fill="#8b949e"/></g>
</g>
</svg>
</svg>
"""


def _pen(moment: Moment) -> str:
    return f"transform: translate({moment.column * ADVANCE:g}px, {moment.row * LINE}px);"


def _top(row: int) -> int:
    """The first row on the screen while the pen is in this one."""
    return max(0, row + 1 - ROWS)


def _roll(top: int) -> str:
    return f"transform: translateY({-top * LINE}px);"


def _frames(states: Iterable[tuple[float, str, int]]) -> str:
    """Keyframes: the part of the time, the state from then on, the letters typed in it.

    Of several at one time the last counts, and states that stay are left out.
    """
    last = {f"{100 * part:.2f}%": (state, letters) for part, state, letters in states}
    found, before = [], ("", 0)
    for part, now in last.items():
        if now != before:
            typed = f" animation-timing-function: steps({now[1]});" if now[1] else ""
            found.append(f"{part} {{ {now[0]}{typed} }}\n")
        before = now
    return "".join(found)


def _text(number: int, text: Text) -> str:
    """A line, each of its letters ADVANCE wide in every font."""
    words = text.plain.rstrip()
    if not words:
        return ""
    parts, line = [], text[: len(words)]
    for span in line.divide(sorted({end for s in line.spans for end in (s.start, s.end)})):
        kinds = " ".join(str(s.style) for s in span.spans)
        names = [name for name, word in STYLES.items() if word in kinds]
        piece = escape(span.plain, quote=False)
        parts.append(f'<tspan class="{" ".join(names)}">{piece}</tspan>' if names else piece)
    place = f'y="{number * LINE + LINE - 5}" textLength="{len(words) * ADVANCE:g}"'
    return f"<text {place}>{''.join(parts)}</text>\n"


def main(file: str) -> None:
    """Record what is shown, into a file; as root, where Open vSwitch and Mininet are."""
    with TemporaryDirectory() as folder:
        Path(file).write_text(svg([recorded(command, Path(folder)) for command in SHOWN]))


if __name__ == "__main__":
    main(*sys.argv[1:])
