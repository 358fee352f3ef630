"""The chains of one switch's files, numbered, with ports by their numbers.

A *chain* is the sequence of *port sets* that a switch tries in order, and the ports of a set share
packets by weight (`emitted_forwarding`). `switch_check` and `class_check` compare the chains of the
files with those of the tables, by their numbers and as rows of arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_forwarding import (
    Chain,
    Port,
    PortSet,
    canonical,
    marked,
    unmarked,
    with_mark,
)

Integers = NDArray[np.int64]
# Numbers in the place of an ingress port, which has a number from 1 on.
FROM_HOST = 0
"""The packet comes from a host, and may leave by any fabric port."""
ANY_OTHER = -1
"""The packet comes in by a port that no class tries."""
# Numbers in the place of the only port of a port set (`ChainNumbers.only_ports`).
NO_MORE = 0
"""There is no such port set: it is behind the last one."""
DROPPED = -2
"""The port set drops."""
NOT_ONE_PORT = -3
"""The port set has several ports, or an unknown one."""
DROPPING_CHAIN = 0
"""The number of the chain without port sets, which drops."""


class ChainNumbers:
    """The chains of a switch, by number.

    Args:
        names: the names of the switch's ports, of which the first has number 1.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.number_of_port: dict[Port, int] = {name: n for n, name in enumerate(names, 1)}
        """The number of each port by its name, with a mark or without."""
        self.number_of_port |= {with_mark(name): marked(n) for n, name in enumerate(names, 1)}
        self.chains: list[Chain] = [()]
        """All chains, with ports by number; the first is DROPPING_CHAIN."""
        self._numbers: dict[Chain, int] = {(): DROPPING_CHAIN}
        """The index of each chain in `chains`."""

    def number(self, chain: Chain) -> int:
        """The number of a chain, which may have ports by name; equal chains have one number."""
        by_number = tuple(
            tuple((self._port_number(port), weight) for port, weight in port_set)
            for port_set in chain
        )
        number = self._numbers.setdefault(by_number, len(self.chains))
        if number == len(self.chains):
            self.chains.append(by_number)
        return number

    def _port_number(self, port: Port) -> Port:
        """The number of a port; a text where the switch has no port of that name or number."""
        number = self.number_of_port.get(port, port)
        if isinstance(number, str) or 0 < int(unmarked(number)) <= len(self.names):
            return number
        return f"port {unmarked(number)}"

    def in_turn(self, numbers: Iterable[int], in_port: int) -> Chain:
        """The canonical form of several chains that are tried one after the other.

        Args:
            numbers: the numbers of the chains.
            in_port: where the packet came in.
        """
        return canonical(tuple(port_set for n in numbers for port_set in self.chains[n]), in_port)

    def only_ports(self) -> Integers:
        """int64[chains, L]: the port of every port set of every chain, if it has a single one.

        NO_MORE stands behind the last port set of a chain, DROPPED and NOT_ONE_PORT in place of
        port sets without a single port.
        """
        rows = [[_only_port(port_set) for port_set in chain] for chain in self.chains]
        ports = np.full((len(rows), max(map(len, rows))), NO_MORE, np.int64)
        for row, ports_of_chain in enumerate(rows):
            ports[row, : len(ports_of_chain)] = ports_of_chain
        return ports


def _only_port(port_set: PortSet) -> int:
    """The port of a port set with a single one; DROPPED or NOT_ONE_PORT for other sets."""
    if not port_set:
        return DROPPED
    port = port_set[0][0]
    return port if len(port_set) == 1 and isinstance(port, int) and port > 0 else NOT_ONE_PORT
