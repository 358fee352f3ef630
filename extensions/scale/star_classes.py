"""The classes of a whole PolarStar by what they lead to: three a link.

A class is a link and what it serves: the neighbour itself (*direct*), other switches of the
supernodes beside its own (*beside*), or all else (*beyond*). So say the rows of a program with a
`shift`, which proves minimal delivery (`star_program`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compilers.families import polarstar
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.star_rows import StarProgram
from extensions.scale.star_choices import BESIDE, DIRECT
from extensions.scale.star_links import AlikeSupernodes
from extensions.scale.star_program import (
    SupernodeMembers,
    program_of,
    proved_members,
)


@dataclass(frozen=True, slots=True, eq=False)
class StarClasses:
    """The classes of a build of N supernodes of k members, whose switches have K links at most.

    Class c leads over link c modulo K.
    """

    build: Build
    """The build whose classes they are."""
    members: SupernodeMembers
    """The members of all supernodes, as cabled and programmed."""
    use: PortUse
    """The use of every port."""

    @classmethod
    @lru_cache(maxsize=1)
    def of(cls, build: Build) -> StarClasses | None:
        """The classes of a build with sound cables and prefixes; None: it has no such classes."""
        far, port = build.wiring.far, build.tables.classes.port
        links = far.shape[1]
        if not polarstar.is_whole(build.topology) or port.shape[1] != 3 * links:
            return None
        program = _program(build, links)
        members = proved_members(build, program) if program else None
        if members is None or not members.as_programmed():
            return None
        result = cls(build, members, PortUse.of(build.wiring))
        for some in result.use.blocks():
            numbers = np.where(far[some] >= 0, np.arange(links), -1)
            if not np.array_equal(result.use.part(some).links(port[some]), np.tile(numbers, 3)):
                return None
        return result if any(True for _ in result.alike()) else None

    def alike(self) -> Iterator[AlikeSupernodes]:
        """The supernodes, those together whose links are numbered alike."""
        return AlikeSupernodes.each(self.members.program)

    def rows(self, x: int) -> NDArray[np.int64]:
        """int64[k, C]: how many destinations each class of a supernode's switches leads to."""
        routes, k = self.build.tables.routes, self.members.program.members
        classes, prefix = self.build.tables.classes.port.shape[1], routes.prefixes(x * k)
        egress = np.minimum(routes.egress[x * k : (x + 1) * k], classes).astype(np.intp)
        egress += np.arange(k)[:, None] * (classes + 1)
        single = int(np.searchsorted(prefix, len(self.build.wiring.far)))
        single_rows, whole = (
            np.bincount(part.ravel(), minlength=k * (classes + 1)).reshape(k, -1)[:, :-1]
            for part in (egress[:, :single], egress[:, single:])
        )
        counted: NDArray[np.int64] = single_rows + whole * k
        return counted


def _program(build: Build, links: int) -> StarProgram | None:
    """The program of all rows of a build, with three classes for each of so many links."""
    program = program_of(build)
    shift = np.array([BESIDE * links, DIRECT * links], np.uint16)
    return program if program and np.array_equal(program.shift, shift) else None
