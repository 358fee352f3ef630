"""The links of a whole PolarStar that serve its classes in place of their own, as sets.

Let u = (x, x') be joined to v by a class's link and to r by another, and let the class serve d. By
the rows that `star_program` proves, of d that is not v:

- *Beyond, d in a remote Y.* From (w, ·) the path goes over w×Y: not x, as x is not next to Y; z
  only if w is next to z, the *apex* of x and z. It goes on to Y, maybe over the supernode next to
  w×Y and Y, which is neither x nor z. From (x, m) it goes out by m's own link.
- *Beyond, d in x*, not joined to x'. From (w, ·) by the link w - x of d itself, or over the
  supernode next to x and w, which is z for the apex alone. From (x, m) to x' only within x.
- *Beside, d = (y, ·).* From (x, m): to the one member of x that is joined to d, not x', as d would
  be v; or out by m's own link. So it meets v in x only if it is joined to v, and no other v. From
  the apex of x and z, where y = z: not over x, which leads to v. Where y is the apex, within it, or
  out of it in turn, which may be to x.

What repairs of direct classes do, `extensions.scale.star_certificate` says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import Bits, Sets, bits
from compilers.tables.star_rows import OVER_Z
from extensions.scale.star_choices import BESIDE, BEYOND
from extensions.scale.star_classes import StarClasses
from extensions.scale.star_links import AlikeSupernodes

Members = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class StarSets:
    """The sets of S switches' classes, uint8[S, C, B], the highest bit for the first link."""

    classes: StarClasses
    """The classes of the build."""
    first_members: Members
    """int[2, k, k], by kind, the member behind the link from one to another, -1 if it leads out."""
    alternates: Sets
    """The links, other than the minimal one, whose paths do not come back."""
    repairs: Sets
    """Of classes that are not direct, the links whose paths do not meet v either; a few such links
    are left out."""

    @classmethod
    def of(cls, classes: StarClasses) -> StarSets:
        """The sets of all classes."""
        c, links = classes.build.tables.classes, classes.build.wiring.far.shape[1]
        all_sets = np.zeros((2, len(c.port), 3, links, (links + 7) // 8), np.uint8)
        paths = _MemberPaths.of(classes)
        for alike in classes.alike():
            pair = np.stack((paths.alternates(alike), paths.repairs(alike)))
            link = np.arange(alike.links)
            pair[..., link, link] = False
            packed = np.packbits(pair, axis=4)
            sets = np.repeat(packed[:, None], len(alike.x), axis=1)
            paths.over_triangles(alike, sets)
            some = sets.reshape(2, -1, *packed.shape[2:])
            all_sets[:, alike.switches, :, : alike.links, : packed.shape[4]] = some
        alternates, repairs = all_sets.reshape(2, len(c.port), 3 * links, -1)
        return cls(classes, paths.behind, alternates, repairs)


@dataclass(frozen=True, slots=True, eq=False)
class _MemberPaths:
    """The first links of paths between members."""

    classes: StarClasses
    """The classes of the build."""
    behind: Members
    """int[2, k, k], by kind, the member behind the link from one to another, -1 if it leads out."""
    back: Bits
    """bool[2, k, k, k], at x', by m and r: r's path to something that x' serves over m comes back
    to x'."""
    returns: Bits
    """bool[2, k, D], by the arc to y and the turn: (y, g(x')) serves so what x' serves over a third
    supernode in y."""

    @classmethod
    def of(cls, classes: StarClasses) -> _MemberPaths:
        """Follow the links by which supernodes are cabled."""
        members = classes.members
        program, k = members.program, members.program.members
        behind = np.full((2, k, k), -1)
        back = np.zeros((2, k, k, k), np.bool_)
        turns = program.around.shape[1]
        returns = np.zeros((2, k, turns), np.bool_)
        for of in members.inner:
            behind[of] = members.behind(of, program.step[of])
            link = ~members.joined(of) & (behind[of] >= 0) & ~np.eye(k, dtype=np.bool_)
            at, b = np.nonzero(link)
            n, r = np.nonzero(at[:, None] == behind[of][:, b].T)
            back[of, at[n], behind[of, at[n], b[n]], r] = True
        for arc, along in members.along.items():
            at, b = np.nonzero((program.case[arc] == OVER_Z) & (behind[0][along] < 0))
            returns[arc, at, (along[at] + b) % turns] = True
        return cls(classes, behind, back, returns)

    def _sides(self, alike: AlikeSupernodes) -> tuple[Bits, Members, Members, Members]:
        """bool[k, 3, K, K], no link; those out and within as a column, the members of these."""
        inner = self.classes.members.inner[alike.of][:, : len(alike.within)]
        none = np.zeros((len(inner), 3, alike.links, alike.links), np.bool_)
        return none, alike.out[:, None], alike.within[:, None], inner

    def alternates(self, alike: AlikeSupernodes) -> Bits:
        """bool[k, 3, K, K], but for triangles."""
        sets, out, within, inner = self._sides(alike)
        back = self.back[alike.of, alike.members, inner[:, :, None], inner[:, None]]
        sets[:, BEYOND, out] = True
        sets[:, BEYOND, within, out.T] = True
        sets[:, BEYOND, within, within.T] = ~back
        sets[:, BESIDE, :, alike.within] = True
        return sets

    def repairs(self, alike: AlikeSupernodes) -> Bits:
        """bool[k, 3, K, K], but for triangles."""
        sets, out, within, inner = self._sides(alike)
        joined = self.classes.members.joined(alike.of)
        sets[:, BEYOND, :, alike.out] = True
        sets[:, BESIDE, out, within.T] = True
        sets[:, BESIDE, within, within.T] = ~joined[inner[:, None], inner[:, :, None]]
        return sets

    def over_triangles(self, alike: AlikeSupernodes, sets: NDArray[np.uint8]) -> None:
        """Put into the sets, uint8[2, g, k, 3, K, B], what links to apexes serve."""
        g, place = np.nonzero(alike.apex >= 0)
        for number in np.unique(place).tolist():
            at, out = g[place == number], int(alike.out[number])
            byte, bit = bits(alike.apex[at, number])
            alternates, repairs = sets[0, :, :, BESIDE, out], sets[1, :, :, BEYOND, out]
            stays = self._stays(alike, at, alike.apex[at, number])
            alternates[at, :, byte] |= bit[:, None] * stays
            repairs[at, :, byte] &= ~bit[:, None]

    def _stays(self, alike: AlikeSupernodes, at: Members, link: Members) -> Bits:
        """bool[n, k]: whether the apex behind a link serves what is in itself not over x."""
        program, y = self.classes.members.program, np.searchsorted(alike.out, link)
        x = alike.x[at]
        around = program.around[program.around[x, y]]
        turn = np.count_nonzero(around < x[:, None], axis=1)
        stays: Bits = ~self.returns[alike.arc[y], :, turn]
        return stays
