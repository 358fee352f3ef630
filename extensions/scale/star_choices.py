"""Alternates and repair in a whole PolarStar, by construction: three classes a link.

At u = (x, x') a class is a link and what it serves: the neighbour itself (*direct*), other switches
of the supernodes next to x (*beside*), or all else (*beyond*). Links lead *out* to (z, g(x')), or
*within* x to (x, m). A neighbour of u does the same for all destinations of a class:

| class | alternates | repairs |
|---|---|---|
| out, beyond | all | out, but the apex of x and z |
| out, beside | within; the apex | within |
| out, direct | | the apex, then out |
| within, beyond | out; within, if their paths do not come back | out |
| within, beside | within | within, if not joined to m; then out, see `_inside` |
| within, direct | | those whose paths do not come back, then out |

A neighbour that sends a packet back does so by a class over u, whose repairs avoid u: it bounces.
That these serve is proved of each state (`compilers.proof.local.state_proof`), by other means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing import polarstar_minimal
from compilers.routing.alternate_weights import with_alternates
from compilers.routing.port_ranking import ORDER, ranked
from compilers.spec.forwarding import Forwarding
from compilers.tables.computed_array import unless_large
from compilers.tables.intermediate_form import Classes, Tables
from compilers.tables.star_rows import OVER_Z, WITHIN, StarEgress, StarPrefixes, StarProgram
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from extensions.scale.star_links import AlikeSupernodes, Numbers

BEYOND, DIRECT, BESIDE = range(3)
"""The parts of a switch's classes; direct ones are the second of each port, as in all builds."""
Bits = NDArray[np.bool_]


def with_choices(
    tables: Tables, topology: Topology, wiring: Wiring, forwarding: Forwarding
) -> Tables:
    """Tables with three classes a link, their alternates and repairs.

    Args:
        tables: minimal.
        topology: a whole PolarStar.
        wiring: its cables.
        forwarding: whether there are alternates and repair. Alternates may share links with minimal
            paths.
    """
    links = wiring.port.shape[1]
    program = _program(topology, links)
    egress = unless_large(StarEgress(program), tables.routes.egress)
    prefix = unless_large(StarPrefixes(program), egress)
    classes = Classes.minimal(np.tile(wiring.port, 3))
    if forwarding.repairs:
        order = _protection(program, wiring)
        classes = replace(classes, protection=order, bounce=order)
    if forwarding.has_alternates:
        classes = with_alternates(
            classes, wiring, _alternates(program, links), forwarding.minimal_share
        )
    return Tables(replace(tables.routes, prefix=prefix, egress=egress), classes)


def star_alternates(topology: Topology, links: int) -> NDArray[np.uint8]:
    """uint8[S, 3K, ⌈K/8⌉]: the links of alternates of a whole PolarStar, as in `Spread`."""
    return _alternates(_program(topology, links), links)


def _program(topology: Topology, links: int) -> StarProgram:
    """The minimal routes, with three classes for each of so many links."""
    shift = np.array([BESIDE * links, DIRECT * links], np.uint16)
    return replace(polarstar_minimal.star_program(topology), shift=shift)


def _protection(program: StarProgram, wiring: Wiring) -> NDArray[np.uint16]:
    """uint16[S, 3K, P]: ports that repair; bounces are the same."""
    order, links = wiring.port.shape
    protection = np.zeros((order, 3, links, ORDER), np.uint16)
    paths, ports = MemberPaths.of(program), np.pad(wiring.port.astype(np.uint16), ((0, 0), (1, 0)))
    for alike in AlikeSupernodes.each(program):
        rank = partial(_ranked, wiring=wiring)
        shape = len(alike.x), program.members, 3, alike.links, ORDER
        number = np.zeros(shape, np.intp)
        number[...] = rank(*paths.repairs(alike))
        # Out of the supernode, the same of all members, but direct neighbours and what is beside.
        number[:, :, BEYOND, alike.out], number[:, :, DIRECT, alike.out] = (
            rank(*sets)[:, None, alike.out] for sets in _over_triangles(alike)
        )
        switch, some = alike.switches, number.reshape(-1, *shape[2:])
        protection[switch, :, : alike.links] = ports[switch[:, None, None, None], some]
    return protection.reshape(order, 3 * links, ORDER)


