"""Traffic as a fluid that follows tables: split over the ports of its class, minimal from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths
from compilers.proof.walks.forwarding import Forwarding, Towards
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS

PACKETS_AT_ONCE = 1 << 21


Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fluid:
    """The arcs that ingress traffic leaves by, and their shares: [1 + A, S·(C + 2)] each."""

    forwarding: Forwarding
    ways: NDArray[np.int32]
    emitted: NDArray[np.float64]

    @classmethod
    def of(cls, build: Build) -> Fluid:
        """Join the tables of a build with its cables."""
        forwarding = Forwarding.of(build)
        weight = np.moveaxis(build.tables.classes.weight, 2, 0)
        weight = np.pad(weight, ((0, 0), (0, 0), (0, 2))).reshape(len(weight), -1)
        ways = forwarding.weighted.copy()
        ways[0] = forwarding.order[0]
        return cls(forwarding, ways, weight / np.maximum(1, weight.sum(axis=0)))

    @property
    def marks(self) -> bool:
        """Whether traffic is marked, and spread by the next switch."""
        return self.forwarding.marks

    def minimal(self) -> NDArray[np.float64]:
        """The shares that send all traffic over the minimal ports."""
        shares = np.zeros_like(self.emitted)
        shares[0] = 1
        return shares

    def loads(self, traffic: Traffic, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[S·L]: the load of each arc, in units of what a switch's hosts send.

        Nothing is marked where all goes by minimal ports.
        """
        f = self.forwarding
        first_marked = f.first_marked if shares[1:].any() else len(shares)
        load = np.zeros(len(f.end))
        for towards, part, column in self._parts(traffic):
            if f.every_hop and shares is self.emitted:
                load += self._shared(towards, part, column)
                continue
            row = towards.row(part.source, column)
            marked = np.zeros((len(load), len(towards.destinations)) if f.marks else (0, 0))
            for number, (way, share) in enumerate(zip(self.ways, shares, strict=True)):
                amount = part.amount * share[row]
                some = np.flatnonzero(amount > 0)
                if number >= first_marked:
                    out = way[row[some]]
                    load += np.bincount(out, amount[some], minlength=len(load))
                    np.add.at(marked, (f.end[out], column[some]), amount[some])
                    continue
                for arcs, packet in self._follow(towards, way[row[some]], column[some]):
                    load += np.bincount(arcs, amount[some[packet]], minlength=len(load))
            if marked.any():
                load += self._marked(towards, marked)
        return load

    def _shared(self, towards: Towards, part: Traffic, column: NDArray[np.int64]) -> Reals:
        """float64[S·L]: the load of each arc where every switch shares alike."""
        f, width = self.forwarding, len(towards.destinations)
        load = np.zeros(len(f.end))
        amount: NDArray[Any] = part.amount
        cell = f.hosts[part.source] * width + column
        while len(cell):
            distinct, place = np.unique(cell, return_inverse=True)
            amount = np.bincount(place, amount, len(distinct))
            arc, column = np.divmod(distinct, width)
            which, out = towards.ways_out(arc, column)
            going = (amount / np.bincount(which, minlength=len(distinct)))[which][out >= 0]
            which, out = which[out >= 0], out[out >= 0]
            load += np.bincount(out, going, minlength=len(load))
            cell, amount = f.end[out].astype(np.int64) * width + column[which], going
        return load

    def _marked(self, towards: Towards, marked: Reals) -> Reals:
        """float64[S·L]: the load of each arc by marked traffic, from its second link on.

        Args:
            towards: D destinations.
            marked: float64[S·L, D], what comes in by each arc, marked.
        """
        f, width = self.forwarding, len(towards.destinations)
        at, column = np.divmod(np.arange(f.switches * width), width)
        shape = f.switches, 1, width
        spreads = towards.spreads(at, column).reshape(shape)
        keeps = towards.keeps(at, column).reshape(shape)
        load, leaving = np.zeros(len(f.end)), np.zeros((len(f.end), width))
        while marked.any():
            amount = marked.reshape(f.switches, f.slots, width)
            out = np.where(spreads, self._onward.transpose(0, 2, 1) @ amount, 0.0)
            leaving += np.where(keeps, 0.0, out).reshape(-1, width)
            kept = np.where(keeps, out, 0.0).reshape(-1, width)
            load += kept.sum(axis=1)
            arc, number = np.nonzero(np.where(spreads, 0.0, amount).reshape(-1, width))
            home = towards.way_out(arc, number)
            there = home >= 0
            np.add.at(leaving, (home[there], number[there]), marked[arc[there], number[there]])
            marked = np.zeros_like(marked)
            marked[f.end[f.end >= 0]] = kept[f.end >= 0]
        arc, number = np.nonzero(leaving)
        for arcs, packet in self._follow(towards, arc.astype(np.int32), number):
            going = leaving[arc[packet], number[packet]]
            load += np.bincount(arcs, going, minlength=len(load))
        return load

    @cached_property
    def _onward(self) -> Reals:
        """float64[S, L, L]: the part of what comes in by each arc, marked, that leaves by each."""
        f = self.forwarding
        part = np.zeros((f.switches * f.slots, f.slots))
        part[:, :-1] = np.unpackbits(f.onward, axis=1, count=f.slots - 1, bitorder="little")
        part /= np.maximum(1, part.sum(axis=1))[:, None]
        return part.reshape(f.switches, f.slots, f.slots)

    def _parts(self, traffic: Traffic) -> Iterator[tuple[Towards, Traffic, NDArray[np.int64]]]:
        """Traffic by blocks of destinations, and the column of each flow in its block."""
        order = self.forwarding.switches
        step = max(1, PACKETS_AT_ONCE // (len(self.forwarding.end) if self.marks else order))
        for first in range(0, order, step):
            part = traffic.between(first, first + step)
            if len(part.source):
                towards = Towards.of(self.forwarding, np.arange(first, min(first + step, order)))
                yield towards, part, part.destination - first

    def paths(self, traffic: Traffic, most: int = 1 << 40) -> FlowPaths:
        """The arcs that each flow loads by each of its ways.

        One switch's flows of one class share their ways, so they are one *choice*.

        Raises:
            OverflowError: there are more than `most`.
        """
        rows: list[NDArray[Any]] = []
        found, done, count = [], 0, 0
        for towards, part, column in self._parts(traffic):
            row = towards.row(part.source, column)
            for way, out in enumerate(self.ways):
                some = np.flatnonzero(self.emitted[way, row] > 0)
                for arcs, packet in self._follow(towards, out[row[some]], column[some]):
                    flow = some[packet]
                    found.append((way, arcs, (done + flow).astype(np.int32), part.amount[flow]))
                    count += len(arcs)
            if count > most:
                raise OverflowError(count)
            rows.append(row)
            done += len(row)
        used, choice = np.unique(np.concatenate(rows), return_inverse=True)
        emitted = self.emitted[:, used].T > 0
        number = (np.cumsum(emitted.ravel()).reshape(emitted.shape) - 1).astype(np.int32)
        chosen = choice.ravel()
        share = np.concatenate([number[chosen[flow], way] for way, _, flow, _ in found])
        arc, flows, amount = (np.concatenate([each[i] for each in found]) for i in (1, 2, 3))
        return FlowPaths(
            arc=arc,
            share=share,
            flow=flows,
            amount=amount,
            ways=emitted,
            row=used,
            arcs=len(self.forwarding.end),
        )

    def _follow(
        self, towards: Towards, out: NDArray[np.int32], column: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """The arcs that packets leave by, one hop at a time, and the number of each packet."""
        packet = np.arange(len(out))
        for _ in range(MOST_HOPS):
            going = out >= 0
            out, packet = out[going], packet[going]
            if not len(out):
                return
            yield out, packet
            out = towards.way_out(self.forwarding.end[out], column[packet])
