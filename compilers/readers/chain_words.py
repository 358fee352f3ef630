"""Chains of ports in words, for messages about switches that differ from their tables.

A *chain* is the sequence of *port sets* that a switch tries in order. The ports of a set share
packets by weight (`emitted_forwarding`). `switch_check` calls `chain_words`.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilers.readers.emitted_forwarding import Chain, Port, PortSet, gets_mark, unmarked


def chain_words(chain: Chain, names: Sequence[str]) -> str:
    """A chain of ports in words.

    Args:
        chain: ports by number; a text stands for no port of the switch.
        names: the names of the switch's ports, of which the first has number 1.

    >>> chain_words((((1, 2), (2, 1)), ((3, 1),)), ["eth1", "eth2", "eth3"])
    'shared by eth1 by 2, eth2 by 1, else by eth3'
    """
    return ", else ".join(_port_set_words(port_set, names) for port_set in chain) or "by no port"


def _port_set_words(port_set: PortSet, names: Sequence[str]) -> str:
    """The ports of a port set, with their weights where there are several."""
    if len(port_set) == 1:
        return f"by {_port_words(port_set[0][0], names)}"
    shares = (f"{_port_words(port, names)} by {weight}" for port, weight in port_set)
    return f"shared by {', '.join(shares)}"


def _port_words(port: Port, names: Sequence[str]) -> str:
    """The name of a port, and whether packets to it get a mark."""
    if gets_mark(port):
        return f"{_port_words(unmarked(port), names)} with a mark"
    if isinstance(port, int) and 0 < port <= len(names):
        return names[port - 1]
    return f"{port or 'no port'}"
