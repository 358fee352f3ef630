"""Two failures in a whole PolarFly: a proof by its classes for any two links or switches.

`delivery.verify` asks `two_failures` by the entry point of this package. It gets the destinations
to which no packet is lost, and bounds on the lengths of paths. In a whole PolarFly any two switches
have at most one path of two links (`TwoLinkClasses`). So conditions on classes tell which switches
a repaired path meets. Packets are for hosts at switch d, which is up.

Notation: `a ~ b` means that switches a and b are neighbours, and `a×b` is their common neighbour. A
*class* of a switch is a list of ports by which it sends packets to some destinations. It has a
minimal port; ports of *repair*, which are tried in order if the minimal port is down; and ports of
*bounce*, for packets that came in by the minimal port. A class is *direct* if it leads to a
neighbour v itself, and *behind* v if it leads over v to other switches. The *apex* of a link is the
common neighbour of its two ends. A neighbour *serves* d over w if its minimal path to d leads over
w.

The conditions:

1. A class behind v has at least two neighbours of repair. None of them is the apex of its link.
2. A class behind v has at least two neighbours of bounce. The first two are not the apex of its
   link.
3. A direct class has at least two neighbours of repair. If its link has an apex, the apex is the
   first of them.
4. Let the links u-d and y-d have no apex. Let r be a neighbour of repair of u, and x the first
   neighbour to which r bounces. u *sends to* y if such an x serves d over y. If u sends to y, then
   y does not send to u.

Two facts are used throughout:

- F1: two switches have at most one common neighbour.
- F2: a neighbour r of u that is not a neighbour of d serves d over r×d. If u is no neighbour of d
  either, then r×d is not u, and it is u's minimal next hop v only if r ~ v.

Proof
-----
Without failures no packet comes in by its minimal port. To a neighbour u of d, packets come only
from switches that are no neighbours of d, unless hosts use alternates
(`_direct_classes_have_alternates`). Only failures that a packet meets change its path, and it meets
failures of the links of the switch where it is. The cases say where the packet meets the first
failure, at u, and where the second one.

A. *u is no neighbour of d, and u-v is down (the link, or v).*
   By (1) a neighbour of repair is up and not the ingress, or the ingress is such a neighbour.
   Either way the packet comes to a neighbour r of u that is no neighbour of v. So r is no neighbour
   of d, by F1, as v is u×d. It sends the packet to w = r×d, which is neither u nor v.

   - *r-w is down too.* The repair r2 of r is not u, and no neighbour of w, so it is no neighbour of
     d. r2×d is not w. It is not v either, as r2 ~ v would make r2 = u. The packet arrives.
   - *w-d is down too.* This is case B.
   - *Nothing else is down.* The packet arrives.

B. *The second failure is w-d. Here w is not v, and v is a neighbour of d, but not of w.*

   - *w-d has an apex b.* It is not v, as v is no neighbour of w. So b-d is up, and the packet
     arrives over b.
   - *w-d has no apex.* The repair r' of w is not the ingress, and bounces to x'. By (2) x' is no
     neighbour of w. It is not v, as v is no neighbour of r': by F1 r' and d have only w in common.
     So y' = x'×d is not w, and the packet arrives over y', but for the next case.
   - *w-d has no apex, y' = v, and v or x'-v is down.* Then x' is behind v. Its repair r3 is not r',
     and no neighbour of v. So r3×d is not v. It is not w either, as r3 ~ w would make r3 = r'. The
     packet arrives.

C. *u is a neighbour of d, and u-d is down and has an apex a.*
   The packet goes to a, and on to d.

   - *a-d is down too.* The repair of a is not u, the ingress. So it is an r that is no neighbour of
     d. It bounces to an x that is no neighbour of a. x×d is not a, and not u, as x ~ u would make
     x = a. The packet arrives.
   - *u-a is down too.* The packet goes to another repair r, or to the ingress. That is no neighbour
     of d either. r bounces to an x that is no neighbour of u. x×d is not u. It is not a either, as
     then x and u would both be common neighbours of r and a. The packet arrives.

D. *u is a neighbour of d, and u-d is down and has no apex.*
   The packet goes to a repair r, or to the ingress if that is one. r bounces to an x that is no
   neighbour of u, and y = x×d is not u.

   - *u-r or r-x is down too.* The next repair or bounce serves in the same way.
   - *x-y is down too.* The repair r3 of x is not r, and no neighbour of y. It is a neighbour of u
     only if r3 = r. So the packet arrives.
   - *y-d is down too.* If y-d has an apex, the packet goes over it. The apex is not u, or else y
     would be an apex of u-d. If y-d has none, the packet goes by repair and bounce to a y' other
     than y, which by (4) is not u.

E. *Bounced paths* (`Forwarding.bounces`).
   Hosts at a neighbour s of d may send to any neighbour r of s. If r is no neighbour of d, its
   minimal next hop is s. So r bounces the packet to w, or to w'. By (2) neither is a neighbour of
   s. If both are down, r returns it to s. From there on the packet is on minimal paths, of which
   the above holds. Two things are new:

   - *The packet comes in from the apex a of u-d, and u-d is down.* u takes another repair r, which
     bounces to an x that is no neighbour of u. y = x×d is not u. It is not a either, as x ~ a would
     make x = u. Or u returns the packet to a, with d next. If y-d is down as well, y sends to a y'
     other than y. If y' is u, the ingress is not a now, and a comes first.
   - *r-w is down, and then y-d, where y = w'×d.* The repairs of y serve as above: none of them is
     r, or y would be r×d, which is s. If one bounces to r, the packet goes on to s and d.

The bounds on lengths are those of these paths. Each condition is one of the class that d is in. So
a condition that does not hold names the destinations that it leaves open.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.proof.local.registered_proofs import TwoFailures
from compilers.proof.soundness.link_sets import Numbers, alternate_sets
from compilers.routing.marked_spread import fewest_onward
from compilers.tables.build import Build
from extensions.scale.first_alternatives import NO_LINK, FirstAlternatives, first_alternatives
from extensions.scale.two_link_classes import Links, TwoLinkClasses

STRETCH_WITH_APEXES = 4
"""The most links that two repairs add towards a switch all of whose links have apexes. A packet is
then on its way for two links more."""
STRETCH_WITHOUT_APEX = 5
"""The most links that two repairs add towards a switch some of whose links have no apex."""
STRETCH_WITH_SENDER = 6
"""The most links that two repairs add towards a switch of which one link without an apex sends to
another (condition 4)."""
STRETCH_FROM_APEX = 7
"""The most links that two repairs add towards a switch some of whose links have no apex, for
packets that hosts send over other links than the minimal one, such as the link to an apex. A path
may be u-r-x-y, then y's repair to u, and over the apex after all."""
FEWEST_ONWARD = 3
"""The fewest links by which a switch must be able to spread marked packets, so that one is left
after two failures."""


