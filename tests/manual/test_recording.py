"""Recordings are of commands of the manual, hold every line once, and know no machine."""

from __future__ import annotations

import re
import socket
import xml.etree.ElementTree as ET

import pytest

from manual.recording import PICTURES, RECORDINGS, ROWS, Session, svg
from tests.polarfab.pages import ROOT, blocks

SVG = "{http://www.w3.org/2000/svg}"
PAGES = {"demo": ROOT / "README.md", "dead-switch": ROOT / "docs" / "how-to" / "emulate.md"}
ENDS = {"demo": "first-light-q3", "dead-switch": "node-failure-q3"}
"""The scenario that each recording ends with."""


def lines(picture: str) -> list[str]:
    root = ET.fromstring(picture)  # noqa: S314
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def frames(picture: str, name: str) -> list[tuple[float, str]]:
    """Per cent of the time and state of each keyframe."""
    inside = picture.split(f"@keyframes {name} {{")[1].split("}\n}")[0]
    found = re.findall(r"([\d.]+)% \{ transform: (\w+\([^)]*\));", inside)
    return [(float(part), state) for part, state in found]


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_is_of_commands_of_the_page_that_shows_it(name: str) -> None:
    picture = (PICTURES / f"{name}.svg").read_text()
    commands = [line[2:] for line in lines(picture) if line.startswith("$ ")]
    assert commands == list(RECORDINGS[name])
    page = PAGES[name]
    assert f"pictures/{name}.svg)" in page.read_text()
    listed = [c.words for b in blocks(page) if b.language == "console" for c in b.commands()]
    assert set(commands) <= {command.partition("#")[0].strip() for command in listed}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_is_small_whole_and_of_no_machine(name: str) -> None:
    picture = (PICTURES / f"{name}.svg").read_text()
    text = "\n".join(lines(picture))
    assert len(picture) < 150_000
    assert re.search(rf"{ENDS[name]} passed in [\d.]+ s$", text)
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
