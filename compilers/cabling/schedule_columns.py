"""Columns and rows of the cable schedule, made for a block of cables at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables
from compilers.wiring.wiring import Wiring

CABLES_AT_ONCE = 20_000

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
Row = tuple[int | float | str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Selected cables in the order of their numbers."""

    wiring: Wiring
    cables: Cables
    which: NDArray[np.int64]
    """int64[n]: the indices of the selected cables."""

    @classmethod
    def of(cls, wiring: Wiring, cables: Cables) -> Rows:
        """All cables."""
        return cls(wiring, cables, np.arange(len(cables)))

    def of_rack(self, rack: int) -> Rows:
        """The selected cables with an end in one rack."""
        racks = self.cables.hardware.rack[self.cables.ends[self.which]]
        return replace(self, which=self.which[(racks == rack).any(axis=1)])

    def __iter__(self) -> Iterator[Row]:
        """Rows of `CABLE_COLUMNS`."""
        for first in range(0, len(self.which), CABLES_AT_ONCE):
            yield from self._block(self.which[first : first + CABLES_AT_ONCE])

    def _block(self, which: NDArray[np.int64]) -> Iterator[Row]:
        cables, kinds = self.cables, self.cables.kinds()
        socket = cables.socket[which].tolist()
        ends = [self._end(cables.ends[which, i], cables.ports[which, i], socket) for i in (0, 1)]
        names = [kind["name"] for kind in kinds]
        colours = [kind["colour"] or "" for kind in kinds]
        kind = cables.kind[which].tolist()
        yield from zip(
            cables.number[which].tolist(),
            labels_of(cables, which),
            self._bundles(which),
            *ends[0][:-1],
            *ends[1][:-1],
            ends[0][-1],
            ends[1][-1],
            [names[t] for t in kind],
            cables.length[which].tolist(),
            np.round(cables.needed[which], 2).tolist(),
            [colours[t] for t in kind],
            strict=True,
        )

    def _bundles(self, which: NDArray[np.int64]) -> list[str]:
        plane = self.cables.hardware.plane
        numbers = np.append(self.cables.bundles.number, 0)[self.cables.bundle[which]]
        return [bundle_name(n, plane) for n in numbers.tolist()]

    def _end(
        self, vertex: NDArray[np.int32], port: NDArray[np.int32], socket: list[int]
    ) -> tuple[list[str] | list[int], ...]:
        """Rack, unit, node, module, socket (or the port, if it has one socket), label of an end."""
        hardware, wiring = self.cables.hardware, self.wiring
        kind = wiring.node_type[vertex].tolist()
        ports = (port - 1).tolist()
        return (
            [hardware.rack_names[r] for r in hardware.rack[vertex].tolist()],
            hardware.unit[vertex].tolist(),
            [wiring.names[v] for v in vertex.tolist()],
            [hardware.types[t].module[p] for t, p in zip(kind, ports, strict=True)],
            [hardware.types[t].sockets[p][k] for t, p, k in zip(kind, ports, socket, strict=True)],
            [hardware.types[t].label[p] for t, p in zip(kind, ports, strict=True)],
        )


def labels_of(cables: Cables, which: NDArray[np.int64]) -> list[str]:
    """The labels of cables: the inventory's, numbered for parallel cables, or the cable's name."""
    given, plane = cables.hardware.hand, cables.hardware.plane
    shared = np.bincount(cables.hand[cables.hand >= 0], minlength=len(given)) > 1
    labels = []
    for n, h, socket in zip(
        cables.number[which].tolist(),
        cables.hand[which].tolist(),
        cables.socket[which].tolist(),
        strict=True,
    ):
        label = given[h]["label"] if h >= 0 else None
        part = f"-{socket + 1}" if label and shared[h] else ""
        labels.append(f"{label}{part}" if label else cable_name(n, plane))
    return labels


def cable_name(number: int, plane: int = 0) -> str:
    """The name of a cable, `C00012`; `P2-C00012` with several planes."""
    return f"{label_prefix(plane)}C{number:05d}"


def bundle_name(number: int, plane: int = 0) -> str:
    """The name of a bundle, `B0012`; "" for number 0."""
    return f"{label_prefix(plane)}B{number:04d}" if number else ""


def host_name(vertex: int, host: int, plane: int = 0) -> str:
    """The name of the cable to a host, `H00012-0`: the vertex and the host's number at it."""
    return f"{label_prefix(plane)}H{vertex:05d}-{host}"


def label_prefix(plane: int) -> str:
    """What labels of a plane begin with; nothing where there is one only (0)."""
    return f"P{plane}-" if plane else ""
