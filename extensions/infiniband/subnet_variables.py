"""The variables of target opensm's templates: switches, hosts and the QoS policy of a fabric.

`system_files` also has the files that define the kinds of systems for the checker ibdm.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.rendering.renderer import installed_nodes
from extensions.infiniband.guids import Guids
from extensions.lossless.layers import Layers as Lanes

GUIDS_A_LINE = 8
"""The GUIDs in a line of a port group."""
ADAPTER = "adapter"
"""The system of a host: one adapter with one port."""


class SubnetPortGroup(TypedDict):
    """A port group of the QoS policy."""

    name: str
    """Its name."""
    guids: list[str]
    """The port GUIDs, in lines."""


class LaneRule(TypedDict):
    """A rule of the QoS policy: packets between two port groups take a lane."""

    source: str
    """The name of the group that packets come from."""
    destination: str
    """The name of the group that packets are for."""
    lane: int
    """The lane, which is not 0: that is the default."""


class PolicyVariables(NamedTuple):
    """The QoS policy of a fabric."""

    groups: list[SubnetPortGroup]
    """The port groups."""
    rules: list[LaneRule]
    """The rules for pairs of switches whose lane is not 0."""


class CableVariables(TypedDict):
    """A cable of a switch, from its end at the switch."""

    number: int
    """The port of the switch."""
    far: str
    """The id of the device at the other end."""
    far_port: int
    """The port of that device."""
    name: str
    """The switch at the other end, or the switch itself if a host is there."""
    peer: str
    """The name of the device at the other end."""
    system: str
    """The system of that device."""


class SwitchVariables(TypedDict):
    """A switch."""

    name: str
    """Its name."""
    guid: str
    """Its node GUID, such as `0x0250460000010000`."""
    digits: str
    """The digits of the GUID without leading zeros."""
    id: str
    """Its id in the subnet."""
    system: str
    """The system that an IBNL file defines."""
    ports: int
    """How many ports it has."""
    cables: list[CableVariables]
    """Its cables, by port."""


class HostVariables(TypedDict):
    """The adapter of a host."""

    name: str
    """The name of the host."""
    guid: str
    """The node GUID, which is the port GUID less one."""
    port_guid: str
    """The digits of the port GUID."""
    id: str
    """Its id in the subnet."""
    switch: str
    """The id of the switch that it is cabled to."""
    node: str
    """The name of that switch."""
    port: int
    """The port of that switch."""


def policy_variables(build: Build, guids: Guids, lanes: Lanes) -> PolicyVariables:
    """Port groups, and the rules that give pairs of hosts their lane where it is not 0."""
    names, ends = build.wiring.names, np.flatnonzero(build.topology.endpoints)
    groups, rules = list[SubnetPortGroup](), list[LaneRule]()
    for source in ends.tolist():
        lane = lanes.layer[source, ends]  # by destination
        other_lanes = np.unique(lane[lane > 0]).tolist()
        if other_lanes:
            groups.append({"name": names[source], "guids": _guid_lines(guids.host[source])})
        for number in other_lanes:
            name = f"{names[source]} lane {number}"
            groups.append({"name": name, "guids": _guid_lines(guids.host[ends[lane == number]])})
            rules.append({"source": names[source], "destination": name, "lane": number})
    return PolicyVariables(groups, rules)


def _guid_lines(guids: NDArray[np.uint64]) -> list[str]:
    """GUIDs in lines of a port group."""
    texts = [_hex(guid) for guid in guids[guids > 0].tolist()]
    return [", ".join(texts[i : i + GUIDS_A_LINE]) for i in range(0, len(texts), GUIDS_A_LINE)]


def _hex(guid: int) -> str:
    """A GUID as OpenSM writes it."""
    return f"{guid:#018x}"


def host_variables(build: Build, guids: Guids) -> Iterator[HostVariables]:
    """The adapters of all hosts."""
    wiring = build.wiring
    for v, h in np.argwhere(guids.host > 0).tolist():
        port_guid = int(guids.host[v, h])
        yield {
            "name": wiring.host_names[v * guids.host.shape[1] + h],
            "guid": _hex(port_guid - 1),
            "port_guid": f"{port_guid:x}",
            "id": _adapter_id(port_guid),
            "switch": _switch_id(int(guids.switch[v])),
            "node": wiring.names[v],
            "port": int(wiring.host_port[v, h]),
        }


def switch_variables(build: Build, guids: Guids) -> Iterator[SwitchVariables]:
    """The switches with their cables."""
    wiring = build.wiring
    for v, name in installed_nodes(build):
        ports = len(wiring.port_names[int(wiring.node_type[v])])
        links = np.flatnonzero(wiring.far[v] >= 0)
        columns = wiring.port[v, links], wiring.far[v, links], wiring.far_port[v, links]
        cables: list[CableVariables] = [
            {
                "number": port,
                "far": _switch_id(int(guids.switch[far])),
                "far_port": far_port,
                "name": wiring.names[far],
                "peer": wiring.names[far],
                "system": system_of(len(wiring.port_names[int(wiring.node_type[far])])),
            }
            for port, far, far_port in np.stack(columns, axis=1).tolist()
        ]
        cables += [
            {
                "number": int(wiring.host_port[v, h]),
                "far": _adapter_id(int(guids.host[v, h])),
                "far_port": 1,
                "name": name,
                "peer": wiring.host_names[v * guids.host.shape[1] + h],
                "system": ADAPTER,
            }
            for h in np.flatnonzero(guids.host[v]).tolist()
        ]
        yield {
            "name": name,
            "guid": _hex(int(guids.switch[v])),
            "digits": f"{int(guids.switch[v]):x}",
            "id": _switch_id(int(guids.switch[v])),
            "system": system_of(ports),
            "ports": ports,
            "cables": sorted(cables, key=itemgetter("number")),
        }


def _switch_id(guid: int) -> str:
    """The id of a switch in the subnet."""
    return f"S-{guid:016x}"


def _adapter_id(port_guid: int) -> str:
    """The id of a host's adapter in the subnet."""
    return f"H-{port_guid - 1:016x}"


def system_of(ports: int) -> str:
    """The system of a switch with so many ports. Its name may not begin with SW."""
    return f"switch_{ports}"


def system_files(build: Build) -> Iterator[tuple[str, bytes]]:
    """The name and the IBNL file of each system: switches, and the adapter."""
    for ports in sorted({len(names) for names in build.wiring.port_names}):
        yield system_of(ports), _system_file(system_of(ports), "SW", ports)
    yield ADAPTER, _system_file(ADAPTER, "CA", 1)


def _system_file(name: str, kind: str, ports: int) -> bytes:
    """The IBNL file of a kind of systems with one node."""
    lines = [f"TOPSYSTEM {name}", "", f"NODE {kind} {ports} {name} U1"]
    lines += [f"{port} -> P{port}" for port in range(1, ports + 1)]
    return "\n".join([*lines, "", ""]).encode()
