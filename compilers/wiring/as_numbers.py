"""The AS numbers of switches for eBGP: those that they have, and new ones for new switches.

In a new fabric the switch at vertex v of the graph has the number `base.asn` + v, unless its node
in the inventory has an `asn`. With eBGP a build keeps the numbers in its *allocations*, a table of
assigned numbers: rows in use, and freed rows, whose numbers nobody else gets. So a switch keeps its
number whatever `base.asn` becomes. `as_numbers` reads them for targets and reports; a compile plans
them (`placed_fabric`), and so does an expansion (`grown_as_numbers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.spec.allocations import ASN, BEFORE, AllocatedNumbers, Allocations
from inventory.asn_range import LAST_AS, PRIVATE_AS, RESERVED_AS, why_unusable
from inventory.problems import InputError

FIRST_ASN, NODE_ASNS = "asn", "node_asn"
"""Keys of `Build.base`: the first AS number, and the AS numbers of nodes by name."""


def as_numbers(
    base: Mapping[str, Any], names: Sequence[str], allocations: Allocations
) -> NDArray[np.int64]:
    """Return the AS number of every vertex v, int64[S].

    It is that of v's row in the allocations, else that of its node, else the first number plus v.

    >>> base = {"asn": 65001, "node_asn": {"b": 64512}}
    >>> as_numbers(base, ["a", "b", "c"], Allocations()).tolist()
    [65001, 64512, 65003]

    Args:
        base: `Build.base`.
        names: the name of the node of each vertex.
        allocations: of the same build.
    """
    allocated, asn_of_node = allocations.of(ASN).used, base.get(NODE_ASNS, {})
    first = base.get(FIRST_ASN, PRIVATE_AS)
    numbers = (
        allocated.get(str(v), asn_of_node.get(name, first + v)) for v, name in enumerate(names)
    )
    return np.array([*numbers], np.int64)


def planned_as_numbers(
    first: int, of_nodes: Sequence[int | None], before: AllocatedNumbers
) -> tuple[int, ...]:
    """Return the AS number of every vertex v: that of its node, the one it had, or `first` + v.

    If there was an earlier build, `first` + v may be reserved: another vertex has or had it, or the
    inventory gives it to a node. Then v gets the next free number behind those of all S vertices,
    `first` to `first` + S - 1, or, if there is none, before them.

    >>> planned_as_numbers(65001, [None, 64512, None], AllocatedNumbers())
    (65001, 64512, 65003)
    >>> before = AllocatedNumbers({"0": 65001, "2": 65104})
    >>> planned_as_numbers(65101, [None, 64512, None, None], before)
    (65001, 64512, 65104, 65105)

    Args:
        first: the number of vertex 0 of a new fabric.
        of_nodes: the number that the inventory gives the node of each vertex; None: none.
        before: the numbers of the earlier build, by vertex.
    """
    previous = {**before.freed, **before.used}
    reserved = {*previous.values(), *RESERVED_AS}
    if previous:
        reserved |= {asn for asn in of_nodes if asn is not None}
    above_and_below = chain(range(first + len(of_nodes), LAST_AS + 1), range(first - 1, 0, -1))
    free_numbers = (number for number in above_and_below if number not in reserved)
    numbers = []
    for vertex, asn_of_node in enumerate(of_nodes):
        default, previous_asn = first + vertex, previous.get(str(vertex))
        if asn_of_node is not None:
            numbers.append(asn_of_node)
        elif previous_asn is not None:
            numbers.append(previous_asn)
        else:
            numbers.append(default if default not in reserved else next(free_numbers))
    return tuple(numbers)


def as_number_rows(numbers: Sequence[int], before: AllocatedNumbers) -> AllocatedNumbers:
    """Return the AS numbers as rows of the allocations.

    Earlier numbers that no vertex has any more are freed rows, which keep their keys; one whose key
    is in use again gets the key "before KEY".

    >>> as_number_rows([65001, 64512], AllocatedNumbers({"0": 65001, "1": 65002, "2": 65003}))
    AllocatedNumbers(used={'0': 65001, '1': 64512}, freed={'before 1': 65002, '2': 65003})

    Args:
        numbers: the AS number of each vertex.
        before: the rows of the earlier build.
    """
    used = {str(vertex): number for vertex, number in enumerate(numbers)}
    numbers_in_use = set(numbers)
    freed = dict[str, int]()
    for key, number in (*before.freed.items(), *before.used.items()):
        if number in numbers_in_use:
            continue
        freed_key = key
        # The vertex may have given up several numbers, one in each of several compiles.
        while freed_key in used or freed_key in freed:
            freed_key = f"{BEFORE}{freed_key}"
        freed[freed_key] = number
    return AllocatedNumbers(used, freed)


def grown_as_numbers(
    base: Mapping[str, Any], names: Sequence[str], before: AllocatedNumbers
) -> tuple[int, ...] | None:
    """Return the AS number of every vertex of a larger fabric; None if the smaller one has none.

    Args:
        base: `Build.base` of the smaller fabric.
        names: the names of all switches of the larger fabric.
        before: the rows of AS numbers of the smaller fabric.

    Raises:
        InputError: `base.asn` leaves too few numbers, so that the larger fabric's fabric.yaml would
            be refused; or a spare node's number is that of another switch.
    """
    if not before:
        return None
    asn_of_node = base.get(NODE_ASNS, {})
    first = base.get(FIRST_ASN, PRIVATE_AS)
    if reason := why_unusable(first, len(names)):
        raise InputError.of(
            f"the first of {len(names):,} AS numbers, none above {LAST_AS:,} or reserved",
            f"{first:,}, {reason}",
            "choose another, such as 4200000000, and compile: switches that are there keep theirs",
            key="base.asn",
        )
    numbers = planned_as_numbers(first, [asn_of_node.get(name) for name in names], before)
    switch_with: dict[int, str] = {}
    for name, number in zip(names, numbers, strict=True):
        other = switch_with.setdefault(number, name)
        if other != name:
            required, todo = f"an AS number of its own for {name}", "choose another, and compile"
            raise InputError.of(required, f"{number}, which {other} has", todo, key="nodes.asn")
    return numbers
