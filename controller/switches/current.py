"""The build that switches are to hold, as the controller takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from compilers.tables.build import Build
from compilers.tables.build_folder import load
from compilers.tables.verified_mark import require_verified
from compilers.targets.openflow.encoder import Program


class ProgramSource(Protocol):
    """Where programs come from: `Encoder`, or what stands before it."""

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
    programs: ProgramSource
    build: Build | None = None


def read_build(folder: Path, unverified: bool = False) -> Current:
    """The build in a folder as the fabric takes it.

    Raises:
        InputError: it is not there, not whole or not verified, or asks for what the OpenFlow target
            cannot do.
    """
    from compilers.targets.openflow.encoder import Encoder

    build = load(folder)
    if not unverified:
        require_verified(folder, build)
    return current_of(build, Encoder(build))


def current_of(build: Build, programs: ProgramSource) -> Current:
    """A build as the fabric takes it, with these programs."""
    return Current(build.identity, build.wiring.names, programs, build)
