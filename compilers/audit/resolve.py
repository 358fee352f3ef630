"""Turn neighbour tables into cables between sockets of the plan, and set everything else apart.

`check wiring` and the controller's discovery compare these cables with the planned ones
(`wiring_audit`). A *socket* is the place of one cable in a port; `socket_numbers` numbers sockets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from compilers.audit.name_directory import NO_NAME, NameDirectory
from compilers.audit.socket_numbers import CableSet, SocketNumbers, far_ends
from compilers.readers.devices.neighbour_facts import UNNAMED_PORT, NamedEnd, NeighbourFacts
from compilers.targets.system_names import SystemNames
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring

MANAGEMENT = re.compile(
    r"(?:ma(?:nagement)?|mgmt|oobm?|v?me|em|fxp|con(?:sole)?|aux|bmc|usb)[-_]?\d*(?:[/.]\d+)*"
    r"|eth0|.*mgmt.*",
    re.I,
)
"""Names of ports for management and consoles, such as `mgmt0`, `Management1` or `con0`."""


Sighting = tuple[int, int]
"""The socket that sees a neighbour, and the socket that is seen."""


class OtherPort(NamedTuple):
    """A port that is outside the fabric, such as one for management or hosts."""

    node: str
    """The name of the node."""
    port: str
    """The name of the port."""
    neighbour: str
    """The name of the neighbour that the node sees there."""


@dataclass(frozen=True, slots=True)
class ObservedCables:
    """The cables that neighbour tables show."""

    cables: CableSet
    """The cables that were seen, at most one at each socket."""
    reporters: frozenset[int]
    """The vertices whose own tables were read."""
    contested: CableSet
    """Cables that were seen, but left out, as another cable at one of their sockets is likelier."""
    strangers: tuple[tuple[int, str], ...]
    """Sockets, not those of hosts, each with the name of a neighbour that is no node of the
    plan."""
    unknown_ports: tuple[tuple[str, str], ...]
    """The names of nodes, each with a port of the fabric that its type does not have."""
    other_ports: tuple[OtherPort, ...] = ()
    """Ports outside the fabric: for management, consoles or hosts."""
    unclear: CableSet = frozenset()
    """Planned cables of which tables show one end, but not the port at the other end."""
    empty: tuple[int, ...] = ()
    """Reporters whose tables have no neighbour."""


def resolve(
    facts: NeighbourFacts,
    wiring: Wiring,
    hardware: Hardware | None = None,
    systems: Mapping[str, Sequence[SystemNames]] = MappingProxyType({}),
    system_of_node: Sequence[str] = (),
) -> ObservedCables:
    """The cables that neighbour tables show.

    Names match in any case, with or without a domain. Nodes match by management address, serial
    number, GUID and datapath id too, ports by label. If a port sees several neighbours, the one
    that sees the port as well is taken, or else the planned one.

    Ports have the names of the system that printed their node's table. Where the form does not say
    which system that is (lldpctl runs on several), they have those of the system that the build
    names for the node. Where it names none, all have the names of the system by which most planned
    cables are seen.

    Args:
        facts: the neighbour data.
        wiring: the plan.
        hardware: for serial numbers, GUIDs and labels, if an inventory gave them.
        systems: by target, the names that the system has in each plane. Forms of tables have names
            of targets.
        system_of_node: the system of each node as the build names it; () where it names none.
    """
    sockets = SocketNumbers(wiring, hardware.types if hardware else ())
    system_of_vertex = {v: name for v, name in enumerate(system_of_node) if name in systems}
    directory = NameDirectory(sockets, hardware, systems, system_of_vertex)
    planned = sockets.planned()
    directory.choose_systems(facts, planned)
    sightings = _Sightings(directory, sockets, planned)
    for near, _ in facts.seen:
        directory.note_snmp_numbers(near)
    for near, far in facts.seen:
        sightings.add(near, far)
    sightings.complete_half_seen()
    # Reporters that are not in the plan, such as routers outside the fabric, have no vertex.
    reporters = {v for nodes in facts.reporters if (v := directory.vertex(nodes)) is not None}
    cables, contested = likeliest(sightings.seen, planned)
    return ObservedCables(
        cables=cables,
        reporters=frozenset(reporters),
        contested=contested,
        strangers=tuple(sightings.strangers),
        unknown_ports=tuple(sightings.unknown_ports),
        other_ports=tuple(sightings.other_ports),
        unclear=sightings.unclear(),
        empty=tuple(sorted(reporters - sightings.seeing)),
    )


class _Sightings:
    """The neighbours that tables show, sorted by how much of the cable is known.

    *Near* is the end whose table shows the neighbour, *far* is the neighbour. A neighbour is sorted
    by what names its two ends:

    | near port | neighbour | far port | goes to |
    |---|---|---|---|
    | in the plan | in the plan | in the plan | `seen` |
    | in the plan | in the plan | not named | `half_seen`, then `seen` or `unknown_ports` |
    | in the plan | in the plan | other name | `unknown_ports`, or `other_ports` |
    | in the plan | other name | any | `strangers`, except at host ports |
    | other name | any | any | `unknown_ports`, or `other_ports` |

    `other_ports` is for ports that are outside the fabric: for management, consoles or hosts. Dicts
    whose values are None keep the order of their keys.
    """

    def __init__(self, directory: NameDirectory, sockets: SocketNumbers, planned: CableSet) -> None:
        self.directory, self.sockets, self.planned = directory, sockets, planned
        self.names = sockets.wiring.names
        """The names of nodes."""
        self.host_sockets = sockets.host_sockets()
        """The sockets of host ports."""
        self.planned_far_end = far_ends(planned)
        """The socket at the other end of each planned cable."""
        self.seen: dict[Sighting, None] = {}
        """The neighbours both of whose ends are known."""
        self.strangers: dict[tuple[int, str], None] = {}
        """See `ObservedCables.strangers`."""
        self.unknown_ports: dict[tuple[str, str], None] = {}
        """See `ObservedCables.unknown_ports`."""
        self.other_ports: dict[OtherPort, None] = {}
        """See `ObservedCables.other_ports`."""
        self.seeing: set[int] = set()
        """The vertices that see a neighbour."""
        self.half_seen: dict[tuple[int, int], dict[int, str]] = {}
        """Cables whose far port the table does not name, by the near and the far vertex: the near
        socket of each, with the text that the table has in place of the name."""
        self._unclear_sockets: set[int] = set()
        """Sockets that see a port which the neighbour's type does not have."""
        self._unclear_nodes: set[tuple[int, int]] = set()
        """Pairs of vertices with such a port between them, the smaller first."""

    def add(self, near: NamedEnd, far: NamedEnd) -> None:
        """Add a neighbour that a node sees at a port."""
        near_vertex, far_vertex = (
            self.directory.vertex(near.nodes),
            self.directory.vertex(far.nodes),
        )
        if near_vertex is None:
            return
        self.seeing.add(near_vertex)
        near_socket = self.directory.socket(near_vertex, near)
        if near_socket is None:
            self._add_at_unknown_port(near_vertex, near, far_vertex, far)
        elif far_vertex is not None:
            self._add_between_nodes(near_socket, far_vertex, far)
        elif near_socket not in self.host_sockets:
            self.strangers[near_socket, far.nodes[0]] = None

    def _add_between_nodes(self, near_socket: int, far_vertex: int, far: NamedEnd) -> None:
        """Add a neighbour that is in the plan, at a port that is in the plan."""
        near_vertex = self.sockets.vertex(near_socket)
        far_socket = self.directory.socket(far_vertex, far)
        is_outside_fabric = near_socket not in self.planned_far_end and (
            near_socket in self.host_sockets or _is_management(far)
        )
        if far_socket is not None:
            if far_socket != near_socket:
                self.seen[near_socket, far_socket] = None
        elif is_outside_fabric:
            port = self.sockets.name(near_socket)
            self.other_ports[OtherPort(self.names[near_vertex], port, far.nodes[0])] = None
        elif _is_unnamed(far):
            sockets = self.half_seen.setdefault((near_vertex, far_vertex), {})
            sockets[near_socket] = far.ports[-1]
        else:
            self._add_unknown(far_vertex, far.ports[0], near_socket, near_vertex)

    def _add_at_unknown_port(
        self, near_vertex: int, near: NamedEnd, far_vertex: int | None, far: NamedEnd
    ) -> None:
        """Add a neighbour at a port that the node's type does not have.

        The port is for management or hosts, or it belongs to the fabric and its name is wrong.
        """
        far_socket = None if far_vertex is None else self.directory.socket(far_vertex, far)
        if far_socket is not None:
            is_in_fabric = far_socket in self.planned_far_end
        else:
            is_in_fabric = not _is_management(far) and not _is_management(near)
        if far_vertex is not None and is_in_fabric:
            self._add_unknown(near_vertex, near.ports[0], far_socket, far_vertex)
        else:
            self.other_ports[OtherPort(self.names[near_vertex], near.ports[0], far.nodes[0])] = None

    def _add_unknown(self, vertex: int, port: str, far_socket: int | None, far_vertex: int) -> None:
        """Add a port that a node's type does not have.

        Args:
            vertex: the vertex of the node.
            port: the name of the port.
            far_socket: the socket at the other end of the cable; None: it is not known.
            far_vertex: the vertex at the other end.
        """
        self.unknown_ports[self.names[vertex], port] = None
        self._unclear_nodes.add((min(vertex, far_vertex), max(vertex, far_vertex)))
        if far_socket is not None:
            self._unclear_sockets.add(far_socket)

    def complete_half_seen(self) -> None:
        """Find the far ports that tables do not name, and add the cables to them."""
        seen_from: dict[int, list[int]] = {}
        for near_socket, far_socket in self.seen:
            seen_from.setdefault(far_socket, []).append(near_socket)
        planned_between: dict[tuple[int, int], list[int]] = {}
        for near_socket, far_socket in self.planned_far_end.items():
            nodes = self.sockets.vertex(near_socket), self.sockets.vertex(far_socket)
            planned_between.setdefault(nodes, []).append(near_socket)
        for nodes, sockets in self.half_seen.items():
            near_vertex, far_vertex = nodes
            planned = planned_between.get(nodes, [])
            for near_socket, instead_of_name in sockets.items():
                seen_by = seen_from.get(near_socket, ())
                guess = self._likely_far_socket(near_socket, nodes, seen_by, planned)
                if guess is None:
                    self._add_unknown(far_vertex, instead_of_name, near_socket, near_vertex)
                else:
                    self.seen[near_socket, guess] = None

    def _likely_far_socket(
        self,
        near_socket: int,
        nodes: tuple[int, int],
        seen_by: Iterable[int],
        planned: Sequence[int],
    ) -> int | None:
        """The far end of a cable whose near end sees a port that its table does not name.

        It is the first of these that exists:

        1. the socket by which the far node sees the near socket
        2. if each of the two nodes sees the other at one socket only: that socket of the far node
        3. the planned far end of the near socket, if it is at the far node
        4. if the near node sees the far node at one socket, and the plan has one cable between
           them: its end at the far node

        Args:
            near_socket: the socket that sees.
            nodes: the vertices of the near and of the far node.
            seen_by: the sockets that see the near socket.
            planned: the sockets of the near node that the plan joins to the far node.
        """
        near_vertex, far_vertex = nodes
        for socket in seen_by:
            if self.sockets.vertex(socket) == far_vertex:
                return socket
        seen_there = self.half_seen[nodes]
        seen_back = self.half_seen.get((far_vertex, near_vertex), {})
        if len(seen_there) == len(seen_back) == 1:
            (socket,) = seen_back
            return socket
        planned_far_end = self.planned_far_end.get(near_socket)
        if planned_far_end is not None and self.sockets.vertex(planned_far_end) == far_vertex:
            return planned_far_end
        if len(seen_there) == len(planned) == 1:
            return self.planned_far_end[planned[0]]
        return None

    def unclear(self) -> CableSet:
        """The planned cables with an unclear socket, or between two nodes with an unknown port."""
        if not self._unclear_nodes:
            return frozenset()
        vertex = self.sockets.vertex
        return frozenset(
            (a, b)
            for a, b in self.planned
            if not self._unclear_sockets.isdisjoint((a, b))
            or (vertex(a), vertex(b)) in self._unclear_nodes
        )


