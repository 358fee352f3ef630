"""Path sets as hosts load them: iproute2 and FRR; and a fabric as controllers of SRv6 read it.

`polarfab hosts paths` prints these texts. A *path set* (`HostPathSet`) is the paths from a host to
another. A *carrier* is the IPv6 destination whose uSIDs steer a packet along a path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from compilers.tables.build import Build
from compilers.targets.routed.linux_tables import ROUTE_PROTOCOL
from extensions.host_paths.host_path_set import HostPathSet
from extensions.host_paths.path_sets import ADJACENCY, DECAPSULATE, HOST
from extensions.host_paths.srv6_sids import BLOCK_BITS, USID_BITS, Usids
from inventory.problems import InputError

GROUP = 2_000_000_000
"""The nexthop object GROUP + host is a path set."""
NEXTHOP, NEXTHOPS = 3_000_000_000, 1024
"""The nexthop object NEXTHOP + NEXTHOPS * host + value is one path of a set."""
MOST_MEMBERS = 120
"""The most members of a nexthop group: iproute2 6.1 sends no more in one message."""


def linux_batch(path_set: HostPathSet) -> Iterator[str]:
    """Yield lines for `ip -batch` that give the source host its paths.

    In each plane: the route to the plane's block of uSIDs, and the host's own SID if hosts take
    headers off. Then a nexthop object for each path, their group, and the route to the destination.
    The kernel looks a carrier up again, so the route of a block leads carriers into its plane.

    Raises:
        InputError: there are more paths than iproute2 takes in a group.
    """
    if len(path_set.paths) > MOST_MEMBERS:
        required = f"at most {MOST_MEMBERS} paths: iproute2 takes no more in a nexthop group"
        raise InputError.of(required, f"{len(path_set.paths)}", key="count")
    number = _destination_number(path_set)
    first, proto = NEXTHOP + NEXTHOPS * number, f"protocol {ROUTE_PROTOCOL}"
    yield f"# {_title(path_set)}. For ip -batch.\n"
    for plane in sorted({path.plane for path in path_set.paths}):
        usids = path_set.carriers.usids[plane]
        yield f"route replace {usids.block} {_first_hop(path_set, plane)} {proto}\n"
        if path_set.carriers.at_host:
            sid = usids.prefix(HOST + path_set.source.host, DECAPSULATE)
            action = "encap seg6local action End.DT6 table local dev lo table main"
            yield f"route replace local {sid} {action} {proto}\n"
    for i, path in enumerate(path_set.paths):
        encap = f"encap seg6 mode encap.red segs {path_set.carrier(path)}"
        yield f"nexthop replace id {first + i} {encap} {_first_hop(path_set, path.plane)} {proto}\n"
    members = "/".join(f"{first + i},{weight}" for i, weight in enumerate(path_set.weights))
    yield f"nexthop replace id {GROUP + number} group {members} {proto}\n"
    source = path_set.builds[0].addressing.host6(path_set.source.switch, path_set.source.host)
    yield f"route replace {_address(path_set)} nhid {GROUP + number} src {source} {proto}\n"


def frr_lines(path_set: HostPathSet) -> Iterator[str]:
    """Static routes for FRR 10.7 and later: the route into each plane, and one a path."""
    yield f"! {_title(path_set)}. FRR 10.7 and later.\n"
    for plane in sorted({path.plane for path in path_set.paths}):
        gateway, interface = _gateway(path_set, plane)
        yield f"ipv6 route {path_set.carriers.usids[plane].block} {gateway} {interface}\n"
    for path, weight in zip(path_set.paths, path_set.weights, strict=True):
        gateway, interface = _gateway(path_set, path.plane)
        segments = f"segments {path_set.carrier(path)} encap-behavior H_Encaps_Red"
        yield f"ipv6 route {_address(path_set)} {gateway} {interface} {segments} weight {weight}\n"


def _title(path_set: HostPathSet) -> str:
    """The hosts and the builds of a path set, in words."""
    identities = " and ".join(build.identity for build in path_set.builds)
    return f"{path_set.source.name} to {path_set.destination.name}: build {identities}"


def _destination_number(path_set: HostPathSet) -> int:
    """The number of the destination among all hosts of the fabric."""
    width = int(path_set.builds[0].wiring.host_port.shape[1])
    return path_set.destination.switch * width + path_set.destination.host


def _address(path_set: HostPathSet) -> str:
    """The prefix of the routes: the destination's address in the first plane, on every plane."""
    destination = path_set.destination
    return f"{path_set.builds[0].addressing.host6(destination.switch, destination.host)}/128"


