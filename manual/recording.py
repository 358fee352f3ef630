"""Recordings of commands at a terminal as animated SVGs: `make recording`.

`recorded` runs a command, `recording_of` says when which line appears, and `svg` draws this. Each
line of the terminal is in the file once. Two CSS animations do the rest: the *pen*, which hides
what is not written yet, and the *roll*, which scrolls. Where motion is not wanted
(`prefers-reduced-motion`) or not known, the last screen is shown, still.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from rich.ansi import AnsiDecoder
from rich.text import Text

ROOT = Path(__file__).parents[1]
RECORDINGS = {
    "demo": (
        "polarfab init lab polarfly --q 7",
        "polarfab compile lab/fabric.yaml -o build",
        "polarfab explain build n9 n18",
        "make demo",
    ),
    "dead-switch": ("polarfab emulate node-failure-q3",),
}
"""The commands of each picture: those of the README, and the rehearsal of a dead switch."""
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 108, 28
"""The letters in a line of the screen, and its lines."""
ADVANCE, LINE, EDGE, BAR = 7.8, 18, 16, 30
"""Pixels: the width of a letter, the height of a line, the margin, and the height of the title."""
BEGIN = 0.5
"""Seconds before the first letter."""
PER_LETTER, BEFORE_RUN, LONGEST_WAIT, BETWEEN, AT_END = 0.045, 0.4, 0.9, 1.6, 6.0
"""Seconds a letter, before a command runs, between lines at most, after a command, at the end."""
PROMPT = "$ "
"""What stands before a command."""
STYLES = {"b": "bold", "green": "color(2)", "red": "color(1)", "faint": "dim"}
"""Classes of the picture, and the words of Rich for a terminal's styles."""
DEMO = re.compile(r"^\t\$\(BIN\)/(polarfab emulate .*)$", re.M)
"""The line of the Makefile that `make demo` runs."""


@dataclass(frozen=True, slots=True)
class Session:
    """A command, and what it printed."""

    command: str
    """The command as it is shown."""
    lines: tuple[tuple[float, str], ...]
    """The lines that it printed, each with the seconds since the one before."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The place of the pen from a second on."""

    second: float
    """The seconds from the begin of the recording."""
    column: int
    """The column of the pen."""
    row: int
    """The row of the pen, counted from the first line of the recording."""
    letters: int = 0
    """The letters that it types until the next moment."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The whole recording."""

    moments: list[Moment]
    """The places of the pen, in the order of time."""
    lines: list[str]
    """All lines, commands included, with ANSI escapes."""


def words_to_run(command: str) -> list[str]:
    """The words to run for a command as it is shown; of `make demo`, what the Makefile runs.

    Raises:
        LookupError: `make demo` runs something else than `polarfab emulate`.
        ValueError: it is no command of polarfab.
    """
    if command == "make demo":
        match = DEMO.search((ROOT / "Makefile").read_text())
        if not match:
            raise LookupError("the Makefile's demo no longer runs `polarfab emulate`")
        command = match[1]
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
        words_to_run(command),
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


def recording_of(sessions: Sequence[Session]) -> Recording:
    """The recording of sessions, one after the other."""
    moments: list[Moment] = []
    lines: list[str] = []
    now = BEGIN
    for session in sessions:
        moments.append(Moment(now, len(PROMPT), len(lines), len(session.command)))
        now += PER_LETTER * len(session.command)
        moments.append(Moment(now, len(PROMPT) + len(session.command), len(lines)))
        lines.append(f"\x1b[32m{PROMPT}\x1b[0;1m{session.command}\x1b[0m")
        now += BEFORE_RUN
        moments.append(Moment(now, 0, len(lines)))
        for wait, line in session.lines:
            now += min(wait, LONGEST_WAIT)
            lines.append(line)
            moments.append(Moment(now, 0, len(lines)))
        now += BETWEEN
    moments.append(Moment(now + AT_END - BETWEEN, 0, len(lines)))
    return Recording(moments, lines)


