"""What is cabled already: the ports of links and hosts in an earlier build, by names.

A compile with `cables_of` an earlier build keeps them, so that no cable moves without need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Installed:
    """The vertices and ports of one plane in an earlier build."""

    vertex: Mapping[str, int]
    """The vertex of each node."""
    link: Mapping[tuple[str, str], str]
    """The name of a link's port at the first of the two nodes that it joins."""
    host: Mapping[tuple[str, int], str]
    """The name of each host's port, by its node and its place there, from 0."""
    place: Mapping[tuple[str, str], int]
    """The place of each host at its node, from 0, by the node and the host's name."""
