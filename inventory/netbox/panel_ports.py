"""Passive panels in NetBox: their front and rear ports, and links followed through them.

In the words of NetBox 4.6.8: `rear-ports`, `front-ports` and `port-mappings` of a device type
(netbox/dcim/forms/object_import.py), before 4.5 `rear_port` and `rear_port_position` of a front
port; a path is followed as `CablePath.from_origin` does (netbox/dcim/models/cables.py) over cables
without a profile. Front and rear ports "need not necessarily reside on the actual front or rear
device face" (docs/models/dcim/rearport.md): of two lanes of a cassette that lead to each other the
second one is a rear port.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inventory.netbox.device_types import slug
from inventory.netbox.extras import of_document, to_comment
from inventory.problems import InputError, shown
from inventory.yamlfile import Document

CONNECTOR = "mpo"
MOST_PANELS = 64
LANE = re.compile(r"F([1-9][0-9]{0,3})\.([1-9][0-9]{0,3})")
SECTIONS = ("panels", "cabling", "placement")
Lane = tuple[int, int]
Plug = tuple[str, str]
"""A device and a port of it."""


def lane_port(lane: Lane, other: Lane | None) -> tuple[str, bool]:
    """The name of a lane's port and whether it is a rear port; other: the lane it leads to."""
    return f"F{lane[0] + 1}.{lane[1] + 1}", other is not None and other < lane


def trunk_ports(socket: int, links: int, single: bool) -> list[str]:
    """The rear ports that a trunk ends in: one, or one for each of its links."""
    name = f"T{socket + 1}"
    return [f"{name}.{k}" for k in range(1, links + 1)] if single else [name]


def export_panel(
    noun: str,
    name: str,
    front: Sequence[str],
    positions: int,
    single: bool,
    part_number: str,
    sections: Mapping[str, Any],
) -> dict[str, Any]:
    """A type of cassette (`inventory.panel_types`) or patch panel as a device type.

    noun: which of them. positions: of a trunk; single: each is a rear port of its own. sections:
    `SECTIONS` of the inventory, which NetBox has no field for.
    """
    rear: dict[str, int] = {}
    mappings = []
    for f, text in enumerate(front):
        for k, word in enumerate(text.split()):
            if word == "-":
                continue
            socket, position = word[1:].split(".")
            inside = word[0] == "F"
            own, behind = lane_port(
                (f, k), (int(socket) - 1, int(position) - 1) if inside else None
            )
            if behind:
                continue
            whole = not (inside or single)
            port = f"T{socket}" if whole else word
            rear[port] = positions if whole else 1
            place = int(position) if whole else 1
            mappings.append((own, 1, port, place))
    keys = ("front_port", "front_port_position", "rear_port", "rear_port_position")
    return {
        "manufacturer": "Generic",
        "model": f"{noun} {name}",
        "slug": slug(f"Generic {noun} {name}"),
        **({"part_number": part_number} if part_number else {}),
        "u_height": 0,
        "comments": to_comment({"name": name, **sections}),
        "rear-ports": [{"name": n, "type": CONNECTOR, "positions": rear[n]} for n in rear],
        "front-ports": [{"name": own, "type": CONNECTOR} for own, *_ in mappings],
        "port-mappings": [dict(zip(keys, each, strict=True)) for each in mappings],
    }


@dataclass(frozen=True, slots=True)
class PanelPorts:
    """A device type of a panel: which rear port and position each front port leads to.

    positions: of each rear port; ahead: the front port at each of its positions. name, part_number,
    sections: what `export_panel` was given.
    """

    behind: dict[str, tuple[str, int]]
    positions: dict[str, int]
    ahead: dict[tuple[str, int], str]
    name: str
    part_number: str
    sections: dict[str, Any]

    @classmethod
    def of(cls, document: Document) -> PanelPorts:
        """The ports of a device type.

        Raises:
            InputError: a port that is no mapping, or that is mapped and not listed.
        """
        rear = {n: e for _, n, e in _listed(document, "rear-ports", "name")}
        positions = {
            n: e["positions"] if _whole(e.get("positions")) else 1 for n, e in rear.items()
        }
        behind = {}
        fronts = {n for _, n, _ in _listed(document, "front-ports", "name")}
        for key in ("front-ports", "port-mappings"):
            for i, _, entry in _listed(
                document, key, "name" if key == "front-ports" else "front_port"
            ):
                if "rear_port" not in entry:
                    continue
                port, place = str(entry["rear_port"]), entry.get("rear_port_position", 1)
                own = str(entry.get("front_port", entry.get("name")))
                if own not in fronts or port not in rear or not _whole(place):
                    given = f"{shown(own)} at {shown(port)} position {shown(place)}"
                    required = "a front port at a position of a rear port, both listed"
                    raise InputError(document.problem((key, i), required, given))
                behind[own] = (port, place)
        kept = of_document(document)
        name, number = kept.get("name"), document.data.get("part_number")
        sections = {word: kept[word] for word in SECTIONS if isinstance(kept.get(word), dict)}
        ahead = {place: own for own, place in behind.items()}
        own = name if isinstance(name, str) else ""
        return cls(behind, positions, ahead, own, str(number or ""), sections)

    def through(self, port: str, stack: list[int]) -> str | None:
        """The port on the other side; stack: positions of trunks on the way."""
        if port in self.behind:
            rear, place = self.behind[port]
            if self.positions[rear] > 1:
                stack.append(place)
            return rear
        if port not in self.positions or (self.positions[port] > 1 and not stack):
            return None
        place = stack.pop() if self.positions[port] > 1 else 1
        return self.ahead.get((port, place))

    def front(self) -> list[str]:
        """The words of each front port, as `export_panel` was given them."""
        words: dict[Lane, str] = {}
        for own, (rear, place) in self.behind.items():
            if lane := LANE.fullmatch(own):
                words[int(lane[1]), int(lane[2])] = rear if "." in rear else f"{rear}.{place}"
            if lane := LANE.fullmatch(rear):
                words[int(lane[1]), int(lane[2])] = own
        last: dict[int, int] = {}
        for f, k in words:
            last[f] = max(last.get(f, 0), k)
        return [
            " ".join(words.get((f, k), "-") for k in range(1, last.get(f, 1) + 1))
            for f in range(1, max(last, default=0) + 1)
        ]


def far_end(
    start: Plug, cables: Mapping[Plug, tuple[Plug, int]], panels: Mapping[str, PanelPorts]
) -> tuple[Plug | None, list[int]]:
    """The plug at the other end of a link, None where it ends at a panel, and its cables.

    cables: of each plug the other end of its cable, and the cable's number. panels: by device.
    """
    at, stack, run = start, list[int](), list[int]()
    while at in cables and len(run) < MOST_PANELS:
        at, cable = cables[at]
        run.append(cable)
        if at[0] not in panels:
            return at, run
        port = panels[at[0]].through(at[1], stack)
        if port is None:
            break
        at = (at[0], port)
    return None, run


def _listed(document: Document, key: str, word: str) -> list[tuple[int, str, dict[str, Any]]]:
    entries = document.data.get(key) or []
    if not isinstance(entries, list):
        raise InputError(document.problem((key,), "a list of ports", shown(entries)))
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or word not in entry:
            raise InputError(document.problem((key, i), f"a mapping with {word}", shown(entry)))
    return [(i, str(entry[word]), entry) for i, entry in enumerate(entries)]


def _whole(value: object) -> bool:
    return type(value) is int and 1 <= value <= 1024
