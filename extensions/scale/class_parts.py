"""The three parts of a PolarStar's egress classes, and the program that numbers classes so.

A class is a link together with the destinations that it serves: the neighbour itself (*direct*),
other switches of the supernodes next to the switch's own (*beside*), or all other destinations
(*beyond*). A switch with at most K links has 3K classes, K of each part: link k has class k for
destinations beyond, K + k for the neighbour itself, and 2K + k for those beside.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing import polarstar_minimal
from compilers.tables.star_rows import StarProgram
from compilers.topology.labelled_graph import Topology

BEYOND, DIRECT, BESIDE = range(3)
"""The three parts of a switch's classes, K each. Direct ones are the second part, as in all builds.
"""


def three_class_program(topology: Topology, most_links: int) -> StarProgram:
    """The minimal routes of a whole PolarStar, with three classes for each of so many links."""
    return replace(polarstar_minimal.star_program(topology), shift=class_shifts(most_links))


def has_three_classes(program: StarProgram, most_links: int) -> bool:
    """Whether a program has three classes for each of so many links."""
    return np.array_equal(program.shift, class_shifts(most_links))


def class_shifts(most_links: int) -> NDArray[np.uint16]:
    """What `StarProgram.shift` adds to the number of a link: 2K for a class beside, K if direct."""
    return np.array([BESIDE * most_links, DIRECT * most_links], np.uint16)
