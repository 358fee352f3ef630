"""The Jinja2 templates of polarfab, and the environment in which they are rendered.

There is a folder for each target or kind of page. Templates print and compute nothing.
`compilers.targets.rendering` renders those of targets.
"""

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


def environment(
    users_folder: Path | None = None, folders: Mapping[str, Path] | None = None
) -> Environment:
    """The environment with the templates of all targets, named TARGET/FILE.j2.

    A variable that does not exist is an error, never an empty text. If there are templates of a
    user or of another package, all templates run in Jinja2's sandbox: they see no internals of
    Python, and change no value.

    Args:
        users_folder: a folder of the user, whose templates replace all others of the same name.
        folders: further folders by target, such as those of targets of other packages.
    """
    target_folders = dict(folders or {})
    is_of_package = all(TEMPLATES in folder.parents for folder in target_folders.values())
    if not users_folder and is_of_package:
        return _package_environment(tuple(target_folders.items()))
    return _environment(ImmutableSandboxedEnvironment, users_folder, target_folders)


@cache
def _package_environment(folders: tuple[tuple[str, Path], ...]) -> Environment:
    """An environment with the package's templates only; a process compiles each of them once."""
    return _environment(Environment, None, dict(folders))


def _environment(
    environment_type: type[Environment], users_folder: Path | None, folders: Mapping[str, Path]
) -> Environment:
    """An environment with the settings that are the same for all templates."""
    return environment_type(
        loader=_loader(users_folder, folders),
        undefined=StrictUndefined,
        autoescape=select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,  # templates do not change while they are rendered
    )


def _loader(users_folder: Path | None, folders: Mapping[str, Path]) -> BaseLoader:
    """A loader that looks in the user's folder first, and in the package's last."""
    loaders: list[BaseLoader] = [FileSystemLoader(users_folder)] if users_folder else []
    loaders.append(
        PrefixLoader({name: FileSystemLoader(folder) for name, folder in folders.items()})
    )
    return ChoiceLoader([*loaders, FileSystemLoader(TEMPLATES)])
