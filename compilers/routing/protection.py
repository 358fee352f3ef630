"""Protection in the switch: the ports that stand in when a class's minimal port is down.

No state per destination is needed. With the minimal path u–v–d, one neighbour r of u serves all the
destinations behind v by plain minimal forwarding, whether the link u–v or the switch v has failed:
in ER_q any r but v and the apex of the triangle on u–v, since r×d is then neither u nor v. The
neighbour v itself is reached over that apex. Where there is none (a quadric's link), the next hop
of every r is u; a packet that r received from u must then *bounce*: r sends it to a neighbour w
other than u and the apex of r–u, from where w×v leads to v.

Each class has an order of ports, because a switch sends a packet back only as its last choice. At
q = 2 quadrics have two links, so sending back is all they can do, and the neighbour's bounce takes
the packet on. Which neighbours come first decides about a second failure
(`compilers.routing.bounce_goals`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing.alternates import apexes, other_links
from compilers.routing.bounce_goals import Bits, BounceGoals
from compilers.routing.port_ranking import in_turn, ranked
from compilers.tables.intermediate_form import Tables
from compilers.wiring.wiring import Wiring

PROTECTION_ORDER = 2


def polarfly(tables: Tables, wiring: Wiring) -> Tables:
    """Protection and bounce by construction; classes are those of `split_classes`."""
    goals = BounceGoals.of(tables, wiring)
    others, apex = other_links(wiring), apexes(wiring)

    def order(first: Bits) -> NDArray[np.uint16]:
        """Two ports of each link's class but those to its apex, these first."""
        return in_turn(*(ports(others & ~apex & some) for some in (first, ~first)))

    def ports(usable: Bits) -> NDArray[np.uint16]:
        return ranked(usable, wiring.port, wiring, PROTECTION_ORDER)

    none = np.zeros_like(apex)
    direct = in_turn(ports(apex), order(goals.repairing))
    return replace(
        tables,
        classes=replace(
            tables.classes,
            protection=np.concatenate((order(none), direct), axis=1),
            bounce=np.tile(order(goals.bounced), (1, 2, 1)),
        ),
    )
