"""Faults in a running Mininet network: cables cut or swapped, switches without power."""

from __future__ import annotations

from collections.abc import Iterable

from mininet_scenarios.engines.network import FabricNetwork
from mininet_scenarios.ovs.controller_process import CONTROLLER_ADDRESS
from mininet_scenarios.ovs.ovsdb import Database, Port
from mininet_scenarios.ovs.ovsfabric import bridge_name, port_interface
from mininet_scenarios.scenario.engine import LinkChange, Miswire, NodeChange, Outage

End = tuple[int, int]
"""A switch and the number of one of its ports."""


class Faults:
    """What is wrong with a network, and how to make it so.

    A cable is a veth pair, and keeps its name: after a swap the interface `s4-eth2` may be cabled
    into another switch's port.
    """

    def __init__(self, network: FabricNetwork) -> None:
        self.network, self.build = network, network.build
        self.outage = Outage()
        self.plugged: dict[End, str] = {}
        self.down: set[str] = set()
        names = self.build.wiring.names
        self.vertex = {name: v for v, name in enumerate(names)}
        self.cables: dict[frozenset[str], tuple[End, End]] = {
            frozenset((names[u], names[v])): ((u, here), (v, there))
            for u, here, v, there in self.build.wiring.each_cable()
        }

    def interface(self, switch: int, port: int) -> str:
        """The interface that a switch has at a port now."""
        return self.plugged.get((switch, port), port_interface(switch, port))

    def suffer(self, event: LinkChange | NodeChange | Miswire) -> None:
        """Cut or mend cables, swap two, take power from switches: back again they know nothing."""
        self.outage = self.outage.after(event)
        if isinstance(event, Miswire):
            self._swap(event.one, event.other)
            return
        self._set_interfaces()
        if isinstance(event, NodeChange):
            self._power([self.vertex[name] for name in event.switches], event.up)

    def _power(self, switches: Iterable[int], up: bool) -> None:
        ovs, words = self.network.ovs, []
        for switch in switches:
            name = bridge_name(switch)
            if up:
                words += ["--", "set-controller", name, f"tcp:{CONTROLLER_ADDRESS}"]
                words += ["--", "set", "controller", name, "max_backoff=1000"]
                words += ["connection_mode=out-of-band"]
            else:
                words += ["--", "del-controller", name]
        ovs.vsctl(*words[1:])
        for switch in () if up else switches:
            ovs.ofctl("del-flows", bridge_name(switch))
            ovs.ofctl("del-groups", bridge_name(switch))

    def _swap(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        """Two cables change places at the second switch of each; twice is as before."""
        ends = [self._end(*one), self._end(*other)]
        names = [self.interface(*end) for end in ends]
        database = Database(self.network.ovs.socket)
        database.remove_ports(
            (bridge_name(end[0]), name) for end, name in zip(ends, names, strict=True)
        )
        names.reverse()
        database.add_ports(
            (bridge_name(switch), Port(name, port))
            for (switch, port), name in zip(ends, names, strict=True)
        )
        self.plugged |= dict(zip(ends, names, strict=True))

    def settle(self) -> None:
        """Returns when packets follow what has changed."""
        self.network.ovs.appctl("revalidator/wait")

    def _end(self, near: str, far: str) -> End:
        """The port of a cable at its far switch."""
        ends = self.cables[frozenset((near, far))]
        return ends[0] if ends[0][0] == self.vertex[far] else ends[1]

    def _set_interfaces(self) -> None:
        """Bring every interface into the state that the outage says."""
        dark, wanted = self.outage.switches, set()
        cut = set(map(frozenset, self.outage.links))
        for link, ends in self.cables.items():
            if link in cut or dark & link:
                wanted |= {port_interface(*end) for end in ends}
        host_port = self.build.wiring.host_port
        for switch in map(self.vertex.__getitem__, dark):
            ports = host_port[switch][host_port[switch] > 0].tolist()
            wanted |= {port_interface(switch, port) for port in ports}
        wanted &= self.network.interfaces
        changes = [f"link set {name} down" for name in sorted(wanted - self.down)]
        changes += [f"link set {name} up" for name in sorted(self.down - wanted)]
        self.down = wanted
        if changes:
            self.network.batch(changes)
