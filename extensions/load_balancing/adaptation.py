"""Load measurement: port counters all the time, those of rows while a port is hot; then shifts.

Where a port is loaded above the threshold, or weights are shifted, the rows of all switches are
read twice, and what they have carried in between says what enters for whom. One change of weights
follows at most, and a rest. Shares are fitted in the background. No I/O; time is the fabric's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.spec.policy import share
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes, Tables
from compilers.targets.openflow.protocol import Multipart
from controller.openflow.multipart import flows_wanted, ports_wanted
from controller.switches.conversation import Answer
from controller.switches.events import Kind
from controller.switches.session import LiveFabric
from controller.upkeep.background import Start, at_once
from extensions.load_balancing.measured_traffic import FabricPaths, MeasuredTraffic
from extensions.load_balancing.meters import MOST_ROWS, Meter, RowMeter
from extensions.load_balancing.weight_shifts import ShiftRule, Shifts, adapt, weighted
from inventory.problems import InputError

METER_PERIOD = 1.0
"""Seconds between two readings of a switch's counters, and between two evaluations of all."""
REST, LONGEST_REST = 3.0, 30.0
"""Seconds between rounds; it doubles while rounds change nothing, up to the latter."""


@dataclass(frozen=True, slots=True)
class ClassShift:
    """The parts of 64 of an egress class that use alternates instead of its minimal port.

    parts: fewer than 0 if the minimal port has got some of theirs.
    """

    egress_class: int
    port: str
    parts: int

    @property
    def text(self) -> str:
        """The parts of 64 and the port, as text."""
        return f"{abs(self.parts)}/64 {'from' if self.parts >= 0 else 'to'} {self.port}"


def _text(event: Mapping[str, Any]) -> str:
    return ", ".join(ClassShift(**shift).text for shift in event["shifts"])


WeightsShifted = Kind(
    "shifted",
    "switch; shifts list of {`egress_class` integer, `port` text, `parts` integer}",
    "Weights have followed the load: the parts of 64 of each class that now use alternates.",
    "weights moved at {node}: {text}",
    _text,
)


