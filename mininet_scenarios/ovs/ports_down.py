"""Ports of switches taken away and given back, and packets sent through the tables of switches.

A port that is away is dead to the groups that watch it, at its own switch only: the cable's other
end stays as it is. So all switches can have ports away at once, and none is in another's way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compilers.targets.openflow.protocol import TABLES
from mininet_scenarios.ovs.collector_frames import frame_out, settled
from mininet_scenarios.ovs.management_socket import ManagementConnection
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.ovs.ovsdb import Database, Port
from mininet_scenarios.ovs.ovsfabric import bridge_name

SwitchPort = tuple[int, int]
"""A switch, and the number of one of its ports."""


class PortsDown:
    """The ports that are away, none at first. `port` gives the row of a port in the database."""

    def __init__(self, ovs: PrivateOvs, port: Callable[[int, int], Port]) -> None:
        self.ovs, self.port = ovs, port
        self.database = Database(ovs.socket)
        self.connections: dict[int, ManagementConnection] = {}
        self.down: frozenset[SwitchPort] = frozenset()

    def close(self) -> None:
        """Give all ports back, and hang up."""
        self.put_down(())
        for connection in self.connections.values():
            connection.socket.close()
        self.connections.clear()

    def put_down(self, ports: Iterable[SwitchPort]) -> None:
        """Let just these ports be away; returns when they are.

        Raises:
            OpenVSwitchError: Open vSwitch refused it.
        """
        wanted = frozenset(ports)
        back, away = sorted(self.down - wanted), sorted(wanted - self.down)
        self.down = wanted
        if back:
            rows = ((bridge_name(v), self.port(v, p)) for v, p in back)
            self.database.add_ports(rows, alone=bool(wanted))
        if away:
            names = ((bridge_name(v), self.port(v, p).name) for v, p in away)
            self.database.remove_ports(names, alone=True)

    def inject(self, frames: Iterable[tuple[int, int, bytes]]) -> None:
        """Send frames through the tables of switches, as if they had come in on these ports.

        Raises:
            OpenVSwitchError: a switch refused one, or does not answer.
        """
        for switch, port, data in frames:
            if switch not in self.connections:
                socket = self.ovs.folder / f"{bridge_name(switch)}.mgmt"
                self.connections[switch] = ManagementConnection(socket)
            self.connections[switch].outgoing += frame_out(data, TABLES, port)
        settled(list(self.connections.values()))
