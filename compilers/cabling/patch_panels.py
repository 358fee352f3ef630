"""Links between racks through patch panels: the port in front that each end has a cord to.

A patch panel has one lane at each port in front, so where that leads is fixed and the cords choose.
The links of two racks fill trunks one after the other in the order of cables, and a rack's trunks
take the ports behind in the order of trunks. Links that an expansion adds have trunks of their own,
which follow, so what is there stays as it is. Links within a rack are cables.
"""

from __future__ import annotations

import numpy as np

from compilers.cabling.cable_plan import Cables
from compilers.cabling.shuffle import Numbers, Shuffle, place_in


def patched(cables: Cables, stage: Numbers, name: str, front: tuple[str, ...]) -> Shuffle:
    """Panels of one type by racks; front: its words (`inventory.panel_types`)."""
    port = _ports(front)
    behind, room = port.shape
    racks = cables.hardware.rack[cables.ends].astype(np.int64)
    out = np.flatnonzero(racks[:, 0] != racks[:, 1])
    step = stage[cables.ends[out]].max(axis=1)
    pairs = np.column_stack((step, racks[out]))
    rack, pair = np.unique(pairs, axis=0, return_inverse=True)
    pair = pair.ravel()
    turn = np.empty(len(out), np.int64)
    by = np.argsort(pair, kind="stable")
    turn[by] = place_in(pair[by])
    trunks = -(-np.bincount(pair, minlength=len(rack)) // room)
    trunk = (np.cumsum(trunks) - trunks)[pair] + turn // room

    station = np.repeat(rack[:, 1:], trunks, axis=0)
    plug = np.empty(station.size, np.int64)
    by = np.argsort(station.ravel(), kind="stable")
    plug[by] = place_in(station.ravel()[by])
    number = np.stack((station.ravel(), plug // behind))
    panels, panel = np.unique(number, axis=1, return_inverse=True)
    ends, sockets = panel.reshape(-1, 2), (plug % behind).reshape(-1, 2)

    legs = np.full((6, len(cables), 2), -1)
    sides = np.broadcast_to(turn[:, None] % room, (len(out), 2))
    legs[0, out], legs[1, out], legs[2, out] = ends[trunk], port[sockets[trunk], sides], 0
    legs[3, out], legs[4, out] = trunk[:, None], sides
    legs[5, out[np.lexsort((turn, trunk))]] = np.arange(2 * len(out)).reshape(-1, 2)
    return Shuffle(
        home=panels[0],
        panel=legs[0],
        front=legs[1],
        lane=legs[2],
        cord=legs[5],
        trunk=legs[3, :, 0],
        position=legs[4],
        ends=ends,
        sockets=sockets,
        turned=np.zeros(len(ends), np.bool_),
        kind=np.zeros(panels.shape[1], np.int64),
        types=((name, front),),
        least=1,
    )


def _ports(front: tuple[str, ...]) -> Numbers:
    """int64[B, K]: the port in front of each position of each port behind."""
    led = {text: f for f, text in enumerate(front) if text != "-"}
    at = np.array([[int(n) - 1 for n in text[1:].split(".")] for text in led], np.int64)
    port = np.zeros(at.max(axis=0) + 1, np.int64)
    port[*at.T] = list(led.values())
    return port
