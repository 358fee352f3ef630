"""Fabrics too large for a search or a walk: constructed classes, proofs of what rows come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from compilers.proof.local.local_proof import LocalProof
    from compilers.proof.local.other_proofs import ModuleBounds, TwoFailures
    from compilers.spec.forwarding import Forwarding
    from compilers.tables.build import Build
    from compilers.tables.intermediate_form import Tables
    from compilers.topology.labelled_graph import Topology
    from compilers.wiring.wiring import Wiring

ENTRY_POINTS = {
    "polarfab.constructions": {"polarstar": "extensions.scale:STAR_CLASSES"},
    "polarfab.proofs": {"scale": "extensions.scale:PROOF"},
}


class ScaleProof:
    """Theorems about whole PolarFly and PolarStar fabrics."""

    def delivery(self, build: Build, seed: int) -> tuple[int, ...] | None:
        """The pairs by links, by the program or the lines that rows are computed from."""
        from extensions.scale.plane_lines import proved_lines
        from extensions.scale.row_sample import sampled_rows_minimal
        from extensions.scale.star_program import proved_program

        counts = proved_program(build) or proved_lines(build)
        return () if counts and not sampled_rows_minimal(build, seed) else counts

    def states(
        self, build: Build, counts: tuple[int, ...], kinds: tuple[str, ...]
    ) -> LocalProof | None:
        """What one failure does, by the classes of a whole PolarFly or PolarStar."""
        from extensions.scale.plane_states import plane_states
        from extensions.scale.star_certificate import star_certificate

        return plane_states(build, counts, kinds) or star_certificate(build, kinds)

    def two_failures(self, build: Build) -> TwoFailures | None:
        """What two failures do in a whole PolarFly, by its classes; None: not proved."""
        from extensions.scale.two_failures import two_failures

        return two_failures(build)

    def modules(self, build: Build) -> ModuleBounds | None:
        """What the death of any one module of a whole PolarFly does, by orbits."""
        from extensions.scale.module_orbits import module_bounds

        return module_bounds(build)


class ConstructedStar:
    """Classes of a whole PolarStar, three a link."""

    def choices(
        self, tables: Tables, topology: Topology, wiring: Wiring, forwarding: Forwarding
    ) -> Tables:
        """Tables with alternates and repairs."""
        from extensions.scale.star_choices import with_choices

        return with_choices(tables, topology, wiring, forwarding)

    def alternates(self, topology: Topology, links: int) -> NDArray[np.uint8]:
        """uint8[S, 3K, ⌈K/8⌉]: the links of alternates."""
        from extensions.scale.star_choices import star_alternates

        return star_alternates(topology, links)


PROOF, STAR_CLASSES = ScaleProof(), ConstructedStar()
