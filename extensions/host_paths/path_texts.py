"""Path sets as hosts load them: iproute2 and FRR; and a fabric as controllers of SRv6 read it.

`polarfab hosts paths` prints these texts. A *path set* (`HostPathSet`) is the paths from a host to
another. A *carrier* is the IPv6 destination whose uSIDs steer a packet along a path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from compilers.tables.build import Build
from compilers.targets.routed.linux_tables import ROUTE_PROTOCOL
from extensions.host_paths.carrier_parts import BLOCK_BITS, USID_BITS
from extensions.host_paths.host_path_set import HostPathSet
from extensions.host_paths.path_sets import DECAPSULATE
from extensions.host_paths.usid_blocks import UsidBlock
from inventory.problems import InputError

FIRST_GROUP = 2_000_000_000
"""The id of the nexthop group of the path set to host 0 of the fabric; the other hosts follow.

The ids of target srv6 are all below, so that both can be loaded.
"""
FIRST_NEXTHOP = 3_000_000_000
"""The id of the first nexthop object of a path to host 0 of the fabric."""
NEXTHOPS_A_HOST = 1024
"""How many ids the paths to a host have, one for each entropy value."""
MOST_MEMBERS = 120
"""The most members of a nexthop group: iproute2 6.1 sends no more in one message."""


class _Gateway(NamedTuple):
    """Where the source host sends the packets of a plane."""

    address: str
    """The address of its switch in that plane."""
    interface: str
    """The interface of the host to it."""


def linux_batch(path_set: HostPathSet) -> Iterator[str]:
    """Yield lines for `ip -batch` that give the source host its paths.

    The first lines are those of each plane: the route to the plane's block of uSIDs, and the host's
    own SID if hosts take headers off. Then come a nexthop object for each path, their group, and
    the route to the destination. The kernel looks a carrier up again after the encapsulation, so
    the route of a block leads carriers into its plane.

    Raises:
        InputError: there are more paths than iproute2 takes in a group.
    """
    if len(path_set.paths) > MOST_MEMBERS:
        required = f"at most {MOST_MEMBERS} paths: iproute2 takes no more in a nexthop group"
        raise InputError.of(required, f"{len(path_set.paths)}", key="count")
    destination = _destination_number(path_set)
    first_nexthop = FIRST_NEXTHOP + NEXTHOPS_A_HOST * destination
    group, protocol = FIRST_GROUP + destination, f"protocol {ROUTE_PROTOCOL}"
    yield f"# {_title(path_set)}. For ip -batch.\n"
    for plane in sorted({path.plane for path in path_set.paths}):
        block = path_set.carriers.blocks[plane]
        yield f"route replace {block.network} {_next_hop(path_set, plane)} {protocol}\n"
        if path_set.carriers.at_host:
            sid = block.prefix(block.host(path_set.source.host), DECAPSULATE)
            action = "encap seg6local action End.DT6 table local dev lo table main"
            yield f"route replace local {sid} {action} {protocol}\n"
    for nexthop, path in enumerate(path_set.paths, first_nexthop):
        encap = f"encap seg6 mode encap.red segs {path_set.carrier(path)}"
        next_hop = _next_hop(path_set, path.plane)
        yield f"nexthop replace id {nexthop} {encap} {next_hop} {protocol}\n"
    members = (
        f"{nexthop},{weight}" for nexthop, weight in enumerate(path_set.weights, first_nexthop)
    )
    yield f"nexthop replace id {group} group {'/'.join(members)} {protocol}\n"
    source = path_set.builds[0].addressing.host6(path_set.source.switch, path_set.source.host)
    prefix = _destination_prefix(path_set)
    yield f"route replace {prefix} nhid {group} src {source} {protocol}\n"


def frr_lines(path_set: HostPathSet) -> Iterator[str]:
    """Yield static routes for FRR 10.7 and later: one into each plane, and one for each path."""
    yield f"! {_title(path_set)}. FRR 10.7 and later.\n"
    for plane in sorted({path.plane for path in path_set.paths}):
        gateway = _gateway(path_set, plane)
        block = path_set.carriers.blocks[plane].network
        yield f"ipv6 route {block} {gateway.address} {gateway.interface}\n"
    prefix = _destination_prefix(path_set)
    for path, weight in zip(path_set.paths, path_set.weights, strict=True):
        gateway = _gateway(path_set, path.plane)
        next_hop = f"{gateway.address} {gateway.interface}"
        segments = f"segments {path_set.carrier(path)} encap-behavior H_Encaps_Red"
        yield f"ipv6 route {prefix} {next_hop} {segments} weight {weight}\n"


def _title(path_set: HostPathSet) -> str:
    """The hosts and the builds of a path set, in words."""
    identities = " and ".join(build.identity for build in path_set.builds)
    return f"{path_set.source.name} to {path_set.destination.name}: build {identities}"


def _destination_number(path_set: HostPathSet) -> int:
    """The number of the destination among all hosts of the fabric."""
    width = int(path_set.builds[0].wiring.host_port.shape[1])
    return path_set.destination.switch * width + path_set.destination.host


def _destination_prefix(path_set: HostPathSet) -> str:
    """The prefix of the routes to the destination: its address in the first plane.

    It stands for the destination on all planes.
    """
    destination = path_set.destination
    return f"{path_set.builds[0].addressing.host6(destination.switch, destination.host)}/128"


def _gateway(path_set: HostPathSet, plane: int) -> _Gateway:
    """The source host's gateway in a plane."""
    address = path_set.builds[plane].addressing.network6(path_set.source.switch)[1]
    return _Gateway(str(address), path_set.carriers.interface_of(plane))


