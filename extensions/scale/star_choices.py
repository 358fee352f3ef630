"""Alternates and repair links of a whole PolarStar, by construction.

`tables_with_choices` takes the tables of minimal routes, and returns tables whose classes also have
*alternates* (links that packets may take at any time, the module `star_alternates`) and *repairs*
(links for packets whose minimal link is down, `star_repairs`).

Each link has three classes, by the destinations that they serve: the neighbour itself, other
switches of the supernodes next to the switch's own, and all others (`class_parts`). From there on
packets for all destinations of a class are forwarded alike. So links are chosen for each class, and
no destination is looked at.

`compilers.proof.local.state_proof` proves of each state that these links serve. It derives nothing
from this construction.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.proof.soundness.link_sets import Sets
from compilers.routing.alternate_weights import with_alternates
from compilers.spec.forwarding import Forwarding
from compilers.tables.computed_array import unless_large
from compilers.tables.intermediate_form import Classes, Tables
from compilers.tables.star_rows import StarEgress, StarPrefixes
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from extensions.scale.class_parts import three_class_program
from extensions.scale.star_alternates import alternate_sets
from extensions.scale.star_repairs import repair_ports

CLASSES_OF_LINK = 3
"""How many classes each link has: BEYOND, DIRECT and BESIDE of `class_parts`."""


def tables_with_choices(
    tables: Tables, topology: Topology, wiring: Wiring, forwarding: Forwarding
) -> Tables:
    """Tables with three classes a link, their alternates and repairs.

    Args:
        tables: the tables of minimal routes.
        topology: a whole PolarStar.
        wiring: the cables of the PolarStar.
        forwarding: whether there are alternates and repair. Alternates may share links with minimal
            paths.
    """
    most_links = wiring.port.shape[1]
    program = three_class_program(topology, most_links)
    # Stored arrays in a small fabric, and else arrays whose rows are computed when they are read.
    egress = unless_large(StarEgress(program), tables.routes.egress)
    prefix = unless_large(StarPrefixes(program), egress)
    # The classes beyond, direct and beside of a link all have the port of that link.
    classes = Classes.minimal(np.tile(wiring.port, CLASSES_OF_LINK))
    if forwarding.repairs:
        ports = repair_ports(program, wiring)
        # A packet that came in by the minimal link bounces over the links that repair the class.
        classes = replace(classes, protection=ports, bounce=ports)
    if forwarding.has_alternates:
        alternates = alternate_sets(program, most_links)
        classes = with_alternates(classes, wiring, alternates, forwarding.minimal_share)
    return Tables(replace(tables.routes, prefix=prefix, egress=egress), classes)


def star_alternates(topology: Topology, most_links: int) -> Sets:
    """The alternates of a whole PolarStar as sets of links, uint8[S, 3K, ⌈K/8⌉], as in `Spread`."""
    return alternate_sets(three_class_program(topology, most_links), most_links)
