"""Finds targets by name: classes of polarfab, and those that installed packages register.

There is no list of targets. A new system is a folder here with a module `target`, and a folder of
templates of the same name (`compilers.spec.target_names` finds it).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from compilers.entry_points import TARGETS, broken_entry_point, load, package, registered
from compilers.spec.features import FEATURES
from compilers.spec.target_names import BUILT_IN, SHIPPED, system_names, target_names
from compilers.targets.target import Target
from inventory.problems import InputError, Problem, not_among

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DECLARED = ("name", "summary", "files")
"""The attributes that every class of a target has to define."""


def target(name: str) -> Target:
    """The target of a name.

    Raises:
        InputError: no target or several have the name, or the package of the target is broken.

    >>> target("ovs").summary
    'groups.txt and flows.txt for ovs-ofctl -O OpenFlow13 add-groups, add-flows'
    """
    entries = registered(TARGETS).get(name, ())
    target_count = len(entries) + (1 if name in BUILT_IN else 0)
    if target_count > 1:
        # Entries without a distribution are those of polarfab's own extensions.
        of_packages = tuple(entry for entry in entries if entry.dist)
        raise InputError(_clash_problem(name, of_packages))
    if entries:
        return _registered_target(entries[0])
    if name not in BUILT_IN:
        raise InputError(not_among(name, target_names(), "target"))
    return _built_in_target(BUILT_IN[name])


@cache
def installed_systems() -> tuple[Target, ...]:
    """The targets that are systems, in the order of their names; tools are left out."""
    return tuple(map(target, system_names()))


def default_first() -> list[Target]:
    """The installed systems, first the one that tools take where the user names none."""
    return sorted(installed_systems(), key=lambda system: not system.is_default)


def _built_in_target(module: str) -> Target:
    """The target whose class a module of polarfab defines."""
    imported = import_module(f"{__package__}.{module}")
    classes = (value for value in vars(imported).values() if isinstance(value, type))
    # Base classes are among the values too, but they are defined in other modules.
    (target_class,) = (
        class_
        for class_ in classes
        if issubclass(class_, Target) and class_.__module__ == imported.__name__
    )
    instance: Target = target_class()
    return instance


def _registered_target(entry: EntryPoint) -> Target:
    """The target of another package, checked as far as it can be before it is used.

    Raises:
        InputError: it cannot be imported, or is no target.
    """
    target_class = load(entry)
    if not (isinstance(target_class, type) and issubclass(target_class, Target)):
        raise broken_entry_point(entry, f"{entry.value} is no subclass of polarfab.Target")
    try:
        instance: Target = target_class()
        mistakes = "; ".join(_mistakes(instance, entry.name))
    except Exception as error:  # the package may be anybody's: anything can happen
        raise broken_entry_point(entry, f"{type(error).__name__}: {error}") from error
    if mistakes:
        raise broken_entry_point(entry, mistakes)
    return instance


def _mistakes(instance: Target, name: str) -> Iterator[str]:
    """What is wrong with a target of another package that is registered under a name."""
    if missing := [attribute for attribute in DECLARED if not hasattr(instance, attribute)]:
        yield f"the class has no {' and no '.join(missing)}"
        return
    if instance.name != name:
        yield f"the class calls itself {instance.name}"
    if unknown := sorted(instance.capabilities.features - FEATURES):
        yield f"no capability is called {', '.join(unknown)}"
    for file in instance.files:
        if not (instance.templates / f"{file}.j2").is_file():
            yield f"there is no template {instance.templates / file}.j2"


def _clash_problem(name: str, entries: tuple[EntryPoint, ...]) -> Problem:
    """The problem of several targets with one name.

    Args:
        name: the name.
        entries: the registrations of the name by other packages.
    """
    owners = [package(entry) for entry in entries]
    if name in SHIPPED:
        owners.insert(0, "polarfab itself")
    return Problem(
        key=f"target {name}",
        required="one installed target of that name",
        given=f"those of {' and of '.join(owners)}",
        todo="uninstall what you do not need",
    )
