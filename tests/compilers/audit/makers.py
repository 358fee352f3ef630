"""What several test modules of this folder and of others use."""

from __future__ import annotations

from collections.abc import Iterable

from compilers.audit.cable_moves import CableMove
from compilers.audit.socket_numbers import CableSet


def apply(present: CableSet, moves: Iterable[CableMove]) -> CableSet:
    """The cables after the moves.

    Raises:
        ValueError: a move asks for a plug that is not there, or for a place that is taken.
    """
    fact = {end: other for pair in present for end, other in (pair, pair[::-1])}
    for move in moves:
        a, b = fact.pop(move.a, None), fact.pop(move.b, None)
        present_ends = (a is not None, b is not None)
        wanted = {"swap": (True, True), "move": (True, False), "add": (False, False)}
        if move.kind == "remove":
            if a != move.b:
                raise ValueError(f"no such cable: {move}")
            continue
        if present_ends != wanted[move.kind]:
            raise ValueError(f"not as the move expects: {move}")
        if move.kind == "add":
            fact[move.a], fact[move.b] = move.b, move.a
            continue
        for port, other in ((move.b, a), (move.a, b)):
            if other is not None:
                fact[port], fact[other] = other, port
    return frozenset((a, b) for a, b in fact.items() if a < b)
