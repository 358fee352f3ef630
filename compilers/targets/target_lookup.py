"""The target of a name: a class of polarfab, or one that an installed package registers.

There is no list to add to: a new system is a folder of this one with a module `target`, and a
folder of templates of its name (`compilers.spec.target_names` finds it).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from compilers.entry_points import TARGETS, broken, load, package, registered
from compilers.spec.features import FEATURES
from compilers.spec.target_names import BUILT_IN, SHIPPED, system_names, target_names
from compilers.targets.target import Target
from inventory.problems import InputError, Problem, not_among

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DECLARED = ("name", "summary", "files")
"""What every class of a target says of itself."""


def target(name: str) -> Target:
    """The target of that name.

    Raises:
        InputError: there is none, or there are several, or the package that registers it is broken.
    """
    entries = registered(TARGETS).get(name, ())
    if len(entries) + (name in BUILT_IN) > 1:
        raise InputError(_clash(name, tuple(entry for entry in entries if entry.dist)))
    if entries:
        return _load(entries[0])
    if name not in BUILT_IN:
        raise InputError(not_among(name, target_names(), "target"))
    return _built_in(BUILT_IN[name])


@cache
def installed_systems() -> tuple[Target, ...]:
    """Every system that is installed, in the order of the names; tools are left out."""
    return tuple(map(target, system_names()))


def usual_first() -> list[Target]:
    """The systems that are installed, first the one that is taken where none is named."""
    return sorted(installed_systems(), key=lambda system: not system.usual)


def _built_in(module: str) -> Target:
    """The one class of a target that the module defines."""
    found = import_module(f"{__package__}.{module}")
    classes = (value for value in vars(found).values() if isinstance(value, type))
    (kind,) = (c for c in classes if issubclass(c, Target) and c.__module__ == found.__name__)
    made: Target = kind()
    return made


def _load(entry: EntryPoint) -> Target:
    """The target of another package, as far as it can be checked before it is used.

    Raises:
        InputError: it cannot be imported, or is no target.
    """
    kind = load(entry)
    if not (isinstance(kind, type) and issubclass(kind, Target)):
        raise broken(entry, f"{entry.value} is no subclass of polarfab.Target")
    try:
        made: Target = kind()
        mistakes = "; ".join(_mistakes(made, entry.name))
    except Exception as error:  # the package may be anybody's: anything can happen
        raise broken(entry, f"{type(error).__name__}: {error}") from error
    if mistakes:
        raise broken(entry, mistakes)
    return made


def _mistakes(made: Target, name: str) -> Iterator[str]:
    if missing := [word for word in DECLARED if not hasattr(made, word)]:
        yield f"the class has no {' and no '.join(missing)}"
        return
    if made.name != name:
        yield f"the class calls itself {made.name}"
    if unknown := sorted(made.capabilities.features - FEATURES):
        yield f"no capability is called {', '.join(unknown)}"
    for file in made.files:
        if not (made.templates / f"{file}.j2").is_file():
            yield f"there is no template {made.templates / file}.j2"


def _clash(name: str, entries: tuple[EntryPoint, ...]) -> Problem:
    owners = ["polarfab itself"] * (name in SHIPPED) + [package(entry) for entry in entries]
    return Problem(
        key=f"target {name}",
        required="one installed target of that name",
        given=f"those of {' and of '.join(owners)}",
        todo="uninstall what you do not need",
    )
