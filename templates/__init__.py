"""Jinja2 templates, a folder a target. They print and compute nothing."""

from __future__ import annotations

from pathlib import Path

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    StrictUndefined,
    select_autoescape,
)

TEMPLATES = Path(__file__).parent


def environment(own: Path | None = None) -> Environment:
    """The templates of all targets, `TARGET/FILE.j2`; those in the folder `own` stand in for ours.

    A variable that does not exist is an error, never an empty text.
    """
    folders = [TEMPLATES] if own is None else [own, TEMPLATES]
    loaders: list[BaseLoader] = [FileSystemLoader(folder) for folder in folders]
    return Environment(
        loader=ChoiceLoader(loaders),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
