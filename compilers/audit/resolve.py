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

from compilers.audit.name_directory import NUMBER, NameDirectory
from compilers.audit.socket_numbers import Pairs, SocketNumbers, mates
from compilers.readers.devices.neighbour_facts import UNNAMED_PORT, End, Facts
from compilers.targets.system_names import SystemNames
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring

MANAGEMENT = re.compile(
    r"(?:ma(?:nagement)?|mgmt|oobm?|v?me|em|fxp|con(?:sole)?|aux|bmc|usb)[-_]?\d*(?:[/.]\d+)*"
    r"|eth0|.*mgmt.*",
    re.I,
)
"""Names of ports for management and consoles, such as `mgmt0`, `Management1` or `con0`."""


class OtherPort(NamedTuple):
    """A port of a node that is not in the plan, such as one for management or hosts."""

    node: str
    """The name of the node."""
    port: str
    """The name of the port."""
    neighbour: str
    """The name of the neighbour that the node sees there."""


@dataclass(frozen=True, slots=True)
class Wired:
    """The cables that neighbour tables show."""

    cables: Pairs
    """The cables that were seen, at most one a socket; the smaller socket first."""
    reporters: frozenset[int]
    """The vertices whose own tables were read."""
    contested: Pairs
    """Cables that were seen, but left out, as another cable at one of their sockets is likelier."""
    strangers: tuple[tuple[int, str], ...]
    """Sockets, not those of hosts, each with the name of a neighbour that is no node of the
    plan."""
    unknown_ports: tuple[tuple[str, str], ...]
    """The names of nodes, each with a port of the fabric that its type does not have."""
    other_ports: tuple[OtherPort, ...] = ()
    """Ports for management, consoles or hosts, which are in no plan."""
    unclear: Pairs = frozenset()
    """Planned cables of which tables show one end, but not the port at the other end."""
    empty: tuple[int, ...] = ()
    """Reporters whose tables have no neighbour."""


