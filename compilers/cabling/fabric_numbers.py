"""The numbers of a fabric: those that it had, and new ones for what is new.

A compile and an expansion call `allocate`, which gives a whole fabric its numbers: of links,
cables, hosts and switches. `installed_numbers` reads those that the fabric had before, so that they
stay the same. *Allocations* are these numbers, one row each (`compilers.spec.allocations`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from compilers.cabling.cable_labels import with_labels
from compilers.spec.allocations import (
    ASN,
    HOST,
    LINK,
    POOL,
    SIZES,
    VERTEX,
    AllocatedNumbers,
    Allocations,
    assign_numbers,
)
from compilers.wiring.addressing import Addressing
from compilers.wiring.as_numbers import as_number_rows, as_numbers
from compilers.wiring.hardware import Hardware
from compilers.wiring.link_numbers import default_numbers, numbers_by_key
from compilers.wiring.wiring import Wiring

LINK_POOLS = ("links", "links6")
"""The words of `Build.control` for the pools of links."""


@dataclass(frozen=True, slots=True)
class WholeFabric:
    """A whole fabric, as if nothing were missing, before it has numbers."""

    wiring: Wiring
    """The ports of links."""
    hardware: Hardware | None
    """Where nodes stand; None without an inventory."""
    addressing: Addressing
    """The blocks of addresses."""
    hosts: Mapping[str, int]
    """The number of each host that the inventory names, at its switch, by vertex and name."""
    links: int
    """For how many links the pool of links has addresses."""
    as_numbers: Sequence[int] | None
    """The AS number of each vertex; None where switches have none."""
    base: Mapping[str, Any]
    """`Build.base`, by which AS numbers follow from vertices where they have no rows."""


def links_in(pools: Iterable[IPv4Network | IPv6Network | None], marks: bool) -> int:
    """Return for how many links pools have addresses: two, and two more for marked packets.

    >>> links_in([IPv4Network("10.9.0.0/24"), None], marks=False)
    128

    Args:
        pools: those that fabric.yaml names; None for the usual one.
        marks: whether packets are marked.
    """
    sizes = (pool.num_addresses // (4 if marks else 2) for pool in pools if pool)
    return min((SIZES[LINK], *sizes))


def allocate(fabric: WholeFabric, before: Allocations) -> tuple[Hardware | None, Allocations]:
    """Give a fabric its numbers.

    A fabric without an inventory, whose numbers follow from its ports, has no allocations.

    Args:
        fabric: the fabric.
        before: the numbers that it had; none for a new one.

    Returns:
        The hardware with the numbers on labels, and all numbers.

    Raises:
        Refused: a link is longer than every cable in stock.
    """
    wiring, hardware, links_before = fabric.wiring, fabric.hardware, before.of(LINK)
    as_number = _as_number_rows(fabric, before.of(ASN))
    if hardware is None and not links_before:
        return None, Allocations(_as_numbers_unless_default(fabric, as_number))
    types_in_use = sorted(set(wiring.node_type.tolist()))
    by_ports = AllocatedNumbers(numbers_by_key(wiring, default_numbers(wiring, types_in_use)))
    links = by_ports
    if links_before:
        links = assign_numbers(links_before, by_ports.used, fabric.links)
    if hardware is None:
        link_rows = {} if links == by_ports else {LINK: links}
        return None, Allocations(link_rows | _as_numbers_unless_default(fabric, as_number))
    hardware, labels = with_labels(hardware, wiring, before)
    vertices, names = vertex_numbers(wiring.names, hardware.serial)
    numbers = {
        VERTEX: vertices,
        LINK: links,
        **labels,
        HOST: _host_numbers(fabric.hosts, before.of(HOST)),
        **({ASN: as_number} if as_number else {}),
        POOL: AllocatedNumbers(fabric.addressing.first_addresses()),
    }
    return hardware, Allocations(numbers, names)


def _as_number_rows(fabric: WholeFabric, before: AllocatedNumbers) -> AllocatedNumbers:
    """The AS numbers of a fabric as rows; none where switches have none."""
    if fabric.as_numbers is None:
        return AllocatedNumbers()
    return as_number_rows(fabric.as_numbers, before)


def _as_numbers_unless_default(
    fabric: WholeFabric, rows: AllocatedNumbers
) -> dict[str, AllocatedNumbers]:
    """The AS numbers of a fabric as rows; {} if all follow from its vertices and nodes."""
    defaults = as_numbers(fabric.base, fabric.wiring.names, Allocations()).tolist()
    is_default = not rows.freed and [*rows.used.values()] == defaults
    return {ASN: rows} if rows and not is_default else {}


def vertex_numbers(
    names: Sequence[str], serials: Sequence[str]
) -> tuple[AllocatedNumbers, dict[str, str]]:
    """The vertex of each node by its serial, else by its name; and the name of each serial's node.

    Args:
        names: of the nodes, by vertex.
        serials: of the first nodes, "" where unknown. One that is also another's is not used.
    """
    all_serials = [*serials, *[""] * (len(names) - len(serials))]
    count = Counter((*all_serials, *names))
    vertices, name_of_serial = dict[str, int](), dict[str, str]()
    for vertex, (name, serial) in enumerate(zip(names, all_serials, strict=True)):
        if serial and count[serial] == 1:
            vertices[serial] = vertex
            name_of_serial[serial] = name
        else:
            vertices[name] = vertex
    return AllocatedNumbers(vertices), name_of_serial


def _host_numbers(hosts: Mapping[str, int], before: AllocatedNumbers) -> AllocatedNumbers:
    """The numbers of hosts, and those that stay reserved at the switches.

    Args:
        hosts: the number of each host, by vertex and name.
        before: the numbers before.
    """
    in_use = {(_vertex(key), number) for key, number in hosts.items()}
    reserved = {**before.freed, **before.used}
    freed = {
        key: number
        for key, number in reserved.items()
        if key not in hosts and (_vertex(key), number) not in in_use
    }
    return AllocatedNumbers(hosts, freed)


def _vertex(key: str) -> str:
    """The vertex in the key of a host, such as `3` in `3/db1`."""
    return key.partition("/")[0]
