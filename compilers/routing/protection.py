"""Protection in the switch: which port stands in when a class's minimal port is down.

No state a destination is needed. With the minimal path u–v–d, one neighbour r of u serves all the
destinations behind v by plain minimal forwarding, whether the link u–v or the switch v has failed:
in ER_q any r but v and the apex of the triangle on u–v, since r×d is then neither u nor v. The
neighbour v itself is reached over that apex; where there is none (a quadric's link), every r sends
the packet back to u, and takes that as the sign to *bounce* it: to a neighbour w other than u and
the apex of r–u, from where w×v leads to v.

A switch never sends a packet to where it came from while it has another choice, so each class has
an order of ports.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing.alternates import apexes, other_links
from compilers.tables import Tables
from compilers.wiring import Wiring

ORDER = 2


def polarfly(tables: Tables, wiring: Wiring) -> Tables:
    """Protection and bounce by construction; classes are those of `compilers.routing.classes`."""
    others, apex = other_links(wiring), apexes(wiring)
    behind = _ports(others & ~apex, wiring)
    via_apex = _ports(apex, wiring, 1)
    direct = np.concatenate((via_apex, behind), axis=2)
    direct = _close_ranks(direct)[..., :ORDER]
    protection = np.concatenate((behind, direct), axis=1)
    # The class of a packet that came in on its minimal port, behind the neighbour or that itself.
    bounce = np.concatenate((behind, behind), axis=1)
    return replace(tables, classes=replace(tables.classes, protection=protection, bounce=bounce))


def _ports(usable: NDArray[np.bool_], wiring: Wiring, count: int = ORDER) -> NDArray[np.uint16]:
    """uint16[S, K, count]: the first usable ports after link k, round the switch; 0: no more.

    Starting at k spreads the repairs of a switch over its ports.
    """
    links = usable.shape[1]
    turn = (np.arange(links)[:, None] + np.arange(1, links + 1)) % links
    turned = usable[:, np.arange(links)[:, None], turn]
    ranks = np.argsort(~turned, axis=2, kind="stable")[..., :count]
    link = turn[np.arange(links)[None, :, None], ranks]
    port = np.take_along_axis(wiring.port[:, None, :], link, axis=2)
    chosen = np.take_along_axis(turned, ranks, axis=2)
    return np.where(chosen, port, 0).astype(np.uint16)


def _close_ranks(ports: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """The same ports with the zeros last."""
    return np.take_along_axis(ports, np.argsort(ports == 0, axis=2, kind="stable"), axis=2)
