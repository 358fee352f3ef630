"""Make the `ClassStates` of a build: what its switches do with packets, class by class.

The local proof (`state_proof`) reads the `ClassStates`. They tell over which links a class balances
the packets of hosts (its *balanced links*), and what the forwarding rule does with packets in
transit. This module reads the balanced links from the weights of the tables. It goes through the
tables in blocks of switches, so that it never has the alternates of all switches in one array.
`class_cases.tabulate_classes` asks the rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.program import program_of
from compilers.forwarding.walks import packet_count
from compilers.proof.local.class_cases import (
    CASES,
    NONE,
    SEVERAL,
    ClassStates,
    tabulate_classes,
)
from compilers.proof.soundness.link_sets import byte_and_bit, packed_alternates
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.build_parts import classes_of, switch_blocks
from compilers.tables.packed_alternates import AlternateLinks, AlternateWeights, set_bits

MINIMAL_LINK = 0
"""The index of the minimal link in `Program.order`."""
MINIMAL_WEIGHT, ALTERNATES_WEIGHT = 0, 1
"""Indexes in the weights of a class: of the minimal port's weight, and of the weight of all
alternates (`AlternateWeights`) or of the first of them (an array of weights)."""


@dataclass(frozen=True, slots=True, eq=False)
class BalancedLinks:
    """The balanced links of n switches with C egress classes."""

    links: NDArray[np.uint8]
    """uint8[n, C, B], one bit for each link, the highest bit for the first."""
    choices: NDArray[np.int64]
    """int64[n, C], how many choices packets of hosts have: one for each balanced link, and a second
    one for the minimal link if it is among the alternates, too."""


def class_states(build: Build, may_fail: NDArray[np.bool_]) -> ClassStates:
    """The class states of a build.

    Args:
        build: its tables and cables.
        may_fail: bool[2], whether links may be down, and whether switches may (`LINK`, `NODE`).
    """
    wiring = build.wiring
    most_links = wiring.far.shape[1]
    program = program_of(build, shares=False)
    shape = len(wiring.far), build.tables.classes.port.shape[1]
    choices = np.zeros(shape, np.int16)
    sole_link = np.full(shape, NONE, np.int16)
    balanced_links = np.zeros((*shape, (most_links + 7) // 8), np.uint8)
    port_use = PortUse.of(wiring)
    for block in switch_blocks(build):
        minimal = program.order[block, :, MINIMAL_LINK]
        balanced = balanced_links_of(classes_of(build, block), port_use.part(block), minimal)
        balanced_links[block], choices[block] = balanced.links, balanced.choices
        link_count = set_bits(balanced.links)
        sole_link[block][link_count > 1] = SEVERAL
        single = np.nonzero(link_count == 1)
        sole_link[block][single] = np.unpackbits(balanced.links[single], axis=1).argmax(axis=1)
    has_hosts = build.topology.endpoints.copy()
    states = ClassStates(
        program=program,
        sole_link=sole_link,
        balanced_links=balanced_links,
        marks=build.forwarding.marks,
        cases=np.empty((*shape, CASES, 2), np.int16),
        bounce_link=np.empty(shape, np.int16),
        summary=np.empty(shape, np.int64),
        has_hosts=has_hosts,
        in_use=has_hosts | (wiring.far >= 0).any(axis=1),
    )
    for_packets(packet_count(build), tabulate_classes)(states, choices, may_fail)
    return states


def balanced_links_of(build: Build, port_use: PortUse, minimal: NDArray[np.int16]) -> BalancedLinks:
    """The balanced links: the minimal link and the alternates, as far as they have a weight.

    Args:
        build: with the classes of n switches.
        port_use: the use of their ports.
        minimal: int16[n, C], the minimal link of each class, -1 where there is none.
    """
    weight = build.tables.classes.weight
    if isinstance(weight, AlternateWeights) and (packed := packed_alternates(build, port_use)):
        alternates = _packed_alternates(weight, packed)
        minimal_weight = weight.packed.weight[..., MINIMAL_WEIGHT]
    else:
        alternates = _listed_alternates(build, port_use)
        minimal_weight = np.asarray(weight)[..., MINIMAL_WEIGHT]
    uses_minimal = (minimal_weight > 0) & (minimal >= 0)
    s, c = np.nonzero(uses_minimal)
    byte, bit = byte_and_bit(minimal[s, c])
    alternates.links[s, c, byte] |= bit
    return BalancedLinks(alternates.links, alternates.choices + uses_minimal)


def _packed_alternates(weight: AlternateWeights, packed: AlternateLinks) -> BalancedLinks:
    """The alternates with a weight, if all alternates of a class have the same weight."""
    has_weight = weight.packed.weight[..., ALTERNATES_WEIGHT] > 0
    count = np.minimum(set_bits(packed.links), set_bits(weight.packed.links)).astype(np.int64)
    links = np.where(has_weight[..., None], packed.links, np.uint8(0))
    return BalancedLinks(links, np.where(has_weight, count, 0))


def _listed_alternates(build: Build, port_use: PortUse) -> BalancedLinks:
    """The alternates with a weight, if each alternate has a weight of its own."""
    classes = build.tables.classes
    links = np.zeros((*classes.port.shape, (build.wiring.far.shape[1] + 7) // 8), np.uint8)
    alternate, weight = port_use.links(np.asarray(classes.alternate)), np.asarray(classes.weight)
    has_weight = (alternate >= 0) & (weight[..., ALTERNATES_WEIGHT:] > 0)
    s, c, n = np.nonzero(has_weight)
    byte, bit = byte_and_bit(alternate[s, c, n])
    np.bitwise_or.at(links, (s, c, byte), bit)
    return BalancedLinks(links, np.count_nonzero(has_weight, axis=2))
