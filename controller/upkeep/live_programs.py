"""What every switch is to hold now: the build's tables, repaired and with weights that follow load.

It stands between the fabric and the OpenFlow encoder. A change of tables comes out as messages for
the switches that it touches, round by round (`compilers.update`: no mixture of a round loops or
drops what the old tables delivered); from then on a switch that connects gets the new tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.targets.openflow import message_rows as rows
from compilers.targets.openflow.encoder import Encoder, Program
from compilers.update.move_plan import plan
from compilers.update.programs import SwitchPrograms
from controller.switches.reconcile import difference, held_by

Round = dict[int, Sequence[bytes]]
"""The messages of a round, by vertex."""


class Steering:
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
        """Take other tables before any switch was given the ones before."""
        self.build = replace(self.build, tables=tables)
        self._encoder = Encoder(self.build)

    def reroute(
        self, tables: Tables, vertices: NDArray[np.int64], generation: Callable[[int], int]
    ) -> list[Round]:
        """Take other routes and classes, with the same numbers.

        Args:
            tables: the new ones.
            vertices: int64[n], the switches that differ.
            generation: of the numbers that a vertex holds.
        """
        new = replace(self.build, tables=tables)
        update = plan(self.build, new, in_place=True)
        programs = SwitchPrograms(update)
        rounds: list[Round] = [{} for _ in range(update.rounds)]
        for vertex in vertices.tolist():
            node, numbers = int(update.nodes.node_after[vertex]), generation(vertex)
            for number, messages in enumerate(rounds):
                if blocks := programs.messages(node, number, numbers):
                    messages[vertex] = [block.tobytes() for block in blocks]
        self.build, self._encoder = new, Encoder(new)
        return [messages for messages in rounds if messages]

    def reweigh(
        self, tables: Tables, vertices: NDArray[np.int64], generation: Callable[[int], int]
    ) -> list[Round]:
        """Take other weights; the routes and the ports of classes are the same."""
        new = replace(self.build, tables=tables)
        encoder = Encoder(new)
        messages: Round = {}
        for vertex in vertices.tolist():
            numbers = generation(vertex)
            before = held_by(self._encoder.program(vertex, numbers))
            if parts := difference(encoder.program(vertex, numbers), before).parts:
                messages[vertex] = parts
        self.build, self._encoder = new, encoder
        return [messages] if messages else []
