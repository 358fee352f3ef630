"""What differs between two rendered folders, where there are no lines to compare or to type."""

from __future__ import annotations

from pathlib import Path

from compilers.targets.config_differences import FileChange, differences


def folders(tmp_path: Path, *contents: bytes) -> list[Path]:
    places = [tmp_path / str(number) for number in range(len(contents))]
    for place, data in zip(places, contents, strict=True):
        place.mkdir()
        (place / "a.cfg").write_bytes(data)
    return places


def test_a_file_that_is_no_text_differs_without_lines(tmp_path: Path) -> None:
    old, new = folders(tmp_path, b"hostname a\n", b"\xff\xfe")
    assert list(differences(old, new, {})) == [FileChange("a.cfg", "")]
