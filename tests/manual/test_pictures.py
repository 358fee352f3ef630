"""The pictures in docs/pictures are those that the code draws now, and pages show each."""

from __future__ import annotations

import pytest

from manual.figures import pictures
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
