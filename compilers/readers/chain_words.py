"""Chains of ports in words, for messages about switches that differ from their tables.

A *chain* is the sequence of *stages* that a switch tries in order; a stage is a set of ports that
share packets by weight (`emitted_forwarding`). `switch_check` calls `chain_words`.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilers.readers.emitted_forwarding import MARKED, Chain, Port, Stage


def chain_words(chain: Chain, names: Sequence[str]) -> str:
    """A chain of ports in words.

    Args:
        chain: ports by number; a text stands for no port of the switch.
        names: the names of the switch's ports, of which the first has number 1.

    >>> chain_words((((1, 2), (2, 1)), ((3, 1),)), ["eth1", "eth2", "eth3"])
    'shared by eth1 by 2, eth2 by 1, else by eth3'
    """
    return ", else ".join(_stage_words(stage, names) for stage in chain) or "by no port"


def _stage_words(stage: Stage, names: Sequence[str]) -> str:
    """The ports of a stage, with their weights where there are several."""
    if len(stage) == 1:
        return f"by {_port_words(stage[0][0], names)}"
    shares = (f"{_port_words(port, names)} by {weight}" for port, weight in stage)
    return f"shared by {', '.join(shares)}"


def _port_words(port: Port, names: Sequence[str]) -> str:
    """The name of a port, and whether packets to it get a mark: then MARKED is added to it."""
    if isinstance(port, int) and port > MARKED:
        return f"{_port_words(port - MARKED, names)} with a mark"
    if isinstance(port, int) and 0 < port <= len(names):
        return names[port - 1]
    return f"{port or 'no port'}"
