"""The linear forwarding tables of a build: the port of every switch towards every LID.

A *LID* is the address of a port in the subnet. The LID of a switch has the minimal routes. A host
may have several LIDs, and each has the routes of its own layer (`lid_layers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Egress, Tables, local, no_route
from compilers.targets.rendering.renderer import installed_nodes
from compilers.targets.target import Progress
from extensions.infiniband.guids import Guids
from extensions.infiniband.lfts import LftLayout

SWITCH_ITSELF = 0
"""In place of the port of a host: the LID is that of the switch."""
MINIMAL = 0
"""The index of the minimal tables. The tables of layer k have the index k + 1."""
NO_PORT = -1
"""In place of a port: the switch has no route."""
HERE = -2
"""In place of a port: the packets are for this switch or its hosts."""


@dataclass(frozen=True, slots=True, eq=False)
class _Lids:
    """The L LIDs of a fabric, in ascending order."""

    vertex: NDArray[np.int64]
    """int64[L], the switch of each LID, or the switch of its host."""
    host_port: NDArray[np.int64]
    """int64[L], the port of that switch to the host, or SWITCH_ITSELF."""
    guid: NDArray[np.uint64]
    """uint64[L], the port GUID."""
    layer: NDArray[np.int64]
    """int64[L], the number of the LID among those of its port."""

    @classmethod
    def of(cls, build: Build, guids: Guids, per_host: int) -> _Lids:
        """The LIDs of all switches, one each, and of all hosts, so many each."""
        has_host = (build.wiring.host_port > 0) & build.topology.present[:, None]
        switch, number = np.nonzero(has_host)
        present = np.flatnonzero(build.topology.present)
        # The ports that have LIDs: those of all switches, and then those of all hosts.
        vertex = np.concatenate((present, switch))
        to_hosts = build.wiring.host_port[switch, number].astype(np.int64)
        host_port = np.concatenate((np.full(len(present), SWITCH_ITSELF), to_hosts))
        guid = np.concatenate((guids.switch[present], guids.host[switch, number]))
        is_host = host_port != SWITCH_ITSELF
        # A host's first LID is a multiple of their number, so hosts that have several come first.
        in_order = np.lexsort((host_port, vertex, ~is_host & (per_host > 1)))
        count = np.where(is_host[in_order], per_host, 1)
        # int64[L] each: the port of each LID, and the index of that port's first LID.
        port, first = np.repeat(in_order, count), np.repeat(np.cumsum(count) - count, count)
        layer = np.arange(len(port)) - first
        return cls(vertex[port], host_port[port], guid[port], layer)


class LftTables:
    """The forwarding tables of all switches, as `lfts.txt` has them."""

    def __init__(self, build: Build, guids: Guids, layers: Sequence[Tables]) -> None:
        """Number the LIDs.

        Args:
            build: the build.
            guids: the GUIDs of its switches and hosts.
            layers: the tables of each LID of a host; none if hosts have one LID, with minimal
                routes.
        """
        self.build, self.guids = build, guids
        per_host = max(1, len(layers))
        self.lids = _Lids.of(build, guids, per_host)
        uses_layer = (self.lids.host_port != SWITCH_ITSELF) & (len(layers) > 0)
        self.tables = np.where(uses_layer, self.lids.layer + 1, MINIMAL)
        """int64[L], the tables of each LID: an index in `egress`."""
        lid = np.arange(len(self.tables)) + per_host
        self.layout = LftLayout.of(lid, self.lids.guid)
        everywhere, cables = np.arange(build.tables.switches), build.wiring.far_by_port()
        self.egress = [
            Fib.of(tables, cables).egress(everywhere) for tables in (build.tables, *layers)
        ]
        """The egress values of the minimal tables, and of each layer."""

    def ports(self, vertex: int) -> NDArray[np.int64]:
        """The port by which a switch sends packets for each LID, int64[L]; NO_PORT: none."""
        towards = np.stack([self._towards(vertex, egress[vertex]) for egress in self.egress])
        port = towards[self.tables, self.lids.vertex]
        return np.where(port == HERE, self.lids.host_port, port)

    def _towards(self, vertex: int, egress: Egress) -> NDArray[np.int64]:
        """The port of a switch towards each switch, int64[S], or NO_PORT or HERE.

        Args:
            vertex: the switch.
            egress: [S], its row of egress values.
        """
        forwards = egress < no_route(egress)
        port = np.full(len(egress), NO_PORT, np.int64)
        port[forwards] = self.build.tables.classes.port[vertex, egress[forwards]]
        port[egress == local(egress)] = HERE
        return port

    def blocks(self, progress: Progress) -> Iterator[bytes]:
        """The file, a switch after the other."""
        yield f"# polarfab build {self.build.identity}\n".encode()
        for vertex, _ in installed_nodes(self.build, progress):
            yield self.layout.block(int(self.guids.switch[vertex]), self.ports(vertex))