def svg(sessions: Sequence[Session]) -> str:
    """The recording as an animated SVG, whose first frame is the last: none is blank."""
    recording = recording_of(sessions)
    wide, high = round(COLUMNS * ADVANCE + 2 * EDGE), ROWS * LINE + 2 * EDGE + BAR
    commands = "; ".join(session.command for session in sessions)
    decoded = AnsiDecoder().decode("\n".join(recording.lines))
    texts = "".join(_text(number, text) for number, text in enumerate(decoded))
    far = COLUMNS * ADVANCE * 2
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" \
height="{high}" role="img" aria-label="polarfab at a terminal">
<title>polarfab at a terminal</title>
<desc>{escape(commands)}</desc>
<style>
{_style_sheet(recording)}\
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


def _style_sheet(recording: Recording) -> str:
    """The CSS of the recording: its letters, and its two animations."""
    moments = recording.moments
    length = moments[-1].second
    last_pen, last_roll = _pen(moments[-1]), _roll(_top(len(recording.lines)))
    pen = _keyframes([Keyframe(m.second / length, _pen(m), m.letters) for m in moments])
    roll = _keyframes([Keyframe(m.second / length, _roll(_top(m.row))) for m in moments])
    return f"""\
text {{ font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
text {{ fill: #d7dde4; white-space: pre; }}
.b {{ font-weight: bold; fill: #fff; }}
.green {{ fill: #56d38b; }}
.red {{ fill: #ff7b72; }}
.faint {{ fill: #8b949e; }}
.page {{ fill: #10161d; }}
#roll {{ {last_roll} }}
#pen {{ {last_pen} }}
@media (prefers-reduced-motion: no-preference) {{
#roll {{ animation: roll {length:.1f}s step-end infinite; }}
#pen {{ animation: pen {length:.1f}s step-end infinite; }}
}}
@keyframes roll {{ 0% {{ {last_roll} }} {roll}}}
@keyframes pen {{ 0% {{ {last_pen} }} {pen}}}
"""


def _pen(moment: Moment) -> str:
    """The CSS that moves the pen to its place."""
    return f"transform: translate({moment.column * ADVANCE:g}px, {moment.row * LINE}px);"


def _top(row: int) -> int:
    """The first row on the screen while the pen is in this one."""
    return max(0, row + 1 - ROWS)


def _roll(top: int) -> str:
    """The CSS that scrolls, so that a row is the first on the screen."""
    return f"transform: translateY({-top * LINE}px);"


@dataclass(frozen=True, slots=True)
class Keyframe:
    """A state of an animation."""

    part: float
    """When it begins, as a part of the whole time."""
    style: str
    """The CSS of the state."""
    letters: int = 0
    """The letters that are typed in it."""

    @property
    def css(self) -> str:
        """The CSS of the state, and of the letters that are typed in it."""
        if not self.letters:
            return self.style
        return f"{self.style} animation-timing-function: steps({self.letters});"


def _keyframes(states: Sequence[Keyframe]) -> str:
    """Keyframes of CSS.

    Of several states at one time the last counts, and states that stay are left out.
    """
    css_of_time = {f"{100 * state.part:.2f}%": state.css for state in states}
    keyframes, before = "", ""
    for time, css in css_of_time.items():
        if css != before:
            keyframes += f"{time} {{ {css} }}\n"
        before = css
    return keyframes


def _text(number: int, text: Text) -> str:
    """A line, each of its letters ADVANCE wide in every font.

    Args:
        number: of the line, from 0.
        text: the line with its styles.
    """
    length = len(text.plain.rstrip())
    if not length:
        return ""
    line = text[:length]
    bounds = {span.start for span in line.spans} | {span.end for span in line.spans}
    content = ""
    for piece in line.divide(sorted(bounds)):
        styles = " ".join(str(span.style) for span in piece.spans)
        classes = " ".join(name for name, word in STYLES.items() if word in styles)
        letters = escape(piece.plain, quote=False)
        content += f'<tspan class="{classes}">{letters}</tspan>' if classes else letters
    place = f'y="{number * LINE + LINE - 5}" textLength="{length * ADVANCE:g}"'
    return f"<text {place}>{content}</text>\n"


def main() -> None:
    """Record all pictures; as root, where Open vSwitch and Mininet are."""
    for name, commands in RECORDINGS.items():
        with TemporaryDirectory() as folder:
            picture = svg([recorded(command, Path(folder)) for command in commands])
        (PICTURES / f"{name}.svg").write_text(picture)


if __name__ == "__main__":
    main()
