"""The files of target opensm, and what they are compared with: a build and its LID layers.

A LID is an InfiniBand address. A host may have several, and packets to another LID of the same host
take another path: each LID has a routing layer of its own (`lid_layers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compilers.readers.emitted_report import DifferenceList
from compilers.tables.build import Build
from extensions.infiniband.lid_layers import LidLayers
from extensions.lossless.layers import Layers, deadlock_free_layers


@dataclass(frozen=True, slots=True, eq=False)
class SubnetFiles:
    """A folder of files for OpenSM, the build that they were written for, and how they differ.

    OpenSM is the subnet manager of InfiniBand: it configures the switches by these files.
    """

    build: Build
    """The build of one plane."""
    folder: Path
    """The folder of the files."""
    differences: DifferenceList
    """Collects the differences between the files and the build."""
    lid_layers: LidLayers | None
    """For each LID of a host, the routing layer that leads to it; None if each host has one LID."""

    @property
    def lids_per_host(self) -> int:
        """How many LIDs a host has."""
        return len(self.lid_layers.tables) if self.lid_layers else 1

    @property
    def virtual_lanes(self) -> Layers:
        """The virtual lane for each pair of switches."""
        return self.lid_layers.lanes if self.lid_layers else deadlock_free_layers(self.build)

    def vertices(self) -> dict[str, int]:
        """The vertex of each switch by its name, but for switches that are missing."""
        present = np.flatnonzero(self.build.topology.present).tolist()
        return {self.build.wiring.names[vertex]: vertex for vertex in present}

    def port_count(self, vertex: int) -> int:
        """How many ports a switch has by its node type."""
        wiring = self.build.wiring
        return len(wiring.port_names[int(wiring.node_type[vertex])])
