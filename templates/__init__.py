"""Jinja2 templates, one folder for each target or kind of page. They print and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
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

    A variable that does not exist is an error, never an empty text. With templates that are not the
    package's all are in a sandbox (`templates.sandbox`), unless `own` is a `TrustedFolder`.

    Args:
        own: a folder of the user's, whose templates replace others.
        folders: those of targets of other packages, by target.
    """
    others = dict(folders or {})
    if not own and all(TEMPLATES in folder.parents for folder in others.values()):
        return _shipped(tuple(others.items()))
    from templates.sandbox import InsideLoader, Sandbox, TrustedFolder

    if isinstance(own, TrustedFolder):
        return _made(Environment, FileSystemLoader, own, others)
    return _made(Sandbox, InsideLoader, own, others)


@cache
def _shipped(folders: tuple[tuple[str, Path], ...]) -> Environment:
    """The package's templates alone, each of which a process translates once."""
    return _made(Environment, FileSystemLoader, None, dict(folders))


def _made(
    kind: type[Environment],
    loader: type[FileSystemLoader],
    own: Path | None,
    others: Mapping[str, Path],
) -> Environment:
    return kind(
        loader=_loader(loader, own, others),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _loader(
    kind: type[FileSystemLoader], own: Path | None, others: Mapping[str, Path]
) -> BaseLoader:
    loaders: list[BaseLoader] = [kind(own)] if own else []
    loaders.append(PrefixLoader({name: kind(folder) for name, folder in others.items()}))
    return ChoiceLoader([*loaders, FileSystemLoader(TEMPLATES)])
