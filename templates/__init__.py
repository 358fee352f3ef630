"""Jinja2 templates, one folder for each target or kind of page. They print and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PrefixLoader,
    StrictUndefined,
    select_autoescape,
)

TEMPLATES = Path(__file__).parent


def environment(own: Path | None = None, folders: Mapping[str, Path] | None = None) -> Environment:
    """The templates of all targets, `TARGET/FILE.j2`.

    A variable that does not exist is an error, never an empty text.

    Args:
        own: a folder of the user's, whose templates stand in for others.
        folders: those of targets of other packages, by target.
    """
    loaders: list[BaseLoader] = [FileSystemLoader(own)] if own else []
    loaders.append(PrefixLoader({n: FileSystemLoader(f) for n, f in (folders or {}).items()}))
    loaders.append(FileSystemLoader(TEMPLATES))
    return Environment(
        loader=ChoiceLoader(loaders),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
