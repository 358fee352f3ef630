"""Keep nodes in their rack units when a fabric is compiled again.

`placed_fabric` calls `with_previous_units` with the rack and unit that each node had in the
previous build. Nodes for which the inventory gives no unit stay there; an installed node whose
units are no longer free is refused. `_RackUnits` records which units of each rack are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from inventory.problems import Finding, Refused

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node, NodeType


def with_previous_units(
    inventory: Inventory,
    vertex: Mapping[str, int],
    places: Sequence[tuple[str, int]],
    nodes_of_other_planes: Sequence[Node],
) -> Inventory:
    """Put nodes without a unit into the units that they had before.

    A node that the inventory puts into another rack, or whose rack is gone, is left without a unit,
    as is a planned node whose units are no longer free. Placement then gives them units.

    Args:
        inventory: nodes without a unit may be in it.
        vertex: the vertex that each node had, by its name.
        places: the rack and the unit that the node of each vertex had; () if that is not known.
        nodes_of_other_planes: their units are taken.

    Raises:
        Refused: the units of an installed node are not free: it is higher than the node that it
            replaces, or the inventory puts another node there.
    """
    if not places:
        return inventory
    units = _RackUnits.of(inventory, nodes_of_other_planes)
    # `before` is where nodes would stay, and `staying` has those for which it is still free.
    before = _previous_places(inventory, vertex, places, units)
    # A node that is higher than before must not take the unit of the node above it.
    units.reserved = {place: name for name, place in before.items()}
    staying = {
        node.name
        for node in inventory.nodes
        if node.name in before and not units.obstacle(node, before[node.name])
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
            findings.append(units.no_room_finding(i, node, before[node.name]))
    if findings:
        raise Refused(findings)
    return inventory.model_copy(update={"nodes": tuple(nodes)})


def _previous_places(
    inventory: Inventory,
    vertex: Mapping[str, int],
    places: Sequence[tuple[str, int]],
    units: _RackUnits,
) -> dict[str, _Place]:
    """The place that each node without a unit had, by its name.

    Nodes that are not allowed there now (`_RackUnits.is_allowed`) are left out.

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
            if units.is_allowed(node, place):
                before[node.name] = place
    return before


class _Place(NamedTuple):
    """A unit of a rack: for a node, the lowest one that it fills."""

    rack: str
    """The name of the rack."""
    unit: int
    """The unit, from 1."""


@dataclass(slots=True)
class _RackUnits:
    """Which units of the racks are taken, and by which nodes and hosts."""

    rack_height: dict[str, int]
    """How many units each rack has, by its name."""
    types: Mapping[str, NodeType]
    """The node types."""
    taken: dict[_Place, str]
    """The name of the node or host in each unit that is taken."""
    reserved: dict[_Place, str] = field(default_factory=dict)
    """The name of the node that had its lowest unit there, and is allowed to stay."""

    @classmethod
    def of(cls, inventory: Inventory, others: Sequence[Node]) -> _RackUnits:
        """The racks with the units taken that the inventory itself gives to nodes and hosts.

        Args:
            inventory: racks, nodes and hosts.
            others: nodes of other planes.
        """
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
        """All units that a node fills if its lowest one is at a place."""
        units = range(place.unit, place.unit + self.types[node.type].units)
        return [_Place(place.rack, unit) for unit in units]

    def is_allowed(self, node: Node, place: _Place) -> bool:
        """Whether a place exists, and the inventory names no other rack for the node."""
        return node.rack in (None, place.rack) and 0 < place.unit <= self.rack_height.get(
            place.rack, 0
        )

    def take(self, node: Node, place: _Place) -> None:
        """Mark the units of a node as taken."""
        self.taken |= dict.fromkeys(self.filled(node, place), node.name)

    def obstacle(self, node: Node, place: _Place) -> str:
        """What keeps a node from a place, in words; "" if its units there are free."""
        for rack_unit in self.filled(node, place):
            last_unit = self.rack_height[rack_unit.rack]
            if rack_unit.unit > last_unit:
                return f"{rack_unit.rack} has {last_unit}"
            holder = self.taken.get(rack_unit) or self.reserved.get(rack_unit)
            if holder not in (None, node.name):
                return f"unit {rack_unit.unit} has {holder}"
        return ""

    def no_room_finding(self, i: int, node: Node, place: _Place) -> Finding:
        """The finding that the units of the i-th node, where it stood, are not free.

        It names another place with room, and marks the units there as taken, so that the next
        finding names a different one.
        """
        rack, unit = place
        height = self.types[node.type].units
        to_last_unit = f" to {unit + height - 1}" if height > 1 else ""
        todo = "no rack has room for it: take one that is lower, or add a rack"
        room = self._room_for(node, rack)
        if room:
            self.take(node, room)
            todo = f"rack {room.rack} has room from unit {room.unit} on: write "
            todo += f"`rack: {room.rack}, unit: {room.unit}` to put it there"
        return Finding(
            ("nodes", i),
            f"free units {unit}{to_last_unit} in rack {rack} for {node.name}, where it stood",
            self.obstacle(node, place),
            todo,
        )

    def _room_for(self, node: Node, rack: str) -> _Place | None:
        """The first place with room for a node: in a rack, or, unless it names one, in another."""
        racks = [rack]
        if not node.rack:
            racks += [name for name in self.rack_height if name != rack]
        height = self.types[node.type].units
        for name in racks:
            for unit in range(1, self.rack_height[name] - height + 2):
                place = _Place(name, unit)
                if not self.obstacle(node, place):
                    return place
        return None
