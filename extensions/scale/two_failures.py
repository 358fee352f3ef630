"""Two failures in a whole PolarFly, proved of its classes: any two links or switches.

Any two switches have one path of two links at most (`TwoLinkClasses`), so a path of two links meets
what can be said beforehand. Towards d, which is up; "next to d" is ~d; a class is *behind* v if it
leads over v to others, *direct* if it leads to v itself. The conditions:

1. Behind: two neighbours of repair at least, none of them the apex of its link.
2. Behind: two neighbours of bounce at least, of which the first two are not that apex.
3. Direct: two neighbours of repair at least; where its link has an apex, that is the first.
4. Let the links u-d and y-d have no apex. u *sends to* y if one of its neighbours of repair r
   bounces to an x (the first in its order) that serves d over y. Not both send to each other.

*Proof.* Without failures nothing comes in by its minimal port, and to u ~d only from switches that
are not next to d (`_direct_detours`). Only failures that a packet tests change its path; it
tests links of the switch where it is. F1: two switches have one common neighbour at most. F2: a
neighbour r of u that is not next to d serves it over r×d, their common neighbour. Where u is not
next to d either, r×d is not u, and it is u's minimal v only if r ~ v.

*u not next to d, u-v is down (link, or v).* By (1) a neighbour of repair is up and not the ingress,
or the ingress is one. Either way the packet comes to an r ~ u, not ~v, so not next to d (F1: v is
u×d). It is sent to w = r×d, neither u nor v. *r-w down:* r's repair r2, not u, is not ~w, so not
next to d; r2×d is not w, nor v: r2 ~ v would make r2 = u. It arrives. *w-d down:* next paragraph.
Else it arrives.

*Second failure w-d, w ≠ v ~d, v not ~w.* Where w-d has an apex b: b ≠ v, and b-d is up. Else the
repair r' of w (not the ingress) bounces to x', which is not ~w by (2), and not v, as v is not ~r'
(F1: r' and d have w). y' = x'×d is not w. If y' is v, and v or x'-v down, then x' is behind v, and
its repair r3 is neither ~v nor r'. r3×d is not v, and not w: r3 ~ w makes r3 = r'. It arrives.

*u ~ d, u-d down, apex a.* It goes to a and d. *a-d down:* a's repair is not u, the ingress, so an r
not next to d, which bounces to x not ~a: x×d is not a, and not u, as x ~ u would make x = a. *u-a
down:* to another repair r, or to the ingress, which is not next to d either; it bounces to x not
~u: x×d is not u, and not a: x and u would both be between r and a.

*u ~ d, u-d down, no apex.* To a repair r, or the ingress where that is one: r bounces to x not ~u,
and y = x×d is not u. *u-r or r-x down:* the next one serves. *x-y down:* x's repair r3, not r, is
not ~y, and ~u only if r3 = r: it arrives. *y-d down:* over an apex of y-d, which is not u, else y
were one of u-d; or by repair and bounce to y' ≠ y, and y' ≠ u by (4).

*Bounced paths* (`Forwarding.bounces`). Hosts at s ~ d may send to any r ~ s. If r is not next to d,
its minimal is s, and it bounces to w, or w', both not ~s by (2), or returns the packet to s if both
are down. From there on it is on minimal paths, of which the above holds. Two things are new. *A
path in that is the apex a of u-d*, where u-d is down: u takes another repair r, which bounces to x
not ~u, for y = x×d, not u, nor a, as x ~ a would make x = u; or it returns to a, with d next. If
y-d is down as well, y sends to y' ≠ y; where y' is u, a now is no ingress and comes first. *r-w
down, then y-d, y = w'×d.* y's repairs serve as above: none of them is r, or y were r×d, which is s;
and where one bounces to r, it goes on to s and d.

The lengths are those of these paths. As every condition is of the class that d is in, one that does
not hold names the destinations that it leaves open.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.proof.local.other_proofs import TwoFailures
from compilers.proof.soundness.port_use import Numbers, alternate_sets
from compilers.routing.marked_spread import fewest_onward
from compilers.tables.build import Build
from extensions.scale.two_link_classes import Links, TwoLinkClasses

APEXES, ONE_WITHOUT, TWO_WITHOUT = 4, 5, 6
"""Links that two repairs add at most: towards switches whose links have apexes, where one has none,
where one without sends to another; packets are then on their way for two links more."""
TWO, AROUND = 2, 7
"""The same of bounced paths that begin over an apex, where some link has none: u-r-x-y, y's repair
to u, and over the apex after all."""


def two_failures(build: Build) -> TwoFailures | None:
    """What any two failures do in a whole PolarFly; None: it is none, or marks may have no path.

    Args:
        build: of which minimal delivery, and the repair of single failures, are proved.
    """
    marks = build.forwarding.marks
    if marks and fewest_onward(build.wiring) <= TWO:
        return None
    classes = TwoLinkClasses.of(build)
    if classes is None:
        return None
    result = _by_classes(classes)
    if not marks and not _direct_detours(classes):
        return result
    # Packets may come in from the apexes of links.
    return replace(result, stretch=np.where(result.stretch > APEXES, AROUND, result.stretch))


def _direct_detours(classes: TwoLinkClasses) -> bool:
    """Whether hosts send packets for a neighbour to other neighbours, too."""
    w, port = classes.build.wiring, classes.build.tables.classes.port
    s, k = np.nonzero(w.far >= 0)
    direct = np.zeros(port.shape, np.bool_)
    direct[s, classes.direct[s, k]] = True
    alternates = alternate_sets(classes.build, classes.use)
    return bool(alternates[direct].any())


def _by_classes(classes: TwoLinkClasses) -> TwoFailures:
    """Look at all classes, and at the bounces of links that are in no triangle."""
    c, far = classes.build.tables.classes, classes.build.wiring.far
    repair = classes.use.links(c.protection)
    first, second = classes.first_two(repair)
    bounce, other = classes.first_two(classes.use.links(c.bounce))
    apex = classes.class_apex
    inner = (repair == apex[..., None]).any(axis=2) | (bounce == apex) | (other == apex)
    wrong = (second < 0) | (other < 0) | ((apex >= 0) & inner)
    holds = classes.without((classes.rows > 0) & wrong)
    s, k = np.nonzero(far >= 0)
    number, over = classes.direct[s, k], classes.apex[s, k]
    bad = (second[s, number] < 0) | ((over >= 0) & (first[s, number] != over))
    holds[far[s, k][bad]] = False
    bare = over < 0
    u, d = s[bare], far[s, k][bare]
    sends = _sent(classes, repair, bounce, u, d)
    is_bare = sends >= 0
    returns = (sends[:, np.maximum(sends, 0)] == np.arange(len(u))).any(axis=0) & is_bare
    holds[d[returns.any(axis=0)]] = False
    stretch = np.full(len(far), APEXES)
    stretch[d] = ONE_WITHOUT
    stretch[d[is_bare.any(axis=0)]] = TWO_WITHOUT
    return TwoFailures(holds, stretch, stretch)


def _sent(
    classes: TwoLinkClasses, repair: Numbers, bounce: Links, u: Numbers, d: Numbers
) -> Numbers:
    """int64[P, n]: which of n links u-d each neighbour of repair sends to; -1: none of them.

    What is not there is taken for the last link; other conditions do not hold then.
    """
    far, egress = classes.build.wiring.far, classes.build.tables.routes.egress
    last = classes.link.shape[1] - 1

    def over(links: Numbers, at: Numbers) -> Numbers:
        number = np.minimum(egress[at, d].astype(np.intp), last)
        switch: Numbers = far[at, links[at, number]].astype(np.int64)
        return switch

    key = u * len(far) + d
    order = np.argsort(key)
    sent_to = []
    for links in np.moveaxis(repair, 2, 0):
        x = over(bounce, over(links, u))
        sent = over(classes.link, x) * len(far) + d
        place = order[np.minimum(np.searchsorted(key, sent, sorter=order), len(key) - 1)]
        sent_to.append(np.where(key[place] == sent, place, -1))
    return np.array(sent_to, np.int64).reshape(repair.shape[2], len(u))
