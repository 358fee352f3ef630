r"""Every state of every packet in a whole PolarFly, proved by its classes and pairs of neighbours.

A *state* of a packet is what decides its next link: the switch, the link that it came in by, and
what is down. `compilers.proof.local.class_cases` tabulates the states of an egress class as a few
*cases*: the link that is down, and the link that packets take then. Here each case of each class is
looked at once, instead of once for each destination.

At its first switch a packet of a host has one or more *choices*: the entries of the class among
which load is balanced. One is the minimal link; another link is a *detour*. The *summary* of a
class has the number of its choices, and whether one of them is a detour, as bits of one number.

A switch with K links has two classes for each link k. Class k serves the two-hop destinations over
link k: those *behind* the link. Class K + k serves one destination only, the neighbour at the other
end of link k: it is *direct*. The *apex* of a link s-u is the third switch of the triangle on this
link, if there is one: the common neighbour of s and u. A packet may come in by the very link that
its minimal path would take. Then the switch sends it by another link, its *bounce link*.

The theorem: let minimal delivery be proved (`plane_lines`). Then any two switches have one minimal
path, of one or two links, and at most one common neighbour. Let v be a neighbour of switch s, and
let v be down, or the link s-v. Then s sends a packet for destination d to another neighbour, u. (It
may also do so while nothing is down, if the packet came in by its minimal link.) There are three
cases. The drawings have v where it usually is, on the minimal path:

    Behind: s-u-m-d      Direct, triangle: s-u-d      Direct, bounce: s-u-x-y-d

         v                      d (= v)                   (v =) d ----- y
       /   \                   / \                             |       |
      s     d                 s---u                            s---u---x
       \   /
        u-m

*Behind: d is two links from s.*

1. The minimal path from u to d has at most two links. It does not go over s, which is not adjacent
   to d. This holds for a detour over u, too, which so has at most three links.
2. It goes over v only if v is adjacent to u and to d. Then v is the common neighbour of s and d,
   which is the next switch on the minimal path from s. And s, u and v are a triangle: u is the apex
   of s-v. So if switches may be down, u must not be this apex.

So one answer for each class is enough (`_behind_is_repaired`).

*Direct: d is a neighbour of s.*

3. Triangle: if u is the apex of s-d, it is adjacent to d, and the packet arrives after two links.
4. Bounce: otherwise s is the common neighbour of u and d, and the minimal path from u leads back
   to s. So u sends the packet by its bounce link, to x. Neither may x be s, nor may x be the apex
   of s-u. So x is not adjacent to s. Nor is x adjacent to d, as s is the only common neighbour of u
   and d.
5. So x is two links from d, with one switch y between them. It is not s, as x is not adjacent to s.
   It is not u, as u is not adjacent to d.
6. Nor does the path go over v, if v is not d itself. x is not v, as v is adjacent to s. If y were
   v, it would be a common neighbour of s and x, but the only one is u. So the packet arrives after
   four links.

So one answer for each pair of neighbours is enough (`_direct_stretch`).

*For example*, in PolarFly q = 3 switch 0 has the neighbours 1, 4, 7 and 10; 0-1-4 and 0-7-10 are
triangles.

- Behind: let switch 4 be down, and d = 2, which is behind 4. Over u = 7 the packet goes 0-7-11-2.
  Over u = 1, the apex of 0-4, it would go to 1, and from there to 4, which is down.
- Direct: let the link 0-1 be down, and d = 1. Over u = 4, the apex, the packet goes 0-4-1. Over
  u = 7 it must bounce, but neither back to 0 nor to 10. It goes to x = 11: 0-7-11-6-1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compilers.proof.local.class_cases import (
    CASES,
    DOWN,
    END,
    LOST,
    NEXT_LINK,
    ClassStates,
    came_by_minimal,
    choice_count,
    has_detours,
    link_taken,
)
from compilers.proof.local.class_states import class_states
from compilers.proof.local.local_proof import PROVABLE_KINDS, LocalProof, Numbers
from compilers.proof.soundness.link_sets import Bits
from compilers.tables.build import Build
from compilers.tables.line_rows import LineEgress
from extensions.scale.two_link_classes import TwoLinkClasses

DIAMETER = 2
"""The most links of a minimal path."""
LINKS_ADDED_BY_TRIANGLE, LINKS_ADDED_BY_BOUNCE = 1, 3
"""How many links a repair adds to the one link to a neighbour: it takes two links over the apex, or
four over a neighbour that bounces the packet."""


def plane_states(
    build: Build, hop_counts: tuple[int, ...], kinds: tuple[str, ...]
) -> LocalProof | None:
    """The proof of a whole PolarFly; None if a condition does not hold, which proves nothing.

    Args:
        build: with sound cables and prefixes (`build_soundness.unwalkable_values`).
        hop_counts: the result of `plane_lines`, which proved minimal paths for all pairs.
        kinds: the kinds of failures: `link`, `node` or both.
    """
    egress, most_links = build.tables.routes.egress, build.wiring.far.shape[1]
    # A marked packet leaves u by a random link, so the minimal path of step 1 is not its path.
    if build.forwarding.marks:
        return None
    # All steps need classes that are told by their link: k behind the link, K + k direct.
    if not isinstance(egress, LineEgress) or egress.direct_offset != most_links:
        return None
    # All steps need one minimal path, and at most one common neighbour, of any two switches.
    classes = TwoLinkClasses.of(build)
    if classes is None or not _are_numbered_by_link(classes):
        return None
    states = class_states(build, np.array([kind in kinds for kind in PROVABLE_KINDS]))
    is_cabled = build.wiring.far >= 0
    behind, direct = states.summary[:, :most_links], states.summary[:, most_links : 2 * most_links]
    # Steps 3 to 6 count the links of repairs only. So while all is up, a packet to a neighbour must
    # take the link to it. Detours to two-hop destinations are in step 1.
    if has_detours(direct[is_cabled]).any():
        return None
    if not _behind_is_repaired(classes, states, kinds):
        return None
    stretch = _direct_stretch(classes, states, kinds)
    if stretch is None:
        return None
    one_more_link = bool(has_detours(behind[is_cabled]).any())
    return LocalProof.of_all(
        switches=len(build.wiring.far),
        choices=_choices_of_all_pairs(classes, states),
        hop_counts=hop_counts,
        longest=DIAMETER + one_more_link,
        stretch=stretch,
    )


def _choices_of_all_pairs(classes: TwoLinkClasses, states: ClassStates) -> int:
    """How many choices packets of hosts have at their first switch, over all pairs of switches.

    Each class has its choices for each of its destinations.
    """
    of_class = choice_count(states.summary)
    choices = int((of_class * classes.destinations_behind).sum())
    # `destinations_behind` leaves out the neighbour that each direct class serves.
    is_cabled = states.program.far >= 0
    most_links = is_cabled.shape[1]
    return choices + int(of_class[:, most_links : 2 * most_links][is_cabled].sum())


def _are_numbered_by_link(classes: TwoLinkClasses) -> bool:
    """Whether class k leads over link k, and class K + k to the neighbour behind it alone."""
    most_links = classes.apex_link.shape[1]
    switch, link = np.nonzero(classes.build.wiring.far >= 0)
    return (
        np.array_equal(classes.minimal_link[switch, link], link)
        and np.array_equal(classes.minimal_link[switch, most_links + link], link)
        and np.array_equal(classes.direct_class[switch, link], most_links + link)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Cases:
    """One case (`ClassStates.cases`) of each of n classes, with its parts as arrays."""

    index: Numbers
    """int64[n], the indices of these classes among those that are looked at."""
    link_down: Numbers
    """int16[n], the link that is down; NONE while all are up."""
    link_taken: Numbers
    """int16[n], the link s-u that packets take then; of no meaning where packets are lost."""
    is_lost: Bits
    """bool[n], whether packets have no link to take, and are lost."""
    came_by_minimal: Bits
    """bool[n], whether the case is that of packets that came in by the minimal link."""

    def where(self, chosen: Bits) -> _Cases:
        """The cases of some of the classes, bool[n]."""
        return _Cases(
            index=self.index[chosen],
            link_down=self.link_down[chosen],
            link_taken=self.link_taken[chosen],
            is_lost=self.is_lost[chosen],
            came_by_minimal=self.came_by_minimal[chosen],
        )


def _cases(states: ClassStates, switch: Numbers, class_number: Numbers) -> Iterator[_Cases]:
    """The first cases of some classes (by switch and number), then the second ones, and so on."""
    index = np.arange(len(switch))
    for case in range(CASES):
        rows = states.cases[switch[index], class_number[index], case]
        # END stands after the last case of a class, which then has no later case either.
        exists = rows[:, NEXT_LINK] != END
        index, rows = index[exists], rows[exists]
        next_link = rows[:, NEXT_LINK]
        yield _Cases(
            index=index,
            link_down=rows[:, DOWN],
            link_taken=link_taken(next_link),
            is_lost=next_link == LOST,
            came_by_minimal=came_by_minimal(next_link),
        )


def _behind_is_repaired(
    classes: TwoLinkClasses, states: ClassStates, kinds: tuple[str, ...]
) -> bool:
    """Whether packets for two-hop destinations arrive in all cases (steps 1 and 2)."""
    switch, class_link = np.nonzero(states.program.far >= 0)
    for cases in _cases(states, switch, class_link):
        link = class_link[cases.index]
        if cases.is_lost.any():
            return False  # there is no u
        # 2: the path from u goes over v if v is the next switch, and u the apex of the link s-v.
        apex = classes.apex_link[switch[cases.index], link]
        goes_over_v = (cases.link_down == link) & (apex == cases.link_taken)
        if "node" in kinds and goes_over_v.any():
            return False
    return True


def _direct_stretch(
    classes: TwoLinkClasses, states: ClassStates, kinds: tuple[str, ...]
) -> dict[str, Numbers] | None:
    """The most links that repairs towards each neighbour add, int64[S] by kind of failure.

    None if some state of a direct class is not proved.
    """
    far, apex = states.program.far, classes.apex_link
    s, k = np.nonzero(far >= 0)
    stretch = {kind: np.ones(len(far), np.int64) for kind in kinds}
    for all_cases in _cases(states, s, far.shape[1] + k):
        if all_cases.is_lost.any():
            return None  # there is no u
        # The minimal link leads to d itself, and no packet for d comes in from d.
        cases = all_cases.where(~all_cases.came_by_minimal)
        switch, direct_link = s[cases.index], k[cases.index]
        # 3: u is the apex of the link s-d.
        in_triangle = apex[switch, direct_link] == cases.link_taken
        # 4: u gets a packet whose minimal path leads back over the link from u to s, `link_to_s`.
        # The class of that path has the number of this link. x is not s, and not the apex of s-u.
        u, link_to_s = far[switch, cases.link_taken], classes.far_link[switch, cases.link_taken]
        link_to_x = states.bounce_link[u, link_to_s]
        x_is_s, x_is_apex = link_to_x == link_to_s, link_to_x == apex[u, link_to_s]
        returns = (link_to_x < 0) | x_is_s | x_is_apex
        if (~in_triangle & returns).any():
            return None
        added = np.where(in_triangle, LINKS_ADDED_BY_TRIANGLE, LINKS_ADDED_BY_BOUNCE)
        destination = far[switch, direct_link]
        for kind, most in stretch.items():
            # The destination itself does not fail.
            meets_failure = (cases.link_down >= 0) & (
                (kind == "link") | (cases.link_down != direct_link)
            )
            np.maximum.at(most, destination[meets_failure], added[meets_failure])
    return stretch
