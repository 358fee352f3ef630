"""The srlinux target: a device config as JSON (RFC 7951) of the system's models (docs/srlinux.md).

A next hop group a link and address family, and routes that name it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.features import AGGREGATES
from compilers.targets.options import Chosen, choose
from compilers.targets.rendering import Renderer, Written
from compilers.targets.routed.interfaces import SRLINUX
from compilers.targets.routed.p2p_links import (
    COMMON,
    OPTIONS,
    P2P_UNREACHABLE,
    VLAN,
    Numbered,
    P2pRouter,
)
from compilers.targets.template_check import known

__all__ = ["CAPABILITIES", "FILES", "OPTIONS", "render"]

FILES = ("srlinux.json",)
VARIABLES = known(FILES, COMMON, "config")
MOST_ROUTES = 16_384
"""Static routes of a network instance, both families together: max-elements of the model."""
CAPABILITIES = Capabilities("srlinux", frozenset({AGGREGATES}), rows=MOST_ROUTES)
IRB, LOOPBACK = "irb0", "lo0"
NOWHERE = "nowhere"
"""The next hop group of the fabric's addresses without another route."""
Tree = dict[str, Any]
ROUTED: Tree = {"type": "srl_nokia-interfaces:routed"}
BRIDGED: Tree = {"type": "srl_nokia-interfaces:bridged"}


def render(
    build: Build,
    out: Path,
    templates: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    options: Chosen | None = None,
    only: Collection[int] | None = None,
) -> Written:
    """Write the files of every switch; see `compilers.targets.Target.render`."""
    chosen = choose("srlinux", OPTIONS, options)
    require(build, chosen)
    renderer = Renderer("srlinux", templates, VARIABLES, only)
    numbered = Numbered.of(build, SRLINUX, chosen)

    def write(vertex: int, name: str) -> None:
        values = numbered.variables(vertex)
        renderer.write(out / name, FILES, {**values, "config": config(values)})

    renderer.each(build, write, progress)
    return renderer.written


def require(build: Build, chosen: Chosen) -> None:  # noqa: ARG001
    """Pass when SR Linux can do what is asked; see `compilers.targets.Target.require`."""
    families = 2 if build.addressing.ipv6 else 1
    replace(CAPABILITIES, rows=MOST_ROUTES // families).require(build)


def config(values: Mapping[str, Any]) -> Tree:
    """A router as SR Linux's configuration.

    Args:
        values: the variables of its templates.
    """
    router: P2pRouter = values["router"]
    return {
        "srl_nokia-interfaces:interface": list(_interfaces(router)),
        "srl_nokia-network-instance:network-instance": list(_instances(router, values)),
        "srl_nokia-system:system": {"srl_nokia-system-name:name": {"host-name": router.hostname}},
    }


def _interfaces(router: P2pRouter) -> Iterator[Tree]:
    for link in router.links:
        inside = ROUTED | _addresses(link.ipv4, link.ipv6)
        yield _interface(link.interface, link.description, 0, inside)
    own = f"{router.ipv4}/{router.ipv4_length}", router.ipv6 and f"{router.ipv6}/64"
    for host in router.hosts:
        single = len(router.hosts) == 1
        inside = ROUTED | _addresses(*own) if single else BRIDGED
        yield _interface(host.interface, host.description, 0, inside)
    if not router.hosts:
        alone = _addresses(f"{router.ipv4}/32", router.ipv6 and f"{router.ipv6}/128")
        yield _interface(LOOPBACK, "router", 0, alone)
    if len(router.hosts) > 1:
        yield _interface(IRB, "hosts", VLAN, _addresses(*own))


def _interface(name: str, description: str, index: int, inside: Tree) -> Tree:
    return {
        "name": name,
        "description": description,
        "admin-state": "enable",
        "subinterface": [{"index": index, "admin-state": "enable", **inside}],
    }


def _addresses(ipv4: str, ipv6: str) -> Tree:
    return {
        family: {"admin-state": "enable", "address": [{"ip-prefix": address}]}
        for family, address in (("ipv4", ipv4), ("ipv6", ipv6))
        if address
    }


def _instances(router: P2pRouter, values: Mapping[str, Any]) -> Iterator[Tree]:
    routed = [f"{link.interface}.0" for link in router.links]
    hosts = [f"{host.interface}.0" for host in router.hosts]
    shared = f"{IRB}.{VLAN}"
    yield {
        "name": "default",
        "type": "srl_nokia-network-instance:default",
        "admin-state": "enable",
        "interface": _named([*routed, *([shared] if hosts[1:] else hosts or [f"{LOOPBACK}.0"])]),
        "srl_nokia-static-routes:static-routes": {"route": list(_routes(values))},
        "srl_nokia-next-hop-groups:next-hop-groups": {"group": list(_groups(router))},
    }
    if hosts[1:]:
        yield {
            "name": "hosts",
            "type": "srl_nokia-network-instance:mac-vrf",
            "admin-state": "enable",
            "interface": _named([*hosts, shared]),
        }


def _named(names: list[str]) -> list[Tree]:
    return [{"name": name} for name in names]


def _groups(router: P2pRouter) -> Iterator[Tree]:
    yield {"name": NOWHERE, "blackhole": {"generate-icmp": True}}
    for link in router.links:
        for family, gateway in (("ipv4", link.gateway4), ("ipv6", link.gateway6)):
            if gateway:
                hop = {"index": 1, "ip-address": gateway, "resolve": False}
                yield {"name": _group(link.interface, family), "nexthop": [hop]}


def _group(interface: str, family: str) -> str:
    return f"{interface}-{family}"


def _routes(values: Mapping[str, Any]) -> Iterator[Tree]:
    for family in ("ipv4", "ipv6"):
        if pool := values[f"{family}_pool"]:
            yield {"prefix": pool, "preference": P2P_UNREACHABLE, "next-hop-group": NOWHERE}
        for prefix, _, interface in values[f"{family}_routes"]:
            yield {"prefix": prefix, "next-hop-group": _group(interface, family)}
