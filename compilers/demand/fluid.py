"""Traffic as a fluid that follows tables: split over the ports of its class, minimal from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths
from compilers.forwarding.many_packets import ManyPackets
from compilers.forwarding.program import Egress
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS

PACKETS_AT_ONCE = 1 << 21


Reals = NDArray[np.float64]
Numbers = NDArray[Any]


class _Part(NamedTuple):
    """The flows to some destinations: their egress classes, also as rows of `Fluid.options`; and of
    each flow its column among them, and its row.
    """

    destinations: Numbers
    egress: Egress
    rows: Numbers
    traffic: Traffic
    column: Numbers
    row: Numbers


@dataclass(frozen=True, eq=False)
class Fluid:
    """The arcs that ingress traffic leaves by, and their shares: [1 + A, S·(C + 2)] each."""

    hops: ManyPackets
    options: NDArray[np.int32]
    emitted: Reals

    @classmethod
    def of(cls, build: Build) -> Fluid:
        """Join the tables of a build with its cables."""
        hops = ManyPackets.of(build)
        p = hops.program
        first = np.arange(0, len(hops.end), hops.slots, dtype=np.int32)[:, None, None]
        links = np.concatenate((p.order[..., :1], p.shares[..., 1:]), axis=2)
        room = (0, 0), (0, 0), (0, 2)
        options = np.moveaxis(np.where(links >= 0, first + links, np.int32(-1)), 2, 0)
        options = np.pad(options, room, constant_values=-1).reshape(len(options), -1)
        weight = np.pad(np.moveaxis(build.tables.classes.weight, 2, 0), room).reshape(options.shape)
        return cls(hops, options, weight / np.maximum(1, weight.sum(axis=0)))

    @property
    def marks(self) -> bool:
        """Whether traffic is marked, and spread by the next switch."""
        return len(self.hops.program.onward) > 0

    def minimal(self) -> Reals:
        """The shares that send all traffic over the minimal ports."""
        shares = np.zeros_like(self.emitted)
        shares[0] = 1
        return shares

    def loads(self, traffic: Traffic, shares: Reals) -> Reals:
        """float64[S·L]: the load of each arc, in units of what a switch's hosts send.

        Nothing is marked where all goes by minimal ports.
        """
        p, end = self.hops.program, self.hops.end
        marks = self.marks and shares[1:].any()
        load = np.zeros(len(end))
        for part in self._parts(traffic):
            if p.every_hop and shares is self.emitted:
                load += self._shared(part)
                continue
            shape = (len(load), len(part.destinations)) if self.marks else (0, 0)
            marked = np.zeros(shape)
            for number, (option, share) in enumerate(zip(self.options, shares, strict=True)):
                amount = part.traffic.amount * share[part.row]
                some = np.flatnonzero(amount > 0)
                out, column = option[part.row[some]], part.column[some]
                if marks and number > 0:
                    load += np.bincount(out, amount[some], minlength=len(load))
                    np.add.at(marked, (end[out], column), amount[some])
                    continue
                for arcs, packet in self._follow(part, out, column):
                    load += np.bincount(arcs, amount[some[packet]], minlength=len(load))
            if marked.any():
                load += self._marked(part, marked)
        return load

    def _shared(self, part: _Part) -> Reals:
        """float64[S·L]: the load of each arc where every switch shares alike, over at most
        `MOST_HOPS` links.
        """
        hops, width = self.hops, len(part.destinations)
        load = np.zeros(len(hops.end))
        amount: Numbers = part.traffic.amount
        cell = hops.host(part.traffic.source) * width + part.column
        for _ in range(MOST_HOPS):
            if not len(cell):
                break
            distinct, place = np.unique(cell, return_inverse=True)
            amount = np.bincount(place, amount, len(distinct))
            arc, column = np.divmod(distinct, width)
            which, out = hops.after(part.egress, arc, column)
            going = (amount / np.bincount(which, minlength=len(distinct)))[which][out >= 0]
            which, out = which[out >= 0], out[out >= 0]
            load += np.bincount(out, going, minlength=len(load))
            cell, amount = hops.end[out].astype(np.int64) * width + column[which], going
        return load

    def _marked(self, part: _Part, marked: Reals) -> Reals:
        """float64[S·L]: the load of each arc by marked traffic, from its second link on.

        marked: float64[S·L, D], what comes in by each arc, marked.
        """
        hops, load = self.hops, np.zeros(len(self.hops.end))
        spreads = hops.spreads(part.egress).T[:, None]
        amount = marked.reshape(hops.switches, hops.slots, len(part.destinations))
        onward = np.where(spreads, self._onward.transpose(0, 2, 1) @ amount, 0.0)
        leaving = onward.reshape(marked.shape)
        arc, column = np.nonzero(np.where(spreads, 0.0, amount).reshape(marked.shape))
        which, home = hops.after(part.egress, arc, column)
        which, home = which[home >= 0], home[home >= 0]
        np.add.at(leaving, (home, column[which]), marked[arc[which], column[which]])
        arc, column = np.nonzero(leaving)
        for arcs, packet in self._follow(part, arc, column):
            going = leaving[arc[packet], column[packet]]
            load += np.bincount(arcs, going, minlength=len(load))
        return load

    @cached_property
    def _onward(self) -> Reals:
        """float64[S, L, L]: the part of what comes in by each arc, marked, that leaves by each."""
        links = self.hops.program.onward / 1.0
        links /= np.maximum(1, links.sum(axis=2, keepdims=True))
        return np.pad(links, ((0, 0), (0, 1), (0, 1)))

    def _parts(self, traffic: Traffic) -> Iterator[_Part]:
        """Traffic by blocks of destinations."""
        order = self.hops.switches
        step = max(1, PACKETS_AT_ONCE // (len(self.hops.end) if self.marks else order))
        for first in range(0, order, step):
            part = traffic.between(first, first + step)
            if len(part.source):
                destinations = np.arange(first, min(first + step, order))
                egress, column = self.hops.walks.egress(destinations), part.destination - first
                rows = self.hops.rows(egress)
                yield _Part(destinations, egress, rows, part, column, rows[column, part.source])

    def paths(self, traffic: Traffic, most: int = 1 << 40) -> FlowPaths:
        """The arcs that each flow loads by each of its options.

        One switch's flows of one class share their options, so they are one *choice*.

        Raises:
            OverflowError: there are more than `most`.
        """
        rows: list[Numbers] = []
        found, done, count = [], 0, 0
        for part in self._parts(traffic):
            for option, out in enumerate(self.options):
                some = np.flatnonzero(self.emitted[option, part.row] > 0)
                for arcs, packet in self._follow(part, out[part.row[some]], part.column[some]):
                    flow = some[packet]
                    amount = part.traffic.amount[flow]
                    found.append((option, arcs, (done + flow).astype(np.int32), amount))
                    count += len(arcs)
            if count > most:
                raise OverflowError(count)
            rows.append(part.row)
            done += len(part.row)
        used, choice = np.unique(np.concatenate(rows), return_inverse=True)
        emitted = self.emitted[:, used].T > 0
        number = (np.cumsum(emitted.ravel()).reshape(emitted.shape) - 1).astype(np.int32)
        chosen = choice.ravel()
        share = np.concatenate([number[chosen[flow], option] for option, _, flow, _ in found])
        arc, flows, amount = (np.concatenate([each[i] for each in found]) for i in (1, 2, 3))
        return FlowPaths(
            arc=arc.astype(np.int32),
            share=share,
            flow=flows,
            amount=amount,
            options=emitted,
            row=used,
            arcs=len(self.hops.end),
        )

    def _follow(
        self, part: _Part, out: Numbers, column: Numbers
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """The arcs that packets leave by, one hop at a time, and the number of each packet."""
        hops, packet, rows = self.hops, np.arange(len(out)), part.rows.ravel()
        for _ in range(MOST_HOPS):
            going = out >= 0
            out, packet = out[going], packet[going]
            if not len(out):
                return
            yield out, packet
            into = hops.end.take(out)
            row = rows.take(column[packet] * hops.switches + into // hops.slots)
            out = hops.transit(into, row)
