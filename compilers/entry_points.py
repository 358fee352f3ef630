"""Entry points: what packages and extensions add to polarfab, by group.

An entry point has a name, and says where its object is.

| group | a name is | the object |
|---|---|---|
| `polarfab.verbs` | a verb of the command line | a `click.Command` |
| `polarfab.functions` | a function of `import polarfab` | the function |
| `polarfab.targets` | a system that `render` writes for | a class of `polarfab.Target` |
| `polarfab.additions` | SYSTEM.WHAT, what is added to a system | a class of `polarfab.Addition` |
| `polarfab.families` | a family of topologies | a class of `polarfab.Family` |
| `polarfab.balances` | a value of `routing.balance` | a class of `polarfab.Balance` |
| `polarfab.exports` | a format of `export` | a function from builds, one a plane, to files |
| `polarfab.constructions` | a family of large fabrics | a `Construction` (`topology.family`) |
| `polarfab.proofs` | a proof of whole fabrics | a `WholeFabricProof` (`registered_proofs`) |

Packages register by the entry points of their metadata; each extension in `extensions/` by the same
words, `ENTRY_POINTS` of its `__init__.py`, so that a checkout needs no installation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inventory.problems import InputError

if TYPE_CHECKING:  # reading what is installed takes 20 ms, and most commands need nothing of it
    from importlib.metadata import EntryPoint

# The groups, which the table above explains.
VERBS, FUNCTIONS = "polarfab.verbs", "polarfab.functions"
TARGETS, ADDITIONS = "polarfab.targets", "polarfab.additions"
EXPORTS, PROOFS = "polarfab.exports", "polarfab.proofs"
FAMILIES, BALANCES = "polarfab.families", "polarfab.balances"
CONSTRUCTIONS = "polarfab.constructions"
SINGULAR = {FAMILIES: "family"}
"""What an object of a group is called, where that is not the group's name without its s."""
EXTENSIONS = Path(__file__).resolve().parents[1] / "extensions"
"""The folder of the extensions."""
PACKAGE = f"{__package__.removesuffix('compilers')}extensions"
"""The package of the extensions: `extensions` in a checkout, `polarfab.extensions` installed."""


@cache
def registered(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by name; several with one name clash."""
    from importlib.metadata import EntryPoint, entry_points

    shipped_entries = [EntryPoint(name, value, group) for name, value in shipped(group).items()]
    entries = [*shipped_entries, *entry_points(group=group)]
    names = sorted({entry.name for entry in entries})
    return {name: tuple(entry for entry in entries if entry.name == name) for name in names}


@cache
def shipped(group: str) -> Mapping[str, str]:
    """Return where the objects are that the extensions register in a group, by name."""
    objects: dict[str, str] = {}
    for folder in sorted(path.parent for path in EXTENSIONS.glob("*/__init__.py")):
        objects |= import_module(f"{PACKAGE}.{folder.name}").ENTRY_POINTS.get(group, {})
    return objects


def load(entry: EntryPoint) -> Any:
    """Import the object of an entry point.

    Raises:
        InputError: the package that registers it is broken.
    """
    try:
        return entry.load()
    except Exception as error:  # another package's code may raise any exception
        raise broken_entry_point(entry, f"{type(error).__name__}: {error}") from error


def broken_entry_point(entry: EntryPoint, what: str) -> InputError:
    """Return the error that an entry point's object cannot be used, with the package.

    Args:
        entry: the entry point.
        what: what is wrong with its object, in words.
    """
    kind = SINGULAR.get(entry.group, entry.group.removeprefix("polarfab.").removesuffix("s"))
    return InputError.of(
        key=f"{kind} {entry.name}",
        required=f"{'an' if kind[0] in 'ae' else 'a'} {kind} that can be imported",
        given=f"{what} ({package(entry)})",
        todo="update the package that registers it, or uninstall it",
    )


def package(entry: EntryPoint) -> str:
    """Return the name of an entry point's package, for messages."""
    return f"package {entry.dist.name}" if entry.dist else entry.value
