"""The ovs target: the controller's program as text for `ovs-ofctl add-groups` and `add-flows`.

`Encoder` makes the messages of each switch. Here their groups and flows (*rows*) become lines. The
rows of one kind are a section of the file, with a comment above them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from compilers.readers.emitted_check import EmittedCheck, Reader
from compilers.readers.openflow import rows
from compilers.readers.openflow.ovs_reader import read_ovs
from compilers.readers.openflow.program_text import ProgramText
from compilers.readers.openflow.row_text import group_text, row_line
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import kind_of
from compilers.targets.openflow.pipeline import CAPABILITIES as OPENFLOW_CAPABILITIES
from compilers.targets.openflow.pipeline import require as require_openflow
from compilers.targets.openflow.profiled_check import profiled_check
from compilers.targets.openflow.profiles import profiles_of
from compilers.targets.options import Chosen
from compilers.targets.ovs import neighbours
from compilers.targets.target import Target

COMMENTS = {
    RowKind.OWN: "A host that asks for its own address (is it free?) gets no answer.",
    RowKind.ANSWER: "Other questions of hosts, by ARP and ND, are answered: the gateway.",
    RowKind.FORWARD: "Dispatch: packets to the gateway lose one of their TTL, and are routed.",
    RowKind.GUARD: "All else that hosts send is dropped: other sources, marks, intermediates.",
    RowKind.ROUTE: "Routes: every prefix to its egress class.",
    RowKind.HOST: "Hosts of this switch.",
    RowKind.CLASS: "Classes: each to its group, or over several ports by a hash.",
    RowKind.SPREAD: "Marked packets, over all links that lead on from where they came in.",
    RowKind.CARRIED: "Packets that carry their intermediate, by its MAC address.",
    RowKind.MARKER: "The build marker, last: it counts what nothing matched, and its cookie names "
    "the build.",
}
"""The comment above the rows of each kind, in the order of flows.txt."""


@dataclass(frozen=True, slots=True)
class RowSection:
    """The rows of one kind, with the comment above them."""

    comment: str
    """The comment."""
    rows: list[str]
    """The rows, as lines in the form of ovs-ofctl."""


@dataclass(frozen=True, slots=True)
class OvsVariables:
    """The variables of a switch's templates."""

    node: str
    """The name of the switch."""
    identity: str
    """The identity of the build."""
    sections: list[RowSection]
    """All rows of the switch, the build marker last."""
    groups: list[str]
    """The groups, as lines in the form of ovs-ofctl; a group precedes the groups that lead to
    it."""


class Ovs(Target):
    """Open vSwitch, programmed from text instead of by the controller."""

    name = "ovs"
    summary = "groups.txt and flows.txt for ovs-ofctl -O OpenFlow13 add-groups, add-flows"
    files = dict.fromkeys(("groups.txt", "flows.txt"), OvsVariables)
    capabilities = OPENFLOW_CAPABILITIES
    neighbours = neighbours.FORM

    def require(self, build: Build, chosen: Chosen) -> None:  # noqa: ARG002
        """See `Target.require`."""
        require_openflow(build, self.name)

    def reader(self, chosen: Chosen) -> Reader:  # noqa: ARG002
        """See `Target.reader`."""
        return lambda folder: read_ovs(ProgramText.read(folder))

    def emitted_check(
        self,
        build: Build,
        chosen: Chosen,  # noqa: ARG002
        folder: Path,
        accept: tuple[str, ...],
    ) -> EmittedCheck:
        """See `Target.emitted_check`."""
        return profiled_check(build, folder, profiles_of(build), accept)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], OvsVariables]:  # noqa: ARG002
        """See `Target.variables`."""
        return partial(_variables, build, Encoder(build))


def _variables(build: Build, encoder: Encoder, vertex: int) -> OvsVariables:
    """The variables of a switch's templates."""
    program = encoder.program(vertex)
    return OvsVariables(
        node=build.wiring.names[vertex],
        identity=build.identity,
        sections=_sections(program),
        groups=_groups(program),
    )


def _groups(program: FlowProgram) -> list[str]:
    """The groups of a program, each as a line for ovs-ofctl."""
    return [
        group_text(rows.read_group(*group))
        for block in program.groups
        for group in rows.added_groups(block)
    ]


def _sections(program: FlowProgram) -> list[RowSection]:
    """The rows of a program by their kind, in the order of `COMMENTS`."""
    lines: dict[RowKind, list[str]] = {kind: [] for kind in COMMENTS}
    for block in program.flows:
        if len(block):
            lines[kind_of(block)] += map(row_line, rows.entries(rows.added_rows(block)))
    sections = []
    for kind, comment in COMMENTS.items():
        if lines[kind]:
            sections.append(RowSection(comment, lines[kind]))
    return sections
