"""UGAL_PF at the controller's time scale: weights of classes follow the load of their ports.

If the minimal port of a class is loaded above the threshold (PolarFly paper, §VII-C: two thirds),
part of the class's ingress traffic moves to its alternates, and back when the load has gone. As in
UGAL, an alternate is used only while its port's load, weighted by path length (3 to 2), is below
the minimal port's. So uniform traffic, which loads all ports alike, is not moved.

Weights are parts of 64, the hash values that Open vSwitch distributes over a select group. Steps
are bounded, a class rests after a step until the load shows its effect, and no traffic moves back
that would bring the load above the threshold again. Pure: loads and time in, weights out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.class_groups import HASH_VALUES

Numbers = NDArray[Any]
DETOUR = 1.5
"""Links of an alternate path over links of a minimal path, in PolarFly."""
AIM = 0.95
"""The part of the threshold that a step out aims at."""
VAIN, FULL = 0.99, 0.95
"""A step had no effect if the load stayed above this part of the old one; a full port hides it."""


@dataclass(frozen=True, slots=True)
class ShiftRule:
    """The rule for moving weights. Loads are parts of a port's rate, times are seconds.

    threshold: load above which traffic moves away. calm: part of the threshold below which it
    comes back. step: parts of 64 that move at once. rest: time between two steps of a class.
    longest: most time to wait; the wait doubles when traffic that came back has to leave again, or
    steps have no effect. kept: the part of a class's minimal share that never moves, so its
    traffic stays measurable.
    """

    threshold: float = 2 / 3
    calm: float = 0.75
    step: int = 8
    rest: float = 4.0
    longest: float = 600.0
    kept: float = 0.125


@dataclass(frozen=True, slots=True, eq=False)
class Shifts:
    """The weight shifts: int16[S, C] parts of 64, to which alternates (bool[S, C, A]), and when.

    calm: float64[S, C], since when the minimal port has been calm; wait: how long it must be calm
    before traffic comes back; back: bool[S, C], whether the last step was one back. load:
    float64[S, C], the minimal port's before the last step; idle: seconds until the next step after
    one without effect.
    """

    moved: NDArray[np.int16]
    over: NDArray[np.bool_]
    at: NDArray[np.float64]
    calm: NDArray[np.float64]
    wait: NDArray[np.float64]
    back: NDArray[np.bool_]
    load: NDArray[np.float64]
    idle: NDArray[np.float64]

    @classmethod
    def none(cls, classes: Classes) -> Shifts:
        """No shifts."""
        shape = classes.port.shape
        zero, never = np.zeros(shape), np.full(shape, -np.inf)
        return cls(
            moved=np.zeros(shape, np.int16),
            over=np.zeros(classes.alternate.shape, np.bool_),
            at=never,
            calm=-never,
            wait=zero,
            back=np.zeros(shape, np.bool_),
            load=-never,
            idle=zero,
        )


def adapt(
    rule: ShiftRule, classes: Classes, shifts: Shifts, load: NDArray[np.float64], now: float
) -> tuple[Shifts, NDArray[np.int64]]:
    """The next step, and int64[m, 2] the switch and number of each class that takes one.

    Args:
        rule: the thresholds.
        classes: of the current tables, with the compiled weights.
        shifts: the shifts so far.
        load: float64[S, ports + 1], of every port, outwards; NaN if unknown.
        now: the time.
    """
    row = np.arange(len(load))[:, None]
    here = load[row, classes.port]
    there = load[row[..., None], classes.alternate]
    passed = now - shifts.at
    vain = ~shifts.back & (here > VAIN * shifts.load) & (here < FULL)
    idle = np.where(vain, _longer(rule, shifts.idle), rule.rest)
    good = (classes.alternate > 0) & (there * DETOUR < here[..., None])
    out = _out(rule, classes, shifts, here) * ((passed >= idle) & good.any(axis=2))

    calm = np.where(here < rule.threshold * rule.calm, np.minimum(shifts.calm, now), np.inf)
    ready = (passed >= rule.rest) & (now - calm >= shifts.wait)
    back = _back(rule, classes, shifts, here) * ready

    step = (out - back).astype(np.int16)
    moves, moved = step != 0, shifts.moved + step
    wait = np.where(passed > rule.longest, 0, shifts.wait)
    after = Shifts(
        moved=moved,
        over=np.where((out > 0)[..., None], good, shifts.over) & (moved > 0)[..., None],
        at=np.where(moves, now, shifts.at),
        calm=calm,
        wait=np.where((out > 0) & shifts.back, _longer(rule, wait), wait),
        back=np.where(moves, back > 0, shifts.back),
        load=np.where(moves, here, shifts.load),
        idle=np.where(moves, np.where(vain, idle, 0), shifts.idle),
    )
    return after, np.argwhere(moves)


def _longer(rule: ShiftRule, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    longer: NDArray[np.float64] = np.minimum(2 * np.maximum(seconds, rule.rest), rule.longest)
    return longer


def _out(
    rule: ShiftRule, classes: Classes, shifts: Shifts, here: NDArray[np.float64]
) -> NDArray[np.int16]:
    """int16[S, C]: the parts of 64 that move away, a step at most."""
    whole = _minimal_parts(classes)
    surplus = 1 - AIM * rule.threshold / np.where(here > rule.threshold, here, np.inf)
    surplus = np.where(here > rule.threshold, surplus, 0)
    wanted = np.ceil(surplus * (whole - shifts.moved))
    most = np.floor(whole * (1 - rule.kept)) - shifts.moved
    step: NDArray[np.int16] = np.clip(wanted, 0, np.clip(most, 0, rule.step)).astype(np.int16)
    return step


def _back(
    rule: ShiftRule, classes: Classes, shifts: Shifts, here: NDArray[np.float64]
) -> NDArray[np.int16]:
    """int16[S, C]: the parts of 64 that may come back, a step at most.

    The whole load of the port counts as the class's own, so the estimate errs on the low side.
    """
    own = _minimal_parts(classes) - shifts.moved
    room = (rule.threshold * (1 + rule.calm) / 2 / np.maximum(here, 1e-9) - 1) * own
    whole = np.floor(np.clip(np.nan_to_num(room), 0, rule.step)).astype(np.int16)
    return np.asarray(np.minimum(whole, shifts.moved), np.int16)


def weighted(classes: Classes, shifts: Shifts) -> Classes:
    """The classes with shifted weights; classes without shifts keep the compiled ones.

    Ports that have left a class (`compilers.routing.class_repair`) get weight 0.
    """
    switch, number = np.nonzero(shifts.moved)
    if not len(switch):
        return classes
    weight = classes.weight.copy()
    weight[switch, number] = _weights(classes, shifts, switch, number)
    return replace(classes, weight=weight)


def _weights(
    classes: Classes, shifts: Shifts, switch: Numbers, number: Numbers
) -> NDArray[np.uint16]:
    """uint16[n, 1 + A]: parts of 64 of each port of some classes."""
    there = np.greater(classes.alternate[switch, number], 0)
    parts = _parts(classes.weight[switch, number])
    moved = shifts.moved[switch, number].astype(np.int64)
    over = shifts.over[switch, number] & there
    over = np.where(np.any(over, axis=1, keepdims=True), over, there)
    count = np.maximum(np.count_nonzero(over, axis=1), 1)
    # Classes begin at different alternates, so that the remainder spreads.
    rank = np.cumsum(over, axis=1) - 1
    rank = (rank - number[:, None]) % count[:, None]
    share = moved[:, None] // count[:, None] + (rank < (moved % count)[:, None])
    result = parts.copy()
    result[:, 1:] = (parts[:, 1:] + share * over) * there
    result[:, 0] = HASH_VALUES - result[:, 1:].sum(axis=1)
    return result.astype(np.uint16)


def _minimal_parts(classes: Classes) -> NDArray[np.int16]:
    """int16[S, C]: the minimal ports' parts of 64 as compiled."""
    shape = classes.port.shape
    parts = _parts(classes.weight.reshape(-1, classes.weight.shape[2]))
    return parts[:, 0].reshape(shape).astype(np.int16)


def _parts(weight: NDArray[np.uint16]) -> NDArray[np.int64]:
    """int64[n, 1 + A]: weights as parts of 64; the first takes up the rounding."""
    whole = np.maximum(weight.sum(axis=1, dtype=np.int64), 1)[:, None]
    parts = weight.astype(np.int64) * HASH_VALUES // whole
    parts[:, 0] += HASH_VALUES - parts.sum(axis=1)
    return np.asarray(parts, np.int64)
