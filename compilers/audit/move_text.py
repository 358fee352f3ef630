"""Moves of plugs and cables as sentences."""

from __future__ import annotations

from compilers.audit.cable_moves import Move
from compilers.audit.resolve import PortFinder


def sentence(move: Move, ports: PortFinder) -> str:
    """A move as a sentence: `swap the plugs in A7 and A9 at node n12`."""
    (a, b), (u, v) = (map(kind, (move.a, move.b)) for kind in (ports.name, ports.node))
    if move.kind == "swap" and u == v:
        return f"swap the plugs in {a} and {b} at node {u}"
    if move.kind == "move" and u == v:
        return f"move the plug in {a} to {b} at node {u}"
    words = {
        "swap": "swap the plugs in {0} and {1}",
        "move": "move the plug in {0} to {1}",
        "add": "add a cable from {0} to {1}",
        "remove": "remove the cable from {0} to {1}",
    }
    return words[move.kind].format(f"{u} {a}", f"{v} {b}")
