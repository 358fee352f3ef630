"""Fabrics of more than 10,000 switches: proofs of what their rows are computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compilers.proof.local.local_proof import LocalProof
    from compilers.proof.local.other_proofs import ModuleBounds, TwoFailures
    from compilers.tables.build import Build

ENTRY_POINTS = {"polarfab.proofs": {"scale": "extensions.scale:PROOF"}}


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


PROOF = ScaleProof()
