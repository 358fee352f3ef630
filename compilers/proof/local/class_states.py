"""Make the `ClassStates` of a build: what its switches do with packets, class by class.

An *egress class* is what all routes of a switch with the same next hops share: the minimal port,
and other ports with weights, its *alternates*. The local proof (`state_proof`) reads the
`ClassStates`. They tell over which links a class balances the packets of hosts (its *balanced
links*), and what the forwarding rule does with packets in transit.

This module reads the balanced links from the weights of the tables. It goes through the tables in
blocks of switches, so that it never has the alternates of all switches in one array.
`class_cases.tabulate_classes` asks the forwarding rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.program import program_of
from compilers.forwarding.walks import packet_count
from compilers.proof.local.class_cases import (
    NONE,
    SEVERAL,
    ClassStates,
    tabulate_classes,
)
from compilers.proof.soundness.link_sets import byte_and_bit, packed_alternates
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.build_parts import classes_of, switch_blocks
from compilers.tables.packed_alternates import AlternateLinks, AlternateWeights, count_set_bits

MINIMAL_LINK = 0
"""The index of the minimal link in `Program.order`."""
MINIMAL_WEIGHT = 0
"""The index of the minimal port's weight in the weights of a class."""
FIRST_ALTERNATE_WEIGHT = 1
"""The index of the first alternate's weight in an array of weights; the others follow."""
EVERY_ALTERNATE_WEIGHT = 1
"""The index of the weight that all alternates share, in packed weights (`AlternateWeights`)."""


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
    switches, most_links = wiring.far.shape
    program = program_of(build, shares=False)
    shape = switches, build.tables.classes.port.shape[1]
    choice_count = np.zeros(shape, np.int16)
    sole_link = np.zeros(shape, np.int16)
    balanced_links = np.zeros((*shape, (most_links + 7) // 8), np.uint8)
    port_use = PortUse.of(wiring)
    for block in switch_blocks(build):
        minimal = program.order[block, :, MINIMAL_LINK]
        balanced = balanced_links_of(classes_of(build, block), port_use.part(block), minimal)
        balanced_links[block], choice_count[block] = balanced.links, balanced.choices
        sole_link[block] = _sole_links(balanced.links)
    tabulate = for_packets(packet_count(build), tabulate_classes)
    cases, bounce_link, summary = tabulate(program, sole_link, choice_count, may_fail)
    has_hosts = build.topology.endpoints.copy()
    return ClassStates(
        program=program,
        sole_link=sole_link,
        balanced_links=balanced_links,
        marks=build.forwarding.marks,
        cases=cases,
        bounce_link=bounce_link,
        summary=summary,
        has_hosts=has_hosts,
        in_use=has_hosts | (wiring.far >= 0).any(axis=1),
    )


def balanced_links_of(part: Build, port_use: PortUse, minimal: NDArray[np.int16]) -> BalancedLinks:
    """The balanced links: the minimal link and the alternates, as far as they have a weight.

    Args:
        part: a build with the classes of n of its switches only (`classes_of`).
        port_use: the use of the ports of these switches.
        minimal: int16[n, C], the minimal link of each class, -1 where there is none.
    """
    weight = part.tables.classes.weight
    if isinstance(weight, AlternateWeights) and (packed := packed_alternates(part, port_use)):
        alternates = _packed_alternates(weight, packed)
        minimal_weight = weight.packed.weight[..., MINIMAL_WEIGHT]
    else:
        alternates = _listed_alternates(part, port_use)
        minimal_weight = np.asarray(weight)[..., MINIMAL_WEIGHT]
    uses_minimal = (minimal_weight > 0) & (minimal >= 0)
    s, c = np.nonzero(uses_minimal)
    byte, bit = byte_and_bit(minimal[s, c])
    alternates.links[s, c, byte] |= bit
    return BalancedLinks(alternates.links, alternates.choices + uses_minimal)


def _sole_links(balanced_links: NDArray[np.uint8]) -> NDArray[np.int16]:
    """The only balanced link of each class, int16[n, C]: NONE or SEVERAL if it has not just one.

    Args:
        balanced_links: uint8[n, C, B], of `BalancedLinks`.
    """
    link_count = count_set_bits(balanced_links)
    sole_link = np.where(link_count > 1, SEVERAL, NONE).astype(np.int16)
    has_one = link_count == 1
    # In a class with one bit, the first highest bit is that bit.
    sole_link[has_one] = np.unpackbits(balanced_links[has_one], axis=1).argmax(axis=1)
    return sole_link


def _packed_alternates(weight: AlternateWeights, packed: AlternateLinks) -> BalancedLinks:
    """The alternates with a weight, if all alternates of a class have the same weight."""
    has_weight = weight.packed.weight[..., EVERY_ALTERNATE_WEIGHT] > 0
    # The n-th weight is that of the n-th alternate. Damaged tables may have more of one than of the
    # other: then an alternate without a weight is no choice, nor is a weight without an alternate.
    count = np.minimum(count_set_bits(packed.links), count_set_bits(weight.packed.links)).astype(
        np.int64
    )
    links = np.where(has_weight[..., None], packed.links, np.uint8(0))
    return BalancedLinks(links, np.where(has_weight, count, 0))


def _listed_alternates(part: Build, port_use: PortUse) -> BalancedLinks:
    """The alternates with a weight, if each alternate has a weight of its own."""
    classes = part.tables.classes
    links = np.zeros((*classes.port.shape, (part.wiring.far.shape[1] + 7) // 8), np.uint8)
    alternate, weight = port_use.links(np.asarray(classes.alternate)), np.asarray(classes.weight)
    has_weight = (alternate >= 0) & (weight[..., FIRST_ALTERNATE_WEIGHT:] > 0)
    s, c, n = np.nonzero(has_weight)
    byte, bit = byte_and_bit(alternate[s, c, n])
    np.bitwise_or.at(links, (s, c, byte), bit)
    return BalancedLinks(links, np.count_nonzero(has_weight, axis=2))
