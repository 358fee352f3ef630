"""The interface of a baseline, an extension of `Family`, and checks that baselines share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from compilers.topology.labelled_graph import Design, Family, Parameters
from inventory.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineDesign(Design):
    """A design with the parameters that build it.

    endpoints is how many of the nodes carry hosts; host_diameter is the largest distance between
    two of those (Projective Networks paper, §VI), which in the direct families is the diameter.
    """

    parameters: Parameters
    endpoints: int
    host_diameter: int


class Baseline(Family, Protocol):
    """A family for comparison only. `check` also reports parameters that are missing.

    optional names the parameters that have a default.
    """

    optional: tuple[str, ...]

    def mean_distance(self, parameters: Parameters) -> float | None:
        """Mean hops from a node with hosts to another, by formula; None where none is known.

        Routes are the family's usual minimal ones.
        """

    def utilisation(self, parameters: Parameters) -> float | None:
        """Mean over largest link load, u, for uniform traffic on those routes, evenly split.

        By formula; None where none is known.
        """


def integers(
    parameters: Parameters, least: Mapping[str, int], optional: tuple[str, ...] = ()
) -> list[Problem]:
    """Problems of the keys of `least`: missing, not an integer, or below the least value."""
    return [
        Problem(
            key=key,
            required=f"an integer of at least {floor}",
            given="none" if key not in parameters else str(parameters[key]),
            todo=f"the smallest is {floor}",
        )
        for key, floor in least.items()
        if not (key in optional and key not in parameters)
        and not _is_integer(parameters.get(key), floor)
    ]


def _is_integer(value: int | str | None, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def mean_of_diameter_two(nodes: int, degree: int) -> float:
    """Mean distance in a regular graph of diameter 2: degree vertices at 1, all others at 2."""
    return 2 - degree / (nodes - 1)
