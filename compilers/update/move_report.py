"""The report on a move between two builds: what each switch changes, the proof, what is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compilers.tables.build import Build
from compilers.update.compare import HostMove, compare, host_changes
from compilers.update.loss import PairLoss, loss
from compilers.update.move_plan import Update, plan
from compilers.update.programs import SwitchPrograms
from compilers.update.update_proof import Progress, Proof, prove

MOVE_COUNTS = ("added", "changed", "removed")
MOVE_PARTS = ("routes", "classes", "groups", "local")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MoveReport:
    """A planned move."""

    update: Update
    """The rounds of the move."""
    switches: tuple[dict[str, Any], ...]
    """Of each switch the name, whether it is new, gone or stays, for each of `MOVE_PARTS` how many
    rows or groups of OpenFlow are added, changed and removed, and `tables`: the same of its routes
    and egress classes, as `expand` and `diff` count them."""
    proof: Proof
    """What walking all states of the move gave."""
    loss: PairLoss
    """The pairs of hosts that lose packets while cables are moved."""
    hosts_moved: tuple[HostMove, ...] = ()
    """The hosts that change their switch or port, as in `compilers.update.compare.Comparison`."""

    @classmethod
    def of(
        cls,
        old: Build,
        new: Build,
        mixtures: int = 2,
        seed: int = 1,
        progress: Progress | None = None,
    ) -> MoveReport:
        """Plan a move and walk every state on the way.

        Args:
            old: what every switch holds.
            new: what it shall hold.
            mixtures: random mixtures of switches to walk in each round.
            seed: of the mixtures.
            progress: called with (done, all) while switches are compared, then while walking.

        Raises:
            InputError: no order of rows is safe.
        """
        update = plan(old, new)
        switches = tuple(_switches(update, progress))
        moved = host_changes(old, new)[2]
        return cls(update, switches, prove(update, mixtures, seed, progress), loss(update), moved)

    @property
    def lossless(self) -> bool:
        """Whether no pair of hosts loses a packet."""
        return self.loss.none and not self.proof.faults

    @property
    def rounds(self) -> int:
        """How many rounds the move takes; 0 where nothing changes."""
        same = self.update.old.identity == self.update.new.identity
        return 0 if same and not self._changes else self.update.rounds

    @property
    def _changes(self) -> bool:
        kinds = [(part, count) for part in MOVE_PARTS for count in MOVE_COUNTS]
        return any(switch[part][count] for switch in self.switches for part, count in kinds)

    def __repr__(self) -> str:
        """`<MoveReport a to b: 3 rounds, no pair loses a packet>`."""
        word = "no pair loses a packet" if self.lossless else "packets may be lost"
        move = f"{self.update.old.name} to {self.update.new.name}"
        return f"<MoveReport {move}: {self.rounds} rounds, {word}>"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        proof, lost = self.proof, self.loss
        return {
            "from": self.update.old.identity,
            "to": self.update.new.identity,
            "in_place": self.update.in_place,
            "rounds": self.rounds,
            "switches": list(self.switches),
            "hosts_moved": [list(move) for move in self.hosts_moved],
            "proof": {
                "states": proof.states,
                "pairs": proof.pairs,
                "max_hops": proof.max_hops,
                "bound": proof.bound,
                "legs": self.update.old.forwarding.intermediates
                or self.update.new.forwarding.intermediates,
                "faults": [
                    {"round": f.round + 1, "from": f.source, "to": f.destination, "what": f.what}
                    for f in proof.faults
                ],
            },
            "loss": {
                "hosts": list(lost.hosts),
                "pairs": lost.pairs,
                "switches": list(lost.switches),
                "cables": [list(cable) for cable in lost.cables],
                "exposed_pairs": lost.exposed,
                "repaired": lost.repaired,
            },
            "lossless": self.lossless,
        }


def _switches(update: Update, progress: Progress | None) -> list[dict[str, Any]]:
    programs, nodes = SwitchPrograms(update), update.nodes
    tables = {change.node: change.counts() for change in compare(update.old, update.new).switches}
    switches = []
    count = len(nodes.datapath_id)
    for node in range(count):
        after, before = int(nodes.after[node]), int(nodes.before[node])
        names = update.new.wiring.names if after >= 0 else update.old.wiring.names
        switch: dict[str, Any] = {
            "node": names[after if after >= 0 else before],
            "state": "new" if before < 0 else "gone" if after < 0 else "stays",
        }
        for part, part_counts in programs.counts(node).items():
            switch[part] = {word: getattr(part_counts, word) for word in MOVE_COUNTS}
        if switch["state"] == "stays":
            switch["tables"] = tables[switch["node"]]
        switches.append(switch)
        if progress:
            progress(node + 1, count)
    return switches
