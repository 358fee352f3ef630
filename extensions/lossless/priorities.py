"""Lossless priorities: what was proved free of deadlock, as PFC priorities of the links.

A priority has one DSCP on every link of the fabric, so that the pause of the receiver holds exactly
the queue that fills its buffer. Either a packet changes its priority on its way, as it changes
channels (`PriorityPlan`), or each pair of switches has one for the whole path (`LayerPlan`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.wiring.hardware import BufferFacts, PortFacts
from inventory.problems import InputError, Problem

HOP, VALLEY, PAIRS = "hop", "valley", "pairs"
"""When a packet changes its priority; with pairs never."""


def dscp_of(priority: int) -> int:
    """The DSCP of a priority, AF31 for 3 (RFC 2597): adapters take its upper three bits as one."""
    return 8 * priority + 2


@dataclass(frozen=True, slots=True, eq=False)
class LayerPlan:
    """The layers of a build as priorities, for switches that do not change a packet's."""

    build: Build
    """The build whose layers they are."""
    layer: NDArray[np.uint8]
    """uint8[S, S], the layer of the packets between two switches, see `layers`."""
    priorities: tuple[int, ...]
    """The priority of each layer."""

    @classmethod
    def of(cls, build: Build) -> LayerPlan:
        """Split the pairs of switches into layers free of deadlock, a priority each.

        Raises:
            InputError: packets share alternates, there are more layers than priorities, or the node
                types do not say what is needed.
        """
        from extensions.lossless.layers import layers

        able = _able(build)
        if build.forwarding.several_paths:
            raise InputError.of(
                key="routing.balance",
                required="minimal: packets of a pair keep one priority, so they need one path",
                given=build.balance,
            )
        layering = layers(build)
        if layering.count > len(able):
            raise _too_many(build, PAIRS, layering.count, able)
        return cls(build, layering.layer, able[: layering.count])


@dataclass(frozen=True, slots=True, eq=False)
class PriorityPlan:
    """The channels of a build as priorities.

    A switch knows a packet's channel by the DSCP it comes with, and whether it moves on to the next
    one by the ports alone: it does where both the port that it came in on and the one that it
    leaves by are *marked*. By hop all ports to switches are marked, by valley those that lead up.
    """

    build: Build
    """The build whose channels they are."""
    scheme: str
    """Which ports are marked: `hop` or `valley`."""
    priorities: tuple[int, ...]
    """The priority of each channel."""
    up: NDArray[np.bool_]
    """bool[S, K], whether each link leads up, see `rising`."""

    @classmethod
    def of(cls, build: Build, scheme: str) -> PriorityPlan:
        """Prove that the packets of a build cause no deadlock, and give each channel a priority.

        Raises:
            InputError: a deadlock can occur, there are more channels than priorities, or the node
                types do not say what is needed.
        """
        from compilers.proof.lossless.channels import channels, rising

        able = _able(build)
        proof = channels(build, scheme)
        if not proof.free or proof.count > len(able):
            raise _too_many(build, scheme, proof.count, able)
        return cls(build, scheme, able[: proof.count], rising(build))

    def marked(self, vertex: int) -> frozenset[int]:
        """The ports of a switch that are marked."""
        w = self.build.wiring
        is_marked = w.far[vertex] >= 0 if self.scheme == HOP else self.up[vertex]
        return frozenset(w.port[vertex][is_marked].tolist())


def buffer_of(build: Build, vertex: int) -> BufferFacts:
    """The buffer of a switch.

    Raises:
        InputError: its node type says nothing of it.
    """
    hardware = build.hardware
    buffer = hardware.types[int(build.wiring.node_type[vertex])].buffer if hardware else None
    if buffer is None:
        raise InputError([*_unsaid(build)])
    return buffer


def _too_many(build: Build, scheme: str, count: int, able: tuple[int, ...]) -> InputError:
    others = []
    if scheme == HOP:
        others.append("the scheme valley")
    if build.forwarding.several_paths:
        others.append("balance: minimal")
    return InputError.of(
        key="routing.balance",
        required=f"paths that need no more than {len(able)} of the node types' priorities with "
        f"lossless={scheme}",
        given=f"{build.balance}, which needs {count or 'more and more'}",
        todo=(f"choose {' or '.join(others)}, or " if others else "")
        + "list more in node_types.….buffer.priorities",
    )


def _able(build: Build) -> tuple[int, ...]:
    """The priorities that the node types in use have, in the order that they have in common.

    Raises:
        InputError: they do not say it.
    """
    if problems := list(_unsaid(build)):
        raise InputError(problems)
    return min((t.buffer.priorities for t in _types(build) if t.buffer), key=len)


def _types(build: Build) -> list[PortFacts]:
    """The node types in use."""
    used = np.unique(build.wiring.node_type).tolist()
    return [build.hardware.types[t] for t in used] if build.hardware else []


def _unsaid(build: Build) -> Iterator[Problem]:
    """What the node types in use lack for lossless priorities."""
    types = _types(build)
    if not types:
        yield Problem(
            key="inventory",
            required="an inventory whose node types have `buffer`, for lossless priorities",
            given="none",
        )
    for t in types:
        key, buffer = f"node_types.{t.name}.buffer", t.buffer
        if buffer is None:
            yield Problem(
                key=key,
                required="priorities, size, cell, cable, reaction, ecn_min, ecn_max and "
                "ecn_percent, for lossless priorities",
                given="nothing",
                todo="take them from the switch's data sheet (docs/reference/inventory.md)",
            )
            continue
        if types[0].buffer and not _agree(buffer.priorities, types[0].buffer.priorities):
            yield Problem(
                key=f"{key}.priorities",
                required=f"those of {types[0].name} in the same order: a link has one for both "
                "ends",
                given=", ".join(map(str, buffer.priorities)),
            )


def _agree(some: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return all(a == b for a, b in zip(some, others, strict=False))
