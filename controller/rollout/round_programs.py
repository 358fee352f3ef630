"""Round programs: the program of each switch after its last round of an update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import kind_of
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.profiles import Profile
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import BEGINNING, messages


class RoundPrograms:
    """The programs of the new build's switches, each after its last completed round.

    Switches of the old build keep their vertices; new ones follow. Switches that only the old build
    has are left unchanged. done: the last completed round of each vertex. generation: of its class
    and group numbers before the update. names: by vertex.
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

    def program(self, vertex: int, generation: int) -> FlowProgram:
        """The vertex's current program."""
        known = self.generation.get(vertex, generation)
        standing: list[Block] = []
        for slots in self.programs.slots(self.node[vertex], known):
            standing += slots.standing(self.done[vertex])
        groups = tuple(block for block in standing if kind_of(block) == RowKind.GROUP)
        flows = tuple(block for block in standing if kind_of(block) != RowKind.GROUP)
        return FlowProgram(groups, flows)

    def profile(self, vertex: int) -> Profile:
        """What the vertex's switch can do."""
        return self.programs.profile(self.node[vertex])

    def told(self, vertex: int, able: Profile) -> None:
        """The vertex's switch has shown that it can do no more than this."""
        self.programs.told(self.node[vertex], able)

    def forth(self, vertex: int) -> list[bytes]:
        """The messages of a vertex's next round."""
        return self._messages(vertex, self.done[vertex] + 1, back=False)

    def back(self, vertex: int) -> list[bytes]:
        """The messages that undo a vertex's last round."""
        return self._messages(vertex, self.done[vertex], back=True)

    def describe(self, number: int) -> str:
        """A description of the program entry behind the message with this xid."""
        return self.programs.describe(number)

    def _messages(self, vertex: int, round: int, back: bool) -> list[bytes]:
        slots = self.programs.slots(self.node[vertex], self.generation.get(vertex, 0))
        turned = [one.turned() for one in slots] if back else slots
        return [block.tobytes() for block in messages(turned, round)]