def two_failures(build: Build) -> TwoFailures | None:
    """What any two failures do in a whole PolarFly.

    Args:
        build: with minimal delivery, and the repair of single failures, proved.

    Returns:
        None if the build is no whole PolarFly, or if two failures may leave a marked packet without
        a path.
    """
    marks = build.forwarding.marks
    if marks and fewest_onward(build.wiring) < FEWEST_ONWARD:
        return None
    classes = TwoLinkClasses.of(build)
    if classes is None:
        return None
    proof = _proof_of_minimal_paths(classes)
    if not marks and not _direct_classes_have_alternates(classes):
        return proof
    # Packets may come in from the apexes of links.
    has_apexes = proof.stretch <= STRETCH_WITH_APEXES
    return replace(proof, stretch=np.where(has_apexes, proof.stretch, STRETCH_FROM_APEX))


def _direct_classes_have_alternates(classes: TwoLinkClasses) -> bool:
    """Whether hosts send packets for a neighbour to other neighbours, too."""
    wiring, ports = classes.build.wiring, classes.build.tables.classes.port
    switch, link = np.nonzero(wiring.far >= 0)
    is_direct = np.zeros(ports.shape, np.bool_)
    is_direct[switch, classes.direct_class[switch, link]] = True
    alternates = alternate_sets(classes.build, classes.port_use)
    return bool(alternates[is_direct].any())


def _proof_of_minimal_paths(classes: TwoLinkClasses) -> TwoFailures:
    """Check conditions 1 to 4, one after the other, for packets that set out on minimal paths."""
    tables, far = classes.build.tables.classes, classes.build.wiring.far
    repair = classes.port_use.links(tables.protection)
    repairs = first_alternatives(repair.astype(np.int16), classes.minimal_link)
    bounce = classes.port_use.links(tables.bounce)
    bounces = first_alternatives(bounce.astype(np.int16), classes.minimal_link)
    holds = classes.not_served_by(_violations_behind(classes, repair, repairs, bounces))
    # Each link u-d, from both ends, and the class of u for d alone.
    u, link = np.nonzero(far >= 0)
    d, direct, apex = far[u, link], classes.direct_class[u, link], classes.apex_link[u, link]
    first, second = repairs.first_link[u, direct], repairs.second_link[u, direct]
    holds[d[_violates_direct(first, second, apex)]] = False

    # From here on of these only the links without an apex.
    u, d = u[apex < 0], d[apex < 0]
    sends_to = _links_sent_to(classes, repair, bounces.first_link, u, d)
    holds[d[_sends_to_each_other(sends_to)]] = False

    stretch = np.full(len(far), STRETCH_WITH_APEXES)
    stretch[d] = STRETCH_WITHOUT_APEX
    stretch[d[(sends_to != NO_LINK).any(axis=0)]] = STRETCH_WITH_SENDER
    # The longest path may take the longest detour, so it grows by as many links.
    return TwoFailures(holds, stretch=stretch, longer_than_longest=stretch)


