"""The neighbours that a class leads to: minimal, of repair, of bounce, and those with a weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import HOME, NOWHERE, Forwarding, Numbers


@dataclass(frozen=True, slots=True, eq=False)
class ClassNeighbours:
    """Neighbours by class, R = S·(C + 2) classes of `Forwarding.order`; S where there is none.

    A packet that leaves by a class comes in at the neighbour by one of its links, the *entry*.

    port, entry: intp[R], over the minimal port, the switch itself where the class delivers. first,
    first_entry, second: intp[R], over the first two ports of repair that have a cable. bounce,
    bounce_again: intp[R], over the first two ports of bounce. ways: int32[R], how many links have a
    weight; chosen: uint8[R, ⌈K/8⌉], the alternates among them, a bit each, of switches with hosts.
    enters: bool[R], whether packets of hosts take the minimal port; spread: whether any take
    others. link_entry: int32[S, K], the entry of each link.
    """

    port: Numbers
    entry: Numbers
    first: Numbers
    first_entry: Numbers
    second: Numbers
    bounce: Numbers
    bounce_again: Numbers
    ways: NDArray[np.int32]
    chosen: NDArray[np.uint8]
    enters: NDArray[np.bool_]
    spread: bool
    link_entry: NDArray[np.int32]

    @classmethod
    def of(cls, f: Forwarding, endpoints: NDArray[np.bool_]) -> ClassNeighbours:
        """The neighbours of all classes; only those of switches with hosts have ways."""
        minimal = f.order[0]
        first, second = _first_two(f.order[1:], minimal)
        bounce, again = _first_two(f.bounce, minimal)
        port, entry = _behind(f, minimal)
        own = np.arange(len(minimal)) // (f.classes + 2)
        first, first_entry = _behind(f, first)
        ways = np.count_nonzero(f.weighted >= 0, axis=0)
        return cls(
            port=np.where(minimal == HOME, own, port),
            entry=entry,
            first=first,
            first_entry=first_entry,
            second=_behind(f, second)[0],
            bounce=_behind(f, bounce)[0],
            bounce_again=_behind(f, again)[0],
            ways=ways.astype(np.int32),
            chosen=_chosen(f, endpoints.repeat(f.classes + 2)),
            enters=(f.weighted[0] >= 0) | (ways == 0),
            spread=bool((f.weighted[1:] >= 0).any()),
            link_entry=f.end.reshape(f.switches, f.slots)[:, :-1] % f.slots,
        )

    def chooses(self, row: Numbers, link: Numbers) -> NDArray[np.bool_]:
        """Whether hosts by these classes may take these links of their switch as alternates."""
        return has_link(self.chosen, row, link)


def link_bits(link: Numbers) -> tuple[Numbers, NDArray[np.uint8]]:
    """The byte of each link in a set of links, a bit each, and its value there."""
    return link >> 3, np.uint8(1) << (link & 7).astype(np.uint8)


def has_link(sets: NDArray[np.uint8], number: Numbers, link: Numbers) -> NDArray[np.bool_]:
    """bool[n]: whether the sets of these numbers, of uint8[N, ⌈K/8⌉], have these links."""
    byte, bit = link_bits(link)
    found: NDArray[np.bool_] = sets.ravel().take(number * sets.shape[1] + byte) & bit != 0
    return found


def _first_two(
    ways: NDArray[np.int32], minimal: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """int32[R] twice: of ways out by class the first two that are not the minimal one."""
    first = np.full_like(minimal, NOWHERE)
    second = first
    for arc in ways:
        there = (arc >= 0) & (arc != minimal) & (arc != first)
        second = np.where(there & (first >= 0) & (second < 0), arc, second)
        first = np.where(there & (first < 0), arc, first)
    return first, second


def _behind(f: Forwarding, arc: NDArray[np.int32]) -> tuple[Numbers, Numbers]:
    """intp[R] twice: the switch that each way out leads to, and its link that comes in there."""
    end = np.where(arc >= 0, f.end.take(np.maximum(arc, 0)), f.switches * f.slots)
    switch, link = np.divmod(end.astype(np.intp), f.slots)
    return switch, link


def _chosen(f: Forwarding, has_hosts: NDArray[np.bool_]) -> NDArray[np.uint8]:
    width = (f.slots + 7) // 8
    bits = np.zeros(f.weighted.shape[1] * width, np.uint8)
    for arc in f.weighted[1:]:
        row = np.flatnonzero((arc >= 0) & has_hosts)
        byte, bit = link_bits(arc[row] % f.slots)
        bits[row * width + byte] |= bit
    return bits.reshape(-1, width)
