"""The planes of a fabric in the output of commands: measurements, reports and table rows.

A plane is a fabric of its own switches and links, to which all hosts are connected; most fabrics
have one. Commands that measure, compare or print a fabric call these functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from inventory.problems import InputError
from polarfab.output.verb_output import counted

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

Measurement = TypeVar("Measurement")
"""The result of a measurement of a plane."""
PlanePair = tuple["Fabric", "Fabric"]
"""A plane of one fabric, and the same plane of another."""


def side_by_side(first: Fabric, second: Fabric) -> tuple[PlanePair, ...]:
    """The planes of two fabrics in pairs.

    Raises:
        InputError: the fabrics have different numbers of planes.
    """
    if len(first.builds) != len(second.builds):
        required = f"{counted(len(first.builds), 'plane')}, as in {first.folder or first.name}"
        planes = counted(len(second.builds), "plane")
        todo = "name folders with as many planes, or a plane of each, such as BUILD/plane-1"
        raise InputError.of(required, planes, todo, str(second.folder or ""))
    return tuple(zip(first.planes, second.planes, strict=True))


def of_each_plane(fabric: Fabric, measure: Callable[[Fabric], Measurement]) -> list[Measurement]:
    """Measure each plane; of planes that forward alike, only the first."""
    from compilers.tables.planes_alike import first_plane_forwarding_alike

    planes, results = fabric.planes, list[Measurement]()
    for number, plane in enumerate(planes):
        earlier = first_plane_forwarding_alike(fabric.builds, number)
        results.append(measure(plane) if earlier is None else results[earlier])
    return results


def merged_reports(
    names: Sequence[str], reports: Sequence[dict[str, Any]], totals: dict[str, Any]
) -> dict[str, Any]:
    """The report of a fabric for JSON: the report of its only plane, or a list of several.

    Args:
        names: the names of the planes.
        reports: the report of each plane.
        totals: the values for all planes together, which come first if there are several.
    """
    if len(reports) == 1:
        return reports[0]
    named = zip(names, reports, strict=True)
    return {**totals, "planes": [{"fabric": name, **report} for name, report in named]}


def counted_rows(switches: Sequence[dict[str, Any]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """A table of switches: its headings, and a row for all switches that have the same numbers.

    Args:
        switches: at least one switch, each with its name as `node` and the same keys of numbers.
    """
    columns = [column for column in switches[0] if column != "node"]
    counts = Counter(tuple(switch[column] for column in columns) for switch in switches)
    return ["switches", *columns], [(count, *numbers) for numbers, count in sorted(counts.items())]


def say_plane(name: str, planes: int) -> None:
    """Print the name of a plane above its output, if the fabric has several planes."""
    if planes > 1:
        click.secho(f"\nplane {name}", bold=True)
