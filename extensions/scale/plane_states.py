"""Every state of every packet in a whole PolarFly, proved by its classes and pairs of neighbours.

Let minimal delivery be proved (`plane_lines`). Then any two switches have one path of two links, or
a link if they are next to each other. Let switch s send a packet for d over another link than the
minimal one, to u: that link is down, or the neighbour v behind it, or the packet came in by it.
Then the questions that `compilers.proof.local.state_proof` asks for each destination have few
different answers. Class k of a switch serves the destinations behind its link k, class K + k the
neighbour there.

*Behind: d is two links from s.* No path is longer, so the one from u does not meet s. It meets v
between u and d only if v is also the one switch between s and d, and is joined to u. So one answer
for each class is enough.

*Direct: d is next to s.* If s, u and d are a triangle, the packet arrives after two links. If not,
s is the one switch next to both u and d, so u sends the packet on by its bounce link, to x. Unless
x is s, or next to s, it is two links from d. The switch between is not s then, nor u, which is not
next to d. Nor is v that switch, or x: v would be next to s and x, as u is, or the x that is next to
s. So the packet arrives after four links, and one answer for each pair of neighbours is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compilers.proof.local.class_cases import (
    CASES,
    DETOURS_BIT,
    END,
    SHARES_MASK,
    TURNED,
    ClassStates,
)
from compilers.proof.local.class_states import class_states
from compilers.proof.local.local_proof import PROVABLE_KINDS, LocalProof, Numbers
from compilers.tables.build import Build
from compilers.tables.line_rows import LineEgress
from extensions.scale.two_link_classes import TwoLinkClasses

DIAMETER = 2
"""The most links of a minimal path."""


def plane_states(
    build: Build, hop_counts: tuple[int, ...], kinds: tuple[str, ...]
) -> LocalProof | None:
    """The proof of a whole PolarFly; None if a condition does not hold, which proves nothing.

    Args:
        build: with sound cables and prefixes (`build_soundness.walkable`).
        hop_counts: the result of `plane_lines`, which proved minimal paths for all pairs.
        kinds: the kinds of failures: `link`, `node` or both.
    """
    egress, links = build.tables.routes.egress, build.wiring.far.shape[1]
    if not isinstance(egress, LineEgress) or egress.direct != links or build.forwarding.marks:
        return None
    classes = TwoLinkClasses.of(build)
    if classes is None:
        return None
    states = class_states(build, np.array([kind in kinds for kind in PROVABLE_KINDS]))
    is_cabled = build.wiring.far >= 0
    behind, direct = states.summary[:, :links], states.summary[:, links : 2 * links]
    if (direct[is_cabled] & DETOURS_BIT).any() or not _are_numbered_by_link(classes):
        return None
    if not _behind_is_repaired(classes, states, kinds):
        return None
    stretch = _direct_stretch(classes, states, kinds)
    if stretch is None:
        return None
    path_choices = (states.summary & SHARES_MASK) * classes.destinations_behind
    path_choices[:, links : 2 * links] += np.where(is_cabled, direct & SHARES_MASK, 0)
    has_detours = bool((behind[is_cabled] & DETOURS_BIT).any())
    return LocalProof.of_all(int(path_choices.sum()), hop_counts, DIAMETER + has_detours, stretch)


def _are_numbered_by_link(classes: TwoLinkClasses) -> bool:
    """Whether class k leads over link k, and class K + k to the neighbour behind it alone."""
    links = classes.apex_link.shape[1]
    s, k = np.nonzero(classes.build.wiring.far >= 0)
    return (
        np.array_equal(classes.link[s, k], k)
        and np.array_equal(classes.link[s, links + k], k)
        and np.array_equal(classes.direct[s, k] - links, k)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Cases:
    """One case (`ClassStates.cases`) of each of n classes."""

    index: Numbers
    """int64[n], the indices of these classes among those that are looked at."""
    link_down: Numbers
    """int64[n], the link that is down, negative while all are up."""
    link_taken: Numbers
    """int64[n], the link that packets take then, as in `ClassStates.cases`."""


def _cases(states: ClassStates, switch: Numbers, number: Numbers) -> Iterator[_Cases]:
    """The first cases of some classes (by switch and number), then the second ones, and so on."""
    index = np.arange(len(switch))
    for case in range(CASES):
        link_down, link_taken = states.cases[switch[index], number[index], case].T
        exists = link_taken != END
        index = index[exists]
        yield _Cases(index, link_down[exists], link_taken[exists])


def _behind_is_repaired(
    classes: TwoLinkClasses, states: ClassStates, kinds: tuple[str, ...]
) -> bool:
    """Whether in all cases the link that packets take serves destinations two links away."""
    switch, class_link = np.nonzero(states.program.far >= 0)
    for cases in _cases(states, switch, class_link):
        link = class_link[cases.index]
        apex = classes.apex_link[switch[cases.index], link]
        meets_neighbour = (cases.link_down == link) & (apex == cases.link_taken % TURNED)
        if (cases.link_taken < 0).any() or ("node" in kinds and meets_neighbour.any()):
            return False
    return True


def _direct_stretch(
    classes: TwoLinkClasses, states: ClassStates, kinds: tuple[str, ...]
) -> dict[str, Numbers] | None:
    """The most links that repairs towards each destination add, int64[S] by kind of failure.

    None if some state of a class for a neighbour itself is not proved.
    """
    far, apex = states.program.far, classes.apex_link
    s, k = np.nonzero(far >= 0)
    stretch = {kind: np.ones(len(far), np.int64) for kind in kinds}
    for cases in _cases(states, s, far.shape[1] + k):
        if (cases.link_taken < 0).any():
            return None
        arises = cases.link_taken < TURNED  # no packet for d comes in from d
        index, link_down, link_taken = (
            cases.index[arises],
            cases.link_down[arises],
            cases.link_taken[arises],
        )
        switch, direct_link = s[index], k[index]
        in_triangle = apex[switch, direct_link] == link_taken
        u, back = far[switch, link_taken], classes.back[switch, link_taken]
        bounce = states.u_turn[u, back]
        returns = (bounce < 0) | (bounce == back) | (bounce == apex[u, back])
        if (~in_triangle & returns).any():
            return None
        added = np.where(in_triangle, 1, 3)
        destination = far[switch, direct_link]
        for kind, most in stretch.items():
            # The destination itself does not fail.
            fails = (link_down >= 0) & ((kind == "link") | (link_down != direct_link))
            np.maximum.at(most, destination[fails], added[fails])
    return stretch
