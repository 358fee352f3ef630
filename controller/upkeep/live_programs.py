"""Live programs: the build's tables after repair and load shifting, one program per switch.

They sit between the fabric and the OpenFlow encoder. A change of tables becomes messages for the
switches concerned, round by round: no mixture of a round loops or drops packets that the old tables
delivered. From then on a switch that connects gets the new tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.profiles import Profile
from compilers.update.repair_messages import Round, repair_messages
from compilers.update.repair_rounds import RepairRounds


class LivePrograms:
    """The programs of a build's switches; build has the current tables.

    discovers: programs have the row that sends LLDP frames to the controller. compiled: those of
    the build as it was compiled.
    """

    def __init__(self, build: Build, encoder: Encoder, discovers: bool = False) -> None:
        self.build, self.discovers = build, discovers
        self.compiled = self._encoder = encoder

    @property
    def by_datapath_id(self) -> Mapping[int, int]:
        """The vertex of each datapath id."""
        return self._encoder.by_datapath_id

    def describe(self, number: int) -> str:
        """A description of the program entry behind the message with this xid."""
        return self._encoder.describe(number)

    def program(self, vertex: int, generation: int) -> FlowProgram:
        """The vertex's current program."""
        program = self._encoder.program(vertex, generation)
        if self.discovers:
            return replace(program, flows=(rows.discovery(), *program.flows))
        return program

    def profile(self, vertex: int) -> Profile:
        """What the vertex's switch can do."""
        return self._encoder.profile(vertex)

    def told(self, vertex: int, able: Profile) -> None:
        """The vertex's switch has shown that it can do no more than this."""
        self._encoder.told(vertex, able)

    def as_now(self) -> LivePrograms:
        """These programs for good: what switches tell from now on does not change them."""
        return LivePrograms(self.build, self._encoder.as_now(), self.discovers)

    def hold(self, tables: Tables) -> None:
        """Replace the tables; their class numbers mean the same ports."""
        self.build = replace(self.build, tables=tables)
        self._encoder = self._encoder.with_tables(tables)

    def messages(
        self, tables: Tables, change: RepairRounds, generations: NDArray[np.int64]
    ) -> list[Round]:
        """The messages that bring the switches to other tables, round by round.

        Args:
            tables: as for `hold`.
            change: the rows that differ, and the round in which each may change.
            generations: int64[S], of the class and group numbers in each switch.
        """
        return repair_messages(self._encoder, tables, change, generations)
