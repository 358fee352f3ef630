"""The build that switches are to hold, as the controller takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from compilers.build import Build
from compilers.targets.openflow import Program


class Programs(Protocol):
    """Where programs come from: `compilers.targets.openflow.Encoder`, or what stands before it."""

    @property
    def by_datapath_id(self) -> Mapping[int, int]:
        """The vertex of each datapath id."""

    def program(self, vertex: int, generation: int) -> Program:
        """What the vertex is to hold now, with class and group numbers of this generation."""

    def describe(self, number: int) -> str:
        """What the message with this xid is about, in words."""


@dataclass(frozen=True, slots=True)
class Current:
    """The build that the switches are to hold: its identity, names (a text a vertex), programs.

    build: the whole of it, for those who show it.
    """

    identity: str
    names: Sequence[str]
    programs: Programs
    build: Build | None = None
