"""Passive panels in NetBox: their front and rear ports, and links followed through them.

In the words of NetBox 4.6.8: `rear-ports`, `front-ports` and `port-mappings` of a device type
(netbox/dcim/forms/object_import.py), before 4.5 `rear_port` and `rear_port_position` of a front
port; a path is followed as `CablePath.from_origin` does (netbox/dcim/models/cables.py) over cables
without a profile. Front and rear ports "need not necessarily reside on the actual front or rear
device face" (docs/models/dcim/rearport.md): of two lanes of a cassette that lead to each other the
second one is a rear port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inventory.netbox.device_types import slug
from inventory.netbox.extras import of_document, to_comment
from inventory.problems import InputError, shown
from inventory.yamlfile import Document

CONNECTOR = "mpo"
MOST_PANELS = 64
"""How many panels a link is followed through."""
SECTIONS = ("panels", "cabling", "placement")
"""The sections of an inventory that an import needs to plan the same cassettes."""
Lane = tuple[int, int]
"""A front port and a lane of it, from 0."""
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
    name: str, front: Sequence[str], positions: int, single: bool, sections: Mapping[str, Any]
) -> dict[str, Any]:
    """A type of cassette (`compilers.cabling.shuffle.Shuffle.types`) as a device type.

    Args:
        name: the type's.
        front: its words, a text for each front port.
        positions: how many positions a trunk has.
        single: each position is a rear port of its own.
        sections: `SECTIONS` of the inventory, which NetBox has no field for.
    """
    rear: dict[str, int] = {}
    mappings = []
    for f, text in enumerate(front):
        for k, word in enumerate(text.split()):
            if word == "-":
                continue
            number, place = (int(part) for part in word[1:].split("."))
            to_trunk = word.startswith("T")
            front_port, is_rear = lane_port((f, k), None if to_trunk else (number - 1, place - 1))
            if is_rear:
                continue
            if to_trunk and not single:
                port, position = f"T{number}", place
                rear[port] = positions
            else:
                port, position = word, 1
                rear[port] = 1
            mappings.append(
                {
                    "front_port": front_port,
                    "front_port_position": 1,
                    "rear_port": port,
                    "rear_port_position": position,
                }
            )
    return {
        "manufacturer": "Generic",
        "model": f"cassette {name}",
        "slug": slug(f"Generic cassette {name}"),
        "u_height": 0,
        "comments": to_comment({"name": name, **sections}),
        "rear-ports": [
            {"name": port, "type": CONNECTOR, "positions": count} for port, count in rear.items()
        ],
        "front-ports": [{"name": entry["front_port"], "type": CONNECTOR} for entry in mappings],
        "port-mappings": mappings,
    }


@dataclass(frozen=True, slots=True)
class PanelPorts:
    """A device type of a panel: which rear port and position each front port leads to."""

    behind: dict[str, tuple[str, int]]
    """By front port its rear port and the position there."""
    positions: dict[str, int]
    """By rear port how many positions it has."""
    ahead: dict[tuple[str, int], str]
    """By rear port and position the front port."""
    sections: dict[str, Any]
    """`SECTIONS` of an inventory that `export_panel` has written; empty for a panel of others."""

    @classmethod
    def of(cls, document: Document) -> PanelPorts:
        """The ports of a device type.

        Raises:
            InputError: a port that is no mapping, or that is mapped and not listed.
        """
        rear = {name: entry for _, name, entry in _listed(document, "rear-ports", "name")}
        positions = {
            name: entry["positions"] if _whole(entry.get("positions")) else 1
            for name, entry in rear.items()
        }
        fronts = _listed(document, "front-ports", "name")
        mappings = _listed(document, "port-mappings", "front_port")
        front_names = {name for _, name, _ in fronts}
        behind = {}
        # Before NetBox 4.5 a front port names its rear port, and there are no mappings.
        for key, entries in (("front-ports", fronts), ("port-mappings", mappings)):
            for i, front_port, entry in entries:
                if "rear_port" not in entry:
                    continue
                port, place = str(entry["rear_port"]), entry.get("rear_port_position", 1)
                if front_port not in front_names or port not in rear or not _whole(place):
                    given = f"{shown(front_port)} at {shown(port)} position {shown(place)}"
                    required = "a front port at a position of a rear port, both listed"
                    raise InputError(document.problem((key, i), required, given))
                behind[front_port] = (port, place)
        comment = of_document(document)
        sections = {word: comment[word] for word in SECTIONS if isinstance(comment.get(word), dict)}
        in_front = {place: front_port for front_port, place in behind.items()}
        return cls(behind, positions, in_front, sections)

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
