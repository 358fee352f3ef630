"""The forwarding of one switch as its files state it, in one form for every system.

The reader of each system makes an `EmittedSwitch` from the text alone, with interfaces by their
names in the text. `switch_check` compares it with the tables of the build.

A *port set* has ports that share packets by weight. A *chain* is the sequence of port sets that a
switch tries until one has a port that is up; behind the last set packets are dropped. A port set
without ports drops as well. A *mark* is a bit in a packet that tells the next switch to send it on
as a detour. A port for packets that get a mark is told from the same port for others. Readers know
ports by name (`with_mark`, `without_mark`); the check numbers them (`marked`, `gets_mark`,
`unmarked`).
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
PortSet: TypeAlias = tuple[tuple[Port, int], ...]
"""Ports and their weights; () drops."""
Chain: TypeAlias = tuple[PortSet, ...]
"""Port sets in the order in which they are tried; () drops."""
LineText: TypeAlias = tuple[str, int, str]
"""A file, a line (0: only the file is known), and a text about it."""
Discard: TypeAlias = tuple[str, str, int]
"""A prefix whose packets are dropped unless a longer prefix matches, and its file and line."""
MARKED = 1 << 20
"""Added to the number of a port for packets that get a mark. It is more than any port's number."""
WITH_A_MARK = " with a mark"
"""Behind the name of an interface: packets to it get a mark. Names of interfaces have no blanks."""
VIA = "via "
"""Before an address that stands for the port to it (`port_via`)."""


@dataclass(frozen=True, slots=True)
class EmittedDifference:
    """A place in a file that says something else than the tables.

    >>> print(EmittedDifference("n0/routes.batch", 7, "10.0.0.0/24 again", "one row"))
    n0/routes.batch:7: 10.0.0.0/24 again; tables: one row
    """

    file: str
    """The file."""
    line: int
    """The line; 0: the whole file."""
    says: str
    """The statement of the file, in words."""
    tables: str = ""
    """The statement of the tables about the same thing, in words; "" for none."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        tables = f"; tables: {self.tables}" if self.tables else ""
        return f"{place}: {self.says}{tables}"


@dataclass(frozen=True, slots=True, eq=False)
class EmittedRows:
    """The rows of one lookup table, as columns."""

    file: str
    """The file with the rows."""
    names: Sequence[str]
    """Prefixes; the tables of a switch may share this list."""
    entries: NDArray[np.int64]
    """int64[n]: the entry to which each row leads (`Lookup.number`)."""
    lines: NDArray[np.int64]
    """int64[n]: the line of each row in the file."""
    prefix: NDArray[np.int64] | None = None
    """int64[n]: the index of each row's prefix in `names`; None: row n has name n."""

    def name(self, row: int) -> str:
        """The prefix of a row."""
        return self.names[row if self.prefix is None else int(self.prefix[row])]


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A lookup table with the meaning that it has for packets from one interface.

    Tables for several interfaces may have the same rows and differ in what their entries mean.
    """

    rows: EmittedRows
    """The rows, each of which leads to one of E entries."""
    chains: Sequence[Chain]
    """The chains of ports that the entries stand for."""
    number: NDArray[np.int64]
    """int64[E]: for each entry, the index of its chain in `chains`."""
    places: Sequence[tuple[str, int]] = ()
    """The file and the line where each chain is stated; () where the rows state it."""


class Interface(str):
    """The name of a port in a claim. By this type the check knows it among other texts."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What a line states besides forwarding, such as the port of a host."""

    kind: str
    """A key of `expected_claims.CLAIMS`."""
    value: tuple[str | int, ...]
    """The values that the line states, in the order that `CLAIMS` lists for the kind."""
    file: str
    """The file that states it."""
    line: int
    """The line that states it."""


@dataclass(frozen=True, slots=True)
class NextHop:
    """The address of a neighbour to which a row sends packets, and the port to it."""

    port: Port
    """The port to the neighbour."""
    address: str
    """The address of the neighbour."""
    file: str
    """The file that states it."""
    line: int
    """The line that states it first."""


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """An address that the switch itself has on an interface."""

    port: Port
    """The interface."""
    address: str
    """The address, without its length."""
    file: str
    """The file that states it."""
    line: int
    """The line that states it."""


