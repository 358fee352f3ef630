"""Every state of every packet in a whole PolarFly, proved by its classes and pairs of neighbours.

Let minimal delivery be proved (`plane_lines`), so that any two switches have one path of two links
or, next to each other, a link. Let s send a packet to d over another link than its first, to u, as
that is down, or its neighbour v, or as the packet came in by it. Then most of what
`compilers.proof.local.state_proof` looks up for each destination is so.

*Behind: d two links from s.* No path is longer, so that from u does not meet s. It meets v between
u and d only if v is the one switch between s and d, too, and joined to u. So a class is enough.

*Direct: d next to s.* If s, u and d are a triangle, the packet is home after two links. If not, s
is the one switch next to both u and d, so u sends the packet on by its link of bounce, to x. Unless
x is s, or next to s, it is two links from d. The switch between is not s then, nor u, which is not
next to d. Nor is v that switch, or x: v would be next to s and x, as u is, or the x that is next to
s. So the packet is home after four links, and a pair of neighbours is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compilers.proof.local.class_cases import CASES, DETOURS, END, SHARES, TURNED, ClassStates
from compilers.proof.local.class_states import class_states
from compilers.proof.local.local_proof import PROVED, LocalProof, Numbers
from compilers.tables.build import Build
from compilers.tables.line_rows import LineEgress
from extensions.scale.two_link_classes import TwoLinkClasses

DIAMETER = 2


def plane_states(
    build: Build, hop_counts: tuple[int, ...], kinds: tuple[str, ...]
) -> LocalProof | None:
    """What is proved of a whole PolarFly at once; None where a condition does not hold.

    Args:
        build: sound cables and prefixes (`build_soundness.walkable`).
        hop_counts: of its pairs, of all of which minimal paths are proved.
        kinds: of failures, of `link` and `node`.
    """
    egress, links = build.tables.routes.egress, build.wiring.far.shape[1]
    if not isinstance(egress, LineEgress) or egress.direct != links or build.forwarding.marks:
        return None
    classes = TwoLinkClasses.of(build)
    if classes is None:
        return None
    states = class_states(build, np.array([kind in kinds for kind in PROVED]))
    cabled = build.wiring.far >= 0
    behind, direct = states.summary[:, :links], states.summary[:, links : 2 * links]
    if (direct[cabled] & DETOURS).any() or not _numbered_by_link(classes):
        return None
    added = _added(classes, states, kinds) if _serves_behind(classes, states, kinds) else None
    if added is None:
        return None
    # `rows` leaves out the neighbours themselves.
    paths = (states.summary & SHARES) * classes.rows
    paths[:, links : 2 * links] += np.where(cabled, direct & SHARES, 0)
    further = bool((behind[cabled] & DETOURS).any())
    return LocalProof.of_all(int(paths.sum()), hop_counts, DIAMETER + further, added)


def _numbered_by_link(classes: TwoLinkClasses) -> bool:
    """Whether class k leads over link k, and is followed by the one for that neighbour alone."""
    links = classes.apex.shape[1]
    s, k = np.nonzero(classes.build.wiring.far >= 0)
    numbers = classes.link[s, k], classes.link[s, links + k], classes.direct[s, k] - links
    return all(np.array_equal(number, k) for number in numbers)


@dataclass(frozen=True, slots=True, eq=False)
class _TakenLinks:
    """One case of each of n classes that have so many."""

    place: Numbers
    """int64[n], the places of the classes among those that are looked at."""
    down: Numbers
    """int64[n], the link that is down, negative while all are up."""
    taken: Numbers
    """int64[n], the link taken then, as in `ClassStates.cases`."""


def _cases(states: ClassStates, s: Numbers, c: Numbers) -> Iterator[_TakenLinks]:
    """The first cases of some classes, then the second ones, and so on."""
    place = np.arange(len(s))
    for i in range(CASES):
        down, taken = states.cases[s[place], c[place], i].T
        present = taken != END
        place = place[present]
        yield _TakenLinks(place, down[present], taken[present])


def _serves_behind(classes: TwoLinkClasses, states: ClassStates, kinds: tuple[str, ...]) -> bool:
    """Whether all links that are taken serve what is two links away."""
    s, k = np.nonzero(states.program.far >= 0)
    for case in _cases(states, s, k):
        link = k[case.place]
        meets = (case.down == link) & (classes.apex[s[case.place], link] == case.taken % TURNED)
        if (case.taken < 0).any() or ("node" in kinds and meets.any()):
            return False
    return True


def _added(
    classes: TwoLinkClasses, states: ClassStates, kinds: tuple[str, ...]
) -> dict[str, Numbers] | None:
    """int64[S] by kind of failure, the most links that are added; None where a state is open."""
    far, apex = states.program.far, classes.apex
    s, k = np.nonzero(far >= 0)
    added = {kind: np.ones(len(far), np.int64) for kind in kinds}
    for case in _cases(states, s, far.shape[1] + k):
        if (case.taken < 0).any():
            return None
        arises = case.taken < TURNED  # no packet to d comes in from d
        place, down, taken = case.place[arises], case.down[arises], case.taken[arises]
        switch, direct = s[place], k[place]
        triangle = apex[switch, direct] == taken
        u, back = far[switch, taken], classes.back[switch, taken]
        turn = states.u_turn[u, back]
        if (~triangle & ((turn < 0) | (turn == back) | (turn == apex[u, back]))).any():
            return None
        links = np.where(triangle, 1, 3)
        for kind, most in added.items():
            # d itself is no switch that fails.
            fails = (down >= 0) & ((kind == "link") | (down != direct))
            np.maximum.at(most, far[switch, direct][fails], links[fails])
    return added
