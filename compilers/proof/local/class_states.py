"""Make the `ClassStates` of a build: what its switches do with packets, class by class.

The local proof (`state_proof`) reads the `ClassStates`. They tell which links have a *share* of the
packets that hosts send, and what the forwarding rule does with packets in transit. This module
reads the shares from the tables. It goes through the tables in blocks of switches, so that it never
has the alternates of all switches in one array. `class_cases.tabulate_classes` asks the rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.program import program_of
from compilers.forwarding.walks import packets
from compilers.proof.local.class_cases import (
    CASES,
    NONE,
    SEVERAL,
    ClassStates,
    tabulate_classes,
)
from compilers.proof.soundness.link_sets import bits, packed_alternates
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.build_parts import classes_of, switch_blocks
from compilers.tables.packed_alternates import AlternateLinks, AlternateWeights, set_bits

MINIMAL_LINK = 0
"""The place of the minimal link in the order of a class's links."""
MINIMAL_WEIGHT, ALTERNATES_WEIGHT = 0, 1
"""The place of the minimal port's weight among the weights of a class, and that of the alternates:
of all of them if they share one weight, else of the first of them."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedLinks:
    """The links with a share of hosts' packets, of n switches with C egress classes."""

    links: NDArray[np.uint8]
    """uint8[n, C, B], one bit for each link, the highest bit for the first."""
    shares: NDArray[np.int64]
    """int64[n, C], how many shares there are. The minimal link has two if it is among the
    alternates, too."""


def class_states(build: Build, kinds: NDArray[np.bool_]) -> ClassStates:
    """The class states of a build.

    Args:
        build: its tables and cables.
        kinds: bool[2], whether links may be down, and whether switches may (`LINK`, `NODE`).
    """
    wiring = build.wiring
    most_links = wiring.far.shape[1]
    program = program_of(build, shares=False)
    shape = len(wiring.far), build.tables.classes.port.shape[1]
    # By switch and class: how many shares there are, the one link with a share, and the set of all.
    shares, sole_link = np.zeros(shape, np.int16), np.full(shape, NONE, np.int16)
    shared_links = np.zeros((*shape, (most_links + 7) // 8), np.uint8)
    use = PortUse.of(wiring)
    for block in switch_blocks(build):
        part = classes_of(build, block)
        shared = links_with_shares(part, use.part(block), program.order[block, :, MINIMAL_LINK])
        shared_links[block], shares[block] = shared.links, shared.shares
        links_with_share = set_bits(shared.links)
        sole_link[block][links_with_share > 1] = SEVERAL
        single = np.nonzero(links_with_share == 1)
        sole_link[block][single] = np.unpackbits(shared.links[single], axis=1).argmax(axis=1)
    has_hosts = build.topology.endpoints.copy()
    states = ClassStates(
        program=program,
        sole_link=sole_link,
        shared_links=shared_links,
        marks=build.forwarding.marks,
        cases=np.empty((*shape, CASES, 2), np.int16),
        bounce_link=np.empty(shape, np.int16),
        summary=np.empty(shape, np.int64),
        has_hosts=has_hosts,
        in_use=has_hosts | (wiring.far >= 0).any(axis=1),
    )
    for_packets(packets(build), tabulate_classes)(states, shares, kinds)
    return states


def links_with_shares(build: Build, use: PortUse, minimal: NDArray[np.int16]) -> SharedLinks:
    """The links with a share of hosts' packets.

    The minimal link may be among the alternates, too; then it has two shares.

    Args:
        build: with the classes of n switches.
        use: the use of their ports.
        minimal: int16[n, C], the minimal link of each class, -1 where there is none.
    """
    weight = build.tables.classes.weight
    if isinstance(weight, AlternateWeights) and (packed := packed_alternates(build, use)):
        shared = _shares_of_packed(weight, packed)
        minimal_weight = weight.packed.weight[..., MINIMAL_WEIGHT]
    else:
        shared = _shares_of_rows(build, use)
        minimal_weight = np.asarray(weight)[..., MINIMAL_WEIGHT]
    shares_minimal = (minimal_weight > 0) & (minimal >= 0)
    s, c = np.nonzero(shares_minimal)
    byte, bit = bits(minimal[s, c])
    shared.links[s, c, byte] |= bit
    return SharedLinks(shared.links, shared.shares + shares_minimal)


def _shares_of_packed(weight: AlternateWeights, packed: AlternateLinks) -> SharedLinks:
    """The alternates with a share, if all alternates of a class have the same weight."""
    has_weight = weight.packed.weight[..., ALTERNATES_WEIGHT] > 0
    count = np.minimum(set_bits(packed.links), set_bits(weight.packed.links)).astype(np.int64)
    links = np.where(has_weight[..., None], packed.links, np.uint8(0))
    return SharedLinks(links, np.where(has_weight, count, 0))


def _shares_of_rows(build: Build, use: PortUse) -> SharedLinks:
    """The alternates with a share, if each alternate has a weight of its own."""
    classes = build.tables.classes
    links = np.zeros((*classes.port.shape, (build.wiring.far.shape[1] + 7) // 8), np.uint8)
    alternate, weight = use.links(np.asarray(classes.alternate)), np.asarray(classes.weight)
    has_share = (alternate >= 0) & (weight[..., ALTERNATES_WEIGHT:] > 0)
    s, c, place = np.nonzero(has_share)
    byte, bit = bits(alternate[s, c, place])
    np.bitwise_or.at(links, (s, c, byte), bit)
    return SharedLinks(links, np.count_nonzero(has_share, axis=2))
