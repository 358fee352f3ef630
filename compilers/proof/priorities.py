"""Lossless priorities: the channels that were proved, as PFC priorities of the links.

Channel k travels in one PFC priority and one DSCP, the same on every link of the fabric, so that
the pause of the receiver holds exactly the queue that fills its buffer. A switch knows a packet's
channel by the DSCP it comes with, and whether it moves on to the next one by the ports alone: it
does where both the port that it came in on and the one that it leaves by are *marked*. With the
scheme hop all ports to switches are marked, with valley those that lead up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.channels import channels, rising
from compilers.tables.build import Build
from compilers.wiring.hardware import PortFacts
from inventory.problems import InputError, Problem

HOP, VALLEY = "hop", "valley"


def dscp_of(priority: int) -> int:
    """The DSCP of a priority, AF31 for 3 (RFC 2597): adapters take its upper three bits as one."""
    return 8 * priority + 2


@dataclass(frozen=True, slots=True, eq=False)
class PriorityPlan:
    """The channels of a build as priorities.

    scheme: hop or valley. priorities: of each channel. up: bool[S, K], see `rising`.
    """

    build: Build
    scheme: str
    priorities: tuple[int, ...]
    up: NDArray[np.bool_]

    @classmethod
    def of(cls, build: Build, scheme: str) -> PriorityPlan:
        """Prove that the packets of a build cause no deadlock, and give each channel a priority.

        Raises:
            InputError: a deadlock can occur, there are more channels than priorities, or the node
                types do not say what is needed.
        """
        if problems := list(_unsaid(build)):
            raise InputError(problems)
        able = _common(build)
        found = channels(build, scheme)
        if not found.free or found.count > len(able):
            raise InputError.of(
                key="routing.balance",
                required=f"paths of at most {len(able)} channels by {scheme}, the lossless "
                "priorities that every node type has",
                given=f"{build.balance}, which needs {found.count or 'more and more'}",
                todo="choose the scheme valley, balance: minimal, or list more in "
                "node_types.….buffer.priorities",
            )
        return cls(build, scheme, able[: found.count], rising(build))

    def marked(self, vertex: int) -> frozenset[int]:
        """The ports of a switch that are marked."""
        w = self.build.wiring
        there = w.far[vertex] >= 0 if self.scheme == HOP else self.up[vertex]
        return frozenset(w.port[vertex][there].tolist())


def _common(build: Build) -> tuple[int, ...]:
    """The priorities that the node types in use have, in the order that they have in common."""
    lists = [t.buffer.priorities for t in _types(build) if t.buffer]
    return next(iter(lists))[: min(map(len, lists))]


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
        key, found = f"node_types.{t.name}.buffer", t.buffer
        if found is None:
            yield Problem(
                key=key,
                required="priorities, size, cell, cable, reaction, ecn_min, ecn_max and "
                "ecn_percent, for lossless priorities",
                given="nothing",
                todo="take them from the switch's data sheet (docs/channels.md)",
            )
            continue
        if len(set(found.priorities)) < len(found.priorities):
            yield Problem(key=f"{key}.priorities", required="each once", given="one twice")
        if found.ecn_min > found.ecn_max:
            yield Problem(
                key=f"{key}.ecn_max",
                required=f"at least ecn_min, {found.ecn_min:,}",
                given=f"{found.ecn_max:,}",
            )
        if types[0].buffer and not _agree(found.priorities, types[0].buffer.priorities):
            yield Problem(
                key=f"{key}.priorities",
                required=f"those of {types[0].name} in the same order: a link has one for both "
                "ends",
                given=", ".join(map(str, found.priorities)),
            )


def _agree(some: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return all(a == b for a, b in zip(some, others, strict=False))
