"""Differences between the rendered files of two builds, for `diff`, with remediation.

Remediation is what to type on a device to get from one configuration to the other. The library
hier_config computes it for the systems that it knows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that differs."""

    file: str
    """Its path below the output folder."""
    difference: str
    """A unified diff, "" for a file that is no text."""
    remediation: str = ""
    """What to type on the device, "" where hier_config does not know the system."""


def differences(old: Path, new: Path, platforms: Mapping[str, str]) -> Iterator[FileChange]:
    """Yield the files that differ between two folders that `render` wrote, in order of names.

    Args:
        old: the folder of the old build.
        new: the folder of the new build.
        platforms: the platform of hier_config for each file that it reads (`Target.hier_config`).
    """
    files = {
        path.relative_to(folder)
        for folder in (old, new)
        for path in folder.rglob("*")
        if path.is_file()
    }
    for file in sorted(files):
        old_bytes, new_bytes = (_bytes(folder / file) for folder in (old, new))
        if old_bytes == new_bytes:
            continue
        old_text, new_text = _text(old_bytes), _text(new_bytes)
        if old_text is None or new_text is None:
            yield FileChange(str(file), "")
            continue
        lines = difflib.unified_diff(
            old_text.splitlines(keepends=True),
            new_text.splitlines(keepends=True),
            f"a/{file}",
            f"b/{file}",
        )
        platform = platforms.get(file.name, "")
        yield FileChange(str(file), "".join(lines), _remediation(old_text, new_text, platform))


def _bytes(path: Path) -> bytes:
    """The bytes of a file; b"" where it does not exist."""
    return path.read_bytes() if path.is_file() else b""


def _text(data: bytes) -> str | None:
    """Bytes as text; None where they are no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _remediation(old_text: str, new_text: str, platform: str) -> str:
    """What to type on a device to get from an old configuration to a new one.

    "" without hier_config, for a file that it cannot read, and where there was no file before.
    """
    if not platform or not old_text or not find_spec("hier_config"):
        return ""
    from hier_config import Platform, WorkflowRemediation, get_hconfig

    old, new = (get_hconfig(Platform[platform], text) for text in (old_text, new_text))
    lines = WorkflowRemediation(old, new).remediation_config.all_children_sorted()
    return "".join(f"{line.cisco_style_text()}\n" for line in lines)
