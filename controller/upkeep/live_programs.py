"""Live programs: the build's tables after repair and load shifting, one program per switch.

They stand between the fabric and the OpenFlow encoder. A change of tables comes out as messages for
the switches that it touches, round by round: no mixture of a round loops or drops what the old
tables delivered. From then on a switch that connects gets the new tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.targets.openflow import message_rows as rows
from compilers.targets.openflow.encoder import Encoder, Program
from compilers.update.repair_messages import Round, repair_messages
from compilers.update.repair_rounds import RepairRounds


class LivePrograms:
    """The programs of a build's switches; build is the one with the tables that hold now.

    discovers: programs have the row that sends LLDP frames to the controller.
    """

    def __init__(self, build: Build, encoder: Encoder, discovers: bool = False) -> None:
        self.build, self.discovers = build, discovers
        self._encoder = encoder

    @property
    def by_datapath_id(self) -> Mapping[int, int]:
        """The vertex of each datapath id."""
        return self._encoder.by_datapath_id

    def describe(self, number: int) -> str:
        """What the message with this xid is about, in words."""
        return self._encoder.describe(number)

    def program(self, vertex: int, generation: int) -> Program:
        """What the vertex is to hold now."""
        program = self._encoder.program(vertex, generation)
        if self.discovers:
            return replace(program, flows=(rows.discovery(), *program.flows))
        return program

    def hold(self, tables: Tables) -> None:
        """Replace the tables before the first switch is programmed."""
        self.build = replace(self.build, tables=tables)
        self._encoder = self._encoder.with_tables(tables)

    def change(
        self, tables: Tables, change: RepairRounds, generations: NDArray[np.int64]
    ) -> list[Round]:
        """Replace the tables; the messages that switches are sent for it, round by round.

        Args:
            tables: the new ones, whose class numbers mean the same ports.
            change: where they differ, and when each row may change.
            generations: int64[S], of the numbers that each switch holds.
        """
        rounds = repair_messages(self._encoder, tables.classes, change, generations)
        self.hold(tables)
        return rounds
