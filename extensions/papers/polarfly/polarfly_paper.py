"""PolarFly: A Cost-Effective and Flexible Low-Diameter Topology (Lakhotia et al., 2022).

`catalogue` reads `EXHIBITS`: every table and figure, with the function that computes it and its
caption.
"""

from __future__ import annotations

from extensions.papers.exhibit import exhibits_of
from extensions.papers.polarfly import polarfly_scale as scale
from extensions.papers.polarfly import polarfly_structure as structure
from extensions.papers.polarfly import polarfly_tables as tables
from extensions.papers.polarfly.polarfly_bisection import bisections
from extensions.papers.polarfly.polarfly_costs import port_costs
from extensions.papers.polarfly.polarfly_failures import broken_links
from extensions.papers.polarfly.polarfly_feasibility import feasibility
from extensions.papers.polarfly.polarfly_fig8 import comparison
from extensions.papers.polarfly.polarfly_fig9 import permutations
from extensions.papers.polarfly.polarfly_fig10 import sizes
from extensions.papers.polarfly.polarfly_fig11 import expanded

EXHIBITS = [
    *exhibits_of(
        "polarfly",
        "table",
        {
            feasibility: "Feasibility of networks for co-packaged systems",
            tables.inter_cluster_triangles: "Triangles between clusters, by the kinds of vertices",
            tables.intermediate_kinds: "The vertex between two adjacent ones, by kinds",
            tables.expansion_methods: "Characteristics of the expansion methods",
            tables.configurations: "Configuration of topologies used for simulations",
            tables.path_diversity: "Path diversity: paths of 1 to 4 links",
        },
    ),
    *exhibits_of(
        "polarfly",
        "fig",
        {
            scale.figure_1_degrees: "Feasible degrees of PolarFly and Slim Fly",
            scale.figure_2_moore_bound: (
                "Scalability of direct diameter-2 topologies: the Moore bound"
            ),
            structure.geometry: "Two lines, and the line perpendicular to both",
            structure.er3: "The dot-product construction of ER_3",
            structure.rack_layout: "The layout: quadrics and fans",
            structure.er7: "The layout of PolarFly with q = 7",
            structure.growth_methods: "Expansion methods",
            comparison: "Latency and throughput against other topologies",
            permutations: "Adaptive routing under permutations",
            sizes: "PolarFly of different sizes under uniform traffic",
            expanded: "Incrementally expanded PolarFly under uniform traffic",
            bisections: "Bisection: links in the cut",
            structure.er17_and_er19: "Fans of ER_17 and of ER_19",
            broken_links: "Diameter and mean distance while links fail",
            port_costs: "Cost per node",
        },
        without_plot=(3, 4, 5, 6, 7, 13),
    ),
]
"""Six tables and fifteen figures."""