def _violates_direct(first: Numbers, second: Numbers, apex: Numbers) -> NDArray[np.bool_]:
    """Whether direct classes are against condition 3, bool[n].

    Args:
        first: int[n], the first link of repair of each class; -1: none.
        second: int[n], the second one.
        apex: int[n], the link to the apex of the link of each class; -1: it has none.
    """
    violates: NDArray[np.bool_] = (second < 0) | ((apex >= 0) & (first != apex))
    return violates


def _sends_to_each_other(sends_to: Numbers) -> NDArray[np.bool_]:
    """Whether a link without an apex sends to one that sends to it, bool[n], against condition 4.

    Args:
        sends_to: int64[P, n], of `_links_sent_to`.
    """
    links = sends_to.shape[1]
    # int64[P, P, n]: the links to which the link that is sent to sends; any where there is none.
    sends_on = sends_to[:, np.maximum(sends_to, 0)]
    comes_back = (sends_on == np.arange(links)).any(axis=0) & (sends_to != NO_LINK)
    return np.asarray(comes_back.any(axis=0))


def _violations_behind(
    classes: TwoLinkClasses, repair: Numbers, repairs: FirstAlternatives, bounces: FirstAlternatives
) -> NDArray[np.bool_]:
    """The classes behind a neighbour that are against condition 1 or 2, bool[S, C].

    Args:
        classes: the classes of the fabric.
        repair: int[S, C, P], all links of repair.
        repairs: the first two of them.
        bounces: the first two links of bounce.
    """
    apex = classes.class_apex_link
    names_apex = (repair == apex[..., None]).any(axis=2)
    names_apex |= (bounces.first_link == apex) | (bounces.second_link == apex)
    violates = (repairs.second_link < 0) | (bounces.second_link < 0) | ((apex >= 0) & names_apex)
    behind: NDArray[np.bool_] = (classes.destinations_behind > 0) & violates
    return behind


def _links_sent_to(
    classes: TwoLinkClasses, repair: Numbers, bounce: Links, u: Numbers, d: Numbers
) -> Numbers:
    """The link y-d to which u sends packets for d, by each neighbour of repair (condition 4).

    A repair or bounce that does not exist is -1, which selects the last link. The result does not
    matter then, as condition 1, 2 or 3 fails.

    Args:
        classes: the classes of the fabric.
        repair: int[S, C, P], the links of repair.
        bounce: int[S, C], the first link of bounce.
        u: int[n], one end of n links without an apex.
        d: int[n], the other end, where packets are to arrive.

    Returns:
        int64[P, n], places among these n links; NO_LINK if the packet is sent to none of them.
    """
    far, egress = classes.build.wiring.far, classes.build.tables.routes.egress
    last = classes.minimal_link.shape[1] - 1  # the last class

    def next_switch(links: Numbers, switch: Numbers) -> Numbers:
        """The switch to which each switch sends packets for d, int64[n].

        Args:
            links: int[S, C], the link that is taken for each class.
            switch: int[n], a switch for each d.
        """
        class_for_d = np.minimum(egress[switch, d].astype(np.intp), last)
        following: Numbers = far[switch, links[switch, class_for_d]].astype(np.int64)
        return following

    # Link u-d has the number u·S + d, by which it is looked up.
    link_number = u * len(far) + d
    by_number = np.argsort(link_number)
    sends_to = []
    for repair_link in np.moveaxis(repair, 2, 0):
        r = next_switch(repair_link, u)
        x = next_switch(bounce, r)
        y = next_switch(classes.minimal_link, x)
        wanted = y * len(far) + d  # the number of link y-d, if that is one of the links
        found = np.searchsorted(link_number, wanted, sorter=by_number)
        place = by_number[np.minimum(found, len(link_number) - 1)]
        sends_to.append(np.where(link_number[place] == wanted, place, NO_LINK))
    return np.array(sends_to, np.int64).reshape(repair.shape[2], len(u))
