"""The recording is of the README's commands, holds every line once, and knows no machine."""

from __future__ import annotations

import re
import socket
import xml.etree.ElementTree as ET

from manual.recording import ROWS, SHOWN, Session, svg
from tests.polarfab.pages import ROOT, blocks

SVG = "{http://www.w3.org/2000/svg}"
FILE = ROOT / "docs" / "pictures" / "demo.svg"


def lines(picture: str) -> list[str]:
    root = ET.fromstring(picture)  # noqa: S314
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def frames(picture: str, name: str) -> list[tuple[float, str]]:
    """Per cent of the time and state of each keyframe."""
    inside = picture.split(f"@keyframes {name} {{")[1].split("}\n}")[0]
    found = re.findall(r"([\d.]+)% \{ transform: (\w+\([^)]*\));", inside)
    return [(float(part), state) for part, state in found]


def test_the_recording_is_of_commands_of_the_readme() -> None:
    commands = [line[2:] for line in lines(FILE.read_text()) if line.startswith("$ ")]
    assert commands == list(SHOWN)
    page = ROOT / "README.md"
    there = [c.words for b in blocks(page) if b.language == "console" for c in b.commands()]
    assert set(commands) <= {command.partition("#")[0].strip() for command in there}


def test_the_recording_is_small_whole_and_of_no_machine() -> None:
    picture = FILE.read_text()
    text = "\n".join(lines(picture))
    assert len(picture) < 150_000
    assert re.search(r"first-light-q3 passed in [\d.]+ s$", text)
    assert not re.search(r"(?<!\S)/\w", text), "a path"
    assert socket.gethostname() not in text
    assert "<script" not in picture


def test_every_line_is_there_once_and_appears_in_order() -> None:
    printed = tuple((0.1, f"<{number}> & \x1b[1;31mred\x1b[0m") for number in range(40))
    picture = svg([Session("polarfab one", printed), Session("polarfab two", ((9.0, "end"),))])
    plain = [f"<{number}> & red" for number in range(40)]
    assert lines(picture) == ["$ polarfab one", *plain, "$ polarfab two", "end"]
    assert picture.count('<tspan class="b red">red</tspan>') == 40
    for name in ("pen", "roll"):
        parts = [part for part, _ in frames(picture, name)]
        assert parts == sorted(parts)
        assert parts[-1] <= 100
        assert frames(picture, name)[0][1] == frames(picture, name)[-1][1], "the first is blank"
    rows = [int(re.findall(r"(\d+)px", state)[-1]) // 18 for _, state in frames(picture, "pen")]
    rows = rows[1:]
    assert rows == sorted(rows)
    assert set(rows) == set(range(44))
    assert frames(picture, "roll")[-1][1] == f"translateY({-(43 + 1 - ROWS) * 18}px)"
