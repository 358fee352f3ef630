"""Check every value of a build against the others, before and after its packets are walked.

Walks tell where packets get to. They cannot tell that two hosts have one address, that a port for
repairs is a host's port, or that a weight has no port. So `verify` calls three functions, which
put the checks of this package together:

- `unwalkable_values`: cables and prefixes, without which no packet can be followed;
- `unsound_values`: all other values, one by one (`graph_soundness`, `table_soundness`,
  `address_soundness`);
- `broken_claims`: the tables against what the build's `Forwarding` says (`forwarding_soundness`).

A check is a generator: it yields the values that are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness import (
    address_soundness,
    forwarding_soundness,
    graph_soundness,
    table_soundness,
)
from compilers.proof.soundness.port_use import PortUse
from compilers.proof.soundness.unsound import UnsoundValues, unsound_where
from compilers.proof.walks.loop_free_alternates import NeighbourPaths
from compilers.tables.build import Build
from compilers.tables.build_parts import classes_of, switch_blocks
from compilers.topology.families import family_of
from inventory.problems import Finding


def unwalkable_values(build: Build) -> UnsoundValues:
    """What is wrong with the cables and prefixes of a build.

    Cables are looked at only if node types, graph and prefixes are sound.
    """
    faults = UnsoundValues.of(_types_graph_and_prefixes(build))
    return faults if faults.count else UnsoundValues.of(_cables(build))


def _types_graph_and_prefixes(build: Build) -> Iterator[UnsoundValues]:
    """Check node types, lists of neighbours, and prefixes."""
    yield from graph_soundness.check_node_types(build)
    yield from graph_soundness.check_graph(build)
    yield from table_soundness.check_prefixes(build)


def _cables(build: Build) -> Iterator[UnsoundValues]:
    """Check ports and cables."""
    port_use = PortUse.of(build.wiring)
    yield from graph_soundness.check_ports(build, port_use)
    yield from graph_soundness.check_cables(build, port_use)


def unsound_values(build: Build, rows: bool = True) -> UnsoundValues:
    """What is wrong with the other values of a build that is `unwalkable_values`.

    Args:
        build: its values are looked at.
        rows: whether rows are looked at; False if all rows are proved to lead to their
            destinations.
    """
    return UnsoundValues.of(_other_values(build, rows))


def _other_values(build: Build, rows: bool) -> Iterator[UnsoundValues]:
    """Check the family, rows, classes, names and addresses."""
    port_use = PortUse.of(build.wiring)
    yield from graph_soundness.check_family(build)
    if rows:
        yield from table_soundness.check_rows(build)
    for block in switch_blocks(build):
        of_block = classes_of(build, block)
        yield from table_soundness.check_classes(of_block, port_use.part(block))
        yield from table_soundness.check_weights(of_block)
    yield from address_soundness.check_names(build)
    yield from address_soundness.check_datapath_ids(build)
    yield from address_soundness.check_mac_addresses(build)
    yield from address_soundness.check_blocks(build)


def broken_claims(build: Build, constructed: bool = False) -> UnsoundValues:
    """The tables that contradict `build.forwarding`.

    Args:
        build: it is sound, and its tables deliver every pair.
        constructed: whether to compare alternates with those that the family constructs, if it has
            a construction. Its repairs are then judged by failures alone.
    """
    return UnsoundValues.of(_broken_claims(build, constructed))


def _broken_claims(build: Build, constructed: bool) -> Iterator[UnsoundValues]:
    """Check the tables against `build.forwarding`, for a block of switches at a time."""
    forwarding, port_use = build.forwarding, PortUse.of(build.wiring)
    links = _constructed_alternates(build) if constructed else None
    paths = None
    if links is not None:
        yield from _direct_rows(build)
    elif forwarding.has_alternates or forwarding.repairs:
        paths = NeighbourPaths.of(build)
    for block in switch_blocks(build):
        of_block, use_of_block = classes_of(build, block), port_use.part(block)
        yield from forwarding_soundness.check_weights(of_block)
        if not forwarding.has_alternates:
            yield from forwarding_soundness.check_no_alternates(of_block, use_of_block)
        if links is not None:
            yield from forwarding_soundness.check_constructed_alternates(
                of_block, use_of_block, links[block]
            )
        if paths:
            yield from _by_paths(of_block, use_of_block, paths.of_switches(block))


def _by_paths(build: Build, port_use: PortUse, paths: NeighbourPaths) -> Iterator[UnsoundValues]:
    """Check alternates and repairs by the minimal paths of neighbours.

    Args:
        build: with the classes of some switches.
        port_use: the use of their ports.
        paths: the paths of the neighbours of these switches.
    """
    forwarding = build.forwarding
    # If packets may take any shortest path at every hop, only walks can judge the repairs.
    if not forwarding.every_hop:
        yield from forwarding_soundness.check_class_rows(build, paths)
        yield from forwarding_soundness.check_repairs(build, port_use, paths)
    if forwarding.has_alternates:
        yield from forwarding_soundness.check_alternates(build, port_use, paths)


def _constructed_alternates(build: Build) -> NDArray[np.uint8] | None:
    """The links of the alternates that the family constructs for what the build says.

    Returns:
        uint8[S, C, ⌈K/8⌉], sets of links; None if the family has no construction.
    """
    forwarding, classes = build.forwarding, build.tables.classes.port.shape[1]
    if forwarding.alternates == "shortest":
        return None
    family = family_of(build.topology.family)
    links: NDArray[np.uint8] | None = family.constructed_alternates(
        build.topology, build.wiring, classes, forwarding
    )
    if links is not None and not forwarding.has_alternates:
        return np.zeros_like(links)
    return links


def _direct_rows(build: Build) -> Iterator[UnsoundValues]:
    """Check that rows for neighbours, and no other rows, name direct classes.

    In the families that construct alternates, the direct class K + k leads over link k to the
    neighbour alone.
    """
    egress, far = build.tables.routes.egress, build.wiring.far
    if not build.tables.routes.exact or not isinstance(egress, np.ndarray):
        return  # computed rows name the right classes by construction
    most_links = far.shape[1]
    wrong = np.zeros(far.shape, np.bool_)
    for s, row in enumerate(egress):
        has_neighbour = far[s] >= 0
        names_direct_class = row[np.maximum(far[s], 0)] == most_links + np.arange(most_links)
        count = np.count_nonzero((row >= most_links) & (row < 2 * most_links))
        if count == np.count_nonzero(has_neighbour):
            wrong[s] = has_neighbour & ~names_direct_class
        else:  # some row for another destination names a direct class; it is not known which
            wrong[s] = has_neighbour
    yield from unsound_where(
        wrong,
        lambda s, k: Finding(
            (build.wiring.names[s], "class", most_links + k),
            "rows for the neighbour alone, by its number",
            "rows for others, or none for it",
        ),
    )