def _gateway(path_set: HostPathSet, plane: int) -> tuple[str, str]:
    """The source host's gateway in a plane, and its interface to it."""
    gateway = path_set.builds[plane].addressing.network6(path_set.source.switch)[1]
    return str(gateway), path_set.carriers.interface_of(plane)


def _first_hop(path_set: HostPathSet, plane: int) -> str:
    """The next hop of a route of the source host in a plane, as `ip route` takes it."""
    gateway, interface = _gateway(path_set, plane)
    return f"via {gateway} dev {interface}"


def fabric_document(build: Build, usids: Usids) -> dict[str, Any]:
    """A plane as the fabric JSON of segmentrouting/polarfly: nodes, interfaces, hosts, edges.

    Links of a switch take the uSIDs that target srv6 gives them; a link is two directed edges.
    """
    wiring, topology = build.wiring, build.topology
    names, width = wiring.names, wiring.host_port.shape[1]
    ends = [
        (names[switch], names[int(wiring.far[switch, k])])
        for switch, k in np.argwhere(wiring.far >= 0).tolist()
    ]
    hosts = [
        (wiring.host_names[switch * width + host], names[switch])
        for switch, host in np.argwhere(wiring.host_port > 0).tolist()
    ]
    return {
        "topology_id": build.name,
        "description": f"{topology.title()}: {len(names)} switches, {len(ends) // 2} fabric "
        f"links, {len(hosts)} hosts.",
        "nodes": _document_nodes(build, usids),
        "interfaces": _document_interfaces(build, usids),
        "endpoints": [
            {"id": host, "name": host, "subtype": "host", "labels": {"tier": "host", "switch": at}}
            for host, at in hosts
        ],
        "edges": [
            {
                "id": f"link:{near}:{far}",
                "type": "igp_adjacency",
                "src_id": near,
                "dst_id": far,
                "directed": True,
                "local_iface_id": f"iface:{near}/{far}",
                "igp_metric": 1,
            }
            for near, far in ends
        ]
        + [
            {
                "id": f"attach:{host}:{at}",
                "type": "attachment",
                "src_id": host,
                "dst_id": at,
                "directed": True,
            }
            for host, at in hosts
        ],
    }


def _document_nodes(build: Build, usids: Usids) -> list[dict[str, Any]]:
    """The switches, each with its uSID."""
    topology = build.topology
    kinds = [topology.kinds[kind] for kind in topology.kind.tolist()]
    return [
        {
            "id": name,
            "name": name,
            "subtype": "switch",
            "labels": {
                "tier": "fabric",
                "topology": build.name,
                "absolute": "true" if kind == "W" else "false",
            },
            "srv6_node_sid": _sid(usids.carrier(usids.switch(vertex)), "End", 0),
        }
        for vertex, (name, kind) in enumerate(zip(build.wiring.names, kinds, strict=True))
    ]


def _document_interfaces(build: Build, usids: Usids) -> list[dict[str, Any]]:
    """The ports with a link to a switch, each with the uSIDs that cross the link."""
    wiring = build.wiring
    rank = np.cumsum(wiring.far >= 0, axis=1) - 1  # [S, K], the number of a link at its switch
    interfaces = []
    for switch, k in np.argwhere(wiring.far >= 0).tolist():
        name = wiring.names[switch]
        crossing = usids.carrier(usids.switch(switch), ADJACENCY + int(rank[switch, k]))
        interfaces.append(
            {
                "id": f"iface:{name}/{wiring.names[int(wiring.far[switch, k])]}",
                "owner_node_id": name,
                "name": f"{name}-{wiring.port_name(switch, int(wiring.port[switch, k]))}",
                "srv6_ua_sids": [_sid(crossing, "End.X", USID_BITS)],
            }
        )
    return interfaces


def _sid(address: str, behaviour: str, function: int) -> dict[str, Any]:
    """A SID with its behaviour and structure, as BGP carries it."""
    structure = {
        "locator_block_len": BLOCK_BITS,
        "locator_node_len": USID_BITS,
        "function_len": function,
        "argument_len": 0,
    }
    return {"sid": address, "behavior": behaviour, "structure": structure}
