"""The AS numbers of switches: those that they have, and new ones for new switches.

In a new fabric vertex v has the number `base.asn` + v, unless its node has an `asn`. With eBGP
these are rows of the allocations, so that a switch keeps its number whatever `base.asn` becomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.spec.allocations import ASN, Allocations, Numbers
from inventory.asn_range import LAST_AS, PRIVATE_AS, RESERVED_AS, unusable
from inventory.problems import InputError

FIRST_ASN, NODE_ASNS = "asn", "node_asn"
"""Keys of a build's `base`: the first AS number, and the AS numbers of nodes by name."""


def as_numbers(
    base: Mapping[str, Any], names: Sequence[str], allocations: Allocations
) -> NDArray[np.int64]:
    """Return the AS number of every vertex v, int64[S]: its row, its node's, or the first plus v.

    >>> base = {"asn": 65001, "node_asn": {"b": 64512}}
    >>> as_numbers(base, ["a", "b", "c"], Allocations()).tolist()
    [65001, 64512, 65003]

    Args:
        base: `Build.base`.
        names: the name of the node of each vertex.
        allocations: of the same build.
    """
    rows, of_nodes = allocations.of(ASN).used, base.get(NODE_ASNS, {})
    first = base.get(FIRST_ASN, PRIVATE_AS)
    numbers = (rows.get(str(v), of_nodes.get(name, first + v)) for v, name in enumerate(names))
    return np.array([*numbers], np.int64)


def planned_as_numbers(
    first: int, of_nodes: Sequence[int | None], before: Numbers
) -> tuple[int, ...]:
    """Return the AS number of every vertex: its node's, the one that it had, or the first plus v.

    Once there are numbers, one that another vertex has, had or is given is passed over: a vertex
    gets the next number behind those from the first on, or before them if none is left behind.

    >>> planned_as_numbers(65001, [None, 64512, None], Numbers())
    (65001, 64512, 65003)
    >>> planned_as_numbers(65101, [None, 64512, None, None], Numbers({"0": 65001, "2": 65104}))
    (65001, 64512, 65104, 65105)

    Args:
        first: the number of vertex 0 of a new fabric.
        of_nodes: the number that the inventory gives the node of each vertex; None: none.
        before: the numbers before, by vertex.
    """
    rows = {**before.freed, **before.used}
    reserved = {*rows.values(), *RESERVED_AS}
    if rows:
        reserved |= {given for given in of_nodes if given is not None}
    others = chain(range(first + len(of_nodes), LAST_AS + 1), range(first - 1, 0, -1))
    more = (number for number in others if number not in reserved)
    numbers = []
    for vertex, given in enumerate(of_nodes):
        usual = first + vertex
        had = rows.get(str(vertex))
        if given is not None or had is not None:
            numbers.append(given if given is not None else int(had or 0))
        else:
            numbers.append(usual if usual not in reserved else next(more))
    return tuple(numbers)


def as_number_rows(numbers: Sequence[int], before: Numbers) -> Numbers:
    """Return the AS numbers as rows, and as reserved ones those that no vertex has any more.

    >>> as_number_rows([65001, 64512], Numbers({"0": 65001, "1": 65002, "2": 65003}))
    Numbers(used={'0': 65001, '1': 64512}, freed={'before 1': 65002, '2': 65003})

    Args:
        numbers: of each vertex.
        before: the numbers before.
    """
    used = {str(vertex): number for vertex, number in enumerate(numbers)}
    taken = set(numbers)
    freed = dict[str, int]()
    for key, number in (*before.freed.items(), *before.used.items()):
        if number in taken:
            continue
        earlier = key
        while earlier in used or earlier in freed:
            earlier = f"before {earlier}"
        freed[earlier] = number
    return Numbers(used, freed)


def grown_as_numbers(
    base: Mapping[str, Any], names: Sequence[str], before: Numbers
) -> tuple[int, ...] | None:
    """Return the AS number of every vertex of a larger fabric; None if the smaller one has none.

    Args:
        base: `Build.base` of the smaller fabric.
        names: of all switches of the larger one.
        before: the AS numbers of the smaller one.

    Raises:
        InputError: `base.asn` leaves too few numbers, so that the larger fabric's fabric.yaml would
            be refused; or a spare node's number is that of another switch.
    """
    if not before:
        return None
    of_nodes = base.get(NODE_ASNS, {})
    first = base.get(FIRST_ASN, PRIVATE_AS)
    if reason := unusable(first, len(names)):
        raise InputError.of(
            f"the first of {len(names):,} AS numbers, none above {LAST_AS:,} or reserved",
            f"{first:,}, {reason}",
            "choose another, such as 4200000000, and compile: switches that are there keep theirs",
            key="base.asn",
        )
    numbers = planned_as_numbers(first, [of_nodes.get(name) for name in names], before)
    switch_with: dict[int, str] = {}
    for name, number in zip(names, numbers, strict=True):
        other = switch_with.setdefault(number, name)
        if other != name:
            required, todo = f"an AS number of its own for {name}", "choose another, and compile"
            raise InputError.of(required, f"{number}, which {other} has", todo, key="nodes.asn")
    return numbers
