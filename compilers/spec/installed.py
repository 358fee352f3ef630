"""What of a fabric is cabled already: the ports of an earlier build, by names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Installed:
    """One plane as an earlier build has it."""

    vertex: Mapping[str, int]
    """The vertex of each node."""
    link: Mapping[tuple[str, str], str]
    """The port at the first of two nodes that are joined."""
    host: Mapping[tuple[str, int], str]
    """The port of each host, by its node and its number there, from 0."""
    place: Mapping[tuple[str, str], int]
    """The number of each host at its node, by the node and the host's name."""
