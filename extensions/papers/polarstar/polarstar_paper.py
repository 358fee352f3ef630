"""PolarStar: Expanding the Horizon of Diameter-3 Networks (Lakhotia et al., 2024).

`catalogue` reads `EXHIBITS`: every table and figure, with the function that computes it and its
caption. The text of the paper has lost some of its numbers. Statements with a lost number are not
judged, and statements in words are.
"""

from __future__ import annotations

from extensions.papers.exhibit import exhibits_of
from extensions.papers.polarstar import polarstar_measures as measures
from extensions.papers.polarstar import polarstar_motifs as motifs
from extensions.papers.polarstar import polarstar_scale as scale
from extensions.papers.polarstar import polarstar_simulation as simulation
from extensions.papers.polarstar import polarstar_structure as structure
from extensions.papers.polarstar import polarstar_tables as tables

EXHIBITS = [
    *exhibits_of(
        "polarstar",
        "table",
        {
            tables.networks: "Properties of networks: direct, scalable, stable, short, bundled",
            tables.supernodes: "Supernodes: orders, degrees, properties",
            tables.configurations: "Topologies of the evaluation",
        },
    ),
    *exhibits_of(
        "polarstar",
        "fig",
        {
            scale.moore_efficiency: "Moore-bound comparison of direct networks of diameter 3",
            structure.products: "Comparison of a Cartesian product with a star product",
            structure.paths: "Paths of D + 1 links, by the cases of Property R*",
            scale.structure_graphs: "Moore-bound comparison of structure graphs",
            structure.construction: "Construction of the star product",
            structure.inductive_quads: "Inductive-Quad graphs, and the step from d' to d' + 4",
            scale.feasible_orders: "Feasible orders of PolarStar",
            structure.modules: "Layout: supernodes, bundles, clusters",
            simulation.synthetic: "Latency and throughput under synthetic patterns",
            simulation.adversarial: "Adversarial traffic between supernodes",
            motifs.motifs: "Motifs: Allreduce and Sweep3D",
            measures.cuts: "Bisection of networks",
            measures.cuts_by_supernode: "Bisection of PolarStar, by supernode",
            measures.link_failures: "Diameter and mean distance while links fail",
        },
        without_plot=(2, 3, 5, 6, 8),
    ),
]
"""Three tables and fourteen figures."""
