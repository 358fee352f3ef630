"""Report on a move between two builds: what each switch changes, the proof, and what may be lost.

`plan`, `expand` and the controller print a `MoveReport`. It plans the move (`move_plan`), counts
the rows and groups that change at each switch (`programs`), walks states on the way
(`update_proof`), and counts the pairs of hosts that may lose packets (`loss`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compilers.tables.build import Build
from compilers.targets.node_systems import system_target
from compilers.targets.routed.bgp.bgp_options import GTSM, ROUTING
from compilers.update.compare import (
    INPUT_DIGEST,
    HostMove,
    fact_changes,
    host_changes,
    switch_changes,
)
from compilers.update.loss import PairLoss, pair_loss
from compilers.update.move_plan import Update, plan
from compilers.update.programs import SwitchPrograms
from compilers.update.renumbering import ON_BOTH_ENDS, Renumbering, renumberings
from compilers.update.switch_settings import (
    SWITCH,
    SettingChange,
    renamed_switches,
    serials,
    setting_changes,
)
from compilers.update.update_proof import MoveProof, Progress, prove

MOVE_COUNTS = ("added", "changed", "removed")
"""What is counted of each part: the fields of `slots.ChangeCounts`."""
MOVE_PARTS = ("routes", "classes", "groups", "local")
"""The parts of a switch's program in which rows and groups are counted."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MoveReport:
    """A planned move, with what it changes and what it may lose."""

    update: Update
    """The rounds of the move."""
    switches: tuple[dict[str, Any], ...]
    """The changes of each switch, as values for JSON, with these keys:

    - `node`: the name of the switch;
    - `state`: `new`, `gone` or `stays`;
    - each of `MOVE_PARTS`: the counts of OpenFlow rows or groups by `MOVE_COUNTS`, all 0 if the
      switch is gone, as it keeps its old tables;
    - `tables`: the counts of its routes and egress classes (`compare.SwitchChange.counts`), only if
      the switch stays.
    """
    proof: MoveProof
    """The result of walking states of the move."""
    loss: PairLoss
    """The pairs of hosts that may lose packets."""
    hosts_moved: tuple[HostMove, ...] = ()
    """The hosts that change their switch, port or MAC address."""
    renumbered: tuple[Renumbering, ...] = ()
    """The addresses, AS numbers and labels that change."""
    settings: tuple[SettingChange, ...] = ()
    """The names and other settings of switches, cables and node types that differ."""
    facts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The settings of the whole fabric that differ, each with the old and the new value. Digests of
    input files (`compare.fact_changes`) are left out: what matters of them is in the settings."""

    @classmethod
    def of(
        cls,
        old: Build,
        new: Build,
        mixtures: int = 2,
        seed: int = 1,
        progress: Progress | None = None,
    ) -> MoveReport:
        """Plan a move and walk states on the way.

        Args:
            old: the build that every switch holds.
            new: the build that it shall hold.
            mixtures: how many random mixtures of switches are walked in each round.
            seed: of the mixtures.
            progress: called with switches done and all, then with destinations done and all.

        Raises:
            InputError: no order of rows is safe.
        """
        update = plan(old, new)
        switches = tuple(_switch_reports(update, progress))
        return cls(
            update=update,
            switches=switches,
            proof=prove(update, mixtures, seed, progress),
            loss=pair_loss(update),
            hosts_moved=host_changes(old, new).moved,
            renumbered=renumberings(old, new),
            settings=(*_name_changes(update), *setting_changes(old, new)),
            facts={
                name: values
                for name, values in fact_changes(old, new).items()
                if not name.startswith(INPUT_DIGEST)
            },
        )

    @property
    def lossless(self) -> bool:
        """Whether no pair of hosts loses a packet."""
        return self.loss.loses_nothing and not self.proof.faults and not self.routers_lose

    @property
    def routers_lose(self) -> bool:
        """Whether routers lose packets until both ends of a link have the new settings.

        False if one of the builds names no systems: then its switches are no routers.
        """
        old, new = self.update.old, self.update.new
        if not (old.systems and new.systems):
            return False
        before, after = (system_target(build).chosen(build) for build in (old, new))
        is_changed = any(before.get(option) != after.get(option) for option in (ROUTING, GTSM))
        return is_changed or any(change.kind in ON_BOTH_ENDS for change in self.renumbered)

    @property
    def rounds(self) -> int:
        """How many rounds the move takes; 0 if nothing changes, not even the build's identity."""
        same = self.update.old.identity == self.update.new.identity
        return 0 if same and not self._changes_rows else self.update.rounds

    @property
    def _changes_rows(self) -> bool:
        """Whether any row or group changes."""
        return any(
            switch[part][count]
            for switch in self.switches
            for part in MOVE_PARTS
            for count in MOVE_COUNTS
        )

    def __repr__(self) -> str:
        """`<MoveReport a to b: 3 rounds, no pair loses a packet>`."""
        losses = "no pair loses a packet" if self.lossless else "packets may be lost"
        move = f"{self.update.old.name} to {self.update.new.name}"
        return f"<MoveReport {move}: {self.rounds} rounds, {losses}>"

    def as_dict(self) -> dict[str, Any]:
        """The report as values for JSON.

        `legs` says whether the paths of the proof are legs to and from intermediates. Rounds of
        faults are counted from 1, as users count them.
        """
        proof, lost = self.proof, self.loss
        return {
            "from": self.update.old.identity,
            "to": self.update.new.identity,
            "in_place": self.update.is_in_place,
            "rounds": self.rounds,
            "switches": list(self.switches),
            "hosts_moved": [list(move) for move in self.hosts_moved],
            "renumbered": [list(move) for move in self.renumbered],
            "settings": [list(change) for change in self.settings],
            "facts": {key: list(pair) for key, pair in self.facts.items()},
            "proof": {
                "states": proof.states,
                "pairs": proof.pairs,
                "max_hops": proof.max_hops,
                "bound": proof.hop_bound,
                "legs": self.update.old.forwarding.intermediates
                or self.update.new.forwarding.intermediates,
                "faults": [
                    {
                        "round": fault.round + 1,
                        "from": fault.source,
                        "to": fault.destination,
                        "what": fault.fault,
                    }
                    for fault in proof.faults
                ],
            },
            "loss": {
                "hosts": list(lost.hosts),
                "pairs": lost.lost_pairs,
                "switches": list(lost.switches),
                "cables": [list(cable) for cable in lost.cables],
                "exposed_pairs": lost.exposed_pairs,
                "repaired": lost.is_repaired,
            },
            "routers_lose": self.routers_lose,
            "lossless": self.lossless,
        }


