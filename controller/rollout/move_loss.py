"""The problem of a move that loses packets, for the error of a move that is refused."""

from __future__ import annotations

from collections.abc import Sequence

from compilers.update.loss import PairLoss
from inventory.problems import Problem

HOSTS_NAMED = 3
"""Most hosts that the problem names."""


def loss_problem(lost: PairLoss) -> Problem:
    """The problem of a move that loses packets: it lists losses, and how to proceed."""
    losses = []
    if lost.lost_pairs:
        losses.append(
            f"{lost.lost_pairs:,} that lose packets: {len(lost.hosts):,} hosts are removed, moved "
            f"or renumbered ({_first_hosts(lost.hosts)})"
        )
    if lost.exposed_pairs:
        start, end = lost.cables[0]
        more = ", …" if len(lost.cables) > 1 else ""
        losses.append(
            f"{lost.exposed_pairs:,} whose packets may take {len(lost.cables):,} cables that the "
            f"new build has not ({start} to {end}{more})"
        )
    return Problem(
        required="a move in which no pair of hosts loses a packet",
        given="; ".join(losses),
        todo="leave the cables in until the move is over; or accept the loss with `accept_loss`",
    )


def _first_hosts(hosts: Sequence[str]) -> str:
    """The names of the first hosts."""
    more = ", …" if len(hosts) > HOSTS_NAMED else ""
    return f"{', '.join(hosts[:HOSTS_NAMED])}{more}"
