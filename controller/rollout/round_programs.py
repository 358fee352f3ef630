"""The programs of a fabric's switches in the midst of a move, after the last round of each.

`controller.rollout.rollout` has the fabric load them instead of a build. So a switch that is read
then, or connects again, is brought to the round that it had completed.
"""

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
    """The programs of the new build's switches during the move, after the last round of each.

    The fabric takes it in the place of an `Encoder`. Switches of the old build keep their vertices;
    new ones follow. Switches that only the old build has are left unchanged.

    Attributes:
        node: by vertex, the number of the node in the update.
        names: the nodes' names by vertex.
        by_datapath_id: the vertex of each datapath id.
        done: the last completed round of each vertex.
        generation_before: by vertex, the generation of class and group numbers before the update.
    """

    def __init__(self, programs: SwitchPrograms) -> None:
        self.programs, update = programs, programs.update
        nodes = update.nodes
        names = list(update.old.wiring.names)
        self.node: dict[int, int] = {}
        for node in np.flatnonzero(nodes.new_vertex >= 0).tolist():
            vertex = int(nodes.old_vertex[node])
            if vertex < 0:
                vertex = len(names)
                names.append(update.new.wiring.names[nodes.new_vertex[node]])
            self.node[vertex] = node
        self.names: Sequence[str] = tuple(names)
        self.by_datapath_id: Mapping[int, int] = {
            int(nodes.datapath_id[node]): vertex for vertex, node in self.node.items()
        }
        self.done = dict.fromkeys(self.node, BEGINNING)
        self.generation_before: dict[int, int] = {}

    def program(self, vertex: int, generation: int) -> FlowProgram:
        """The vertex's program after its last completed round."""
        generation_before = self.generation_before.get(vertex, generation)
        blocks: list[Block] = []
        for slots in self.programs.slots(self.node[vertex], generation_before):
            blocks += slots.held_after(self.done[vertex])
        groups = tuple(block for block in blocks if kind_of(block) == RowKind.GROUP)
        flows = tuple(block for block in blocks if kind_of(block) != RowKind.GROUP)
        return FlowProgram(groups, flows)

    def profile(self, vertex: int) -> Profile:
        """What the vertex's switch can do."""
        return self.programs.profile(self.node[vertex])

    def restrict(self, vertex: int, able: Profile) -> None:
        """Note that the vertex's switch can do no more than this profile."""
        self.programs.restrict(self.node[vertex], able)

    def step(self, vertex: int, back: bool) -> list[bytes]:
        """The messages of a vertex's next round, or those that undo its last one."""
        slots = self.programs.slots(self.node[vertex], self.generation_before.get(vertex, 0))
        in_direction = [slot.opposite_move() for slot in slots] if back else slots
        sent_round = self.done[vertex] if back else self.done[vertex] + 1
        return [block.tobytes() for block in messages(in_direction, sent_round)]

    def describe(self, number: int) -> str:
        """A description of the program entry behind the message with this xid."""
        return self.programs.describe(number)
