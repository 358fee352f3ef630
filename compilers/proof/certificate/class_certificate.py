"""The certificate of a whole PolarFly, a class at a time: no destination's column is looked at.

Two switches have one path of two links (`compilers.topology.triangles.has_unique_paths`), and rows
prove that all pairs have minimal paths (`compilers.proof.certificate.minimal_rows`). So where u, v
are joined, every way of u to a switch d behind v is u - v - d, and of a neighbour r of u:

- r is not next to d, and its own way r - w - d has w ≠ u, as d is not next to u. It meets v only if
  r is next to v: then r is the *apex* of u and v, and there is one at most.
- r's way to v itself is the link r - v if r is the apex, else r - u - v.

The column certificate's conditions (`column_certificate`) thus become, of classes:

1. A class that leads to v itself has no weight but that of its minimal port, unless the policy has
   bounced or marked ways.
2. A class that leads behind v has a neighbour of repair: link failures. Of its first two none is
   the apex: failures of v.
3. A class that leads to v itself has a neighbour of repair ρ. The first is the apex; or else both
   of the first two, where there are two, are the apex or bounce: the first neighbour β to which ρ
   bounces packets for v is not next to u, that is, not the apex of ρ and u. Then β's way to v does
   not lead over u, nor over ρ, which is not next to v.

With (1), alternates of other classes lead to d in three links, and come back to nobody.

*Bounced ways.* u may send to any neighbour r what is for v. If r is next to v, it comes there in
two links. Else r gets it on its own minimal port, and bounces it to a w, or returns it to u if
there is none. w is not next to v, as u is the one switch between r and v: so it comes there in four
links, and not over r. If w is down, over a second w', or u: neither way leads over w, which is not
next to v. All that follows is on minimal ways, of which the above holds. But now packets may come
to u from the apex as well, so (3) is asked of both neighbours.

*Marked ways* (`compilers.routing.marked_spread`). u may send to any neighbour r what is for any d,
marked. If r is next to d, it goes on there, as d is not u. Else r sends it to some w next to r,
which is up where r has more ways than elements fail. r is not next to d, so no minimal way from w
leads over it: w - d, or w - y - d with y next to d. So what was spread is at d after four links,
and comes to nobody by its minimal port. Next to d it comes from any but d: from the apex, too, by a
mark that was not spread. So (3) is asked of both neighbours. Behind v it comes, spread, from an r
that is not next to d, as alternates do. So all that failures do to it is what is said above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.certificate.certificate import Bits, Certificate
from compilers.proof.certificate.two_failure_classes import TwoFailureClasses
from compilers.proof.certificate.two_link_classes import Links, TwoLinkClasses
from compilers.proof.soundness.policy_soundness import bounces
from compilers.proof.soundness.port_use import PortUse
from compilers.proof.walks.forwarding import Numbers
from compilers.proof.walks.link_sets import packed_alternates
from compilers.routing.marked_spread import fewest_onward
from compilers.spec.policy import MARKED
from compilers.tables.build import Build
from compilers.tables.spread import SpreadWeights, counts
from compilers.tables.switch_blocks import classes_of, switch_blocks

FAILING = {"link": 1, "node": 1, "2": 2}
"""Elements that are down, by kind of failure."""
BEHIND, DIRECT, BOUNCED = 3, 2, 4
"""Links of a repair behind the neighbour, over the apex, by a bounce, from where it begins."""


def class_certificate(classes: TwoLinkClasses, kinds: tuple[str, ...]) -> Certificate:
    """The certificate of a whole PolarFly, all of whose switches have hosts.

    Args:
        classes: of a build of which rows prove minimal delivery.
        kinds: of failures, of `link`, `node` and `2`.
    """
    return _ClassChoices.of(classes).certificate(kinds)


@dataclass(frozen=True, slots=True, eq=False)
class _ClassChoices:
    """The ports of repair, bounce and alternates of S switches, as links.

    first, second, bounce: int16[S, C], the first two neighbours of repair, and the first of bounce.
    ways: int64[S, C], links with a weight. spread: bool[S, C], some of them not the minimal one.
    """

    classes: TwoLinkClasses
    first: Links
    second: Links
    bounce: Links
    ways: NDArray[np.int64]
    spread: Bits

    @classmethod
    def of(cls, classes: TwoLinkClasses) -> _ClassChoices:
        """Look at all classes, those of some switches at a time."""
        c, use, link = classes.build.tables.classes, classes.use, classes.link
        first, second = classes.first_two(use.links(c.protection))
        bounce = classes.first_two(use.links(c.bounce))[0]
        ways, spread = np.zeros(link.shape, np.int64), np.zeros(link.shape, np.bool_)
        for some in switch_blocks(classes.build):
            minimal, ways[some] = weighted(classes_of(classes.build, some), use.part(some))
            spread[some] = ways[some] > 0
            ways[some] += minimal & (link[some] >= 0)
        return cls(classes, first, second, bounce, ways, spread)

    def certificate(self, kinds: tuple[str, ...]) -> Certificate:
        """What the classes say of all destinations."""
        c, far = self.classes, self.classes.build.wiring.far
        order = len(far)
        s, k = np.nonzero(far >= 0)
        to, number = far[s, k], c.direct[s, k]
        delivers = np.ones(order, np.bool_)
        around = self.spread[s, number]
        marks = c.build.balance == MARKED
        least = fewest_onward(c.build.wiring) if marks else len(FAILING)
        if not marks and not bounces(c.build):
            delivers[to[around]] = False
        if marks:  # switches go by the numbers of classes
            beside = np.arange(self.ways.shape[1]) // far.shape[1] == 1
            delivers[to[~beside[number]]] = False
            delivers &= c.without((c.rows > 0) & beside)
        delivers &= least > 0
        bounced = bool(around.any()) or marks
        behind, alone, apex = c.rows > 0, self.first < 0, c.class_apex
        meets = (apex >= 0) & ((self.first == apex) | (self.second == apex))
        further = int((self.spread & behind).any())
        repaired, first, both = self._direct(s, k, bounced)
        holds = {
            "link": c.without(behind & alone),
            "node": c.without(behind & (alone | meets)),
        }
        holds["link"][to[~repaired]] = False
        once, most = np.full((2, order), DIRECT)
        once[to[first]], most[to[first | both]] = BOUNCED, BOUNCED
        stretch = {"link": np.maximum(most - 1, BEHIND - 2), "node": np.full(order, BEHIND - 2)}
        # Packets are a link away from their host next to the destination, alternates two, and
        # bounced or spread ones three, if they do not come from the apex.
        further = 2 if bounced else further
        longest = np.maximum(once + 1 + further, most + 1)
        hops = {"link": np.maximum(longest, BEHIND + further), "node": BEHIND + further}
        if "2" in kinds:
            two = TwoFailureClasses.of(c)
            holds["2"], hops["2"] = two.holds, two.stretch + 2 + further
            stretch["2"] = two.from_apexes if bounced else two.stretch
        direct = int(self.ways[s, number].sum())
        return Certificate(
            destinations=np.arange(order),
            delivers=delivers,
            repairs={kind: delivers & holds[kind] & (least > FAILING[kind]) for kind in kinds},
            stretch={kind: stretch[kind] for kind in kinds},
            hops={kind: np.broadcast_to(hops[kind], order) for kind in kinds},
            ways=direct + int((self.ways * c.rows).sum()),
            longest=2 + further,
        )

    def _direct(self, s: Numbers, k: Numbers, both: bool) -> tuple[Bits, Bits, Bits]:
        """Condition 3 for links k of switches s: whether it holds, and whether repairs bounce.

        Those over the first neighbour, and, of packets that come from it, over the second.

        Args:
            s: int[n].
            k: int[n].
            both: whether packets may come from the apex.
        """
        number, apex = self.classes.direct[s, k], self.classes.apex[s, k]
        second = self.second[s, number]
        over = (apex >= 0) & (self.first[s, number] == apex)
        holds, again = over.copy(), both & over & (second >= 0)
        left = np.flatnonzero(~over | again)
        s, k, number, apex = s[left], k[left], number[left], apex[left]
        first, second = self.first[s, number], second[left]
        good = [(rho == apex) | self._bounces(s, k, rho) for rho in (first, second)]
        holds[left] = (first >= 0) & good[0] & (good[1] | (second < 0))
        return holds, ~over, again

    def _bounces(self, s: Numbers, k: Numbers, rho: Links) -> Bits:
        """bool[n]: whether neighbours over links rho of s bounce packets to those over links k."""
        c, w = self.classes, self.classes.build.wiring
        near, back = w.far[s, rho], c.back[s, rho]
        number = c.build.tables.routes.egress[near, w.far[s, k]]
        beta = self.bounce[near, np.minimum(number, c.link.shape[1] - 1).astype(np.intp)]
        good: Bits = (rho >= 0) & (beta >= 0) & (beta != c.apex[near, back])
        return good


def weighted(build: Build, use: PortUse) -> tuple[Bits, NDArray[np.int64]]:
    """Whether the minimal port has a weight, bool[S, C], and int64[S, C]: how many alternates."""
    c = build.tables.classes
    if isinstance(c.weight, SpreadWeights) and (spread := packed_alternates(build, use)):
        weighted = c.weight.packed
        count = np.minimum(counts(spread.links), counts(weighted.links))
        return weighted.weight[..., 0] > 0, count * (weighted.weight[..., 1] > 0).astype(np.int64)
    # A port without a cable is no way; port 0 never has one.
    chosen = (use.links(np.asarray(c.alternate)) >= 0) & (c.weight[..., 1:] > 0)
    return c.weight[..., 0] > 0, np.count_nonzero(chosen, axis=2)
