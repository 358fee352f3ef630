"""UGAL_PF at the controller's time scale: weights of classes follow the load of whole paths.

As in UGAL, a path is judged by its load and its length; but where a packet's switch knows its own
queues alone, the controller knows what every link carries, and how much enters for whom
(`measured_traffic`). So it takes the shares that load the hottest link least
(`compilers.demand.weight_fit`), of which it goes only as far as the threshold asks for (PolarFly
paper, §VII-C: two thirds): every link of a longer path counts, so uniform traffic stays minimal.

A change takes most of the way to these shares, and is made only for a good part of the load, so
measurements that are a little wrong move nothing. Weights come back when the compiled ones would
load no link much. They are parts of 64, the hash values that Open vSwitch distributes over a select
group. Pure: loads in, weights out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.class_groups import HASH_VALUES

if TYPE_CHECKING:  # most fabrics keep their weights
    from extensions.load_balancing.measured_traffic import MeasuredTraffic

Numbers = NDArray[Any]
Reals = NDArray[np.float64]
BLENDS = 16
"""How many points between compiled and fitted shares are looked at."""
NEAR = 1.02
"""Of the fitted load: what is near enough to it."""
HOT = 0.9
"""The part of the largest load from which on an arc has a price as the fit begins."""
GAP, CROSSED = 0.02, 1 << 25
"""The gap at which the fit ends, and the arcs that all its steps cross: a second of work."""


@dataclass(frozen=True, slots=True)
class ShiftRule:
    """The rule for moving weights. Loads are parts of a link's rate.

    threshold: load of the hottest link above which traffic moves. aim: the part of the threshold
    that a change aims at. calm: the part below which weights come back. step: of the distance to
    the shares aimed at, taken at once. gain: the least part of the hottest load that a change
    saves.
    """

    threshold: float = 2 / 3
    aim: float = 0.95
    calm: float = 0.75
    step: float = 0.75
    gain: float = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Shifts:
    """Shifted weights: uint16[S, C, 1 + A] parts of 64, 0 where a class keeps the compiled ones.

    moved: int16[S, C], the parts that the minimal port has lost; negative where it has got more.
    """

    weight: NDArray[np.uint16]
    moved: NDArray[np.int16]

    @classmethod
    def none(cls, classes: Classes) -> Shifts:
        """No shifts."""
        shape = classes.port.shape
        return cls(
            np.zeros((*shape, classes.alternate.shape[2] + 1), np.uint16), np.zeros(shape, np.int16)
        )

    @property
    def any(self) -> bool:
        """Whether there are some."""
        return bool(self.weight.any())


def adapt(
    rule: ShiftRule, classes: Classes, shifts: Shifts, traffic: MeasuredTraffic, load: Reals
) -> tuple[Shifts, NDArray[np.int64]]:
    """The next shifts, and int64[m, 2] the switch and number of each class that changes.

    Args:
        rule: the thresholds.
        classes: of the current tables, with the compiled weights.
        shifts: the shifts so far.
        traffic: what enters, measured under these.
        load: float64[S·L], of every arc, a part of its rate; NaN if unknown.
    """
    compiled = traffic.shares(classes.weight)
    now = traffic.shares(weighted(classes, shifts).weight)
    other = np.maximum(np.nan_to_num(load) - traffic.paths.loads(now), 0.0)

    def peak(shares: Reals) -> float:
        return float((traffic.paths.loads(shares) + other).max())

    least = peak(compiled)
    if least <= rule.calm * rule.threshold:
        return _changed(shifts, Shifts.none(classes))
    if peak(now) <= rule.threshold:
        return _changed(shifts, shifts)
    fitted = _fitted(traffic, compiled, other)
    enough = max(rule.aim * rule.threshold, NEAR * peak(fitted))
    for part in np.linspace(0, 1, BLENDS + 1):
        aimed = compiled + part * (fitted - compiled)
        if peak(aimed) <= enough:
            break
    if peak(aimed) > (1 - rule.gain) * peak(now):
        return _changed(shifts, shifts)
    after = now + rule.step * (aimed - now)
    return _changed(shifts, _shifted(classes, shifts, traffic, after))


def _fitted(traffic: MeasuredTraffic, compiled: Reals, other: Reals) -> Reals:
    """The shares that load the hottest arc least, given what else there is on arcs."""
    from compilers.demand.weight_fit import Fit, fit

    paths, arcs = traffic.paths, np.flatnonzero(other > 0)
    count, width = np.count_nonzero(paths.options), paths.options.shape[1]
    alone = np.arange(width)[None] == 0  # what no choice moves: a choice of one path
    both = replace(
        paths,
        arc=np.concatenate((paths.arc, arcs)).astype(np.int32),
        share=np.concatenate((paths.share, np.full(len(arcs), count))).astype(np.int32),
        amount=np.concatenate((paths.amount, other[arcs])),
        options=np.concatenate((paths.options, alone)),
    )
    shares = np.concatenate((compiled, alone.astype(np.float64)))
    loads = both.loads(shares)
    hot = loads >= HOT * loads.max()
    before = Fit(shares, loads, hot / np.count_nonzero(hot), 0.0)
    return fit(both, before=before, gap=GAP, crossings=CROSSED).shares[:-1]


def _shifted(classes: Classes, shifts: Shifts, traffic: MeasuredTraffic, shares: Reals) -> Shifts:
    """Shifts to these shares of classes that have traffic; the others keep theirs."""
    carries = np.zeros(len(shares), np.bool_)
    paths = traffic.paths
    choice = np.repeat(np.arange(len(shares)), np.count_nonzero(paths.options, axis=1))
    carries[choice[paths.share[paths.amount > 0]]] = True
    exact = shares[carries] * HASH_VALUES
    parts = np.floor(exact + 1e-9).astype(np.int64)
    rank = np.argsort(np.argsort(parts - exact, axis=1, kind="stable"), axis=1)
    parts += rank < (HASH_VALUES - parts.sum(axis=1))[:, None]
    # A minimal port without a weight would need a group more, and a row.
    none = np.flatnonzero(parts[:, 0] == 0)
    parts[none, parts[none].argmax(axis=1)] -= 1
    parts[none, 0] = 1
    switch, number = traffic.switch[carries], traffic.number[carries]
    weight = shifts.weight.copy()
    weight[switch, number] = parts
    as_compiled = (parts == _parts(classes.weight[switch, number])).all(axis=1)
    weight[switch[as_compiled], number[as_compiled]] = 0
    some = weight.any(axis=2)
    moved = np.where(some, _minimal_parts(classes) - weight[..., 0].astype(np.int16), 0)
    return Shifts(weight, moved.astype(np.int16))


def _changed(before: Shifts, after: Shifts) -> tuple[Shifts, NDArray[np.int64]]:
    """The shifts after, and the classes that they change."""
    if after is before:
        return before, np.zeros((0, 2), np.int64)
    return after, np.argwhere((before.weight != after.weight).any(axis=2))


def weighted(classes: Classes, shifts: Shifts) -> Classes:
    """The classes with shifted weights; classes without shifts keep the compiled ones.

    Ports that have left a class (`compilers.routing.class_repair`) get weight 0, and what they had
    goes to the minimal port.
    """
    switch, number = np.nonzero(shifts.weight.any(axis=2))
    if not len(switch):
        return classes
    parts = shifts.weight[switch, number].astype(np.int64)
    parts[:, 1:] *= classes.alternate[switch, number] > 0
    parts[:, 0] = HASH_VALUES - parts[:, 1:].sum(axis=1)
    weight = np.array(classes.weight)
    weight[switch, number] = parts
    return replace(classes, weight=weight)


def _minimal_parts(classes: Classes) -> NDArray[np.int16]:
    """int16[S, C]: the minimal ports' parts of 64 as compiled."""
    weight = np.asarray(classes.weight)
    parts = _parts(weight.reshape(-1, weight.shape[2]))
    return parts[:, 0].reshape(classes.port.shape).astype(np.int16)


def _parts(weight: NDArray[np.uint16]) -> NDArray[np.int64]:
    """int64[n, 1 + A]: weights as parts of 64; the first takes up the rounding."""
    whole = np.maximum(weight.sum(axis=1, dtype=np.int64), 1)[:, None]
    parts = weight.astype(np.int64) * HASH_VALUES // whole
    parts[:, 0] += HASH_VALUES - parts.sum(axis=1)
    return np.asarray(parts, np.int64)
