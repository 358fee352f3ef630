"""Reports of the planes of a fabric, one by one and all together, and rows of switches alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from inventory.problems import InputError
from polarfab.output.verb_output import counted

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

Measured = TypeVar("Measured")


def side_by_side(one: Fabric, other: Fabric) -> tuple[tuple[Fabric, Fabric], ...]:
    """The planes of two fabrics in pairs.

    Raises:
        InputError: one has more than the other.
    """
    if len(one.builds) != len(other.builds):
        required = f"{counted(len(one.builds), 'plane')}, as in {one.folder or one.name}"
        given = counted(len(other.builds), "plane")
        todo = "name folders with as many planes, or a plane of each, such as BUILD/plane-1"
        raise InputError.of(required, given, todo, str(other.folder or ""))
    return tuple(zip(one.planes, other.planes, strict=True))


def of_each_plane(fabric: Fabric, measure: Callable[[Fabric], Measured]) -> list[Measured]:
    """A measurement of each plane; planes that forward alike are measured once."""
    from compilers.tables.build_codec import first_alike

    planes, results = fabric.planes, list[Measured]()
    for number, plane in enumerate(planes):
        like = first_alike(fabric.builds, number)
        results.append(measure(plane) if like is None else results[like])
    return results


def merged_reports(
    names: Sequence[str], reports: Sequence[dict[str, Any]], whole: dict[str, Any]
) -> dict[str, Any]:
    """The report of a fabric for JSON: that of its one plane, or those of several, by name.

    Args:
        names: of the planes.
        reports: of the planes.
        whole: what holds for all planes together; comes first where there are several.
    """
    if len(reports) == 1:
        return reports[0]
    named = zip(names, reports, strict=True)
    return {**whole, "planes": [{"fabric": name, **report} for name, report in named]}


def alike(switches: Sequence[dict[str, Any]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a table of switches: how many have the same numbers, and these.

    Args:
        switches: at least one, each with its `node` and the same keys of numbers.
    """
    columns = [column for column in switches[0] if column != "node"]
    counts = Counter(tuple(switch[column] for column in columns) for switch in switches)
    return ["switches", *columns], [(count, *numbers) for numbers, count in sorted(counts.items())]


def say_plane(name: str, planes: int) -> None:
    """Print the name of a plane above its output, where a fabric has several planes."""
    if planes > 1:
        click.secho(f"\nplane {name}", bold=True)