def _ranked(usable: Bits, before: Bits, wiring: Wiring) -> NDArray[np.uint16]:
    """uint16[…, K, P]: the first usable links of classes, one more than their number, 0 for none.

    Args:
        usable: bool[n, …, K, K], by class's link and other link.
        before: the same, those to take first.
        wiring: any.
    """
    links = usable.shape[-1]
    sets = [links_of.reshape(len(usable), -1, links) for links_of in (usable, before)]
    port = np.tile(np.arange(1, links + 1, dtype=np.int32), (len(usable), 1))
    minimal = np.tile(port, sets[0].shape[1] // links)
    first_links = ranked(sets[0], minimal, replace(wiring, port=port), ORDER, sets[1])
    return first_links.reshape(*usable.shape[:-1], ORDER)


def _over_triangles(alike: AlikeSupernodes) -> Iterator[tuple[Bits, Bits]]:
    """Repairs of out links beyond and direct, bool[g, K, K] each: usable, and to be taken first."""
    shape = len(alike.x), alike.links, alike.links
    apex, others, none = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_), np.zeros(shape, bool)
    x, place = np.nonzero(alike.apex >= 0)
    apex[x, alike.out[place], alike.apex[x, place]] = True
    others[:, alike.out[:, None], alike.out] = ~np.eye(len(alike.out), dtype=np.bool_)
    yield others & ~apex, none
    yield others, apex


