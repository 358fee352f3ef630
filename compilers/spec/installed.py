"""What of a fabric is cabled already: the ports of an earlier build, by names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Installed:
    """One plane as an earlier build has it.

    vertex: of each node. link: the port at the first of two nodes that are joined. host: the port
    of each host of a node, by its number there from 0. place: that number by node and host's name.
    """

    vertex: Mapping[str, int]
    link: Mapping[tuple[str, str], str]
    host: Mapping[tuple[str, int], str]
    place: Mapping[tuple[str, str], int]
