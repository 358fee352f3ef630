"""Passive panels in NetBox: exports and imports their ports, and follows links through them.

A device type lists `rear-ports`, `front-ports` and `port-mappings` (NetBox 4.6.8,
netbox/dcim/forms/object_import.py). Before NetBox 4.5 a front port names its `rear_port` and
`rear_port_position` itself. A link is followed as `CablePath.from_origin` does
(netbox/dcim/models/cables.py) over cables without a profile. Front and rear ports "need not
necessarily reside on the actual front or rear device face" (docs/models/dcim/rearport.md). So if
two lanes of a cassette lead to each other, the second is a rear port.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from inventory.netbox.device_types import slug
from inventory.netbox.extras import device_type_extras, to_comment
from inventory.problems import InputError, KeyPath, shown
from inventory.yamlfile import Document

CONNECTOR = "mpo"
"""NetBox's type of the ports of cassettes."""
MOST_CABLES = 64
"""The most cables that a link is followed over."""
MOST_POSITIONS = 1024
"""The most positions of a rear port in NetBox."""
SECTIONS = ("panels", "cabling", "placement")
"""The sections of an inventory that an import needs to plan the same cassettes."""
Lane = tuple[int, int]
"""A front port of a cassette and a lane of the port, both from 0."""
Plug = tuple[str, str]
"""A device and one of its ports."""


class LanePort(NamedTuple):
    """The port of a lane in NetBox."""

    name: str
    """The name of the port."""
    is_rear: bool
    """Whether the port is a rear port."""


def lane_port(lane: Lane, far_lane: Lane | None) -> LanePort:
    """The port of a lane.

    Args:
        lane: the lane.
        far_lane: the lane of the same panel that it leads to; None if it leads to a trunk.
    """
    return LanePort(f"F{lane[0] + 1}.{lane[1] + 1}", far_lane is not None and far_lane < lane)


def trunk_ports(rear_port: int, links: int, is_split: bool) -> list[str]:
    """The names of the rear ports that a trunk ends in.

    Args:
        rear_port: the number of the cassette's rear port, from 0.
        links: how many links the trunk carries.
        is_split: whether each link has a rear port of its own; otherwise all share one.
    """
    name = f"T{rear_port + 1}"
    return [f"{name}.{k}" for k in range(1, links + 1)] if is_split else [name]