@dataclass(frozen=True, slots=True)
class EmittedSwitch:
    """The forwarding of one switch, and everything else that its files state."""

    anywhere: tuple[Lookup, ...]
    """The tables in which packets are looked up, one after the other until one has a next hop that
    is up."""
    by_ingress: Mapping[Port, tuple[Lookup, ...]] = field(default_factory=dict)
    """The tables for packets from interfaces that have tables of their own, by interface."""
    claimed_kinds: frozenset[str] = frozenset()
    """The kinds of claims that these files have to make in full."""
    claims: Sequence[Claim] = ()
    """What the files state besides forwarding."""
    next_hops: Sequence[NextHop] = ()
    """The neighbours to which packets are sent by address."""
    addresses: Sequence[OwnAddress] = ()
    """The addresses of the switch on its links."""
    discards: Sequence[Discard] = ()
    """The prefixes that are discarded."""
    unread: Sequence[LineText] = ()
    """The statements that no rule reads."""
    unused: Sequence[LineText] = ()
    """The names of tables and groups to which nothing leads."""
    wrong: Sequence[LineText] = ()
    """The faults: statements that are missing or wrong."""
    converged: bool = False
    """Whether the tables are what a routing protocol converges to. Then a fault in the files of one
    switch may show in the tables of others."""
    class_entries: Mapping[int, int] | None = None
    """The entry of each egress class by its number in the build's tables, in files of OpenFlow;
    None: the files do not state these numbers."""
    host_class_entries: Mapping[int, int] | None = None
    """The entry of each egress class for packets from hosts, by the class's number, where a switch
    without hosts has rows for such packets; None: it has none."""


@lru_cache(1 << 16)
def canonical(chain: Chain, in_port: Port) -> Chain:
    """The shortest chain with the same effect, so that chains of one effect are equal values.

    What cannot happen is left out: a port that was tried before is down, so it is not tried again,
    and the port where a packet came in is up, so nothing is tried after it. Weights are divided by
    their greatest common divisor.

    Args:
        chain: port sets in order.
        in_port: where the packet came in; 0 for packets from hosts.

    >>> canonical(((("a", 2), ("b", 4)), (("a", 1),)), 0)
    ((('a', 1), ('b', 2)),)
    """
    tried: set[Port] = set()
    result: list[PortSet] = []
    for port_set in chain:
        if not port_set:
            break
        weights: dict[Port, int] = {}
        for port, weight in port_set:
            if unmarked(port) not in tried:
                weights[port] = weights.get(port, 0) + weight
        if not weights:
            continue
        tried.update(map(unmarked, weights))
        divisor = gcd(*weights.values()) or 1
        shares = ((port, weight // divisor) for port, weight in weights.items())
        result.append(tuple(sorted(shares, key=str)))
        if in_port in map(unmarked, weights):
            break
    return tuple(result)


def with_mark(port: str) -> str:
    """The name of an interface for packets that get a mark."""
    return f"{port}{WITH_A_MARK}"


def without_mark(port: Port) -> Port:
    """The interface, whether packets get a mark or not; the inverse of `with_mark`."""
    return port if isinstance(port, int) else port.removesuffix(WITH_A_MARK)


def port_via(address: str) -> str:
    """A text in place of a port that is not known yet: it is the port to a neighbour's address.

    Another table, such as BGP's, says later by which port the address is reached.
    """
    return f"{VIA}{address}"


def marked(port: int) -> int:
    """The number that stands for a port and packets that get a mark."""
    return port + MARKED


def gets_mark(port: Port) -> bool:
    """Whether a number stands for a port and packets that get a mark; False for a name."""
    return isinstance(port, int) and port > MARKED


def unmarked(port: Port) -> Port:
    """The number of a port, whether packets get a mark or not; names stay as they are."""
    return port % MARKED if isinstance(port, int) else port


def unmarked_numbers(ports: NDArray[np.int64]) -> NDArray[np.int64]:
    """As `unmarked`, for an array of port numbers."""
    return ports % MARKED


@lru_cache(1 << 16)
def address_text(text: str) -> str:
    """An address in its canonical form.

    Raises:
        ValueError: the text is no address.

    >>> address_text("2001:DB8::0:1")
    '2001:db8::1'
    """
    return str(exact_address(text))


@lru_cache(1 << 16)
def network_text(text: str) -> str:
    """A prefix in its canonical form.

    Raises:
        ValueError: the text is no prefix, or has bits beyond its length.
    """
    return str(exact_network(text))


def prefix_text(text: str) -> str:
    """A prefix in its canonical form; a text that is no prefix stays as it is."""
    try:
        return network_text(text)
    except ValueError:
        return text


@lru_cache(1 << 16)
def interface_network(text: str) -> tuple[str, str]:
    """The address and the network of an interface's address.

    Raises:
        ValueError: the text is no address.

    >>> interface_network("10.0.0.9/29")
    ('10.0.0.9', '10.0.0.8/29')
    """
    interface = exact_interface(text)
    return str(interface.ip), str(interface.network)


@lru_cache(1 << 12)
def covering(text: str) -> tuple[str, ...]:
    """A prefix and all shorter ones that contain it, down to one bit; () if it is no prefix.

    >>> covering("192.0.0.0/3")
    ('192.0.0.0/3', '192.0.0.0/2', '128.0.0.0/1')
    """
    try:
        network = exact_network(text)
    except ValueError:
        return ()
    return tuple(str(network.supernet(new_prefix=n)) for n in range(network.prefixlen, 0, -1))
