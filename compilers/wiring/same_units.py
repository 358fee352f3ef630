"""Keep nodes in their rack units when a fabric is compiled again.

`at_same_units` puts nodes into the units of the previous build, and refuses an installed node whose
units are no longer free. `_Units` records which units of each rack are occupied. `placed_fabric`
calls it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from inventory.problems import Finding, Refused

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node, NodeType


def at_same_units(
    inventory: Inventory,
    vertex: Mapping[str, int],
    places: Sequence[tuple[str, int]],
    others: Sequence[Node],
) -> Inventory:
    """Put nodes without a unit into the units that they had before.

    A node whose rack is another now, or is gone, and a planned one without room, is placed anew.

    Args:
        inventory: nodes without a unit may be in it.
        vertex: the vertex that each node had, by its name.
        places: the rack and the unit that the node of each vertex had; () if that is not known.
        others: nodes of other planes.

    Raises:
        Refused: a node that is installed has no room there: it is higher than the one that it
            replaces, or another is put there.
    """
    if not places:
        return inventory
    units = _Units.of(inventory, others)
    before = _places_before(inventory, vertex, places, units)
    # A node that is higher now must not take the unit of its neighbour.
    units.reserved = {place: name for name, place in before.items()}
    staying = {
        node.name
        for node in inventory.nodes
        if node.name in before and not units.in_the_way(node, before[node.name])
    }
    for node in inventory.nodes:
        if node.name in staying:
            units.take(node, before[node.name])
    findings = []
    nodes = list(inventory.nodes)
    for i, node in enumerate(nodes):
        if node.name in staying:
            rack, unit = before[node.name]
            nodes[i] = node.model_copy(update={"rack": rack, "unit": unit})
        elif node.name in before and node.state == "installed":
            findings.append(units.no_room(i, node, before[node.name]))
    if findings:
        raise Refused(findings)
    return inventory.model_copy(update={"nodes": tuple(nodes)})


def _places_before(
    inventory: Inventory,
    vertex: Mapping[str, int],
    places: Sequence[tuple[str, int]],
    units: _Units,
) -> dict[str, _Place]:
    """The place that each node without a unit had, by its name.

    Nodes that may not be there now are left out.

    Args:
        inventory: the nodes.
        vertex: the vertex that each node had, by its name.
        places: the rack and the unit of each vertex.
        units: the racks as they are now.
    """
    before = {}
    for node in inventory.nodes:
        if node.name in vertex and node.unit is None:
            place = _Place(*places[vertex[node.name]])
            if units.may_be(node, place):
                before[node.name] = place
    return before


class _Place(NamedTuple):
    """A unit of a rack."""

    rack: str
    """The name of the rack."""
    unit: int
    """The unit, from 1."""


@dataclass(slots=True)
class _Units:
    """Which units of the racks are taken, and by what."""

    height: dict[str, int]
    """The units of each rack, by its name."""
    types: Mapping[str, NodeType]
    """The node types."""
    taken: dict[_Place, str]
    """What fills each unit that is taken: a node or a host."""
    reserved: dict[_Place, str] = field(default_factory=dict)
    """The node that had each place as its lowest unit, and may stay there."""

    @classmethod
    def of(cls, inventory: Inventory, others: Sequence[Node]) -> _Units:
        """The units that the inventory itself gives to nodes and hosts."""
        racks = {rack.name: rack.units for rack in inventory.racks}
        units = cls(racks, inventory.node_types, {})
        for node in (*inventory.nodes, *others):
            if node.rack and node.unit:
                units.take(node, _Place(node.rack, node.unit))
        hosts = [host for node in (*inventory.nodes, *others) for host in node.hosts]
        hosts += [row.host for row in inventory.hosts]
        for host in hosts:
            if host.rack and host.unit:
                units.taken[_Place(host.rack, host.unit)] = host.name or "a host"
        return units

    def filled(self, node: Node, place: _Place) -> list[_Place]:
        """All units that a node fills from a place on."""
        units = range(place.unit, place.unit + self.types[node.type].units)
        return [_Place(place.rack, unit) for unit in units]

    def may_be(self, node: Node, place: _Place) -> bool:
        """Whether there is such a unit, and the inventory names no other rack for the node."""
        return node.rack in (None, place.rack) and 0 < place.unit <= self.height.get(place.rack, 0)

    def take(self, node: Node, place: _Place) -> None:
        """Mark the units of a node as taken."""
        self.taken |= dict.fromkeys(self.filled(node, place), node.name)

    def in_the_way(self, node: Node, place: _Place) -> str:
        """What is in the way of a node at a place; "" if it has room."""
        for filled in self.filled(node, place):
            height = self.height[filled.rack]
            if filled.unit > height:
                return f"{filled.rack} has {height}"
            holder = self.taken.get(filled) or self.reserved.get(filled)
            if holder not in (None, node.name):
                return f"unit {filled.unit} has {holder}"
        return ""

    def no_room(self, i: int, node: Node, place: _Place) -> Finding:
        """The finding that the i-th node has no room where it stood.

        It names a place that has room, which the node takes, so that the next finding names
        another.
        """
        rack, unit = place
        height = self.types[node.type].units
        last = f" to {unit + height - 1}" if height > 1 else ""
        todo = "no rack has room for it: take one that is lower, or add a rack"
        room = self._room_for(node, rack)
        if room:
            self.take(node, room)
            todo = f"rack {room.rack} has room from unit {room.unit} on: write "
            todo += f"`rack: {room.rack}, unit: {room.unit}` to put it there"
        return Finding(
            ("nodes", i),
            f"free units {unit}{last} in rack {rack} for {node.name}, where it stood",
            self.in_the_way(node, place),
            todo,
        )

    def _room_for(self, node: Node, rack: str) -> _Place | None:
        """The first place with room for a node: in a rack, then in others unless it names one."""
        racks = [rack]
        if not node.rack:
            racks += [name for name in self.height if name != rack]
        height = self.types[node.type].units
        for name in racks:
            for unit in range(1, self.height[name] - height + 2):
                place = _Place(name, unit)
                if not self.in_the_way(node, place):
                    return place
        return None
