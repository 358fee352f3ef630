"""Plans of lossless priorities: channels or layers that were proved free of deadlock, one PFC
priority each.

Priority flow control (PFC, IEEE 802.1Qbb) lets a receiver pause one of eight priorities. A priority
has one DSCP on every link of the fabric, so that a pause stops exactly the queue that fills the
receiver's buffer. SONiC's targets use a `PriorityPlan`, by which a packet changes its priority on
its way as it changes channels; EOS's a `LayerPlan`, by which each pair of switches has one priority
for the whole path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.wiring.node_type_facts import BufferFacts, NodeTypeFacts
from inventory.problems import InputError, Problem

HOP, VALLEY, PAIRS = "hop", "valley", "pairs"
"""Schemes by which packets change their priority.

- HOP: they change it at every switch.
- VALLEY: they change it where their path has fallen and rises again, in a ranking of the switches.
- PAIRS: they never do, as each pair of switches has one priority.
"""


def dscp_of(priority: int) -> int:
    """The DSCP of a priority, AF31 for 3 (RFC 2597): adapters take its upper three bits as one."""
    return 8 * priority + 2


@dataclass(frozen=True, slots=True, eq=False)
class LayerPlan:
    """The layers of a build as priorities, for switches that do not change a packet's."""

    build: Build
    """The build whose layers they are."""
    layer: NDArray[np.uint8]
    """uint8[S, S], the layer of the packets between two switches (`layers.Layers`)."""
    priorities: tuple[int, ...]
    """The priority of each layer."""

    @classmethod
    def of(cls, build: Build) -> LayerPlan:
        """Split the pairs of switches into layers free of deadlock, a priority each.

        Raises:
            InputError: packets share alternates, there are more layers than priorities, or the node
                types do not say what is needed.
        """
        from extensions.lossless.layers import deadlock_free_layers

        usable = _usable_priorities(build)
        if build.forwarding.several_paths:
            raise InputError.of(
                key="routing.balance",
                required="minimal: packets of a pair keep one priority, so they need one path",
                given=build.balance,
            )
        layering = deadlock_free_layers(build)
        if layering.count > len(usable):
            raise _too_many_error(build, PAIRS, layering.count, len(usable))
        return cls(build, layering.layer, usable[: layering.count])


@dataclass(frozen=True, slots=True, eq=False)
class PriorityPlan:
    """The channels of a build as priorities.

    A switch knows a packet's channel by the DSCP it comes with. By `hop` all ports to switches are
    *marked*, by `valley` those whose link rises. The packet moves on to the next channel if it came
    in on a marked port and, by `valley`, also leaves by one. By `hop` it also moves on its way out
    to a host, so that all ports have the same maps.
    """

    build: Build
    """The build whose channels they are."""
    scheme: str
    """Which ports are marked: `hop` or `valley`."""
    priorities: tuple[int, ...]
    """The priority of each channel."""
    rises: NDArray[np.bool_]
    """bool[S, K], whether each link leads to a switch of a higher rank (`rising_links`)."""

    @classmethod
    def of(cls, build: Build, scheme: str) -> PriorityPlan:
        """Prove that the packets of a build cause no deadlock, and give each channel a priority.

        Raises:
            InputError: a deadlock can occur, there are more channels than priorities, or the node
                types do not say what is needed.
        """
        from compilers.proof.lossless.channels import find_channels, rising_links

        usable = _usable_priorities(build)
        proof = find_channels(build, scheme)
        if not proof.is_deadlock_free or proof.count > len(usable):
            raise _too_many_error(build, scheme, proof.count, len(usable))
        return cls(build, scheme, usable[: proof.count], rising_links(build))

    def marked_ports(self, vertex: int) -> frozenset[int]:
        """The ports of a switch that are marked."""
        wiring = self.build.wiring
        is_marked = wiring.far[vertex] >= 0 if self.scheme == HOP else self.rises[vertex]
        return frozenset(wiring.port[vertex][is_marked].tolist())


def buffer_of(build: Build, vertex: int) -> BufferFacts:
    """The buffer of a switch.

    Raises:
        InputError: its node type has no buffer.
    """
    hardware = build.hardware
    buffer = hardware.types[int(build.wiring.node_type[vertex])].buffer if hardware else None
    if buffer is None:
        raise InputError([*_fact_problems(build)])
    return buffer


def _too_many_error(build: Build, scheme: str, needed: int, usable: int) -> InputError:
    """The error of a build that needs more priorities than node types have.

    Args:
        build: the build.
        scheme: the scheme.
        needed: how many priorities it needs; 0 where no number is enough.
        usable: how many all node types have.
    """
    remedies = []
    if scheme == HOP:
        remedies.append("the scheme valley")
    if build.forwarding.several_paths:
        remedies.append("balance: minimal")
    longer_list = "list more in node_types.….buffer.priorities"
    return InputError.of(
        key="routing.balance",
        required=f"paths that need no more than {usable} of the node types' priorities with "
        f"lossless={scheme}",
        given=f"{build.balance}, which needs {needed or 'more and more'}",
        todo=f"choose {' or '.join(remedies)}, or {longer_list}" if remedies else longer_list,
    )


def _usable_priorities(build: Build) -> tuple[int, ...]:
    """The priorities that all node types in use have, in the order that they have in common.

    Raises:
        InputError: a node type does not say it, or their orders differ.
    """
    if problems := list(_fact_problems(build)):
        raise InputError(problems)
    types = _types_in_use(build)
    return min((facts.buffer.priorities for facts in types if facts.buffer), key=len)


def _types_in_use(build: Build) -> list[NodeTypeFacts]:
    """The node types in use."""
    numbers = np.unique(build.wiring.node_type).tolist()
    return [build.hardware.types[number] for number in numbers] if build.hardware else []


def _fact_problems(build: Build) -> Iterator[Problem]:
    """Problems for node types in use that lack what lossless priorities need."""
    types = _types_in_use(build)
    if not types:
        yield Problem(
            key="inventory",
            required="an inventory whose node types have `buffer`, for lossless priorities",
            given="none",
        )
    for node_type in types:
        key, buffer = f"node_types.{node_type.name}.buffer", node_type.buffer
        if buffer is None:
            yield Problem(
                key=key,
                required="priorities, size, cell, cable, reaction, ecn_min, ecn_max and "
                "ecn_percent, for lossless priorities",
                given="nothing",
                todo="take them from the switch's data sheet (docs/reference/inventory.md)",
            )
            continue
        first = types[0].buffer
        if first and not _begin_alike(buffer.priorities, first.priorities):
            yield Problem(
                key=f"{key}.priorities",
                required=f"those of {types[0].name} in the same order: a link has one for both "
                "ends",
                given=", ".join(map(str, buffer.priorities)),
            )


def _begin_alike(priorities: tuple[int, ...], others: tuple[int, ...]) -> bool:
    """Whether one of two lists is the beginning of the other."""
    return all(a == b for a, b in zip(priorities, others, strict=False))
