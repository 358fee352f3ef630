"""Projective Networks: Topologies for Large Parallel Computer Systems (Camarero et al., 2016).

`catalogue` reads `EXHIBITS`: every table and figure, with the function that computes it and its
caption.
"""

from __future__ import annotations

from extensions.papers.exhibit import exhibits_of
from extensions.papers.projective import projective_drawings as drawings
from extensions.papers.projective import projective_plots as plots
from extensions.papers.projective import projective_tables as tables

EXHIBITS = [
    *exhibits_of(
        "projective",
        "table",
        {
            tables.notation: "Notation used in the paper",
            tables.limits: "Topological parameters of optimal topologies and some references",
            tables.structural_parameters: "Structural parameters of optimal known topologies",
            tables.ten_thousand: "Example networks with about 10,000 compute nodes",
            tables.twenty_five_thousand: "Example networks with about 25,000 compute nodes",
            tables.indirect_examples: "Example multi-layer full mesh and orthogonal fat trees",
        },
    ),
    *exhibits_of(
        "projective",
        "fig",
        {
            drawings.fano: "The Fano plane, and its incidence graph",
            drawings.subplanes: "A layout of G_4 in three subplanes",
            drawings.modified_incidence: "The incidence graph G_2, and the modified one",
            drawings.small_graphs: "The Turán, Paley and Hamming graphs",
            plots.mms_orders: "Vertices of the MMS graph: 8/9 of the Moore bound",
            plots.mms_utilisation: "Link utilisation of the MMS graph: 8/9",
            plots.costs: "The measure of cost k̄/u over compute nodes, routers of 64 ports",
            plots.scalability: "Scalability of the topologies",
            plots.three_networks: "k̄ and k̄/u of Slim Fly, PN and demi-PN",
            drawings.full_mesh: "The incidence graph of K_4, and the multi-layer full mesh",
            drawings.orthogonal_fat_tree: "The orthogonal fat tree of q = 2",
        },
        without_plot=(1, 2, 3, 4, 10, 11),
    ),
]
"""Six tables and eleven figures."""