def resolve(
    facts: Facts,
    wiring: Wiring,
    hardware: Hardware | None = None,
    systems: Mapping[str, Sequence[SystemNames]] = MappingProxyType({}),
    system_of_node: Sequence[str] = (),
) -> Wired:
    """The cables that neighbour tables show.

    Names match in any case, with or without a domain. Nodes match by management address, serial
    number, GUID and datapath id too, ports by label. Of several neighbours at a port, the one that
    sees the port as well is taken, then the planned one.

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
    directory = NameDirectory(sockets, hardware, systems)
    planned = sockets.planned()
    directory.system = {v: name for v, name in enumerate(system_of_node) if name in systems}
    directory.choose_systems(facts, planned)
    sightings = _Sightings(directory, sockets, planned)
    for near, _ in facts.seen:
        directory.learn(near)
    for near, far in facts.seen:
        sightings.add(near, far)
    sightings.complete_half_seen()
    reporters = {u for nodes in facts.reporters if (u := directory.vertex(nodes)) is not None}
    cables, contested = likeliest(sightings.seen, planned)
    return Wired(
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

    *Near* is the end whose table shows the neighbour, *far* is the neighbour.
    """

    def __init__(self, directory: NameDirectory, sockets: SocketNumbers, planned: Pairs) -> None:
        self.directory, self.sockets, self.planned = directory, sockets, planned
        self.names, self.width = sockets.wiring.names, sockets.width
        self.hosts = sockets.host_sockets()
        self.planned_far = mates(planned)
        """The socket at the other end of each planned cable."""
        self.seen: Counter[tuple[int, int]] = Counter()
        """How often each cable was seen, by the socket that sees and the socket that is seen."""
        self.strangers: dict[tuple[int, str], None] = {}
        """`Wired.strangers` as keys of a dict, which keeps their order."""
        self.unknown_ports: dict[tuple[str, str], None] = {}
        """`Wired.unknown_ports` as keys of a dict."""
        self.other_ports: dict[OtherPort, None] = {}
        """`Wired.other_ports` as keys of a dict."""
        self.seeing: set[int] = set()
        """The vertices that see a neighbour."""
        self.half_seen: dict[tuple[int, int], dict[int, str]] = {}
        """Cables whose far port the table does not name, by the near and the far vertex: by near
        socket, what the table has in place of the port's name."""
        self._unclear_sockets: set[int] = set()
        """Sockets that see a port which the neighbour's type does not have."""
        self._unclear_nodes: set[tuple[int, int]] = set()
        """Pairs of vertices with such a port between them, the smaller first."""

    def add(self, near: End, far: End) -> None:
        """Add a neighbour that a node sees at a port."""
        near_vertex, far_vertex = (
            self.directory.vertex(near.nodes),
            self.directory.vertex(far.nodes),
        )
        if near_vertex is None:
            return
        self.seeing.add(near_vertex)
        near_number = self.directory.port(near_vertex, near)
        if near_number is None:
            self._add_at_unknown_port(near_vertex, near, far_vertex, far)
            return
        near_socket = near_vertex * self.width + near_number
        if far_vertex is None:  # a stranger
            if near_socket not in self.hosts:
                self.strangers[near_socket, far.nodes[0]] = None
            return
        far_number = self.directory.port(far_vertex, far)
        if far_number is not None:
            far_socket = far_vertex * self.width + far_number
            if far_socket != near_socket:
                self.seen[near_socket, far_socket] += 1
        elif near_socket not in self.planned_far and (
            near_socket in self.hosts or _is_management(far)
        ):  # no cable of the fabric
            port = self.sockets.name(near_socket)
            self.other_ports[OtherPort(self.names[near_vertex], port, far.nodes[0])] = None
        elif far.ports == (UNNAMED_PORT,) or (
            any(map(NUMBER.fullmatch, far.ports)) and not _is_management(far)
        ):  # the table does not name the far port
            self.half_seen.setdefault((near_vertex, far_vertex), {})[near_socket] = far.ports[-1]
        else:  # it names a port that the far node does not have
            self._add_unknown(far_vertex, far.ports[0], near_socket, near_vertex)

    def _add_at_unknown_port(
        self, near_vertex: int, near: End, far_vertex: int | None, far: End
    ) -> None:
        """Add a neighbour at a port that the node's type does not have.

        The port is for management or hosts, or it belongs to the fabric and its name is wrong.
        """
        far_number = None if far_vertex is None else self.directory.port(far_vertex, far)
        far_socket = None
        if far_vertex is not None and far_number is not None:
            far_socket = far_vertex * self.width + far_number
            in_fabric = far_socket in self.planned_far
        else:
            in_fabric = not _is_management(far)
        if far_vertex is None or not in_fabric or (far_socket is None and _is_management(near)):
            self.other_ports[OtherPort(self.names[near_vertex], near.ports[0], far.nodes[0])] = None
        else:
            self._add_unknown(near_vertex, near.ports[0], far_socket, far_vertex)

    def _add_unknown(self, vertex: int, port: str, socket: int | None, neighbour: int) -> None:
        """Add a port that a node's type does not have.

        Args:
            vertex: of the node.
            port: its name.
            socket: at the other end of the cable; None: that is not known.
            neighbour: the vertex at the other end.
        """
        self.unknown_ports[self.names[vertex], port] = None
        self._unclear_nodes.add((min(vertex, neighbour), max(vertex, neighbour)))
        if socket is not None:
            self._unclear_sockets.add(socket)

    def complete_half_seen(self) -> None:
        """Find the far ports that tables do not name, and add the cables to them."""
        seen_from: dict[int, list[int]] = {}
        for near, far in self.seen:
            seen_from.setdefault(far, []).append(near)
        planned_between: dict[tuple[int, int], list[int]] = {}
        for near, far in self.planned_far.items():
            planned_between.setdefault((near // self.width, far // self.width), []).append(near)
        for (near_vertex, far_vertex), name_of_near in self.half_seen.items():
            planned = planned_between.get((near_vertex, far_vertex), [])
            for near, port_name in name_of_near.items():
                far_socket = self._far_socket(
                    near, (near_vertex, far_vertex), seen_from.get(near, ()), planned
                )
                if far_socket is None:
                    self._add_unknown(far_vertex, port_name, near, near_vertex)
                else:
                    self.seen[near, far_socket] += 1

    def _far_socket(
        self, near: int, nodes: tuple[int, int], seen_from: Iterable[int], planned: Sequence[int]
    ) -> int | None:
        """The far end of a cable whose near end sees a port that its table does not name.

        The first of these that exists: the port at which the far node sees the near end; if each of
        the two nodes sees the other at one port only, that port; the planned port, if the plan
        joins the near end to the far node; the only port of the far node that the plan joins to the
        near node.

        Args:
            near: the socket that sees.
            nodes: the vertices of the near and of the far node.
            seen_from: the sockets that see the near end.
            planned: the sockets of the near node that the plan joins to the far node.
        """
        near_vertex, far_vertex = nodes
        seeing = [socket for socket in seen_from if socket // self.width == far_vertex]
        if seeing:
            return seeing[0]
        seen_there = self.half_seen[nodes]
        seen_back = self.half_seen.get((far_vertex, near_vertex), {})
        if len(seen_there) == len(seen_back) == 1:
            return next(iter(seen_back))
        if self.planned_far.get(near, -1) // self.width == far_vertex:
            return self.planned_far[near]
        if len(seen_there) == len(planned) == 1:
            return self.planned_far[planned[0]]
        return None

    def unclear(self) -> Pairs:
        """The planned cables with an unclear socket, or between two nodes with an unknown port."""
        if not self._unclear_nodes:
            return frozenset()
        return frozenset(
            (a, b)
            for a, b in self.planned
            if not self._unclear_sockets.isdisjoint((a, b))
            or (a // self.width, b // self.width) in self._unclear_nodes
        )


def _is_management(end: End) -> bool:
    """Whether a port is one for management, by its name."""
    return any(map(MANAGEMENT.fullmatch, end.ports))


def likeliest(seen: Counter[tuple[int, int]], planned: Pairs) -> tuple[Pairs, Pairs]:
    """The likeliest cable of each socket, and the contested cables, which are left over.

    A cable that both ends see is likelier than one that a single end sees, and a planned cable is
    likelier than another.

    Args:
        seen: how often each cable was seen, in each direction.
        planned: the planned cables.
    """
    times = Counter((min(pair), max(pair)) for pair in seen)
    likeliest_first = sorted(times, key=lambda pair: (-times[pair], pair not in planned, pair))
    with_cable: set[int] = set()
    cables, contested = set(), set()
    for pair in likeliest_first:
        if with_cable.isdisjoint(pair):
            cables.add(pair)
            with_cable.update(pair)
        else:
            contested.add(pair)
    return frozenset(cables), frozenset(contested)