class UgalAdaptation:
    """The loads of a build's ports, and the weight shifts that they caused: an `Adaptation`.

    shifts: those in the tables, or in the change being sent. start: starts the fit of shares.

    Raises:
        InputError: the build has no alternates, the fabric has more rows than can be read, or its
            packets are marked.
    """

    def __init__(
        self, build: Build, fabric: LiveFabric, rate: float | None = None, start: Start = at_once
    ) -> None:
        wiring, classes = build.wiring, build.tables.classes
        if not (build.spreading.adapts or classes.alternate.shape[2]):
            raise InputError.of(
                key="adapt",
                required="a build with alternates, to which weights can move",
                given=f"balance: {build.balance}",
                todo="write routing: {balance: ugal-pf} in the fabric, and compile",
            )
        threshold = share(build.policy.get("threshold", "2/3"), _q(build))
        self.rule = ShiftRule(threshold=float(threshold))
        self.meter = Meter(len(wiring.far), wiring.cables().shape[1] - 1, rate)
        self.shifts = Shifts.none(classes)
        self._rows = RowMeter(len(wiring.far), build.addressing)
        if (count := self._rows.cells) > MOST_ROWS:
            raise InputError.of(
                key="adapt",
                required=f"a fabric of at most {MOST_ROWS:,} rows, whose counters are read",
                given=f"{count:,}",
                todo="take `no_adapt`",
            )
        self._build, self._fabric_paths = build, (build.tables, FabricPaths.of(build))
        self._fabric, self._start = fabric, start
        self._fitting: Future[tuple[Shifts, NDArray[np.int64]]] | None = None
        self._asked = np.full(len(wiring.far), -np.inf)
        self._looked, self._next, self._rest = -np.inf, -np.inf, REST
        self._there: set[int] = set()
        self._counting = False

    @property
    def shifted(self) -> int:
        """How many classes have shifted weights."""
        return int(np.count_nonzero(self.shifts.moved))

    @property
    def load(self) -> NDArray[np.float64]:
        """float64[S, K]: of each port with a link, 0 to 1."""
        load = np.take_along_axis(self.meter.load, self._build.wiring.port, axis=1)
        return np.asarray(np.clip(np.nan_to_num(load), 0, 1))

    def weighting(self) -> Callable[[Tables], Tables]:
        """What gives tables the weights as they are shifted now."""
        return partial(_with_weights, self.shifts)

    def described(self, vertex: int, ports: bytes) -> None:
        """A switch has described its ports."""
        self.meter.ports(vertex, ports)

    def ask(self) -> None:
        """Request counters from the switches that are due."""
        switches, now = self._fabric, self._fabric.clock()
        self._there = set(switches.in_sync)
        for vertex in self._there:
            if now - self._asked[vertex] >= METER_PERIOD:
                self._asked[vertex] = now
                talk = switches.present[vertex].talk
                talk.ask(Multipart.PORT_STATS, ports_wanted(), self._told(vertex))
        for vertex in self._rows.due(self._there, now) if self._counting else ():
            talk = switches.present[vertex].talk
            talk.ask(Multipart.FLOW, flows_wanted(), self._counted(vertex))

    def left(self, vertex: int) -> None:
        """A switch has left."""
        self.meter.left(vertex)
        self._rows.left(vertex)
        self._asked[vertex] = -np.inf

    def step(self, tables: Tables) -> NDArray[np.int64] | None:
        """int64[m, 2], the switch and class of each new shift; None if none is due.

        Args:
            tables: with the compiled weights.
        """
        moves = self._step(tables, self._fabric.clock())
        if moves is not None:
            self._tell(tables.classes, moves)
        return moves

    def _tell(self, classes: Classes, moves: NDArray[np.int64]) -> None:
        """Report the new weights of each switch."""
        wiring = self._build.wiring
        for vertex in np.unique(moves[:, 0]).tolist():
            numbers = moves[moves[:, 0] == vertex, 1]
            found = numbers, classes.port[vertex, numbers], self.shifts.moved[vertex, numbers]
            shifts = [
                asdict(ClassShift(number, wiring.port_name(vertex, port), parts))
                for number, port, parts in np.stack(found, axis=1).tolist()
            ]
            self._fabric.tell(WeightsShifted(wiring.names[vertex], shifts))

    def _step(self, tables: Tables, now: float) -> NDArray[np.int64] | None:
        if self._fitting is not None:
            return self._fitted(self._fitting, tables, now)
        if now - self._looked < METER_PERIOD:
            return None
        self._looked = now
        if tables is not self._fabric_paths[0]:  # what was counted took other paths
            self._fabric_paths = tables, FabricPaths.of(replace(self._build, tables=tables))
            self._counting = False
        if not self._counting:
            hot = float(np.nanmax(self.meter.load, initial=0.0)) > self.rule.threshold
            if now >= self._next and (hot or self.shifts.any):
                self._rows.begin()
                self._counting = True
            return None
        if not self._rows.complete(self._there):
            return None
        self._counting = False
        fabric_paths = self._fabric_paths[1]
        # The rates are not written any more: the next round of readings begins with others.
        counted = (
            self._rows.rate,
            fabric_paths.at_arcs(self.meter.rate),
            fabric_paths.at_arcs(self.meter.load),
        )
        self._fitting = self._start(
            partial(_fit, self.rule, fabric_paths, tables.classes, self.shifts, *counted)
        )
        return self._fitted(self._fitting, tables, now)

    def _fitted(
        self, fitting: Future[tuple[Shifts, NDArray[np.int64]]], tables: Tables, now: float
    ) -> NDArray[np.int64] | None:
        """Take the shifts that were fitted, once they are, unless the tables are others now."""
        if not fitting.done():
            return None
        self._fitting, rest = None, min(2 * self._rest, LONGEST_REST)
        self._next, self._rest = now + rest, rest
        shifts, moves = fitting.result()
        if tables is not self._fabric_paths[0] or not len(moves):
            return None
        self.shifts = shifts
        # Rows of supernodes do not tell for which switch: what is fitted to them may be wrong.
        self._rest = REST if tables.routes.exact else rest
        self._next = now + self._rest
        return moves

    def _counted(self, vertex: int) -> Answer:
        def counted(body: bytes | None) -> None:
            if body is not None and self._counting:
                self._rows.counters(vertex, body, self._fabric.clock())

        return counted

    def _told(self, vertex: int) -> Answer:
        def answered(body: bytes | None) -> None:
            if body is not None:
                self.meter.counters(vertex, body, self._fabric.clock())

        return answered


def _fit(
    rule: ShiftRule,
    fabric_paths: FabricPaths,
    classes: Classes,
    shifts: Shifts,
    rate: NDArray[np.float32],
    of_arcs: NDArray[np.float64],
    load: NDArray[np.float64],
) -> tuple[Shifts, NDArray[np.int64]]:
    """Shifts by what rows and ports have carried; int64[m, 2], the classes that change."""
    capacity = np.nan_to_num(of_arcs, nan=np.inf)
    traffic = MeasuredTraffic.of(fabric_paths, rate, capacity, weighted(classes, shifts).weight)
    if traffic is None:  # nothing is sent that shifts are for
        return Shifts.none(classes), np.argwhere(shifts.weight.any(axis=2))
    return adapt(rule, classes, shifts, traffic, load)


def _with_weights(shifts: Shifts, tables: Tables) -> Tables:
    return replace(tables, classes=weighted(tables.classes, shifts))


def _q(build: Build) -> int:
    return int(build.topology.parameters.get("q", 2))
