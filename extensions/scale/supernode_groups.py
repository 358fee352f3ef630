"""The supernodes of a PolarStar, in groups whose switches number their links alike.

The links of a switch are numbered in canonical order: first the *outer* links to supernodes with
smaller numbers, then the *inner* links within its own supernode, then the outer links to supernodes
with larger numbers. So all supernodes of one kind (ordinary, or of a quadric) with equally many
smaller neighbours number their links alike. Within such a group, supernodes differ only in the
triangles of the structure graph that they are part of.

What comes in is a `StarProgram`. Of its arrays this module reads, for supernode x and member x':

- `around[x]`, the *line* of x: the supernodes orthogonal to x in the structure graph, ascending.
  These are its neighbours, and x itself if x is of a quadric;
- `along[ALONG, x']`, the member at the other end of an outer link of x' to a supernode with a
  larger number, and `along[AGAINST, x']`, to one with a smaller number;
- `joined[kind, x', y']`, whether an inner link joins the members x' and y' of a supernode of this
  kind, and `links[kind, x']`, how many inner links x' has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.star_rows import AGAINST, ALONG, StarProgram
from compilers.topology.triangles import apex_links

ORDINARY, QUADRIC = 0, 1
"""The kinds of supernodes, as indexes of `StarProgram.links` and `StarProgram.joined`."""
NO_NEIGHBOUR = -1
"""In place of a neighbour: at this place of the line is the supernode itself."""
Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class SupernodeGroup:
    """g supernodes of k members; each member has D outer and L inner links, numbered alike."""

    kind: int
    """ORDINARY or QUADRIC."""
    supernodes: Numbers
    """int[g], the numbers of the supernodes, ascending."""
    outer_links: Numbers
    """int[D], the numbers of the links to other supernodes, ascending."""
    inner_links: Numbers
    """int[L], the numbers of the links within the supernode, ascending."""
    direction: Numbers
    """int[D], by outer link: ALONG to a supernode with a larger number, AGAINST to a smaller."""
    outer_members: Numbers
    """int[k, D], the member of the other supernode at the far end of each outer link."""
    inner_members: Numbers
    """int[k, L], the member at the far end of each inner link."""
    apex_link: Numbers
    """int[g, D], for the outer link from supernode x to supernode z: the number of the link from x
    to the apex, the common neighbour of x and z; -1 where they have none."""

    @classmethod
    def groups_of(cls, program: StarProgram) -> Iterator[SupernodeGroup]:
        """The groups of all supernodes of a program.

        There are none if two members of a supernode differ in their number of inner links, as they
        would not number their links alike.
        """
        if any(len(np.unique(link_counts)) > 1 for link_counts in program.links):
            return
        lines = program.around
        itself = np.arange(len(lines))[:, None]
        smaller_neighbours = (lines < itself).sum(axis=1)
        neighbours = np.where(lines == itself, np.int32(NO_NEIGHBOUR), lines)
        apex_places = apex_links(neighbours).astype(np.intp)
        for kind in (ORDINARY, QUADRIC):
            of_kind = program.quadric == kind
            for smaller in np.unique(smaller_neighbours[of_kind]).tolist():
                supernodes = np.flatnonzero(of_kind & (smaller_neighbours == smaller))
                apexes = apex_places[supernodes]
                yield cls._numbered(program, kind, supernodes, smaller, apexes)

    @classmethod
    def _numbered(
        cls,
        program: StarProgram,
        kind: int,
        supernodes: Numbers,
        smaller_neighbours: int,
        apex_places: Numbers,
    ) -> SupernodeGroup:
        """Number the links of one group.

        Args:
            program: the routes of the whole PolarStar.
            kind: the kind of the supernodes, ORDINARY or QUADRIC.
            supernodes: int[g], the numbers of the supernodes.
            smaller_neighbours: how many neighbours of each of them have smaller numbers.
            apex_places: int[g, q + 1], by supernode x and place on its line. Let z be the supernode
                at this place: the place, on the line of x, of the apex of x and z; -1 for none.
        """
        inner_count = int(program.links[kind][0])  # equal for all members (`groups_of`)
        outer_count = program.around.shape[1]
        if kind == QUADRIC:
            # The supernode itself is on its line, behind its smaller neighbours. No link is there.
            outer_count -= 1
            apex_places = np.delete(apex_places, smaller_neighbours, axis=1)
        # Links to smaller neighbours keep their places. Inner links come before all others.
        place = np.arange(outer_count)
        is_to_smaller = place < smaller_neighbours
        outer_links = np.where(is_to_smaller, place, place + inner_count)
        direction = np.where(is_to_smaller, AGAINST, ALONG)
        inner_members = np.nonzero(program.joined[kind])[1]  # of all members, one after the other
        return cls(
            kind=kind,
            supernodes=supernodes,
            outer_links=outer_links,
            inner_links=np.arange(smaller_neighbours, smaller_neighbours + inner_count),
            direction=direction,
            outer_members=program.along[direction].T.astype(np.intp),
            inner_members=inner_members.reshape(program.members, inner_count),
            # A quadric is in no triangle, so every place here is a place among the neighbours.
            apex_link=np.where(apex_places >= 0, outer_links[np.maximum(apex_places, 0)], -1),
        )

    @property
    def link_count(self) -> int:
        """K: how many links each switch of the group has."""
        return len(self.outer_links) + len(self.inner_links)

    @property
    def members(self) -> Numbers:
        """int[k, 1, 1], the members of a supernode, to be broadcast over two axes of links."""
        return np.arange(len(self.outer_members))[:, None, None]

    @property
    def switches(self) -> Numbers:
        """int[g·k], all switches of the group's supernodes."""
        k = len(self.outer_members)
        return (self.supernodes[:, None] * k + np.arange(k)).ravel()

    def empty_sets(self) -> NDArray[np.bool_]:
        """An empty set of links for each class, bool[k, 3, K, K], all False.

        By member, part of the classes (`class_parts`), the class's link, and the link in the set.
        """
        shape = len(self.outer_members), 3, self.link_count, self.link_count
        return np.zeros(shape, np.bool_)

    def without_own_link(self, links: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Remove the class's own link from sets of links, and return them.

        Args:
            links: bool[k, 3, K, K], as `empty_sets`; written.
        """
        own_link = np.arange(self.link_count)
        links[:, :, own_link, own_link] = False
        return links
