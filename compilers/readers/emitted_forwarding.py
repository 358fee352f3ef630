"""Emitted forwarding: what the files of one switch say, in one form for every system.

A reader makes it from the text alone. Interfaces are as the text names them; whoever compares
knows which port that is. A *chain* is what happens to a packet: stages tried in order, each the
ports that share it by weight; a stage without ports drops. The last stage is followed by a drop.
A port plus `MARKED` is that port, for packets that are marked before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from compilers.readers.exact_text import exact_address, exact_interface, exact_network

Port: TypeAlias = str | int
"""An interface by its name, or a port by its number."""
Stage: TypeAlias = tuple[tuple[Port, int], ...]
"""Ports and their weights; () drops."""
Chain: TypeAlias = tuple[Stage, ...]
MARKED = 1 << 20
"""More than any port's number."""


@dataclass(frozen=True, slots=True)
class EmittedDifference:
    """A place in a file that says something else than the tables; line 0 is the whole file."""

    file: str
    line: int
    says: str
    tables: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.says}" + f"; tables: {self.tables}" * bool(self.tables)


@dataclass(frozen=True, slots=True, eq=False)
class EmittedRows:
    """Rows of one lookup table, a column each: numbers of prefixes, numbers of entries, lines.

    names: the prefixes as text, which the tables of a switch may share; prefix: int64[n], the
    number of each row's; None: row n has name n.
    """

    file: str
    names: Sequence[str]
    entries: NDArray[np.int64]
    lines: NDArray[np.int64]
    prefix: NDArray[np.int64] | None = None

    def name(self, row: int) -> str:
        """The prefix of a row."""
        return self.names[row if self.prefix is None else int(self.prefix[row])]


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A table as packets that come in on some interface see it.

    chains: all that a switch may do with a packet. number: int64[E], which of them each entry of
    the rows means. places: the file and the line where each chain is said; () where the rows
    themselves say it.
    """

    rows: EmittedRows
    chains: Sequence[Chain]
    number: NDArray[np.int64]
    places: Sequence[tuple[str, int]] = ()


class Interface(str):
    """The name of a port, in a claim; whoever compares takes the port's number for it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A plain fact that a line states, such as the port of a host; kinds in `CLAIMS`."""

    kind: str
    value: tuple[str | int, ...]
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class NextHop:
    """The address that a row sends packets to, behind a port."""

    port: Port
    address: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """An address that the switch has on an interface, without its length."""

    port: Port
    address: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class EmittedSwitch:
    """What the files of one switch say.

    anywhere: the tables that a packet is looked up in, one after the other until one has a next hop
    that is up; by_ingress: the same for interfaces that have tables of their own. claimed: the
    kinds of claims that these files have to make in full. discards: prefixes that are dropped where
    no longer one is found, with file and line. unread: file, line and text of statements that are
    not known; unused: of what nothing leads to; wrong: of what is missing, or known and wrong.
    converged: whether the tables are what a protocol finds by the files of all switches, so that a
    fault of one is felt at others. numbered: the entry of each class by its number in the tables,
    which the files state as well; None: they do not. entering: the same for packets from hosts of a
    switch that has no hosts; None: such a switch has no rows for them.
    """

    anywhere: tuple[Lookup, ...]
    by_ingress: Mapping[Port, tuple[Lookup, ...]] = field(default_factory=dict)
    claimed: frozenset[str] = frozenset()
    claims: Sequence[Claim] = ()
    next_hops: Sequence[NextHop] = ()
    addresses: Sequence[OwnAddress] = ()
    discards: Sequence[tuple[str, str, int]] = ()
    unread: Sequence[tuple[str, int, str]] = ()
    unused: Sequence[tuple[str, int, str]] = ()
    wrong: Sequence[tuple[str, int, str]] = ()
    converged: bool = False
    numbered: Mapping[int, int] | None = None
    entering: Mapping[int, int] | None = None


@lru_cache(1 << 16)
def canonical(chain: Chain, in_port: Port) -> Chain:
    """The chain as short as it can be said: what cannot happen is left out.

    A port that was tried before is down, and the port where a packet came in is up. Weights have
    no common divisor.

    Args:
        chain: stages in order.
        in_port: where the packet came in, 0 where that is of no use to it: a host's.
    """
    tried: set[Port] = set()
    result: list[Stage] = []
    for stage in chain:
        if not stage:
            break
        weights: dict[Port, int] = {}
        for port, weight in stage:
            if bare(port) not in tried:
                weights[port] = weights.get(port, 0) + weight
        if not weights:
            continue
        tried.update(map(bare, weights))
        divisor = gcd(*weights.values()) or 1
        shares = ((port, weight // divisor) for port, weight in weights.items())
        result.append(tuple(sorted(shares, key=str)))
        if in_port in map(bare, weights):
            break
    return tuple(result)


WITH_A_MARK = " with a mark"


def with_mark(port: str) -> str:
    """An interface, for packets that are marked before: no interface has a blank in its name."""
    return f"{port}{WITH_A_MARK}"


def without_mark(port: Port) -> Port:
    """The interface of `with_mark`, or of others."""
    return port if isinstance(port, int) else port.removesuffix(WITH_A_MARK)


VIA = "via "


def found_by(address: str) -> str:
    """In the place of a port: the one by which another table reaches an address."""
    return f"{VIA}{address}"


def bare(port: Port) -> Port:
    """The port, whether packets are marked or not."""
    return port % MARKED if isinstance(port, int) else port


@lru_cache(1 << 16)
def address_text(text: str) -> str:
    """The one text of an address.

    Raises:
        ValueError: it is none.
    """
    return str(exact_address(text))


@lru_cache(1 << 16)
def network_text(text: str) -> str:
    """The one text of a prefix.

    Raises:
        ValueError: it is none, or has bits beyond its length.
    """
    return str(exact_network(text))


def prefix_text(text: str) -> str:
    """The one text of a prefix; one that is none stays as it is."""
    try:
        return network_text(text)
    except ValueError:
        return text


@lru_cache(1 << 16)
def interface_network(text: str) -> tuple[str, str]:
    """The address of `10.0.0.1/29`, and its network.

    Raises:
        ValueError: it is none.
    """
    interface = exact_interface(text)
    return str(interface.ip), str(interface.network)


@lru_cache(1 << 12)
def covering(text: str) -> tuple[str, ...]:
    """A prefix, and the shorter ones that it is part of, 0 bits left out; () where it is none."""
    try:
        network = exact_network(text)
    except ValueError:
        return ()
    return tuple(str(network.supernet(new_prefix=n)) for n in range(network.prefixlen, 0, -1))
