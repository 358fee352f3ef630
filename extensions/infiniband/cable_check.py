"""The check of the cables in the files that OpenSM, ibsim and ibdm get.

`checked_cables` reads `fabric.net`, the subnet, and compares its switches and cables with a build.
It also compares `fabric.topo`, in which ibdm has the same cables by names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.readers.exact_text import exact_number, is_number
from extensions.infiniband.lid_walk import LidEnd, LidEnds
from extensions.infiniband.settings_text import ABSENT
from extensions.infiniband.subnet_files import SubnetFiles
from extensions.infiniband.subnet_text import CableEnd, DevicePort, SubnetText, read_subnet
from extensions.infiniband.subnet_variables import ADAPTER, system_of
from extensions.infiniband.topology_text import read_definition, read_topology

SUBNET, TOPOLOGY = "fabric.net", "fabric.topo"
"""The files with cables: for ibsim, and for ibdm."""
SWITCH_ITSELF = 0
"""In place of the port of a switch: the switch itself is the end, and not a host at a port."""
Cables = dict[tuple[int, int], CableEnd]
"""The far end of each cable of a switch, by the vertex and the port of the near end. The device of
an end is its name."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedCables:
    """The switches and cables of a subnet."""

    vertex_of_id: dict[str, int]
    """The vertex of each switch by its id in the subnet, such as `S-0250460000010000`."""
    far: NDArray[np.int64]
    """int64[S, ports + 1], the switch at the other end of each port's cable; -1: none."""
    ends: LidEnds
    """The LIDs of all switches, and of all cabled hosts."""


def checked_cables(files: SubnetFiles) -> CheckedCables:
    """Read the subnet, and compare its switches and cables, and those of the topology file."""
    subnet = read_subnet(files.folder / SUBNET, files.differences)
    vertex_of_id = _checked_switches(files, subnet)
    wiring = files.build.wiring
    most_ports = max(len(names) for names in wiring.port_names)
    far = np.full((len(wiring.names), most_ports + 1), -1)
    cables: Cables = {}
    host_at: dict[str, DevicePort] = {}
    """The port of a switch at which each host is, by the host's id."""
    for near, cable in subnet.cables.items():
        back = subnet.cables.get(cable.far)
        if back is None or back.far != near:
            stated = f"port {near.port} to {cable.far.device}"
            file = files.folder / SUBNET
            files.differences.add(file, cable.line, stated, "a cable with two ends")
        elif near.device in vertex_of_id and 0 < near.port <= most_ports:
            vertex, far_id = vertex_of_id[near.device], cable.far.device
            far_end = DevicePort(subnet.devices[far_id].name, cable.far.port)
            cables[vertex, near.port] = CableEnd(far_end, cable.line)
            if far_id in vertex_of_id:
                far[vertex, near.port] = vertex_of_id[far_id]
            else:
                host_at[far_id] = near
    _compare_cables(files, cables, SUBNET)
    _compare_cables(files, _topology_cables(files), TOPOLOGY)
    ends = [
        # An id is the letter of the kind, a hyphen and the GUID in hexadecimal.
        LidEnd(int(device_id.partition("-")[2], 16), vertex, port=SWITCH_ITSELF)
        for device_id, vertex in vertex_of_id.items()
    ]
    ends += [
        LidEnd(guid, vertex_of_id[host_at[host].device], port=host_at[host].port)
        for guid, host in subnet.hosts.items()
        if host in host_at
    ]
    return CheckedCables(vertex_of_id, far, LidEnds.of(ends, files.lids_per_host))


def _checked_switches(files: SubnetFiles, subnet: SubnetText) -> dict[str, int]:
    """The vertex of every switch by its id in the subnet; what differs from the build is noted."""
    file, vertices = files.folder / SUBNET, files.vertices()
    vertex_of_id: dict[str, int] = {}
    for device_id, device in subnet.devices.items():
        if not device_id.startswith("S"):
            continue
        vertex = vertices.get(device.name)
        if vertex is None or vertex in vertex_of_id.values():
            stated = f"switch {device.name}"
            files.differences.add(file, device.line, stated, "no such switch, or it again")
            continue
        vertex_of_id[device_id] = vertex
        ports = files.port_count(vertex)
        if device.ports != ports:
            stated = f"switch {device.name} with {device.ports} ports"
            files.differences.add(file, device.line, stated, f"{ports}")
    names = files.build.wiring.names
    for name in vertices.keys() - {names[vertex] for vertex in vertex_of_id.values()}:
        files.differences.add(file, 0, "nothing of it", f"switch {name}")
    return vertex_of_id


def _topology_cables(files: SubnetFiles) -> Cables:
    """The cables of the topology file; what it says of kinds of systems is compared."""
    file, differences, vertices = files.folder / TOPOLOGY, files.differences, files.vertices()
    topology = read_topology(file, differences)
    kinds = {name: system_of(files.port_count(vertex)) for name, vertex in vertices.items()}
    for mention in topology.mentions:
        expected = kinds.get(mention.name, ADAPTER)
        if mention.kind != expected:
            stated = f"{mention.name} is {mention.kind}"
            differences.add(file, mention.line, stated, expected)
    cables: Cables = {}
    for near, cable in topology.cables.items():
        port, far_port = near.plug.removeprefix("P"), cable.far.plug.removeprefix("P")
        if near.system in vertices and is_number(port) and is_number(far_port):
            far = DevicePort(cable.far.system, exact_number(far_port))
            cables[vertices[near.system], exact_number(port)] = CableEnd(far, cable.line)
        else:
            stated = f"{near.system} {near.plug} -> {cable.far.system} {cable.far.plug}"
            differences.add(file, cable.line, stated, "no such end")
    return cables


def _compare_cables(files: SubnetFiles, cables: Cables, file: str) -> None:
    """Compare the cables that a file lists with those of the build."""
    wiring, hosts = files.build.wiring, files.build.wiring.host_port.shape[1]
    expected: dict[tuple[int, int], DevicePort] = {}
    for vertex in files.vertices().values():
        for port, far, far_port in wiring.links_of(vertex):
            expected[vertex, port] = DevicePort(wiring.names[far], far_port)
        for number, port in enumerate(wiring.host_port[vertex].tolist()):
            if port:
                expected[vertex, port] = DevicePort(wiring.host_names[vertex * hosts + number], 1)
    no_end = DevicePort(ABSENT.text, 0)
    for vertex, port in expected.keys() | cables.keys():
        cable = cables.get((vertex, port), CableEnd(no_end, 0))
        end = expected.get((vertex, port), no_end)
        if cable.far != end:
            stated = f"port {port} of {wiring.names[vertex]} to {cable.far.device}"
            files.differences.add(files.folder / file, cable.line, stated, f"to {end.device}")


def check_definitions(files: SubnetFiles) -> None:
    """Compare the definitions of the systems in the topology file: switches and the adapter."""
    systems = {ADAPTER: ("CA", 1)}
    for names in files.build.wiring.port_names:
        systems[system_of(len(names))] = "SW", len(names)
    for name, (kind, ports) in systems.items():
        file = files.folder / f"{name}.ibnl"
        system = read_definition(file, files.differences)
        plugs = {str(port): f"P{port}" for port in range(1, ports + 1)}
        if system.node != f"{kind} {ports}" or system.plugs != plugs:
            stated = f"{system.node} with {len(system.plugs)} plugs"
            files.differences.add(file, 0, stated, f"{kind} {ports}, P1, …")
