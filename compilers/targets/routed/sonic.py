"""The sonic target: config_db.json, and frr.conf for the split-unified mode (docs/sonic.md).

The static routes stand in both: in STATIC_ROUTE, which bgpcfgd hands to FRR, and in frr.conf with
the tag that bgpcfgd gives routes it doesn't advertise, so that both name the same routes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.features import AGGREGATES, INGRESS, SHARES, WEIGHTS
from compilers.targets.options import Chosen, Option, Options, choice, choose
from compilers.targets.rendering import Renderer, Written
from compilers.targets.routed import p2p_links as links
from compilers.targets.routed.interfaces import SONIC
from compilers.targets.routed.p2p_links import (
    COMMON,
    P2P_UNREACHABLE,
    VLAN,
    HostPort,
    Numbered,
    P2pLink,
    P2pRouter,
)
from compilers.targets.routed.sonic_ports import Entry, Table, port_facts
from compilers.targets.routed.sonic_srv6 import AT_HOST, AT_SWITCH, BLOCK, OFF, SRV6, Srv6
from compilers.targets.routed.srv6_sids import parse_block
from compilers.targets.template_check import known

FILES = ("config_db.json", "frr.conf")
VARIABLES = known(FILES, COMMON, "config_db tag")
PORTS, HWSKU = "ports", "hwsku"
OPTIONS: Options = MappingProxyType(
    {
        **links.OPTIONS,
        PORTS: choice(
            "Lanes and speeds of ports: as the node type says, or left out.", "type", "keep"
        ),
        HWSKU: Option(
            "The hardware's name in DEVICE_METADATA; empty leaves it out.",
            "",
            "letters, digits and . _ -, at most 128",
            lambda text: re.fullmatch(r"[A-Za-z0-9._-]{0,128}", text) is not None,
        ),
        SRV6: choice(
            "SRv6 SIDs for the hosts of target srv6, by who takes the outer header off.",
            *(OFF, AT_HOST, AT_SWITCH),
        ),
        BLOCK: Option(
            "The block of the uSIDs.",
            "fc00::/32",
            "an IPv6 network of 32 bits such as fc00::/32",
            lambda text: parse_block(text) is not None,
        ),
    }
)
CAPABILITIES = Capabilities("sonic", frozenset({AGGREGATES}))
BY_HOSTS = Capabilities("sonic", frozenset({AGGREGATES, INGRESS, SHARES, WEIGHTS}))
"""With SRv6: hosts choose among paths, and switches only pass packets on."""
UNADVERTISED = 2
"""The tag that bgpcfgd gives routes with `advertise: false`."""


def render(
    build: Build,
    out: Path,
    templates: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    options: Chosen | None = None,
    only: Collection[int] | None = None,
) -> Written:
    """Write the files of every switch; see `compilers.targets.Target.render`."""
    chosen = choose("sonic", OPTIONS, options)
    require(build, chosen)
    renderer = Renderer("sonic", templates, VARIABLES, only)
    numbered = Numbered.of(build, SONIC, chosen)
    srv6 = Srv6.of(numbered, chosen) if chosen[SRV6] != OFF else None
    build = numbered.routed.build
    ports = port_facts(build) if chosen[PORTS] == "type" else []

    def write(vertex: int, name: str) -> None:
        values = dict(numbered.variables(vertex))
        if srv6:
            values["ipv6_routes"] += srv6.routes(vertex)
        facts = ports[int(build.wiring.node_type[vertex])] if ports else {}
        config = config_db(values, facts, chosen[HWSKU])
        config |= srv6.tables(vertex) if srv6 else {}
        variables = {**values, "config_db": config, "tag": UNADVERTISED}
        renderer.write(out / name, FILES, variables)

    renderer.each(build, write, progress)
    return renderer.written


def require(build: Build, chosen: Chosen) -> None:
    """Pass when SONiC can do what is asked; see `compilers.targets.Target.require`."""
    (CAPABILITIES if chosen[SRV6] == OFF else BY_HOSTS).require(build)


def config_db(values: Mapping[str, Any], facts: Table, hwsku: str) -> dict[str, Table]:
    """A router as the tables of CONFIG_DB; tables without entries are left out.

    Args:
        values: the variables of its templates.
        facts: lanes and speed by the name of a port; {} leaves those of the switch.
        hwsku: the hardware's name, "" where it is not said.
    """
    router: P2pRouter = values["router"]
    metadata = {
        "hostname": router.hostname,
        "type": "LeafRouter",
        "docker_routing_config_mode": "split-unified",
    }
    tables: dict[str, Table] = {
        "DEVICE_METADATA": {"localhost": metadata | ({"hwsku": hwsku} if hwsku else {})},
        "PORT": {name: port | facts.get(name, {}) for name, port in _ports(router)},
        "INTERFACE": {key: {} for key in _interfaces(router)},
        "STATIC_ROUTE": dict(_routes(values)),
        **_hosts(router),
    }
    return {name: table for name, table in tables.items() if table}


def _ports(router: P2pRouter) -> Iterator[tuple[str, Entry]]:
    ports: tuple[P2pLink | HostPort, ...] = (*router.links, *router.hosts)
    for port in ports:
        yield port.interface, {"admin_status": "up", "description": port.description}


def _interfaces(router: P2pRouter) -> Iterator[str]:
    for link in router.links:
        yield from _addressed(link.interface, link.ipv4, link.ipv6)
    if len(router.hosts) == 1:
        yield from _addressed(router.hosts[0].interface, *_gateways(router))


def _hosts(router: P2pRouter) -> dict[str, Table]:
    """The tables of a switch without hosts, or with several of them in one network."""
    if not router.hosts:
        own = f"{router.ipv4}/32", router.ipv6 and f"{router.ipv6}/128"
        return {"LOOPBACK_INTERFACE": {key: {} for key in _addressed("Loopback0", *own)}}
    if len(router.hosts) == 1:
        return {}
    name = f"Vlan{VLAN}"
    return {
        "VLAN": {name: {"vlanid": str(VLAN)}},
        "VLAN_MEMBER": {
            f"{name}|{host.interface}": {"tagging_mode": "untagged"} for host in router.hosts
        },
        "VLAN_INTERFACE": {key: {} for key in _addressed(name, *_gateways(router))},
    }


def _gateways(router: P2pRouter) -> tuple[str, str]:
    return f"{router.ipv4}/{router.ipv4_length}", router.ipv6 and f"{router.ipv6}/64"


def _addressed(name: str, *addresses: str) -> Iterator[str]:
    yield name
    for address in filter(None, addresses):
        yield f"{name}|{address}"


def _routes(values: Mapping[str, Any]) -> Iterator[tuple[str, Entry]]:
    for family in ("ipv4", "ipv6"):
        if pool := values[f"{family}_pool"]:
            nowhere = {"blackhole": "true", "distance": str(P2P_UNREACHABLE), "advertise": "false"}
            yield f"default|{pool}", nowhere
        for prefix, gateway, interface in values[f"{family}_routes"]:
            way = {"nexthop": gateway, "ifname": interface, "advertise": "false"}
            yield f"default|{prefix}", way