def export_panel(
    name: str, front: Sequence[str], positions: int, is_split: bool, sections: Mapping[str, Any]
) -> dict[str, Any]:
    """A type of cassette (`compilers.cabling.shuffle.Shuffle.types`) as a device type.

    Args:
        name: the name of the type.
        front: for each front port a text with a word for each lane, which says where the lane
            leads: `T1.2` to trunk 1, position 2; `F3.1` to front port 3, lane 1; `-` nowhere.
        positions: how many positions a trunk has.
        is_split: whether each position is a rear port of its own.
        sections: `SECTIONS` of the inventory, which NetBox has no field for.
    """
    rear: dict[str, int] = {}  # how many positions each rear port has
    mappings = []
    for lane, word in _connected_lanes(front):
        number, number_within = (int(part) for part in word[1:].split("."))
        to_trunk = word.startswith("T")
        port = lane_port(lane, None if to_trunk else (number - 1, number_within - 1))
        if port.is_rear:
            continue  # it is the rear port in the mapping of the other lane
        if to_trunk and not is_split:
            rear_port, position = f"T{number}", number_within
            rear[rear_port] = positions
        else:
            rear_port, position = word, 1
            rear[rear_port] = 1
        mappings.append(
            {
                "front_port": port.name,
                "front_port_position": 1,
                "rear_port": rear_port,
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
        "front-ports": [{"name": mapping["front_port"], "type": CONNECTOR} for mapping in mappings],
        "port-mappings": mappings,
    }


def _connected_lanes(front: Sequence[str]) -> Iterator[tuple[Lane, str]]:
    """The lanes of a cassette that are connected, each with the word that says where it leads."""
    for front_port, text in enumerate(front):
        for lane, word in enumerate(text.split()):
            if word != "-":
                yield (front_port, lane), word


@dataclass(frozen=True, slots=True)
class PanelPorts:
    """The ports of a panel's device type: how front and rear ports are connected."""

    rear_of_front: dict[str, tuple[str, int]]
    """By front port, its rear port and the position there."""
    positions: dict[str, int]
    """By rear port, how many positions it has."""
    front_at_rear: dict[tuple[str, int], str]
    """By rear port and position, the front port."""
    sections: dict[str, Any]
    """`SECTIONS` of an inventory that `export_panel` has written; empty for a panel of others."""

    @classmethod
    def of(cls, document: Document) -> PanelPorts:
        """The ports of a device type.

        Raises:
            InputError: a port has no form that NetBox gives it, or is mapped and not listed.
        """
        positions = {
            rear.name: rear.entry["positions"] if _is_position(rear.entry.get("positions")) else 1
            for rear in _listed(document, "rear-ports", "name")
        }
        fronts = _listed(document, "front-ports", "name")
        front_names = {front.name for front in fronts}
        # Before NetBox 4.5 a front port names its rear port, and there are no mappings.
        mappings = [*fronts, *_listed(document, "port-mappings", "front_port")]
        rear_of_front = {}
        for mapping in mappings:
            if "rear_port" not in mapping.entry:
                continue
            rear_port = str(mapping.entry["rear_port"])
            position = mapping.entry.get("rear_port_position", 1)
            is_listed = mapping.name in front_names and rear_port in positions
            if not is_listed or not _is_position(position):
                required = "a front port at a position of a rear port, both listed"
                ports = f"{shown(mapping.name)} at {shown(rear_port)} position {shown(position)}"
                raise InputError(document.problem(mapping.path, required, ports))
            rear_of_front[mapping.name] = (rear_port, position)
        comment = device_type_extras(document)
        sections = {word: comment[word] for word in SECTIONS if isinstance(comment.get(word), dict)}
        front_at_rear = {rear: front for front, rear in rear_of_front.items()}
        return cls(rear_of_front, positions, front_at_rear, sections)

    def through(self, port: str, stack: list[int]) -> str | None:
        """The port on the other side of the panel; None if the port is not connected.

        Args:
            port: a front or a rear port.
            stack: the positions of the trunks on the way, the latest last. A front port pushes the
                position of its rear port, and a rear port pops a position.
        """
        if port in self.rear_of_front:
            rear, position = self.rear_of_front[port]
            if self.positions[rear] > 1:
                stack.append(position)
            return rear
        if port not in self.positions or (self.positions[port] > 1 and not stack):
            return None
        position = stack.pop() if self.positions[port] > 1 else 1
        return self.front_at_rear.get((port, position))


class FollowedLink(NamedTuple):
    """A link that was followed from one end."""

    end: Plug | None
    """The plug at its other end; None if the link ends at a panel."""
    cables: list[int]
    """The numbers of its cables, in their order."""


def follow_link(
    start: Plug, cables: Mapping[Plug, tuple[Plug, int]], panels: Mapping[str, PanelPorts]
) -> FollowedLink:
    """Follow a link through panels.

    Args:
        start: the plug at one end.
        cables: by plug, the other end of its cable and the cable's number.
        panels: by device, the ports of each panel.
    """
    plug, stack, numbers = start, list[int](), list[int]()
    while plug in cables and len(numbers) < MOST_CABLES:
        (device, port), number = cables[plug]
        numbers.append(number)
        if device not in panels:
            return FollowedLink((device, port), numbers)
        other_side = panels[device].through(port, stack)
        if other_side is None:
            break
        plug = (device, other_side)
    return FollowedLink(None, numbers)


class _ListedPort(NamedTuple):
    """An entry of a list of ports in a device type."""

    path: KeyPath
    """The place of the entry in the document."""
    name: str
    """The name of the port."""
    entry: dict[str, Any]
    """The entry."""


def _listed(document: Document, key: str, name_key: str) -> list[_ListedPort]:
    """The ports in a list of a device type; [] without such a list.

    Args:
        document: the device type.
        key: the key of the list.
        name_key: the key of the name in each entry.

    Raises:
        InputError: the value is no list, or an entry has no name.
    """
    entries = document.data.get(key) or []
    if not isinstance(entries, list):
        raise InputError(document.problem((key,), "a list of ports", shown(entries)))
    ports = []
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or name_key not in entry:
            required = f"a mapping with {name_key}"
            raise InputError(document.problem((key, i), required, shown(entry)))
        ports.append(_ListedPort((key, i), str(entry[name_key]), entry))
    return ports


def _is_position(value: object) -> bool:
    """Whether a value is a number of positions, or the number of a position."""
    return type(value) is int and 1 <= value <= MOST_POSITIONS
