"""What packages add to polarfab, by group: an entry point has a name, and says where the object is.

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
| `polarfab.proofs` | a proof of whole fabrics | a `WholeFabricProof` (`compilers.proof.local`) |

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

VERBS, FUNCTIONS = "polarfab.verbs", "polarfab.functions"
TARGETS, ADDITIONS = "polarfab.targets", "polarfab.additions"
EXPORTS, PROOFS = "polarfab.exports", "polarfab.proofs"
FAMILIES, BALANCES = "polarfab.families", "polarfab.balances"
CONSTRUCTIONS = "polarfab.constructions"
SINGULAR = {FAMILIES: "family"}

EXTENSIONS = Path(__file__).resolve().parents[1] / "extensions"
PACKAGE = f"{__package__.removesuffix('compilers')}extensions"
"""The package of the extensions: `extensions` in a checkout, `polarfab.extensions` installed."""


@cache
def registered(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points of a group by name; of one name more than one is a clash."""
    from importlib.metadata import EntryPoint, entry_points

    ours = [EntryPoint(name, value, group) for name, value in shipped(group).items()]
    found = [*ours, *entry_points(group=group)]
    names = sorted({entry.name for entry in found})
    return {name: tuple(entry for entry in found if entry.name == name) for name in names}


def shipped(group: str) -> dict[str, str]:
    """What the extensions register in a group: where the object is, by name."""
    points: dict[str, str] = {}
    for folder in sorted(path.parent for path in EXTENSIONS.glob("*/__init__.py")):
        points |= import_module(f"{PACKAGE}.{folder.name}").ENTRY_POINTS.get(group, {})
    return points


def load(entry: EntryPoint) -> Any:
    """The object of an entry point.

    Raises:
        InputError: the package that registers it is broken.
    """
    try:
        return entry.load()
    except Exception as error:  # the package may be anybody's: anything can happen
        raise broken(entry, f"{type(error).__name__}: {error}") from error


def broken(entry: EntryPoint, what: str) -> InputError:
    """The error of a package whose object cannot be used, with its name."""
    kind = SINGULAR.get(entry.group, entry.group.removeprefix("polarfab.").removesuffix("s"))
    return InputError.of(
        key=f"{kind} {entry.name}",
        required=f"{'an' if kind[0] in 'ae' else 'a'} {kind} that can be imported",
        given=f"{what} ({package(entry)})",
        todo="update the package that registers it, or uninstall it",
    )


def package(entry: EntryPoint) -> str:
    """The package of an entry point, for messages."""
    return f"package {entry.dist.name}" if entry.dist else entry.value