def _is_unnamed(end: NamedEnd) -> bool:
    """Whether a table does not name the port of an end, or has a number in place of the name."""
    has_number = any(map(NO_NAME.fullmatch, end.ports)) and not _is_management(end)
    return end.ports == (UNNAMED_PORT,) or has_number


def _is_management(end: NamedEnd) -> bool:
    """Whether a port is one for management, by its name."""
    return any(map(MANAGEMENT.fullmatch, end.ports))


def likeliest(seen: Iterable[Sighting], planned: CableSet) -> tuple[CableSet, CableSet]:
    """The likeliest cable of each socket, and the contested cables, which are left over.

    A cable that both ends see is likelier than one that a single end sees, and a planned cable is
    likelier than another.

    Args:
        seen: what sockets see, each once; a cable that both ends see has two sightings.
        planned: the planned cables.
    """
    ends_that_see = Counter((min(ends), max(ends)) for ends in seen)
    likeliest_first = sorted(
        ends_that_see, key=lambda cable: (-ends_that_see[cable], cable not in planned, cable)
    )
    with_cable: set[int] = set()
    cables, contested = set(), set()
    for cable in likeliest_first:
        if with_cable.isdisjoint(cable):
            cables.add(cable)
            with_cable.update(cable)
        else:
            contested.add(cable)
    return frozenset(cables), frozenset(contested)
