"""The plan of a move, as a check of a rehearsal."""

from __future__ import annotations

from compilers.tables.build import Build
from compilers.update.loss import loss
from compilers.update.move_plan import plan
from compilers.update.update_proof import prove
from mininet_scenarios.verdict.checks import Check, Mismatch


def promise(old: Build, new: Build) -> tuple[Check, str]:
    """Whether every pair arrives in every state of the move, and the promise in words.

    Raises:
        InputError: no order of rows is safe.
    """
    update = plan(old, new)
    proof, lost = prove(update), loss(update)
    faults = tuple(
        Mismatch(f"round {f.round + 1}: {f.source} → {f.destination}", "delivered", f.what)
        for f in proof.faults
    )
    wrong = len({fault.round for fault in proof.faults})
    words = f"{update.rounds} rounds, {proof.states} states of {proof.pairs:,} pairs of switches"
    if lost.cables:
        one = len(lost.cables) == 1
        words += f"; {len(lost.cables):,} cable{'s go' if not one else ' goes'}, which "
        words += f"{lost.exposed:,} pairs of hosts may take: left in until the move is over"
    words += "; no pair may lose a packet" if not faults else "; pairs lose packets"
    name = f"plan to {new.identity}: states in which every pair arrives"
    return Check(name, proof.states, proof.states - wrong, faults), words
