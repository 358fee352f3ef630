"""Links between racks through patch panels: the port in front that each end has a cord to.

A patch panel has one lane at each port in front, so where that leads is fixed and the cords choose.
The links of two racks fill trunks one after the other in the order of cables, and a rack's trunks
take the ports behind in the order of trunks. Links that an expansion adds have trunks of their own,
which follow, so what is there stays as it is. Links within a rack are cables.

The boxes that a family is made of, as the quasi-random graphs of RNG are, choose nothing. Every box
is of one type, with a trunk behind for each lane, straight, of as many positions as the box has
ports; where one of the library holds fewer, several carry it.
"""

from __future__ import annotations

import numpy as np

from compilers.cabling.cable_plan import Cables
from compilers.cabling.shuffle import Numbers, Shuffle, numbered_rows, place_in, types_of
from compilers.topology.family import Boxes


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


def boxed(cables: Cables, boxes: Boxes, room: int) -> Shuffle:
    """Cables, one a link, through boxes; trunks of at most `room` links."""
    known, base = cables.hardware, len(cables.hardware.rack)
    ends = cables.ends.astype(np.int64)
    joined = np.sort(boxes.switch, axis=1) @ [base, 1]
    by = np.argsort(joined)
    link = by[np.searchsorted(joined, np.sort(ends, axis=1) @ [base, 1], sorter=by)]
    back = (boxes.switch[link, 0] != ends[:, 0]).astype(np.int64)[:, None]

    def at(both: Numbers) -> Numbers:
        return np.take_along_axis(both[link], np.array([[0, 1]]) ^ back, axis=1)

    panel, front, lane = at(boxes.box), at(boxes.front), at(boxes.lane)
    ports = int(boxes.front.max()) + 1
    parts = -(-ports // room)
    chunk, position = np.divmod(boxes.position, room)
    trunk = boxes.trunk * parts + chunk
    plugs, sockets = np.zeros((2, int(trunk.max()) + 1, 2), np.int64)
    plugs[trunk], sockets[trunk] = boxes.box, boxes.lane * parts + chunk[:, None]

    count, width = int(boxes.box.max()) + 1, int(boxes.lane.max()) + 1
    words = np.full((count, ports * width), -1)
    behind = (boxes.lane * parts + chunk[:, None]) * room + position[:, None]
    words[boxes.box, boxes.front * width + boxes.lane] = ports * width + behind
    kind, types = types_of(words, width, room)
    home = np.zeros(count, np.int64)
    home[panel] = known.cluster[ends]
    return Shuffle(
        home=home,
        panel=panel,
        front=front,
        lane=lane,
        cord=numbered_rows(np.stack((panel, front, ends), axis=2).reshape(-1, 3)).reshape(-1, 2),
        trunk=trunk[link],
        position=np.repeat(position[link][:, None], 2, axis=1),
        ends=plugs,
        sockets=sockets,
        turned=np.zeros(len(plugs), np.bool_),
        kind=kind,
        types=tuple((f"box-{n}", rows) for n, rows in enumerate(types, 1)),
        least=1,
    )
