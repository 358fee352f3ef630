"""The columns of the cable schedule, the rows of selected cables, and the labels of cables.

`cable_schedule` prints these rows. `ScheduleRows` turns the arrays of `cable_plan.Cables` into rows
of text and numbers, a block of cables at a time, so that a million cables need little memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_names import bundle_name, cable_name
from compilers.cabling.cable_plan import Cables
from compilers.wiring.wiring import Wiring

CABLES_AT_ONCE = 20_000
"""The cables of a block."""

CABLE_COLUMNS = (
    "cable",
    "label",
    "bundle",
    *(f"{end}_{word}" for end in "ab" for word in ("rack", "unit", "node", "module", "port")),
    "a_port_label",
    "b_port_label",
    "type",
    "length_m",
    "run_m",
    "colour",
)
"""The columns of a row."""
Row = tuple[int | float | str, ...]
"""The values of a cable, one for each column."""


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleRows:
    """Selected cables in the order of their numbers."""

    wiring: Wiring
    """The names of nodes and ports."""
    cables: Cables
    """All cables."""
    selected: NDArray[np.int64]
    """int64[n], the indexes of the selected cables among all."""

    @classmethod
    def of(cls, wiring: Wiring, cables: Cables) -> ScheduleRows:
        """All cables."""
        return cls(wiring, cables, np.arange(len(cables)))

    def of_rack(self, rack: int) -> ScheduleRows:
        """The selected cables with an end in one rack."""
        racks = self.cables.hardware.rack[self.cables.ends[self.selected]]
        return replace(self, selected=self.selected[(racks == rack).any(axis=1)])

    def __iter__(self) -> Iterator[Row]:
        """Yield a row of `CABLE_COLUMNS` for each cable."""
        for first in range(0, len(self.selected), CABLES_AT_ONCE):
            yield from self._block(self.selected[first : first + CABLES_AT_ONCE])

    def _block(self, selected: NDArray[np.int64]) -> Iterator[Row]:
        """Yield the rows of some cables, column by column."""
        cables, kinds = self.cables, self.cables.kinds()
        socket = cables.socket[selected].tolist()
        a, b = (
            self._end(cables.ends[selected, i], cables.ports[selected, i], socket) for i in (0, 1)
        )
        names = [kind["name"] for kind in kinds]
        colours = [kind["colour"] or "" for kind in kinds]
        kind = cables.kind[selected].tolist()
        yield from zip(
            cables.number[selected].tolist(),
            labels_of(cables, selected),
            self._bundles(selected),
            a.rack,
            a.unit,
            a.node,
            a.module,
            a.socket,
            b.rack,
            b.unit,
            b.node,
            b.module,
            b.socket,
            a.label,
            b.label,
            [names[number] for number in kind],
            cables.length[selected].tolist(),
            np.round(cables.needed[selected], 2).tolist(),
            [colours[number] for number in kind],
            strict=True,
        )

    def _bundles(self, selected: NDArray[np.int64]) -> list[str]:
        """The name of each cable's bundle; "" for none."""
        plane = self.cables.hardware.plane
        # A cable in no bundle has index -1, which reads the last entry: number 0.
        numbers = np.append(self.cables.bundles.number, 0)[self.cables.bundle[selected]]
        return [bundle_name(number, plane) for number in numbers.tolist()]

    def _end(self, vertex: NDArray[np.int32], port: NDArray[np.int32], socket: list[int]) -> _End:
        """The columns of one end of some cables.

        Args:
            vertex: int32[n], the switch at this end of each cable.
            port: int32[n], the port there.
            socket: the number of each cable's socket at this port.
        """
        hardware, wiring = self.cables.hardware, self.wiring
        types = [hardware.types[number] for number in wiring.node_type[vertex].tolist()]
        # The facts of each end's node type, and the index of its port there.
        at_ports = list(zip(types, (port - 1).tolist(), strict=True))
        return _End(
            rack=[hardware.rack_names[rack] for rack in hardware.rack[vertex].tolist()],
            unit=hardware.unit[vertex].tolist(),
            node=[wiring.names[switch] for switch in vertex.tolist()],
            module=[facts.module[index] for facts, index in at_ports],
            socket=[
                facts.sockets[index][number]
                for (facts, index), number in zip(at_ports, socket, strict=True)
            ],
            label=[facts.label[index] for facts, index in at_ports],
        )


class _End(NamedTuple):
    """The columns of one end of n cables."""

    rack: list[str]
    """The name of the rack."""
    unit: list[int]
    """The rack unit of the switch."""
    node: list[str]
    """The name of the switch."""
    module: list[str]
    """The name of the module; "" for none."""
    socket: list[str]
    """The name of the socket, or of the port if it has one socket."""
    label: list[str]
    """The label of the port."""


def labels_of(cables: Cables, selected: NDArray[np.int64]) -> list[str]:
    """The labels of some cables.

    A label of the inventory gets a number at each of several parallel cables. A cable without such
    a label has its name.
    """
    # The entries of `cables` in the inventory, and the index of each cable's entry, -1 for none.
    entries, entry_of_cable = cables.hardware.hand, cables.hand
    plane = cables.hardware.plane
    has_parallel = np.bincount(entry_of_cable[entry_of_cable >= 0], minlength=len(entries)) > 1
    labels = []
    for number, entry, socket in zip(
        cables.number[selected].tolist(),
        entry_of_cable[selected].tolist(),
        cables.socket[selected].tolist(),
        strict=True,
    ):
        label = entries[entry]["label"] if entry >= 0 else None
        suffix = f"-{socket + 1}" if label and has_parallel[entry] else ""
        labels.append(f"{label}{suffix}" if label else cable_name(number, plane))
    return labels
