"""Planes and switches of a fabric: a report each, and what holds for all of them, or for many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from inventory.problems import InputError
from polarfab.output.verb_output import counted

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

Found = TypeVar("Found")


def side_by_side(one: Fabric, other: Fabric) -> tuple[tuple[Fabric, Fabric], ...]:
    """The planes of two fabrics in pairs.

    Raises:
        InputError: one has more than the other.
    """
    counts = [len(fabric.builds) for fabric in (one, other)]
    if counts[0] != counts[1]:
        required, given = (counted(n, "plane") for n in counts)
        todo = "name folders with as many planes, or a plane of each, such as BUILD/plane-1"
        raise InputError.of(
            f"{required}, as in {one.folder or one.name}", given, todo, str(other.folder or "")
        )
    return tuple(zip(one.planes, other.planes, strict=True))


def of_each_plane(fabric: Fabric, measure: Callable[[Fabric], Found]) -> list[Found]:
    """A measurement of each plane; planes that forward alike are measured once."""
    from compilers.tables.build_codec import first_alike

    planes, results = fabric.planes, list[Found]()
    for number, plane in enumerate(planes):
        like = first_alike(fabric.builds, number)
        results.append(measure(plane) if like is None else results[like])
    return results


def merged_reports(
    names: Sequence[str], reports: Sequence[dict[str, Any]], whole: dict[str, Any]
) -> dict[str, Any]:
    """The report of the one plane for JSON; of several, what holds for all, then each by name."""
    if len(reports) == 1:
        return reports[0]
    named = zip(names, reports, strict=True)
    return {**whole, "planes": [{"fabric": name, **report} for name, report in named]}


def alike(switches: Sequence[dict[str, Any]]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a table of switches: how many have the same numbers, and these."""
    words = [word for word in switches[0] if word != "node"]
    counts = Counter(tuple(switch[word] for word in words) for switch in switches)
    return ["switches", *words], [(count, *key) for key, count in sorted(counts.items())]


def say_plane(name: str, planes: int) -> None:
    """The name of a plane above what is printed of it, where there are several."""
    if planes > 1:
        click.secho(f"\nplane {name}", bold=True)