def _next_hop(path_set: HostPathSet, plane: int) -> str:
    """The next hop of a route of the source host in a plane, as `ip route` takes it."""
    gateway = _gateway(path_set, plane)
    return f"via {gateway.address} dev {gateway.interface}"


def fabric_document(build: Build, block: UsidBlock) -> dict[str, Any]:
    """A plane as the fabric JSON of the program segmentrouting/polarfly.

    Its keys are `topology_id`, `description`, `nodes` (switches), `interfaces` (ports with a link),
    `endpoints` (hosts) and `edges`. Each link is two directed edges; an edge also leads from each
    host to its switch. Links have the uSIDs that target srv6 gives them.
    """
    wiring, topology = build.wiring, build.topology
    names, width = wiring.names, wiring.host_port.shape[1]
    arcs = [
        (names[switch], names[int(wiring.far[switch, k])])
        for switch, k in np.argwhere(wiring.far >= 0).tolist()
    ]
    hosts = [
        (wiring.host_names[switch * width + host], names[switch])
        for switch, host in np.argwhere(wiring.host_port > 0).tolist()
    ]
    return {
        "topology_id": build.name,
        "description": f"{topology.title()}: {len(names)} switches, {len(arcs) // 2} fabric "
        f"links, {len(hosts)} hosts.",
        "nodes": _document_nodes(build, block),
        "interfaces": _document_interfaces(build, block),
        "endpoints": [
            {
                "id": host,
                "name": host,
                "subtype": "host",
                "labels": {"tier": "host", "switch": switch},
            }
            for host, switch in hosts
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
            for near, far in arcs
        ]
        + [
            {
                "id": f"attach:{host}:{switch}",
                "type": "attachment",
                "src_id": host,
                "dst_id": switch,
                "directed": True,
            }
            for host, switch in hosts
        ],
    }


def _document_nodes(build: Build, block: UsidBlock) -> list[dict[str, Any]]:
    """The switches, each with its uSID. *Absolute* are the quadrics, which PolarFly calls W."""
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
            "srv6_node_sid": _sid(block.carrier(block.switch(vertex)), "End", function_bits=0),
        }
        for vertex, (name, kind) in enumerate(zip(build.wiring.names, kinds, strict=True))
    ]


def _document_interfaces(build: Build, block: UsidBlock) -> list[dict[str, Any]]:
    """The ports with a link to a switch, each with the uSIDs that cross the link."""
    wiring = build.wiring
    rank = np.cumsum(wiring.far >= 0, axis=1) - 1  # [S, K], the number of a link at its switch
    interfaces = []
    for switch, k in np.argwhere(wiring.far >= 0).tolist():
        name = wiring.names[switch]
        over_link = block.carrier(block.switch(switch), block.link(int(rank[switch, k])))
        interfaces.append(
            {
                "id": f"iface:{name}/{wiring.names[int(wiring.far[switch, k])]}",
                "owner_node_id": name,
                "name": f"{name}-{wiring.port_name(switch, int(wiring.port[switch, k]))}",
                "srv6_ua_sids": [_sid(over_link, "End.X", function_bits=USID_BITS)],
            }
        )
    return interfaces


def _sid(address: str, behaviour: str, function_bits: int) -> dict[str, Any]:
    """A SID with its behaviour and structure (RFC 9252), as BGP carries it."""
    structure = {
        "locator_block_len": BLOCK_BITS,
        "locator_node_len": USID_BITS,
        "function_len": function_bits,
        "argument_len": 0,
    }
    return {"sid": address, "behavior": behaviour, "structure": structure}
