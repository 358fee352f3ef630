"""The numbers of links, by which targets give links their addresses.

A compile and targets call `link_numbers`; a build keeps the numbers in its *allocations*, by the
key of a link (`link_key`).

A number belongs to a pair of vertices. It does not change if a cable moves to other ports, or a
node becomes one of another type. In a new fabric the link at port p of vertex u, the lower of its
two vertices, has the number u·P + p, where P is the number of ports of the widest node type in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.spec.allocations import ASN, BEFORE, CABLE, LINK, AllocatedNumbers, Allocations
from compilers.wiring.wiring import Wiring


def link_numbers(wiring: Wiring, numbers: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the number of each link, int64[S, K], the same at both ends; -1: no link.

    Args:
        wiring: the links.
        numbers: the allocated numbers by `link_key`; {} for a fabric whose numbers follow from its
            ports.
    """
    if not numbers:
        return default_numbers(wiring, range(len(wiring.port_names)))
    table = np.full(wiring.far.shape, -1, np.int64)
    lower, upper = _lower_and_upper(wiring)
    is_link = wiring.far >= 0
    table[is_link] = [
        numbers[link_key(u, v)]
        for u, v in zip(lower[is_link].tolist(), upper[is_link].tolist(), strict=True)
    ]
    return table


def default_numbers(wiring: Wiring, types: Iterable[int]) -> NDArray[np.int64]:
    """Return the numbers of links in a new fabric, int64[S, K]; -1: no link.

    They follow from the ports.

    Args:
        wiring: the links.
        types: the node types; the one with most ports gives P.
    """
    lower, _ = _lower_and_upper(wiring)
    vertex = np.arange(len(wiring.far))[:, None]
    port = np.where(vertex < wiring.far, wiring.port, wiring.far_port)
    most_ports = max(len(wiring.port_names[t]) for t in types)
    return np.where(wiring.far >= 0, lower * most_ports + port, -1)


def numbers_by_key(wiring: Wiring, table: NDArray[np.int64]) -> dict[str, int]:
    """Return the numbers of links, int64[S, K], by `link_key`, in the order of the links."""
    switch, link = wiring.links()
    ends = zip(switch.tolist(), wiring.far[switch, link].tolist(), strict=True)
    return {
        link_key(u, v): number
        for (u, v), number in zip(ends, table[switch, link].tolist(), strict=True)
    }


def link_key(lower: int, upper: int, index: int = 0) -> str:
    """Return the key of a link, or of one of its parallel cables.

    The index of a link is 0. That of a cable is the number of its socket, from 0.

    >>> link_key(3, 17)
    '3-17/0'
    """
    return f"{lower}-{upper}/{index}"


class KeyNumbers(NamedTuple):
    """The numbers in the key of a link or cable."""

    lower: int
    """The smaller of the two vertices."""
    upper: int
    """The larger one."""
    cable_index: int
    """The number of the cable's socket; 0 for a link."""


def numbers_of_key(key: str) -> KeyNumbers:
    """Return the numbers in a key.

    >>> numbers_of_key("3-17/0")
    KeyNumbers(lower=3, upper=17, cable_index=0)
    """
    ends, _, index = key.partition("/")
    lower, _, upper = ends.partition("-")
    return KeyNumbers(int(lower), int(upper), int(index))


def renumbered_key(key: str, vertices: Mapping[int, int]) -> str:
    """Return the key of a link or cable with other vertices; "" if one of its ends is gone.

    >>> renumbered_key("3-17/0", {3: 9, 17: 4}), renumbered_key("3-17/0", {3: 9})
    ('4-9/0', '')

    Args:
        key: by the old vertices.
        vertices: the new vertex of each old one.
    """
    lower, upper, index = numbers_of_key(key)
    if lower not in vertices or upper not in vertices:
        return ""
    new_lower, new_upper = sorted((vertices[lower], vertices[upper]))
    return link_key(new_lower, new_upper, index)


def renumbered_allocations(allocations: Allocations, vertices: Mapping[int, int]) -> Allocations:
    """Return the allocations of links, cables and AS numbers by other vertices.

    Args:
        allocations: by the old vertices.
        vertices: the new vertex of each old one. Numbers of old vertices that it lacks are freed.
    """
    numbers = dict(allocations.numbers)
    for kind in (LINK, CABLE):
        link_numbers_before = allocations.of(kind)
        numbers[kind] = _by_new_keys(link_numbers_before, lambda key: renumbered_key(key, vertices))
    if as_numbers := allocations.of(ASN):
        numbers[ASN] = _by_new_keys(as_numbers, lambda key: str(vertices.get(int(key), "")))
    return Allocations(numbers, allocations.names)


def _by_new_keys(numbers: AllocatedNumbers, new_key: Callable[[str], str]) -> AllocatedNumbers:
    """Return numbers by new keys. The old key of a number that is freed gets the prefix BEFORE.

    Args:
        numbers: by the old keys.
        new_key: the new key for an old one; "" frees the number.
    """
    used = dict[str, int]()
    freed = {f"{BEFORE}{key}": number for key, number in numbers.freed.items()}
    for key, number in numbers.used.items():
        if key_now := new_key(key):
            used[key_now] = number
        else:
            freed[f"{BEFORE}{key}"] = number
    return AllocatedNumbers(used, freed)


def _lower_and_upper(wiring: Wiring) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lower and the upper vertex of each link, int64[S, K] each."""
    vertex = np.broadcast_to(np.arange(len(wiring.far))[:, None], wiring.far.shape)
    far = wiring.far.astype(np.int64)
    return np.minimum(vertex, far), np.maximum(vertex, far)
