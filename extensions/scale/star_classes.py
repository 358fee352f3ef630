"""The egress classes of a whole PolarStar, three for each link, and how much each of them serves.

`class_parts` says which destinations the three classes of a link serve: direct, beside and beyond.
`StarClasses.of` gives the classes of a build only if all its rows are computed from one program,
if `star_program` proves that they deliver all packets over minimal paths, and if the cables are as
the program takes them to be.
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
from extensions.scale.class_parts import has_three_classes
from extensions.scale.star_program import program_of, proved_cables
from extensions.scale.supernode_cables import SupernodeCables
from extensions.scale.supernode_groups import SupernodeGroup


@dataclass(frozen=True, slots=True, eq=False)
class StarClasses:
    """The classes of a build whose switches have at most K links: class c leads over link c mod K.

    The destinations of classes 0 … K - 1 are beyond, of K … 2K - 1 direct, of 2K … 3K - 1 beside.
    """

    build: Build
    """The build that has these classes."""
    cables: SupernodeCables
    """How the members of all supernodes are cabled, which is as the program takes them to be."""
    port_use: PortUse
    """What each port is used for."""

    @classmethod
    @lru_cache(maxsize=1)
    def of(cls, build: Build) -> StarClasses | None:
        """The classes of a build with sound cables and prefixes.

        None if the build is no whole PolarStar, or does not have three classes a link.
        """
        far, ports = build.wiring.far, build.tables.classes.port
        most_links = far.shape[1]
        if not polarstar.is_whole(build.topology) or ports.shape[1] != 3 * most_links:
            return None
        # The rows of all switches are computed from one program, and are proved to deliver.
        program = program_of(build)
        if program is None or not has_three_classes(program, most_links):
            return None
        cables = proved_cables(build, program)
        # The cables join the members of supernodes as the program takes them to be joined.
        if cables is None or not cables.are_as_programmed():
            return None
        classes = cls(build, cables, PortUse.of(build.wiring))
        # Class c has the port of link c mod K, and no port (-1) where that link has no cable.
        for block in classes.port_use.blocks():
            cabled_link = np.where(far[block] >= 0, np.arange(most_links), -1)
            class_link = classes.port_use.part(block).links(ports[block])
            if not np.array_equal(class_link, np.tile(cabled_link, 3)):
                return None
        # There are no groups if members of a supernode have different numbers of inner links.
        has_groups = next(classes.groups(), None) is not None
        return classes if has_groups else None

    def groups(self) -> Iterator[SupernodeGroup]:
        """The supernodes, grouped by how their links are numbered."""
        return SupernodeGroup.groups_of(self.cables.program)

    def destination_counts(self, supernode: int) -> NDArray[np.int64]:
        """How many destinations each class of a supernode's switches serves, int64[k, C]."""
        routes, k = self.build.tables.routes, self.cables.program.members
        classes = self.build.tables.classes.port.shape[1]
        switches = slice(supernode * k, (supernode + 1) * k)
        # Values that are no class (local delivery, no route) are counted in one extra column.
        egress = np.minimum(routes.egress[switches], classes).astype(np.intp)
        egress += np.arange(k)[:, None] * (classes + 1)

        def rows_by_class(columns: slice) -> NDArray[np.int64]:
            """How many of these rows lead to each class, int64[k, C]."""
            counts = np.bincount(egress[:, columns].ravel(), minlength=k * (classes + 1))
            return counts.reshape(k, -1)[:, :-1]

        prefixes = routes.prefixes(supernode * k)
        first_aggregate = int(np.searchsorted(prefixes, len(self.build.wiring.far)))
        exact_rows = rows_by_class(slice(first_aggregate))
        aggregate_rows = rows_by_class(slice(first_aggregate, None))
        return exact_rows + aggregate_rows * k
