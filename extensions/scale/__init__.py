"""Whole PolarFly and PolarStar fabrics, too large for a search of classes or for walks of packets.

Their egress classes are constructed by rules (`STAR_CLASSES`), and they are proved by theorems
about the program that rows are computed from (`PROOF`), so that no row has to be looked at.

| question | PolarFly | PolarStar |
|---|---|---|
| which classes are there? | `compilers.routing` | `star_choices` |
| does every packet arrive? | `plane_lines`, `row_sample` | `star_program`, `row_sample` |
| what do hosts' choices and one failure do? | `plane_states` | `star_certificate` |
| what do two failures do? | `two_failures` | |
| what does the failure of a module do? | `module_orbits` | |

Entry points load this module whenever the plug-ins are listed. So its methods import what they
need, and no theorem is loaded before it is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from compilers.proof.local.local_proof import LocalProof
    from compilers.proof.local.registered_proofs import MinimalDelivery, ModuleBounds, TwoFailures
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

    def prove_delivery(self, build: Build, seed: int) -> MinimalDelivery | None:
        """Prove minimal paths for all pairs from the rule that generates the rows.

        For PolarFly the rule is the lines of its projective plane; for PolarStar it is its
        `StarProgram`. A sample of the rows, as they are decoded, may contradict the proof.
        """
        from compilers.proof.local.registered_proofs import MinimalDelivery
        from extensions.scale.plane_lines import proved_lines
        from extensions.scale.row_sample import sampled_rows_minimal
        from extensions.scale.star_program import proved_program

        hop_counts = proved_program(build) or proved_lines(build)
        if not hop_counts:
            return None
        return MinimalDelivery(hop_counts, is_contradicted=not sampled_rows_minimal(build, seed))

    def prove_single_failures(
        self, build: Build, hop_counts: tuple[int, ...], kinds: tuple[str, ...]
    ) -> LocalProof | None:
        """Prove hosts' paths and single failures, class by class; None: not proved."""
        from extensions.scale.plane_states import plane_states
        from extensions.scale.star_certificate import star_certificate

        return plane_states(build, hop_counts, kinds) or star_certificate(build, kinds)

    def prove_two_failures(self, build: Build) -> TwoFailures | None:
        """Prove any two failures in a whole PolarFly, class by class; None: not proved."""
        from extensions.scale.two_failures import two_failures

        return two_failures(build)

    def prove_module_failures(self, build: Build) -> ModuleBounds | None:
        """Bound paths under the failure of any one module of a whole PolarFly; None: not proved."""
        from extensions.scale.module_orbits import module_bounds

        return module_bounds(build)


class ConstructedStar:
    """The construction of a whole PolarStar's egress classes: three for each of S·K links."""

    def with_alternates_and_repairs(
        self, tables: Tables, topology: Topology, wiring: Wiring, forwarding: Forwarding
    ) -> Tables:
        """The tables of minimal routes, with alternates and repairs added."""
        from extensions.scale.star_choices import tables_with_choices

        return tables_with_choices(tables, topology, wiring, forwarding)

    def alternates(self, topology: Topology, most_links: int) -> NDArray[np.uint8]:
        """The alternates of each class as sets of links, uint8[S, 3K, ⌈K/8⌉]."""
        from extensions.scale.star_choices import star_alternates

        return star_alternates(topology, most_links)


PROOF = ScaleProof()
"""The proofs that `compilers.proof` asks first, by the entry point `scale`."""
STAR_CLASSES = ConstructedStar()
"""The construction that a PolarStar's routing takes, by the entry point `polarstar`."""
