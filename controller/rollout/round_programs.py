"""What each switch is to hold at a moment of an update: the programs of a fabric that moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from compilers.targets.openflow.encoder import Program
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.message_rows import kind_of
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import BEGINNING, messages


class RoundPrograms:
    """The programs of the new build's switches, each after the last round that it carried out.

    Switches that the old build has keep its vertices; the others follow. Those that the new build
    has not are left as they are. done: the last round that each vertex has carried out;
    generation: that of the numbers it held before. names: by vertex.
    """

    def __init__(self, programs: SwitchPrograms) -> None:
        self.programs, update = programs, programs.update
        nodes = update.nodes
        names = list(update.old.wiring.names)
        self.node: dict[int, int] = {}
        for node in np.flatnonzero(nodes.after >= 0).tolist():
            vertex = int(nodes.before[node])
            if vertex < 0:
                vertex = len(names)
                names.append(update.new.wiring.names[nodes.after[node]])
            self.node[vertex] = node
        self.names: Sequence[str] = tuple(names)
        self.by_datapath_id: Mapping[int, int] = {
            int(nodes.datapath_id[node]): vertex for vertex, node in self.node.items()
        }
        self.done = dict.fromkeys(self.node, BEGINNING)
        self.generation: dict[int, int] = {}

    def program(self, vertex: int, generation: int) -> Program:
        """What the vertex is to hold now."""
        known = self.generation.get(vertex, generation)
        standing: list[Block] = []
        for slots in self.programs.slots(self.node[vertex], known):
            standing += slots.standing(self.done[vertex])
        groups = tuple(block for block in standing if kind_of(block) == RowKind.GROUP)
        flows = tuple(block for block in standing if kind_of(block) != RowKind.GROUP)
        return Program(groups, flows)

    def forth(self, vertex: int) -> list[bytes]:
        """The messages of a vertex's next round."""
        return self._messages(vertex, self.done[vertex] + 1, back=False)

    def back(self, vertex: int) -> list[bytes]:
        """The messages that take its last round back."""
        return self._messages(vertex, self.done[vertex], back=True)

    def describe(self, number: int) -> str:
        """What the message with this xid is about, in words."""
        return self.programs.describe(number)

    def _messages(self, vertex: int, round: int, back: bool) -> list[bytes]:
        slots = self.programs.slots(self.node[vertex], self.generation.get(vertex, 0))
        turned = [one.turned() for one in slots] if back else slots
        return [block.tobytes() for block in messages(turned, round)]
