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
from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATES = Path(__file__).parent
"""The folder of the package's templates."""


def environment(own: Path | None = None, folders: Mapping[str, Path] | None = None) -> Environment:
    """The templates of all targets, `TARGET/FILE.j2`.

    A variable that does not exist is an error, never an empty text. With templates that are not the
    package's all are in Jinja2's sandbox: they see no internals of Python, and change no value.

    Args:
        own: a folder of the user's, whose templates replace others.
        folders: those of targets of other packages, by target.
    """
    others = dict(folders or {})
    if not own and all(TEMPLATES in folder.parents for folder in others.values()):
        return _shipped(tuple(others.items()))
    return _environment(ImmutableSandboxedEnvironment, own, others)


@cache
def _shipped(folders: tuple[tuple[str, Path], ...]) -> Environment:
    """The package's templates alone, each of which a process translates once."""
    return _environment(Environment, None, dict(folders))


def _environment(
    environment_type: type[Environment], own: Path | None, others: Mapping[str, Path]
) -> Environment:
    """Templates with the settings that all share."""
    return environment_type(
        loader=_loader(own, others),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _loader(own: Path | None, others: Mapping[str, Path]) -> BaseLoader:
    """A loader that looks in the user's folder first, and in the package's last."""
    loaders: list[BaseLoader] = [FileSystemLoader(own)] if own else []
    loaders.append(
        PrefixLoader({name: FileSystemLoader(folder) for name, folder in others.items()})
    )
    return ChoiceLoader([*loaders, FileSystemLoader(TEMPLATES)])