def _name_changes(update: Update) -> Iterator[SettingChange]:
    """Yield a change for each switch with another name.

    A switch with the same serial is renamed. Otherwise another switch has the datapath id, and the
    change says why it is taken for another one.
    """
    old_serials, new_serials = serials(update.old), serials(update.new)
    renamed = renamed_switches(update.old, update.new)
    for old_vertex, new_vertex in update.nodes.vertex_pairs:
        was, now = update.old.wiring.names[old_vertex], update.new.wiring.names[new_vertex]
        if was == now:
            continue
        setting = "name"
        if renamed.get(was) != now:
            both_known = was in old_serials and now in new_serials
            why = "its serial is another" if both_known else "no serial is known"
            setting = f"another switch, as {why}:"
        yield SettingChange(SWITCH, now, setting, was, now)


def _switch_state(old_vertex: int, new_vertex: int) -> str:
    """The `state` of a switch in a report: `new`, `gone` or `stays`.

    Args:
        old_vertex: its vertex in the old build; negative if it has none.
        new_vertex: its vertex in the new build; negative if it has none.
    """
    if old_vertex < 0:
        return "new"
    return "gone" if new_vertex < 0 else "stays"


def _switch_reports(update: Update, progress: Progress | None) -> list[dict[str, Any]]:
    """The changes of each switch, as in `MoveReport.switches`."""
    programs, nodes = SwitchPrograms(update), update.nodes
    table_changes = {
        change.node: change.counts() for change in switch_changes(update.old, update.new, nodes)
    }
    reports = []
    switch_count = len(nodes.datapath_id)
    for node in range(switch_count):
        old_vertex, new_vertex = int(nodes.old_vertex[node]), int(nodes.new_vertex[node])
        if new_vertex >= 0:
            name = update.new.wiring.names[new_vertex]
        else:
            name = update.old.wiring.names[old_vertex]
        report: dict[str, Any] = {"node": name, "state": _switch_state(old_vertex, new_vertex)}
        for part, part_counts in programs.counts(node).items():
            report[part] = {count: getattr(part_counts, count) for count in MOVE_COUNTS}
        if report["state"] == "stays":
            report["tables"] = table_changes[name]
        reports.append(report)
        if progress:
            progress(node + 1, switch_count)
    return reports
