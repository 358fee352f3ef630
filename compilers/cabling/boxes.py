"""Links through the boxes that a family is made of, as the quasi-random graphs of RNG are.

Every box is of one type, with a trunk behind for each lane, straight, of as many positions as the
box has ports; where one of the library holds fewer, several carry it.
"""

from __future__ import annotations

import numpy as np

from compilers.cabling.cable_plan import Cables
from compilers.cabling.shuffle import Numbers, Shuffle, numbered_rows, types_of
from compilers.topology.family import Boxes


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