def _alternates(program: StarProgram, links: int) -> NDArray[np.uint8]:
    """uint8[S, 3K, ⌈K/8⌉]: the links of alternates, as in `Spread`."""
    k, order = program.members, len(program.around) * program.members
    alternates = np.zeros((order, 3, links, (links + 7) // 8), np.uint8)
    paths = MemberPaths.of(program)
    for alike in AlikeSupernodes.each(program):
        same = np.packbits(paths.alternates(alike), axis=3)
        sets = np.repeat(same[None], len(alike.x), axis=0)
        g, place = np.nonzero(alike.apex >= 0)
        apex = alike.apex[g, place]
        bit = (128 >> (apex & 7)).astype(np.uint8)[:, None] * paths.stays(alike)[g, :, place]
        # One apex a link out, so no place occurs twice.
        sets[g[:, None], np.arange(k), BESIDE, alike.out[place][:, None], apex[:, None] >> 3] |= bit
        alternates[alike.switches, :, : alike.links, : same.shape[3]] = sets.reshape(
            -1, *same.shape[1:]
        )
    return alternates.reshape(order, 3 * links, -1)


@dataclass(frozen=True, slots=True, eq=False)
class MemberPaths:
    """Paths within supernodes, from and to members."""

    program: StarProgram
    """The program of all switches."""
    behind: NDArray[np.int16]
    """int16[2, k, k], by kind, the member behind the link that leads from one to another, -1 where
    it leads out."""
    back: Bits
    """bool[2, k, k, k], at a, by m and r, both joined to a: whether the path from r to some member
    that a serves over m comes back to a."""

    @classmethod
    def of(cls, program: StarProgram) -> MemberPaths:
        """Follow the first link of all paths."""
        k = program.members
        behind = np.full((2, k, k), -1, np.int16)
        back = np.zeros((2, k, k, k), np.bool_)
        for of, joined in enumerate(program.joined):
            inner = np.argsort(~joined, axis=1, kind="stable")
            step = program.step[of]
            over = np.take_along_axis(inner, np.maximum(step, 0).astype(np.intp), axis=1)
            behind[of] = np.where(step >= 0, over, -1)
            for a, b in np.argwhere(~joined & (behind[of] >= 0) & ~np.eye(k, dtype=np.bool_)):
                back[of, a, behind[of, a, b]] |= behind[of][:, b] == a
        return cls(program, behind, back)

    def alternates(self, alike: AlikeSupernodes) -> Bits:
        """bool[k, 3, K, K]: links whose paths never come back, but for those over triangles."""
        sets, out, within = self._none(alike)
        at, inner = alike.members, alike.inner
        sets[:, BEYOND, out] = True
        sets[:, BEYOND, within, out.T] = True
        back = self.back[alike.of, at, inner[:, :, None], inner[:, None, :]]
        sets[:, BEYOND, within, within.T] = ~back
        sets[:, BESIDE, out, within.T] = True
        sets[:, BESIDE, within, within.T] = True
        return _others(sets)

    def stays(self, alike: AlikeSupernodes) -> Bits:
        """bool[g, k, D]: whether the apex y of x and z, by link to z, does not send (y, x') back.

        That is what x' serves over z in y, if anything. Out of y it may go over x.
        """
        program, member = self.program, alike.members[:, 0]
        y = np.argmax(alike.out == alike.apex[..., None], axis=2)
        arc = alike.arc[y][:, None]
        over = program.along[arc, member]
        around = program.around[self._beside(alike)[np.arange(len(y))[:, None], y]]
        place = np.count_nonzero(around < alike.x[:, None, None], axis=2)[:, None]
        turn = (over + member) % around.shape[2]
        returns = (program.case[arc, member, member] == OVER_Z) & (self.behind[0, over, member] < 0)
        stays: Bits = ~(returns & (turn == place))
        return stays

    def _beside(self, alike: AlikeSupernodes) -> NDArray[np.int32]:
        """int32[g, D]: the supernodes next to each x."""
        around = self.program.around[alike.x]
        others = around != alike.x[:, None]
        beside: NDArray[np.int32] = around[others].reshape(len(around), -1)
        return beside

    def repairs(self, alike: AlikeSupernodes) -> tuple[Bits, Bits]:
        """bool[k, 3, K, K] twice: links that repair, and those to take first, but of out links."""
        usable, out, within = self._none(alike)
        before, program = usable.copy(), self.program
        to, at, inner = alike.inner[:, :, None], alike.members, alike.inner[:, None, :]
        over = alike.over[:, None, :]
        usable[:, BEYOND, within, out.T] = True
        usable[:, BESIDE, out, within.T] = True
        before[:, BESIDE, within, within.T] = ~program.joined[alike.of, inner, to]
        usable[:, BESIDE, within, out.T] = self._inside(over, program.along[alike.arc, to])
        before[:, DIRECT, within, within.T] = self.behind[alike.of, inner, to] != at
        case = program.case[1 - alike.arc, over, to]
        past = (case == WITHIN) | ((case == OVER_Z) & (not alike.of))
        before[:, DIRECT, within, out.T] = past
        usable[:, DIRECT, within, out.T] = True
        return _others(usable | before), _others(before)

    def _inside(self, members: NDArray[Any], ends: NDArray[Any]) -> Bits:
        """Whether members of another supernode, of either kind, have paths within it to others."""
        inside: Bits = np.all(self.behind[:, members, ends] >= 0, axis=0)
        return inside

    def _none(self, alike: AlikeSupernodes) -> tuple[Bits, Numbers, Numbers]:
        """bool[k, 3, K, K], all False, and the links out and within as a column each."""
        shape = len(alike.over), 3, alike.links, alike.links
        return np.zeros(shape, np.bool_), alike.out[:, None], alike.within[:, None]


def _others(sets: Bits) -> Bits:
    """Remove from each class's set the link that the class leads over."""
    link = np.arange(sets.shape[3])
    sets[:, :, link, link] = False
    return sets
