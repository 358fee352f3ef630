"""The pictures in docs/pictures are those that the code draws now, and pages show each."""

from __future__ import annotations

import pytest

import polarfab
from manual.figures import SMALL, pictures
from tests.polarfab.pages import PAGES, ROOT

FOLDER = ROOT / "docs" / "pictures"


def test_pictures_are_as_drawn_now(request: pytest.FixtureRequest) -> None:
    for name, picture in pictures():
        if request.config.getoption("--update-golden"):
            (FOLDER / name).write_text(picture)
        assert (FOLDER / name).read_text() == picture, f"{name}: pytest --update-golden writes it"


def test_every_picture_is_shown() -> None:
    texts = "".join(page.read_text() for page in PAGES)
    assert [file.name for file in FOLDER.iterdir() if f"pictures/{file.name})" not in texts] == []


def test_the_glossary_names_the_path_of_the_bounced_packet() -> None:
    down = polarfab.Fabric.from_spec(SMALL).compile().explain("7", "12", ["7-12"])
    first, second, third = min((failing.path for failing in down.failing), key=len)[1:-1]
    text = (ROOT / "docs" / "glossary.md").read_text()
    assert f"around it over {first}, {second} and {third}](pictures/bounce.svg)" in text
    assert f"switch {first}.\n" in text
    assert f"to switch {second}. From there it takes the shortest path, over {third} to" in text
